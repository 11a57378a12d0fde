//! Operations `convert`, `compress` (`targetBytes`, `lossless`) and `resize`: target formats, qualities, what each
//! source can become.

use serde::{Deserialize, Serialize};

use super::{
    EDIT_QUALITY, OperationInput, clip,
    field::{Field, Kind},
    params::FieldError,
    reader::Reader,
    row::Row,
    sizing::{self, Sizing},
    timed,
    values::Values,
    writable,
};
use crate::{
    av::{AudioWork, AvTask, Transcode, VideoWork},
    format::{Class, Format},
    task::{Encode, Failure, FailureCode, PageSize, Render, Task},
};

/// Formats that a request may name; whether the source can become one is known with the source.
const TARGETS: &[Format] = &[
    Format::Jpg,
    Format::Png,
    Format::Webp,
    Format::Avif,
    Format::Tiff,
    Format::Gif,
    Format::Heif,
    Format::Jxl,
    Format::Svg,
    Format::Pdf,
    Format::Mp4,
    Format::Webm,
    Format::Mov,
    Format::Mkv,
    Format::Mp3,
    Format::Wav,
    Format::Ogg,
    Format::M4a,
    Format::Flac,
    Format::Zip,
];

/// Quality of `compress` unless the request gives one.
const USUAL_QUALITY: u8 = 82;
/// Highest quality that `compress` tries for `targetBytes` unless the request gives one.
const HIGHEST_TRIED_QUALITY: u8 = 95;

pub(super) const CONVERT: Row = Row {
    node: Some("convert"),
    fields: &[
        Field {
            alias: Some("outputFormat"),
            ..Field::new("format", Kind::Format(TARGETS), None, "the format to make")
        },
        sizing::PRESET,
        sizing::WIDTH,
        sizing::HEIGHT,
        Field::integer(
            "compression",
            1,
            100,
            Some("82"),
            "the encoder's quality, higher is better; unless it is given, video and audio that fit the format are copied",
        ),
        Field::flag(
            "autoOrient",
            "true",
            "turn an image by the camera's orientation",
        ),
        Field::flag("mono", "false", "trace to SVG as a silhouette"),
    ],
    ..Row::of_one_file(
        "convert",
        &[
            Class::Raster,
            Class::Vector,
            Class::Document,
            Class::Video,
            Class::Audio,
        ],
        "Converts a file into another format: of a video, gif and webp hold the first 30 s, other images the frame at 1 s",
    )
};

/// `POST /api/convert`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Convert {
    pub format: Format,
    /// Size of the result; not used for SVG and PDF, which keep the image's own size, and for audio.
    pub sizing: Sizing,
    pub quality: u8,
    /// The quality was asked for: video and audio that could be copied are encoded too.
    #[serde(default)]
    pub again: bool,
    pub auto_orient: bool,
    pub mono: bool,
}

impl Values for Convert {
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        Ok(Self {
            format: fields.format("format")?,
            sizing: Sizing::read(fields)?,
            quality: fields.integer("compression")?,
            again: fields.is_given("compression"),
            auto_orient: fields.flag("autoOrient")?,
            mono: fields.flag("mono")?,
        })
    }

    fn task(&self, source: &OperationInput, _: &[OperationInput]) -> Result<Task, Failure> {
        let source = source.format;
        if source.class().is_timed() {
            return self.of_clip(source);
        }
        match self.format.class() {
            Class::Raster => Ok(Task::Render(Box::new(self.render(source)))),
            Class::Vector => self.trace(source),
            Class::Document if source.is_image() => Ok(Task::ImagesToPdf {
                sources: vec![source],
                page_size: PageSize::Auto,
            }),
            Class::Document => Err(already(source)),
            Class::Video | Class::Audio => Err(self.mismatch(source, "video or audio")),
            Class::Archive => Err(Failure::internal(
                "an archive is packed by the service and no worker's task",
            )),
        }
    }

    fn output_format(&self, _: Format) -> Option<Format> {
        Some(self.format)
    }

    fn is_packing(&self) -> bool {
        self.format == Format::Zip
    }

    fn opens_archives(&self) -> bool {
        self.format.class() != Class::Archive
    }
}

impl Convert {
    fn render(&self, source: Format) -> Render {
        self.sizing.apply(Render {
            auto_orient: self.auto_orient,
            ..Render::new(source, Encode::new(self.format, self.quality))
        })
    }

    fn of_clip(&self, source: Format) -> Result<Task, Failure> {
        match (self.format.class(), source.class()) {
            (Class::Video, _) => {
                let video = VideoWork {
                    quality: self.quality,
                    again: self.again,
                    resize: self.sizing.resize(),
                    ..VideoWork::default()
                };
                let clip = timed::transcode(self.format, video, AudioWork::default());
                Ok(timed::task(AvTask::Transcode(clip)))
            }
            (Class::Audio, _) => {
                let kbps = timed::bitrate_of(self.quality);
                Ok(timed::audio(self.format, kbps, self.again))
            }
            (Class::Raster, Class::Video) if self.format.can_animate() => {
                let output = Encode::new(self.format, self.quality);
                Ok(clip::moving_image(self.sizing.resize(), output))
            }
            (Class::Raster, Class::Video) => Ok(timed::still(
                source,
                timed::default_timestamp(),
                self.render(source),
            )),
            (Class::Raster, _) => Err(Failure::new(
                FailureCode::UnsupportedType,
                format!(
                    "{} is made of what can be seen, and {} is {}: the tool waveform draws it",
                    self.format.name(),
                    source.name(),
                    source.class().noun()
                ),
            )),
            _ => Err(self.mismatch(source, "an image")),
        }
    }

    fn mismatch(&self, source: Format, of: &str) -> Failure {
        Failure::new(
            FailureCode::UnsupportedType,
            format!(
                "{} is made of {of}, and {} is {}",
                self.format.name(),
                source.name(),
                source.class().noun()
            ),
        )
    }

    fn trace(&self, source: Format) -> Result<Task, Failure> {
        match source.class() {
            Class::Raster => Ok(Task::Vectorize {
                source,
                mono: self.mono,
            }),
            Class::Vector => Err(already(source)),
            class => Err(Failure::new(
                FailureCode::Impossible,
                format!(
                    "svg is traced from a raster image, and this is {}: convert it to png first",
                    class.noun()
                ),
            )),
        }
    }
}

fn already(source: Format) -> Failure {
    Failure::new(
        FailureCode::Impossible,
        format!(
            "the file is {} already: choose another format",
            source.name()
        ),
    )
}

pub(super) const COMPRESS: Row = Row {
    node: Some("compress"),
    fields: &[
        Field::new(
            "mode",
            Kind::Choice(&["quality", "target-size"]),
            None,
            "quality unless targetBytes is given",
        ),
        Field::integer(
            "quality",
            1,
            100,
            None,
            "82; with targetBytes the highest that is tried, 95",
        ),
        Field::integer(
            "targetBytes",
            1,
            1 << 40,
            None,
            "of an image: the best quality whose file is not larger",
        ),
        Field::flag("lossless", "false", "of an image: change no pixel"),
        Field::flag(
            "stripMetadata",
            "false",
            "drop EXIF, XMP and IPTC, or the tags of video and audio",
        ),
    ],
    ..Row::of_one_file(
        "compress",
        &[Class::Raster, Class::Video, Class::Audio],
        "Makes a file smaller and keeps its format; video and audio that cannot be written in theirs become mp4, m4a or mp3",
    )
};

/// `POST /api/compress`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compress {
    /// Quality; with `target_bytes`, the highest that is tried.
    pub quality: u8,
    pub target_bytes: Option<u64>,
    pub lossless: bool,
    pub strip_metadata: bool,
}

impl Values for Compress {
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        let target: Option<u64> = fields.integer_if_given("targetBytes")?;
        let target_bytes = match fields.choice_if_given("mode")? {
            Some("quality") => None,
            Some(_) if target.is_none() => {
                return Err(fields.error("targetBytes", "mode target-size needs targetBytes"));
            }
            _ => target,
        };
        let lossless = fields.flag("lossless")?;
        if lossless && target_bytes.is_some() {
            return Err(fields.error(
                "lossless",
                "lossless leaves nothing to choose a size by: give it or targetBytes",
            ));
        }
        let highest = match target_bytes {
            Some(_) => HIGHEST_TRIED_QUALITY,
            None => USUAL_QUALITY,
        };
        Ok(Self {
            quality: fields.integer_if_given("quality")?.unwrap_or(highest),
            target_bytes,
            lossless,
            strip_metadata: fields.flag("stripMetadata")?,
        })
    }

    fn task(&self, source: &OperationInput, _: &[OperationInput]) -> Result<Task, Failure> {
        let source = source.format;
        if source.class().is_timed() {
            return self.of_clip(source);
        }
        check_written("compress", source)?;
        if self.lossless && source == Format::Jpg {
            return Err(Failure::new(
                FailureCode::Impossible,
                "jpg has no lossless form: leave lossless out, or convert to webp, avif or jxl",
            ));
        }
        let output = Encode {
            lossless: self.lossless,
            target_bytes: self.target_bytes,
            ..Encode::new(source, self.quality)
        };
        Ok(Task::Render(Box::new(Render {
            keep_metadata: !self.strip_metadata,
            ..Render::new(source, output)
        })))
    }

    fn output_format(&self, source: Format) -> Option<Format> {
        Some(match source.class().is_timed() {
            true => writable(source),
            false => source,
        })
    }

    fn opens_archives(&self) -> bool {
        true
    }
}

impl Compress {
    fn of_clip(&self, source: Format) -> Result<Task, Failure> {
        let impossible = |message: String| Err(Failure::new(FailureCode::Impossible, message));
        let (name, noun) = (source.name(), source.class().noun());
        if self.target_bytes.is_some() {
            return impossible(format!(
                "targetBytes is for images, and {name} is {noun}: give quality instead"
            ));
        }
        if self.lossless {
            return impossible(format!(
                "lossless is for images, and {name} is {noun}: leave it out"
            ));
        }
        let format = writable(source);
        if timed::is_lossless(format) {
            return impossible(format!(
                "{} keeps audio as it is and cannot be made smaller: convert it to mp3, m4a or ogg",
                format.name()
            ));
        }
        let video = VideoWork {
            quality: self.quality,
            again: true,
            ..VideoWork::default()
        };
        let audio = match source.class() {
            Class::Audio => AudioWork {
                again: true,
                bitrate_kbps: Some(timed::bitrate_of(self.quality)),
                ..AudioWork::default()
            },
            _ => AudioWork::default(),
        };
        Ok(timed::task(AvTask::Transcode(Transcode {
            keep_tags: !self.strip_metadata,
            ..timed::transcode(format, video, audio)
        })))
    }
}

/// Returns whether a file of that format can be made smaller in it.
pub(crate) fn can_compress(format: Format) -> bool {
    match format.class() {
        Class::Raster => format.is_image_target(),
        _ => format.is_timed_target() && !timed::is_lossless(format),
    }
}

/// Checks that the format can be written, for operations that keep it.
pub(super) fn check_written(tool: &str, source: Format) -> Result<(), Failure> {
    if source.is_image_target() || source.is_timed_target() {
        return Ok(());
    }
    Err(Failure::new(
        FailureCode::UnsupportedType,
        format!(
            "{tool} keeps the format, and {} cannot be written: convert it instead",
            source.name()
        ),
    ))
}

pub(super) const RESIZE: Row = Row {
    node: Some("resize"),
    fields: &[sizing::PRESET, sizing::WIDTH, sizing::HEIGHT],
    ..Row::of_one_file(
        "resize",
        &[Class::Raster, Class::Vector, Class::Document, Class::Video],
        "Makes an image or a video smaller by a preset or to fit inside the sides given",
    )
};

/// Keeps the format where it can be written, else makes a PNG or an MP4.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resizing {
    pub sizing: Sizing,
}

impl Values for Resizing {
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        let sizing = Sizing::read(fields)?;
        if sizing == Sizing::Original && !fields.is_given("resizePreset") {
            return Err(fields.error(
                "resizePreset",
                "resize needs resizePreset, resizeWidth or resizeHeight",
            ));
        }
        Ok(Self { sizing })
    }

    fn task(&self, source: &OperationInput, _: &[OperationInput]) -> Result<Task, Failure> {
        let source = source.format;
        if source.class().is_timed() {
            let video = VideoWork {
                resize: self.sizing.resize(),
                ..timed::edited()
            };
            return Ok(timed::same(source, video, AudioWork::default()));
        }
        let render = Render::new(source, Encode::new(writable(source), EDIT_QUALITY));
        Ok(Task::Render(Box::new(self.sizing.apply(render))))
    }
}
