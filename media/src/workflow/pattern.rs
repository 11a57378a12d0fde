//! Rename patterns of workflows (`{original}-{format}`, `{date}`, `{width}`, `{n}`): placeholders, longest pattern,
//! default.

use crate::{
    format::Format,
    operation::{FieldError, shorten},
};

/// The pattern of a rename node where neither it nor the definition gives one.
pub const DEFAULT_PATTERN: &str = "{original}-{format}";
/// Characters of a pattern.
pub(super) const MAX_CHARS: usize = 255;

/// A pattern, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Placeholder(Placeholder),
}

words! {
    /// Placeholders of a name.
    pub(super) enum Placeholder {
        Original = "original",
        Format = "format",
        Date = "date",
        Width = "width",
        Height = "height",
        Number = "n",
    }
}

impl Placeholder {
    fn parse(word: &str) -> Option<Self> {
        let is_called = |placeholder: &&Self| placeholder.name().eq_ignore_ascii_case(word);
        Self::ALL.iter().find(is_called).copied()
    }
}

/// Values of the placeholders.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// The name of the run's input without its extension.
    pub original_stem: &'a str,
    /// Extension of the buffer, lower case without a dot; empty when it has none.
    pub extension: &'a str,
    /// The day on which the run was created, in UTC: `2026-11-21`.
    pub date: &'a str,
    /// Width of the buffer in pixels; written as `0` when unknown.
    pub width: Option<u32>,
    pub height: Option<u32>,
    /// The run's number in its workflow, from 1.
    pub n: i64,
}

impl Pattern {
    /// Parses a pattern; the error names the field `pattern` and the allowed placeholders.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        let error = |message: String| FieldError::new("pattern", message);
        let length = text.chars().count();
        if !(1..=MAX_CHARS).contains(&length) || text.trim().is_empty() {
            return Err(error(format!(
                "pattern must have 1 to {MAX_CHARS} characters, got {length}"
            )));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((word, after)) = after.split_once('}') else {
                return Err(error(format!(
                    "pattern has an unclosed `{{`, close it: {}",
                    allowed()
                )));
            };
            let placeholder = Placeholder::parse(word.trim()).ok_or_else(|| {
                error(format!(
                    "pattern knows no `{{{}}}`: {}",
                    shorten(word),
                    allowed()
                ))
            })?;
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(Part::Placeholder(placeholder));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self { parts })
    }

    /// Makes a name of the pattern, which is still to be cleaned as every file's name is. The extension is appended
    /// unless the name ends in it, or in another spelling of the same format (`.jpeg`).
    pub fn apply(&self, names: &Names<'_>) -> String {
        let mut name = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => name.push_str(text),
                Part::Placeholder(placeholder) => name.push_str(&names.text(*placeholder)),
            }
        }
        if !names.extension.is_empty() && !ends_in(&name, names.extension) {
            name.push('.');
            name.push_str(names.extension);
        }
        name
    }

    /// Returns whether it uses the width or height of the buffer.
    pub fn needs_dimensions(&self) -> bool {
        self.uses(Placeholder::Width) || self.uses(Placeholder::Height)
    }

    pub(super) fn uses(&self, placeholder: Placeholder) -> bool {
        self.parts.contains(&Part::Placeholder(placeholder))
    }
}

impl Default for Pattern {
    fn default() -> Self {
        Self::parse(DEFAULT_PATTERN).expect("the default pattern is one")
    }
}

impl Names<'_> {
    fn text(&self, placeholder: Placeholder) -> String {
        match placeholder {
            Placeholder::Original => self.original_stem.to_owned(),
            Placeholder::Format => self.extension.to_owned(),
            Placeholder::Date => self.date.to_owned(),
            Placeholder::Width => self.width.unwrap_or(0).to_string(),
            Placeholder::Height => self.height.unwrap_or(0).to_string(),
            Placeholder::Number => self.n.to_string(),
        }
    }
}

fn ends_in(name: &str, extension: &str) -> bool {
    let Some((_, end)) = name.rsplit_once('.') else {
        return false;
    };
    let format = Format::parse(extension);
    end.eq_ignore_ascii_case(extension) || (format.is_some() && Format::parse(end) == format)
}

/// The placeholders, for a message: `use {original}, {format} …`.
pub(super) fn allowed() -> String {
    let names: Vec<String> = Placeholder::ALL
        .iter()
        .map(|placeholder| format!("{{{}}}", placeholder.name()))
        .collect();
    format!("use {}", names.join(", "))
}
