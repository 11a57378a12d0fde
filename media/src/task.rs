//! Tasks of an image worker: render steps, encoding, limits, results, failure codes. The operation table and the image
//! address are turned into this plain data.
//!
//! A [`Task`] says everything that shapes the result and nothing about where bytes come from: inputs are numbered
//! descriptors, outputs come back in order. Steps of a [`Render`] run in the order of its fields.

use serde::{Deserialize, Serialize};

use crate::{
    av::{AvTask, MediaFacts},
    format::Format,
};

/// Long edge, in pixels, of an SVG that is rendered without a size.
const VECTOR_LONG_EDGE: u32 = 1024;

/// A task of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Task {
    /// Facts of input 0; no output.
    Inspect { format: Format },
    /// Input 0 (and, for a watermark, input 1) → output 0.
    Render(Box<Render>),
    /// Input 0, a raster → output 0, an SVG.
    Vectorize { source: Format, mono: bool },
    /// All inputs in order → output 0, a PDF with one page each.
    ImagesToPdf {
        sources: Vec<Format>,
        page_size: PageSize,
    },
    /// Facts (`members`) of input 0, a ZIP; no output.
    ListArchive,
    /// The member of that index of input 0, a ZIP → output 0, unpacked.
    ExtractMember { index: u32 },
    /// A few bytes of text to show while the image loads → output 0.
    Placeholder {
        source: Format,
        page: u32,
        style: Placeholder,
    },
    /// Video and audio, in a process of their own.
    Av(Box<AvTask>),
}

impl Task {
    /// Returns whether a source is drawn by its own instructions: SVG and PDF, in which a few bytes can ask for endless
    /// work.
    pub fn reads_document(&self) -> bool {
        let is_document = |format: &Format| matches!(format, Format::Svg | Format::Pdf);
        match self {
            Self::Inspect { format } => is_document(format),
            Self::Render(render) => {
                let overlay = render.watermark.as_ref().and_then(|it| it.image);
                is_document(&render.source) || overlay.as_ref().is_some_and(is_document)
            }
            Self::Vectorize { source, .. } | Self::Placeholder { source, .. } => {
                is_document(source)
            }
            Self::ImagesToPdf { sources, .. } => sources.iter().any(is_document),
            Self::ListArchive | Self::ExtractMember { .. } | Self::Av(_) => false,
        }
    }

    /// Returns whether only the deadline bounds its time. That of other tasks is bounded by the pixels of their input.
    pub fn may_run_long(&self) -> bool {
        match self {
            Self::Vectorize { .. } => true,
            Self::ImagesToPdf { sources, .. } => sources.len() > 1 || self.reads_document(),
            _ => self.reads_document(),
        }
    }

    /// Returns whether text is drawn. Its fonts are cached for the whole process, and a hostile document can leave that
    /// cache in a state in which later, valid ones fail.
    pub fn draws_text(&self) -> bool {
        let writes = |render: &Render| {
            let watermark = render.watermark.as_ref();
            watermark.is_some_and(|watermark| watermark.text.is_some())
        };
        self.reads_document() || matches!(self, Self::Render(render) if writes(render))
    }
}

/// Placeholder text: <https://blurha.sh> and <https://evanw.github.io/thumbhash/>.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placeholder {
    BlurHash,
    ThumbHash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageSize {
    /// Each page as large as its image at 72 dpi … 300 dpi, whatever makes it fit A4's height.
    Auto,
    Letter,
    A4,
}

/// One image → one image. Fields are in the order of the steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Render {
    pub source: Format,
    /// 1-based; of PDF, TIFF, HEIF. Ignored for one-page images.
    pub page: u32,
    /// True to keep every frame when source and output can be animated.
    pub animate: bool,
    /// True to turn by the EXIF orientation first; everything below counts in turned pixels.
    pub auto_orient: bool,
    /// True to crop a border of even colour.
    pub trim: bool,
    pub crop: Option<Crop>,
    pub resize: Option<Resize>,
    /// Long edge, in pixels, at which an SVG without `resize` is rendered.
    pub vector_long_edge: u32,
    /// Degrees clockwise, −360 to 360; corners of odd angles are filled with `background` or transparent.
    pub rotate: i32,
    pub flip: bool,
    pub flop: bool,
    pub adjust: Adjust,
    pub watermark: Option<Watermark>,
    /// Colour behind transparency and around a contained image; `None`: transparent, white where the output has no
    /// alpha.
    pub background: Option<Colour>,
    pub keep_metadata: bool,
    pub output: Encode,
    /// Render path, chosen by tests and benches; [`Path::Auto`] everywhere else.
    pub path: Path,
}

impl Render {
    /// The source as it is, oriented, in sRGB, without metadata, in another format.
    pub fn new(source: Format, output: Encode) -> Self {
        Self {
            source,
            page: 1,
            animate: true,
            auto_orient: true,
            trim: false,
            crop: None,
            resize: None,
            vector_long_edge: VECTOR_LONG_EDGE,
            rotate: 0,
            flip: false,
            flop: false,
            adjust: Adjust::default(),
            watermark: None,
            background: None,
            keep_metadata: false,
            output,
            path: Path::Auto,
        }
    }
}

/// Render path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Path {
    /// Planar where it can, else libvips.
    #[default]
    Auto,
    Planar,
    Vips,
}

/// A rectangle of the oriented source, in pixels; the part outside of it is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Crop {
    pub left: u32,
    pub top: u32,
    pub width: u32,
    pub height: u32,
}

/// The size asked for. At least one side is given.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resize {
    pub width: Option<u32>,
    pub height: Option<u32>,
    pub fit: Fit,
    pub gravity: Gravity,
    /// True when a raster may grow. Vectors are always rendered at the size.
    pub enlarge: bool,
    /// True when the canvas of [`Fit::Contain`] is as large as asked, although the image on it is smaller.
    pub exact_canvas: bool,
}

impl Resize {
    /// Crops evenly, and lets no raster grow.
    pub fn new(width: Option<u32>, height: Option<u32>, fit: Fit) -> Self {
        Self {
            width,
            height,
            fit,
            gravity: Gravity::CENTER,
            enlarge: false,
            exact_canvas: false,
        }
    }
}

words! {
    /// Fit of an image into a box.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Fit {
        /// Fills the box, crops what is outside of it.
        Cover = "cover",
        /// Fits into the box, fills the rest with background.
        Contain = "contain",
        /// Stretches to the box.
        Fill = "fill",
        /// Fits into the box.
        Inside = "inside",
        /// Fills the box, crops nothing.
        Outside = "outside",
    }
}

impl Fit {
    /// Parses the word that requests use.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|fit| fit.name() == word)
    }
}

/// Part that stays in a crop, and place of an image on a canvas.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gravity {
    /// The part that draws attention (edges, skin tones, saturation).
    Smart,
    /// Shares of width and height, 0 to 1: the centre is (0.5, 0.5), north is (0.5, 0).
    Point { x: f32, y: f32 },
}

impl Gravity {
    pub const CENTER: Self = Self::Point { x: 0.5, y: 0.5 };
}

/// Light and colour; [`Default`] changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adjust {
    /// Gaussian sigma in pixels of the output, 0: off.
    pub blur: f32,
    /// Sigma of an unsharp mask, 0: off.
    pub sharpen: f32,
    /// Factors, 1: unchanged.
    pub brightness: f32,
    pub contrast: f32,
    pub saturation: f32,
    /// Degrees.
    pub hue: f32,
    pub grayscale: bool,
    pub invert: bool,
}

impl Default for Adjust {
    fn default() -> Self {
        Self {
            blur: 0.0,
            sharpen: 0.0,
            brightness: 1.0,
            contrast: 1.0,
            saturation: 1.0,
            hue: 0.0,
            grayscale: false,
            invert: false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Watermark {
    /// Drawn when there is no `image`, and under it otherwise.
    pub text: Option<String>,
    /// The format of input 1.
    pub image: Option<Format>,
    /// 1 top left … 5 centre … 9 bottom right, in reading order.
    pub position: u8,
    /// 0 to 1.
    pub opacity: f32,
    /// Pixels from the edges.
    pub margin: u32,
    /// Width of the watermark in pixels; `None`: a fifth of the image's width.
    pub width: Option<u32>,
}

/// sRGB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Colour {
    pub red: u8,
    pub green: u8,
    pub blue: u8,
}

impl Colour {
    pub const WHITE: Self = Self {
        red: 255,
        green: 255,
        blue: 255,
    };

    /// Parses six hexadecimal digits, or three that each count twice, with or without a `#` before them.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('#').unwrap_or(text);
        let digits: Vec<u8> = text
            .chars()
            .map(|digit| digit.to_digit(16).map(|value| value as u8))
            .collect::<Option<_>>()?;
        let (red, green, blue) = match digits[..] {
            [r, g, b] => (r * 17, g * 17, b * 17),
            [r1, r2, g1, g2, b1, b2] => (r1 << 4 | r2, g1 << 4 | g2, b1 << 4 | b2),
            _ => return None,
        };
        Some(Self { red, green, blue })
    }
}

/// Six lower-case hexadecimal digits.
impl std::fmt::Display for Colour {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { red, green, blue } = self;
        write!(formatter, "{red:02x}{green:02x}{blue:02x}")
    }
}

/// Encoding of the result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Encode {
    pub format: Format,
    /// 1 to 100, higher is better.
    pub quality: u8,
    pub lossless: bool,
    /// The best quality, up to `quality`, whose result is not larger; the smallest tried when none fits.
    pub target_bytes: Option<u64>,
    pub effort: Effort,
}

impl Encode {
    pub fn new(format: Format, quality: u8) -> Self {
        Self {
            format,
            quality,
            lossless: false,
            target_bytes: None,
            effort: Effort::Balanced,
        }
    }
}

/// Time against bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Delivery: a client waits.
    Fast,
    /// Conversions.
    Balanced,
}

/// Limits of a worker; beyond one the task fails with [`FailureCode::TooLarge`] and the message names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Width × height of one page or frame of the source.
    pub max_pixels: u64,
    pub max_frames: u32,
    /// Pixels of all frames that are decoded together.
    pub max_total_pixels: u64,
    pub max_output_bytes: u64,
    /// Members of an archive.
    pub max_members: u32,
    /// Duration of a clip, in milliseconds (`av_workers.max_duration`).
    pub max_duration_ms: u64,
    /// The longer side of a clip's frames (`av_workers.max_side`).
    pub max_side: u32,
}

/// Result of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// Facts of the results, in the order of the outputs.
    pub outputs: Vec<OutputFacts>,
    /// Facts of an image, set by [`Task::Inspect`].
    pub image: Option<ImageFacts>,
    /// Members of an archive, set by [`Task::ListArchive`].
    pub members: Option<Vec<Member>>,
    /// Facts of the source, from work on video and audio.
    pub media: Option<MediaFacts>,
}

impl Done {
    /// Returns the facts of an inspection.
    pub fn facts(&self) -> serde_json::Value {
        match &self.media {
            Some(media) => serde_json::json!(media),
            None => serde_json::json!(self.image),
        }
    }

    /// Width and height of the inspected file, as shown.
    pub fn shown_size(&self) -> Option<(u32, u32)> {
        let frame_size = || Some(self.media.as_ref()?.video_track()?.shown_size());
        let image = self.image.as_ref().map(ImageFacts::shown_size);
        image.or_else(frame_size)
    }

    /// Returns the duration of the inspected file.
    pub fn duration_ms(&self) -> Option<u64> {
        self.media.as_ref()?.duration_ms
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputFacts {
    pub bytes: u64,
    pub format: Option<Format>,
    pub width: Option<u32>,
    pub height: Option<u32>,
    /// Frames of an animation, pages of a document; 1 for a still.
    pub pages: u32,
    /// Duration of video and audio.
    pub duration_ms: Option<u64>,
    /// The quality used, when a size was asked for.
    pub applied_quality: Option<u8>,
    /// Path that rendered.
    pub path: Option<Path>,
}

impl OutputFacts {
    /// Returns the facts of a result that is one page and no image.
    pub fn of(format: Option<Format>, bytes: usize) -> Self {
        Self {
            bytes: bytes as u64,
            format,
            width: None,
            height: None,
            pages: 1,
            duration_ms: None,
            applied_quality: None,
            path: None,
        }
    }
}

/// Facts of an image without decoding its pixels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageFacts {
    pub format: Format,
    /// Stored size, before orientation.
    pub width: u32,
    pub height: u32,
    /// EXIF, 1 to 8.
    pub orientation: u8,
    pub pages: u32,
    pub animated: bool,
    pub has_alpha: bool,
    pub bands: u32,
    pub bits_per_sample: u32,
    /// `srgb`, `cmyk`, `b-w`, `rgb16` …
    pub colour_space: String,
    /// The description inside an embedded ICC profile.
    pub profile: Option<String>,
    /// Frame delays in milliseconds, of an animation.
    pub delays: Vec<u32>,
    pub density_dpi: Option<f64>,
    /// EXIF tags by name, text, bounded in number and length; never GPS unless `inspect` was asked.
    pub exif: std::collections::BTreeMap<String, String>,
}

impl ImageFacts {
    /// EXIF orientations from here on turn the image by a quarter.
    const FIRST_TURNED: u8 = 5;

    /// Width and height as shown, after orientation.
    pub fn shown_size(&self) -> (u32, u32) {
        match self.orientation >= Self::FIRST_TURNED {
            true => (self.height, self.width),
            false => (self.width, self.height),
        }
    }
}

/// A file inside an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub index: u32,
    /// The last part of its path, without folders.
    pub filename: String,
    pub size: u64,
}

/// Reason why a task failed, for the client. Stable: clients and tests match on these words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// The bytes are not of a type that this operation reads (415).
    UnsupportedType,
    /// The type is known, and the bytes do not decode (415).
    Undecodable,
    /// Over a limit that the message names (413).
    TooLarge,
    /// The fields that were given do not go with this file (400).
    Invalid,
    /// The operation makes no sense on this image (422): a page that is not there, a crop outside.
    Impossible,
    /// The file killed its worker, twice (422).
    DecodeFailed,
    /// The time limit was exceeded (422).
    TimedOut,
    /// The output could not be written: the disk is full (507).
    NoSpace,
    /// A defect of ours (500).
    Internal,
}

/// A failed task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub code: FailureCode,
    /// Text for the user: what was expected and what came. No paths, no library's own words that could hold some.
    pub message: String,
}

impl Failure {
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}
