//! Image requests of image addresses (`docs/guide/images.md`): parsing, cache key, largest side.
//!
//! Two queries that mean the same image have the same [`canonical`](VariantRequest::canonical) text, whatever their
//! order, aliases, defaults and unknown parameters; the text parses to the same request. With the folded Accept header
//! it is the key of every cache.

mod accept;
mod canonical;
mod control;
mod parameter;
mod quality;
mod query;
mod resolve;
#[cfg(test)]
mod tests;

pub use accept::AcceptClass;
pub use control::{Control, Panel};
pub use parameter::{Parameter, parameters};
pub use resolve::{FRAME, Resolved, SourceFacts};

pub use crate::operation::FieldError;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    format::Format,
    task::{Colour, Fit, Placeholder},
};
use parameter::GivenValues;
use quality::Quality;

/// The longest side of a delivered image, in pixels.
pub const MAX_SIDE: u32 = 8192;

/// Choices of the operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VariantSettings {
    /// True when `format=auto` may choose AVIF, which costs more to make than it saves on most pages.
    pub avif_in_auto: bool,
}

/// Kind of the wanted answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An image; `None`: in the format that suits the client.
    Image(Option<Format>),
    /// Facts of the source as JSON.
    Json,
    /// Text to show while the image loads.
    Placeholder(Placeholder),
}

/// A request for a variant of a stored image, in its simplest form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantRequest {
    wanted: VariantSpec,
    settings: VariantSettings,
    canonical: String,
}

/// The wanted variant after folding: every field that has no effect beside the others has its default.
#[derive(Clone, Debug, PartialEq, Eq)]
struct VariantSpec {
    kind: Kind,
    /// Pixels, with the density folded in.
    width: Option<u32>,
    height: Option<u32>,
    fit: Fit,
    /// `None`: the file's focal point, else the centre.
    place: Option<Anchor>,
    enlarge: bool,
    quality: Quality,
    /// Degrees clockwise, 0 to 359.
    rotate: i32,
    flip: bool,
    flop: bool,
    trim: bool,
    effects: Effects,
    background: Option<Colour>,
    page: u32,
    /// Milliseconds into a clip; images have none.
    at_ms: u32,
    /// The newest frame of a live input, whose id replaces a file's.
    live: bool,
}

/// The values of effects by their parameters, in steps; those that change nothing are left out.
type Effects = BTreeMap<&'static str, i32>;

/// The part of the image that stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    Smart,
    /// Thousandths of width and height.
    Point {
        x: i32,
        y: i32,
    },
}

impl VariantSpec {
    /// Default time in a clip: behind the black frame with which many begin.
    const AT_MS: u32 = 1000;

    /// The image itself, in the format that suits the client.
    fn plain(kind: Kind) -> Self {
        Self {
            kind,
            width: None,
            height: None,
            fit: Fit::Cover,
            place: None,
            enlarge: false,
            quality: Quality::DEFAULT,
            rotate: 0,
            flip: false,
            flop: false,
            trim: false,
            effects: Effects::new(),
            background: None,
            page: 1,
            at_ms: Self::AT_MS,
            live: false,
        }
    }
}

impl VariantRequest {
    /// Reads the query of a delivery URL, without its question mark.
    ///
    /// Unknown parameters and `v` are dropped. A parameter given twice counts when both say the same, and is rejected
    /// otherwise, as is one that is empty or out of range.
    pub fn parse(query: &str, settings: &VariantSettings) -> Result<Self, FieldError> {
        Self::from_pairs(query::pairs(query)?, settings)
    }

    /// Reads the parameters of a preset: a JSON object of texts, numbers and booleans.
    pub fn from_json(
        params: &Map<String, Value>,
        settings: &VariantSettings,
    ) -> Result<Self, FieldError> {
        Self::from_pairs(query::pairs_of_json(params)?, settings)
    }

    fn from_pairs(
        pairs: Vec<(String, String)>,
        settings: &VariantSettings,
    ) -> Result<Self, FieldError> {
        let wanted = GivenValues::read(&pairs)?.fold(settings);
        Ok(Self {
            canonical: canonical::text(&wanted),
            wanted,
            settings: *settings,
        })
    }

    /// Returns the one text for everything that means this; empty for the source as it is in the format that suits the
    /// client.
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    /// Returns the same request of a source in which no time passes; `None`: it is this one.
    pub fn timeless(&self) -> Option<Self> {
        if self.wanted.at_ms == VariantSpec::AT_MS {
            return None;
        }
        let wanted = VariantSpec {
            at_ms: VariantSpec::AT_MS,
            ..self.wanted.clone()
        };
        Some(Self {
            canonical: canonical::text(&wanted),
            wanted,
            settings: self.settings,
        })
    }

    /// Returns whether a live input's newest frame is requested, and no file.
    pub fn is_live(&self) -> bool {
        self.wanted.live
    }

    pub fn kind(&self) -> Kind {
        self.wanted.kind
    }

    /// Returns whether the answer depends on the Accept header.
    pub fn is_negotiated(&self) -> bool {
        self.wanted.kind == Kind::Image(None)
    }

    /// The canonical text, and where the answer is negotiated what of the Accept header matters to it.
    pub fn cache_key(&self, accept: AcceptClass) -> String {
        if !self.is_negotiated() {
            return self.canonical.clone();
        }
        let class = accept.as_far_as(self.settings.avif_in_auto).name();
        format!("{}|{class}", self.canonical)
    }
}
