//! Kinds of values of image address parameters (number, flag, choice, colour, point): their texts, ranges, panels of
//! the builder.

/// Kind of the values of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control {
    /// A whole number.
    Integer { min: i64, max: i64 },
    /// A decimal number; finer ones than `step` count as the nearest step.
    Number { min: f64, max: f64, step: f64 },
    /// On or off.
    Flag,
    /// A word of the list.
    Choice(&'static [&'static str]),
    /// A whole number from 1 to 100, or one of [`QUALITIES`].
    Quality,
    /// Six or three hexadecimal digits, or `transparent`.
    Colour,
    /// Two shares from 0 to 1 with a comma between them.
    Point,
}

/// The qualities that depend on format and sides.
pub const QUALITIES: &[&str] = &["auto", "auto:best", "auto:good", "auto:eco", "auto:low"];

words! {
    /// Part of a builder of addresses where a parameter belongs.
    pub enum Panel {
        Size = "size",
        Format = "format",
        Crop = "crop",
        Turn = "turn",
        Colour = "colour",
        /// Page, time or frame of the source.
        Source = "source",
    }
}

impl Control {
    /// Name of the input in a form.
    pub fn name(self) -> &'static str {
        match self {
            Self::Integer { .. } => "integer",
            Self::Number { .. } => "number",
            Self::Flag => "flag",
            Self::Choice(_) => "choice",
            Self::Quality => "quality",
            Self::Colour => "colour",
            Self::Point => "point",
        }
    }

    /// Type as in JSON Schema: string, integer, number, boolean.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Integer { .. } => "integer",
            Self::Number { .. } => "number",
            Self::Flag => "boolean",
            Self::Choice(_) | Self::Quality | Self::Colour | Self::Point => "string",
        }
    }

    /// The allowed words, where there is a list; else empty.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            Self::Choice(words) => words,
            Self::Quality => QUALITIES,
            _ => &[],
        }
    }

    /// The smallest and the largest number; `None` for everything that is no number.
    pub fn range(self) -> Option<(f64, f64)> {
        match self {
            Self::Integer { min, max } => Some((min as f64, max as f64)),
            Self::Number { min, max, .. } => Some((min, max)),
            Self::Quality => Some((1.0, 100.0)),
            _ => None,
        }
    }

    pub fn step(self) -> Option<f64> {
        match self {
            Self::Integer { .. } | Self::Quality => Some(1.0),
            Self::Number { step, .. } => Some(step),
            _ => None,
        }
    }

    /// Returns the allowed values, for a message: `a whole number from 1 to 100` …
    pub fn allowed(self) -> String {
        match self {
            Self::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Self::Number { min, max, .. } => format!("a number from {min} to {max}"),
            Self::Flag => "1, 0, true or false".to_owned(),
            Self::Choice([only]) => (*only).to_owned(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Quality => match QUALITIES {
                [others @ .., last] => format!(
                    "a whole number from 1 to 100, {} or {last}",
                    others.join(", ")
                ),
                [] => "a whole number from 1 to 100".to_owned(),
            },
            Self::Colour => "a colour as rrggbb or rgb, or transparent".to_owned(),
            Self::Point => "two numbers from 0 to 1, as in 0.5,0.3".to_owned(),
        }
    }
}
