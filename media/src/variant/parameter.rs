//! Parameters of image addresses (`w`, `h`, `dpr`, `q`, `format`, `fit`, `gravity`, `bg`, `t` …): ranges, aliases,
//! effect on each other.

use super::{
    Anchor, Effects, FieldError, Kind, MAX_SIDE, VariantSettings, VariantSpec,
    control::{Control, Panel},
    quality::Quality,
};
use crate::{
    format::Format,
    operation::{self, Effect, shorten},
    task::{Colour, Fit, Placeholder},
};

/// A parameter, for the API's description and for forms.
#[derive(Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub control: Control,
    pub panel: Panel,
    /// Allowed values: `a whole number from 1 to 100` …
    pub allowed: String,
    /// Default in the words of an address; `None`: the summary names it.
    pub default: Option<&'static str>,
    pub summary: &'static str,
}

/// Every parameter that has a meaning: those of this file, then the effects of the operation table.
pub fn parameters() -> impl Iterator<Item = Parameter> {
    let own = OWN.iter().map(Known::Own);
    own.chain(operation::effects().map(Known::Effect))
        .map(Known::describe)
}

/// A parameter that no effect is.
struct OwnParameter {
    name: &'static str,
    aliases: &'static [&'static str],
    control: Control,
    /// Text about further values that are allowed, which follows those of `control`.
    also: &'static str,
    panel: Panel,
    default: Option<&'static str>,
    summary: &'static str,
    /// Takes the value; `None` rejects it.
    read: fn(&mut GivenValues, &str) -> Option<()>,
}

#[derive(Clone, Copy)]
enum Known {
    Own(&'static OwnParameter),
    Effect(&'static Effect),
}

impl Known {
    fn find(name: &str) -> Option<Self> {
        let is_called = |own: &&OwnParameter| own.name == name || own.aliases.contains(&name);
        let own = OWN.iter().find(is_called).map(Self::Own);
        own.or_else(|| {
            let mut effects = operation::effects();
            effects
                .find(|effect| effect.parameter == name)
                .map(Self::Effect)
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Own(own) => own.name,
            Self::Effect(effect) => effect.parameter,
        }
    }

    fn control(self) -> Control {
        match self {
            Self::Own(own) => own.control,
            Self::Effect(effect) if effect.is_whole() => Control::Integer {
                min: effect.min.into(),
                max: effect.max.into(),
            },
            Self::Effect(effect) => Control::Number {
                min: effect.min.into(),
                max: effect.max.into(),
                step: 1.0 / f64::from(effect.steps),
            },
        }
    }

    fn allowed(self) -> String {
        let also = match self {
            Self::Own(own) => own.also,
            Self::Effect(_) => "",
        };
        self.control().allowed() + also
    }

    /// Takes the value; `None` rejects it.
    fn read(self, asked: &mut GivenValues, text: &str) -> Option<()> {
        match self {
            Self::Own(own) => (own.read)(asked, text),
            Self::Effect(effect) => {
                let steps = steps_of(effect, text)?;
                if steps != 0 {
                    asked.effects.insert(effect.parameter, steps);
                }
                Some(())
            }
        }
    }

    fn describe(self) -> Parameter {
        let (aliases, panel, default, summary) = match self {
            Self::Own(own) => (own.aliases, own.panel, own.default, own.summary),
            Self::Effect(effect) => (Default::default(), Panel::Colour, Some("0"), effect.summary),
        };
        Parameter {
            name: self.name(),
            aliases,
            control: self.control(),
            panel,
            allowed: self.allowed(),
            default,
            summary,
        }
    }
}

/// The values of a request as they were given.
#[derive(Default)]
pub(super) struct GivenValues {
    width: Option<u32>,
    height: Option<u32>,
    /// Hundredths.
    density: Option<i32>,
    quality: Option<Quality>,
    kind: Option<Kind>,
    fit: Option<Fit>,
    gravity: Option<Anchor>,
    focal_point: Option<Anchor>,
    enlarge: bool,
    rotate: i32,
    flip: bool,
    flop: bool,
    trim: bool,
    effects: Effects,
    background: Option<Colour>,
    page: Option<u32>,
    /// Milliseconds.
    at: Option<i32>,
    live: bool,
}

/// Most pixels per CSS pixel (`dpr`).
const MAX_DENSITY: f64 = 4.0;
/// Highest page number that a request may name (`page`).
const MAX_PAGE: u32 = 100_000;
/// Latest time in a clip (`t`), in seconds.
const LAST_S: f64 = 86_400.0;

const SIDE: Control = Control::Integer {
    min: 1,
    max: MAX_SIDE as i64,
};

const OWN: &[OwnParameter] = &[
    OwnParameter {
        name: "w",
        aliases: &["width"],
        control: SIDE,
        also: "",
        panel: Panel::Size,
        default: None,
        summary: "width in CSS pixels; without it the source's",
        read: |asked, text| set(&mut asked.width, whole(text, 1..=MAX_SIDE)),
    },
    OwnParameter {
        name: "h",
        aliases: &["height"],
        control: SIDE,
        also: "",
        panel: Panel::Size,
        default: None,
        summary: "height in CSS pixels; without it the source's",
        read: |asked, text| set(&mut asked.height, whole(text, 1..=MAX_SIDE)),
    },
    OwnParameter {
        name: "dpr",
        aliases: &[],
        control: Control::Number {
            min: 1.0,
            max: MAX_DENSITY,
            step: 0.01,
        },
        also: "",
        panel: Panel::Size,
        default: Some("1"),
        summary: "pixels per CSS pixel, 1 by default",
        read: |asked, text| set(&mut asked.density, scaled(text, 1.0..=MAX_DENSITY, 100.0)),
    },
    OwnParameter {
        name: "q",
        aliases: &["quality"],
        control: Control::Quality,
        also: "",
        panel: Panel::Format,
        default: Some("80"),
        summary: "quality, 80 by default; auto is auto:good and depends on the format and the sides asked for",
        read: |asked, text| set(&mut asked.quality, quality(text)),
    },
    OwnParameter {
        name: "format",
        aliases: &["f"],
        control: Control::Choice(&[
            "auto",
            "webp",
            "avif",
            "jpg",
            "png",
            "jxl",
            "gif",
            "json",
            "blurhash",
            "thumbhash",
        ]),
        also: "",
        panel: Panel::Format,
        default: Some("auto"),
        summary: "auto suits the client; gif and webp keep animation; json returns facts",
        read: |asked, text| set(&mut asked.kind, kind(text)),
    },
    OwnParameter {
        name: "fit",
        aliases: &[],
        control: Control::Choice(&["cover", "contain", "fill", "inside", "outside"]),
        also: " (also crop and min for cover, pad for contain, max, clip and scale-down for inside)",
        panel: Panel::Crop,
        default: Some("cover"),
        summary: "how the image meets a box of both sides, cover by default",
        read: |asked, text| set(&mut asked.fit, fit(text)),
    },
    OwnParameter {
        name: "gravity",
        aliases: &["g"],
        control: Control::Choice(&[
            "smart",
            "auto",
            "face",
            "entropy",
            "attention",
            "center",
            "north",
            "northeast",
            "east",
            "southeast",
            "south",
            "southwest",
            "west",
            "northwest",
        ]),
        also: "",
        panel: Panel::Crop,
        default: None,
        summary: "which part stays; by default the file's focal point, else the centre; auto, face, entropy and attention mean smart",
        read: |asked, text| set(&mut asked.gravity, gravity(text)),
    },
    OwnParameter {
        name: "fp",
        aliases: &[],
        control: Control::Point,
        also: "",
        panel: Panel::Crop,
        default: None,
        summary: "the point that stays, as shares of width and height; goes before gravity",
        read: |asked, text| set(&mut asked.focal_point, point(text)),
    },
    OwnParameter {
        name: "enlarge",
        aliases: &[],
        control: Control::Flag,
        also: "",
        panel: Panel::Size,
        default: Some("false"),
        summary: "whether the image may grow",
        read: |asked, text| flag(&mut asked.enlarge, text),
    },
    OwnParameter {
        name: "rotate",
        aliases: &[],
        control: Control::Integer {
            min: -360,
            max: 360,
        },
        also: "",
        panel: Panel::Turn,
        default: Some("0"),
        summary: "degrees clockwise",
        read: |asked, text| put(&mut asked.rotate, whole(text, -360..=360)),
    },
    OwnParameter {
        name: "flip",
        aliases: &[],
        control: Control::Flag,
        also: "",
        panel: Panel::Turn,
        default: Some("false"),
        summary: "upside down",
        read: |asked, text| flag(&mut asked.flip, text),
    },
    OwnParameter {
        name: "flop",
        aliases: &[],
        control: Control::Flag,
        also: "",
        panel: Panel::Turn,
        default: Some("false"),
        summary: "left to right",
        read: |asked, text| flag(&mut asked.flop, text),
    },
    OwnParameter {
        name: "trim",
        aliases: &[],
        control: Control::Flag,
        also: "",
        panel: Panel::Crop,
        default: Some("false"),
        summary: "cut away a border of even colour",
        read: |asked, text| flag(&mut asked.trim, text),
    },
    OwnParameter {
        name: "bg",
        aliases: &["background"],
        control: Control::Colour,
        also: "",
        panel: Panel::Colour,
        default: None,
        summary: "what is shown behind transparency and around a contained image",
        read: |asked, text| {
            asked.background = background(text)?;
            Some(())
        },
    },
    OwnParameter {
        name: "page",
        aliases: &[],
        control: Control::Integer {
            min: 1,
            max: MAX_PAGE as i64,
        },
        also: "",
        panel: Panel::Source,
        default: Some("1"),
        summary: "page of a document, counted from 1, which is the default",
        read: |asked, text| set(&mut asked.page, whole(text, 1..=MAX_PAGE)),
    },
    OwnParameter {
        name: "t",
        aliases: &[],
        control: Control::Number {
            min: 0.0,
            max: LAST_S,
            step: 0.001,
        },
        also: "",
        panel: Panel::Source,
        default: Some("1"),
        summary: "seconds into a video, whose frame there is delivered, 1 by default; behind the end the last one; has no effect on images",
        read: |asked, text| set(&mut asked.at, scaled(text, 0.0..=LAST_S, 1000.0)),
    },
    OwnParameter {
        name: "frame",
        aliases: &[],
        control: Control::Choice(&["live"]),
        also: ", on a live input's id",
        panel: Panel::Source,
        default: None,
        summary: "the newest frame of a live input, good for 5 s",
        read: |asked, text| {
            asked.live = text == "live";
            asked.live.then_some(())
        },
    },
];

impl GivenValues {
    /// Reads known parameters; the others are ignored.
    pub(super) fn read(pairs: &[(String, String)]) -> Result<Self, FieldError> {
        let mut asked = Self::default();
        let mut seen: Vec<(&str, &str)> = Vec::new();
        for (name, text) in pairs {
            let Some(parameter) = Known::find(name) else {
                continue;
            };
            let earlier = seen.iter().find(|(seen, _)| *seen == parameter.name());
            match earlier {
                Some((_, earlier)) if *earlier != text => {
                    return Err(given_twice(name, earlier, text));
                }
                Some(_) => {}
                None => {
                    let read = parameter.read(&mut asked, text);
                    read.ok_or_else(|| rejected(parameter, text))?;
                    seen.push((parameter.name(), text));
                }
            }
        }
        Ok(asked)
    }

    /// Puts everything that has no effect beside the rest to its default.
    pub(super) fn fold(self, settings: &VariantSettings) -> VariantSpec {
        let kind = self.kind.unwrap_or(Kind::Image(None));
        let plain = VariantSpec {
            live: self.live,
            ..VariantSpec::plain(kind)
        };
        let page = self.page.unwrap_or(1);
        let at_ms = self.at.map_or(VariantSpec::AT_MS, i32::unsigned_abs);
        let format = match kind {
            Kind::Json => return plain,
            Kind::Placeholder(_) => {
                return VariantSpec {
                    page,
                    at_ms,
                    ..plain
                };
            }
            Kind::Image(format) => format,
        };
        let (width, height) = self.sides();
        let is_boxed = width.is_some() && height.is_some();
        let fit = self.fit.filter(|_| is_boxed).unwrap_or(Fit::Cover);
        let has_place = is_boxed && matches!(fit, Fit::Cover | Fit::Contain);
        let quality = self.quality.unwrap_or(Quality::DEFAULT);
        VariantSpec {
            width,
            height,
            fit,
            place: self.focal_point.or(self.gravity).filter(|_| has_place),
            enlarge: self.enlarge && (width.is_some() || height.is_some()),
            quality: quality.settled(format, width.max(height), settings.avif_in_auto),
            rotate: self.rotate.rem_euclid(360),
            flip: self.flip,
            flop: self.flop,
            trim: self.trim,
            effects: self.effects,
            background: self.background.filter(|colour| is_seen(*colour, format)),
            page,
            at_ms,
            kind,
            live: self.live,
        }
    }

    /// Sides in pixels. Where the density would make one larger than may be, it is lowered, so that the aspect stays.
    fn sides(&self) -> (Option<u32>, Option<u32>) {
        let longest = self.width.max(self.height).unwrap_or(1).max(1);
        let density = f64::from(self.density.unwrap_or(100)) / 100.0;
        let density = density.min(f64::from(MAX_SIDE) / f64::from(longest));
        let pixels = |side: u32| (f64::from(side) * density).round() as u32;
        (self.width.map(pixels), self.height.map(pixels))
    }
}

/// Returns whether the colour has an effect: where the format has no transparency, white is behind it anyway.
fn is_seen(background: Colour, format: Option<Format>) -> bool {
    let is_default = format.is_some_and(|format| !format.has_alpha());
    !(is_default && background == Colour::WHITE)
}

fn rejected(parameter: Known, text: &str) -> FieldError {
    let (name, allowed) = (parameter.name(), parameter.allowed());
    FieldError::new(
        name,
        format!("{name} must be {allowed}, got `{}`", shorten(text)),
    )
}

fn given_twice(name: &str, first: &str, second: &str) -> FieldError {
    FieldError::new(
        name,
        format!(
            "{name} is given twice, as `{}` and `{}`: leave one out",
            shorten(first),
            shorten(second)
        ),
    )
}

fn set<T>(field: &mut Option<T>, value: Option<T>) -> Option<()> {
    *field = Some(value?);
    Some(())
}

fn put<T>(field: &mut T, value: Option<T>) -> Option<()> {
    *field = value?;
    Some(())
}

fn flag(field: &mut bool, text: &str) -> Option<()> {
    *field = match text.to_ascii_lowercase().as_str() {
        "1" | "true" => true,
        "0" | "false" => false,
        _ => return None,
    };
    Some(())
}

fn whole<N: std::str::FromStr + PartialOrd>(
    text: &str,
    range: std::ops::RangeInclusive<N>,
) -> Option<N> {
    text.parse().ok().filter(|number| range.contains(number))
}

/// Parses a decimal number in whole steps of 1 / `scale`: finer ones would only multiply variants.
fn scaled(text: &str, range: std::ops::RangeInclusive<f64>, scale: f64) -> Option<i32> {
    let is_decimal = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = text.parse().ok().filter(|_| is_decimal)?;
    range
        .contains(&number)
        .then(|| (number * scale).round() as i32)
}

/// The value of an effect in its steps.
fn steps_of(effect: &Effect, text: &str) -> Option<i32> {
    if effect.is_whole() {
        return whole(text, effect.min..=effect.max);
    }
    let range = f64::from(effect.min)..=f64::from(effect.max);
    scaled(text, range, f64::from(effect.steps))
}

fn kind(text: &str) -> Option<Kind> {
    Some(match text.to_ascii_lowercase().as_str() {
        "auto" => Kind::Image(None),
        "json" => Kind::Json,
        "blurhash" => Kind::Placeholder(Placeholder::BlurHash),
        "thumbhash" => Kind::Placeholder(Placeholder::ThumbHash),
        "jpeg" => Kind::Image(Some(Format::Jpg)),
        word @ ("webp" | "avif" | "jpg" | "png" | "jxl" | "gif") => {
            Kind::Image(Some(Format::parse(word)?))
        }
        _ => return None,
    })
}

fn quality(text: &str) -> Option<Quality> {
    let number = || whole(text, 1..=100).map(Quality::Number);
    Quality::parse_auto(&text.to_ascii_lowercase()).or_else(number)
}

/// Parses our names, and those that the image components of web frameworks send to other services.
fn fit(text: &str) -> Option<Fit> {
    match text.to_ascii_lowercase().as_str() {
        "crop" | "min" => Some(Fit::Cover),
        "pad" => Some(Fit::Contain),
        "max" | "clip" | "scale-down" => Some(Fit::Inside),
        name => Fit::parse(name),
    }
}

fn gravity(text: &str) -> Option<Anchor> {
    let (x, y) = match text.to_ascii_lowercase().as_str() {
        "smart" | "auto" | "face" | "faces" | "entropy" | "attention" => {
            return Some(Anchor::Smart);
        }
        "center" | "centre" => (500, 500),
        "north" => (500, 0),
        "northeast" => (1000, 0),
        "east" => (1000, 500),
        "southeast" => (1000, 1000),
        "south" => (500, 1000),
        "southwest" => (0, 1000),
        "west" => (0, 500),
        "northwest" => (0, 0),
        _ => return None,
    };
    Some(Anchor::Point { x, y })
}

fn point(text: &str) -> Option<Anchor> {
    let (x, y) = text.split_once(',')?;
    let share = |text: &str| scaled(text.trim(), 0.0..=1.0, 1000.0);
    Some(Anchor::Point {
        x: share(x)?,
        y: share(y)?,
    })
}

/// Inner `None`: transparent, as without a background.
fn background(text: &str) -> Option<Option<Colour>> {
    if text.eq_ignore_ascii_case("transparent") {
        return Some(None);
    }
    Colour::parse(text).map(Some)
}
