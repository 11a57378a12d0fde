//! Quality of delivered images: `q=auto`, `auto:best`, `auto:eco`, `auto:low`, default 80, numbers for AVIF and others.

use std::fmt::{Display, Formatter};

use crate::format::Format;

/// Sides from which artefacts are too small to see, so that fewer bytes do.
const LARGE: u32 = 2_000;
/// Sides up to which artefacts show most, while bytes are few.
const SMALL: u32 = 256;
/// Change of a level's number for large and small images.
const STEP: u8 = 5;

/// The quality of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quality {
    /// 1 to 100, whatever the format.
    Number(u8),
    /// A number that depends on the format.
    Auto(Level),
}

/// Aim of `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Best,
    Good,
    Eco,
    Low,
}

impl Quality {
    pub(super) const DEFAULT: Self = Self::Number(80);

    /// Reads `auto`, which is `auto:good`, or `auto:` and a level, in lower case.
    pub(super) fn parse_auto(text: &str) -> Option<Self> {
        let level = match text.strip_prefix("auto")? {
            ":best" => Level::Best,
            "" | ":good" => Level::Good,
            ":eco" => Level::Eco,
            ":low" => Level::Low,
            _ => return None,
        };
        Some(Self::Auto(level))
    }

    /// A number as soon as it is certain: in a named format, and where every format that may be negotiated has the same
    /// one. Two requests for the same bytes then have one cache key.
    pub(super) fn settled(
        self,
        format: Option<Format>,
        longest_side: Option<u32>,
        avif_in_auto: bool,
    ) -> Self {
        match format {
            None if avif_in_auto => self,
            format => Self::Number(self.of(format.unwrap_or(Format::Jpg), longest_side)),
        }
    }

    /// The encoder's number for this format and the longer of the sides asked for.
    pub(super) fn of(self, format: Format, longest_side: Option<u32>) -> u8 {
        let level = match self {
            Self::Number(number) => return number,
            Self::Auto(level) => level,
        };
        let number = level.number(format);
        match longest_side {
            Some(side) if side >= LARGE => number - STEP,
            Some(side) if side <= SMALL => number + STEP,
            _ => number,
        }
    }
}

impl Level {
    /// AVIF looks as good as the others at a lower number. All other formats that are negotiated have one number, see
    /// [`Quality::settled`].
    fn number(self, format: Format) -> u8 {
        let is_avif = format == Format::Avif;
        match self {
            Self::Best if is_avif => 75,
            Self::Best => 90,
            Self::Good if is_avif => 60,
            Self::Good => 80,
            Self::Eco if is_avif => 48,
            Self::Eco => 65,
            Self::Low if is_avif => 35,
            Self::Low => 50,
        }
    }
}

impl Display for Quality {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(formatter),
            Self::Auto(Level::Good) => formatter.write_str("auto"),
            Self::Auto(Level::Best) => formatter.write_str("auto:best"),
            Self::Auto(Level::Eco) => formatter.write_str("auto:eco"),
            Self::Auto(Level::Low) => formatter.write_str("auto:low"),
        }
    }
}
