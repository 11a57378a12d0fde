//! Fields of operations: kinds, ranges, defaults, names of positions (`top-left` …). Parsers, the API's description and
//! agents' tool lists all read this one table.

/// A field of a row.
#[derive(Debug)]
pub struct Field {
    /// camelCase; requests may also use snake_case.
    pub name: &'static str,
    /// Another name that requests may use.
    pub alias: Option<&'static str>,
    pub kind: Kind,
    /// Default in the words of a request; `None`: the field may be absent, which the summary explains.
    pub default: Option<&'static str>,
    pub summary: &'static str,
}

/// Allowed values of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Any text of at most so many characters.
    Text {
        max_chars: usize,
    },
    /// A whole number.
    Integer {
        min: i64,
        max: i64,
    },
    Number {
        min: f64,
        max: f64,
    },
    /// true or false.
    Flag,
    /// A place in an image: a number from 1 to 9 in reading order, or one of [`POSITIONS`].
    Position,
    /// A word of the list.
    Choice(&'static [&'static str]),
    /// The name of a format that the operation writes, or an alias of one.
    Format(&'static [crate::format::Format]),
    /// A file beside the one that the operation is done on.
    File,
}

/// The names of an image's nine places, in reading order: the first is position 1.
pub const POSITIONS: [&str; 9] = [
    "top-left",
    "top",
    "top-right",
    "left",
    "center",
    "right",
    "bottom-left",
    "bottom",
    "bottom-right",
];

/// Parses a position, 1 to 9, of a number or a name; `_` and blanks count as hyphens, case does not matter.
pub(super) fn position(text: &str) -> Option<u8> {
    let name = text.trim().to_ascii_lowercase().replace(['_', ' '], "-");
    let name = match name.as_str() {
        "centre" | "middle" => "center",
        "top-center" | "top-centre" => "top",
        "bottom-center" | "bottom-centre" => "bottom",
        "center-left" | "centre-left" => "left",
        "center-right" | "centre-right" => "right",
        other => other,
    };
    let by_name = || POSITIONS.iter().position(|known| *known == name);
    let number = name.parse().ok().filter(|number| (1..=9).contains(number));
    number.or_else(|| Some(by_name()? as u8 + 1))
}

impl Field {
    pub(super) const fn new(
        name: &'static str,
        kind: Kind,
        default: Option<&'static str>,
        summary: &'static str,
    ) -> Self {
        Self {
            name,
            alias: None,
            kind,
            default,
            summary,
        }
    }

    pub(super) const fn integer(
        name: &'static str,
        min: i64,
        max: i64,
        default: Option<&'static str>,
        summary: &'static str,
    ) -> Self {
        Self::new(name, Kind::Integer { min, max }, default, summary)
    }

    pub(super) const fn number(
        name: &'static str,
        min: f64,
        max: f64,
        default: Option<&'static str>,
        summary: &'static str,
    ) -> Self {
        Self::new(name, Kind::Number { min, max }, default, summary)
    }

    /// A place in a clip.
    pub(super) const fn seconds(
        name: &'static str,
        default: &'static str,
        summary: &'static str,
    ) -> Self {
        /// 100 hours.
        const LAST: f64 = 360_000.0;
        Self::number(name, 0.0, LAST, Some(default), summary)
    }

    pub(super) const fn flag(
        name: &'static str,
        default: &'static str,
        summary: &'static str,
    ) -> Self {
        Self::new(name, Kind::Flag, Some(default), summary)
    }

    pub(super) const fn side(name: &'static str, summary: &'static str) -> Self {
        Self::integer(name, 1, crate::geometry::MAX_SIDE as i64, None, summary)
    }

    /// The name under which a list gives one value per file.
    pub fn plural(&self) -> String {
        match self.name.strip_suffix('y') {
            Some(stem) => format!("{stem}ies"),
            None if self.name.ends_with('s') => self.name.to_owned(),
            None => format!("{}s", self.name),
        }
    }

    /// Returns the allowed values, for a message: `1 to 100`, `one of jpg, png` …
    pub fn allowed(&self) -> String {
        match self.kind {
            Kind::Text { max_chars } => format!("text of at most {max_chars} characters"),
            Kind::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Number { min, max } => format!("a number from {min} to {max}"),
            Kind::Position => format!(
                "a whole number from 1 to 9, or one of {}",
                POSITIONS.join(", ")
            ),
            Kind::Flag => "true or false".to_owned(),
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
            Kind::Format(formats) => {
                let names: Vec<&str> = formats.iter().map(|format| format.name()).collect();
                format!("one of {}", names.join(", "))
            }
            Kind::File => "a file".to_owned(),
        }
    }
}
