//! Operation `adjust`: brightness, contrast, saturation, hue, sharpen, volume, fades; image address effects `blur`,
//! `sharp`, `bri`, `con`, `sat`.

use serde::{Deserialize, Serialize};

use super::{
    EDIT_QUALITY, OperationInput, effect::Effect, field::Field, params::FieldError, reader::Reader,
    row::Row, timed, values::Values, writable,
};
use crate::{
    av::{AudioWork, VideoWork},
    format::{Class, Format},
    task::{Adjust, Encode, Failure, FailureCode, Render, Task},
};

pub(super) const ADJUST: Row = Row {
    node: Some("adjust"),
    fields: &[
        factor("brightness", "a factor, 1 changes nothing"),
        factor("saturation", "a factor, 1 changes nothing"),
        factor("contrast", "a factor, 1 changes nothing"),
        Field::number(
            "hue",
            -360.0,
            360.0,
            Some("0"),
            "degrees around the colour wheel",
        ),
        Field::flag("grayscale", "false", "drop the colour"),
        Field::flag("invert", "false", "make a negative"),
        Field::number("sharpen", 0.0, 10.0, Some("0"), "sigma in pixels, 0 is off"),
        factor("volume", "of the audio: a factor, 1 changes nothing"),
        Field::flag(
            "normalize",
            "false",
            "bring the audio to a loudness of −16 LUFS",
        ),
        fade("fadeIn", "of the audio, seconds from the beginning"),
        fade("fadeOut", "of the audio, seconds to the end"),
    ],
    effects: &[
        Effect {
            parameter: "blur",
            min: 0,
            max: 100,
            steps: 100,
            summary: "Gaussian sigma in pixels of the result",
            apply: |adjust, sigma| adjust.blur = sigma,
        },
        Effect {
            parameter: "sharp",
            min: 0,
            max: 10,
            steps: 100,
            summary: "sigma of an unsharp mask",
            apply: |adjust, sigma| adjust.sharpen = sigma,
        },
        change("bri", "brightness, per cent of change", |adjust, change| {
            adjust.brightness *= factor_of(change)
        }),
        change("con", "contrast, per cent of change", |adjust, change| {
            adjust.contrast *= factor_of(change)
        }),
        change("sat", "saturation, per cent of change", |adjust, change| {
            adjust.saturation *= factor_of(change)
        }),
    ],
    ..Row::of_one_file(
        "adjust",
        &[Class::Raster, Class::Vector, Class::Video, Class::Audio],
        "Changes light and colour of images, and the loudness of audio",
    )
};

/// Largest brightness, saturation, contrast and volume.
const MAX_FACTOR: f64 = 10.0;
/// Longest fade of audio, in seconds.
const LONGEST_FADE_S: f64 = 600.0;

const fn factor(name: &'static str, summary: &'static str) -> Field {
    Field::number(name, 0.0, MAX_FACTOR, Some("1"), summary)
}

const fn fade(name: &'static str, summary: &'static str) -> Field {
    Field::number(name, 0.0, LONGEST_FADE_S, Some("0"), summary)
}

const fn change(
    parameter: &'static str,
    summary: &'static str,
    apply: fn(&mut Adjust, f32),
) -> Effect {
    Effect {
        parameter,
        min: -100,
        max: 100,
        steps: 1,
        summary,
        apply,
    }
}

fn factor_of(per_cent: f32) -> f32 {
    (100.0 + per_cent) / 100.0
}

const SEEN: &str = "brightness, saturation, contrast, hue, grayscale, invert or sharpen";
const HEARD: &str = "volume, normalize, fadeIn or fadeOut";

/// Keeps the format where it can be written, else makes a PNG, an MP4 or an MP3.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adjusting {
    /// Changes of the image; not used for audio.
    pub adjust: Adjust,
    /// Changes of the audio; not used for images. Jobs of earlier versions have none.
    #[serde(default)]
    pub audio: AudioWork,
}

impl Values for Adjusting {
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        Ok(Self {
            adjust: Adjust {
                blur: 0.0,
                sharpen: fields.number("sharpen")? as f32,
                brightness: fields.number("brightness")? as f32,
                contrast: fields.number("contrast")? as f32,
                saturation: fields.number("saturation")? as f32,
                hue: fields.number("hue")? as f32,
                grayscale: fields.flag("grayscale")?,
                invert: fields.flag("invert")?,
            },
            audio: AudioWork {
                volume: fields.number("volume")? as f32,
                normalize: fields.flag("normalize")?,
                fade_in_s: fields.number("fadeIn")? as f32,
                fade_out_s: fields.number("fadeOut")? as f32,
                ..AudioWork::default()
            },
        })
    }

    fn task(&self, source: &OperationInput, _: &[OperationInput]) -> Result<Task, Failure> {
        let source = source.format;
        self.check(source)?;
        if source.class().is_timed() {
            let video = VideoWork {
                adjust: self.adjust,
                ..timed::edited()
            };
            return Ok(timed::same(source, video, self.audio));
        }
        Ok(Task::Render(Box::new(Render {
            adjust: self.adjust,
            ..Render::new(source, Encode::new(writable(source), EDIT_QUALITY))
        })))
    }
}

impl Adjusting {
    /// Rejects a request that would only copy the file: none of its fields applies to such files.
    fn check(&self, source: Format) -> Result<(), Failure> {
        let class = source.class();
        let (has_image, has_audio) = (class != Class::Audio, class.is_timed());
        let (is_seen, is_heard) = (
            self.adjust != Adjust::default(),
            self.audio.changes_loudness(),
        );
        let applicable = match (is_seen, is_heard) {
            (true, false) if !has_image => HEARD,
            (false, true) if !has_audio => SEEN,
            _ => return Ok(()),
        };
        Err(Failure::new(
            FailureCode::Invalid,
            format!(
                "nothing that is asked for would change {}, which is {}: give {applicable}",
                source.name(),
                class.noun()
            ),
        ))
    }
}
