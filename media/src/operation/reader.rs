//! Reads typed fields of an operation out of a request: numbers, flags, choices, formats, defaults; their error texts.

use std::str::FromStr;

use serde_json::Value;

use super::{
    field::{self, Field, Kind},
    params::{FieldError, Params, shorten},
    row::Row,
};
use crate::format::Format;

pub struct Reader<'a> {
    row: &'static Row,
    params: &'a Params,
}

/// A value as text, whichever way it came.
enum GivenValue<'a> {
    Text(&'a str),
    Number(String),
    Flag(bool),
    Other,
}

impl<'a> Reader<'a> {
    pub fn new(row: &'static Row, params: &'a Params) -> Self {
        Self { row, params }
    }

    /// Returns whether the request gives the field.
    pub fn is_given(&self, name: &str) -> bool {
        self.value(self.field(name)).is_some()
    }

    /// A whole number, given or by default; a field without a default is required.
    pub fn integer<N: TryFrom<i64>>(&self, name: &str) -> Result<N, FieldError> {
        self.integer_if_given(name)?
            .ok_or_else(|| self.missing(name))
    }

    pub fn integer_if_given<N: TryFrom<i64>>(&self, name: &str) -> Result<Option<N>, FieldError> {
        let field = self.field(name);
        let Kind::Integer { min, max } = field.kind else {
            unreachable!("{name} is no integer field")
        };
        self.number_text(field, |number: &i64| (min..=max).contains(number))?
            .map(|number| N::try_from(number).map_err(|_| rejected(field, &number.to_string())))
            .transpose()
    }

    /// A position, 1 to 9, given or by default.
    pub fn position(&self, name: &str) -> Result<u8, FieldError> {
        let field = self.field(name);
        let text = self.word(field)?.ok_or_else(|| self.missing(name))?;
        field::position(&text).ok_or_else(|| rejected(field, &text))
    }

    /// A number, given or by default.
    pub fn number(&self, name: &str) -> Result<f64, FieldError> {
        let field = self.field(name);
        let Kind::Number { min, max } = field.kind else {
            unreachable!("{name} is no number field")
        };
        self.number_text(field, |number: &f64| (min..=max).contains(number))?
            .ok_or_else(|| self.missing(name))
    }

    fn number_text<N: FromStr>(
        &self,
        field: &'static Field,
        is_allowed: impl Fn(&N) -> bool,
    ) -> Result<Option<N>, FieldError> {
        let text = match self.given(field) {
            None => return Ok(None),
            Some(GivenValue::Text(text)) => text.trim().to_owned(),
            Some(GivenValue::Number(text)) => text,
            Some(GivenValue::Flag(flag)) => return Err(rejected(field, &flag.to_string())),
            Some(GivenValue::Other) => return Err(rejected(field, "a list or an object")),
        };
        match text.parse().ok().filter(is_allowed) {
            Some(number) => Ok(Some(number)),
            None => Err(rejected(field, &text)),
        }
    }

    pub fn flag(&self, name: &str) -> Result<bool, FieldError> {
        let field = self.field(name);
        match self.given(field) {
            None => Err(self.missing(name)),
            Some(GivenValue::Flag(flag)) => Ok(flag),
            Some(GivenValue::Text(text)) if text.trim().eq_ignore_ascii_case("true") => Ok(true),
            Some(GivenValue::Text(text)) if text.trim().eq_ignore_ascii_case("false") => Ok(false),
            Some(GivenValue::Text(text)) => Err(rejected(field, text)),
            Some(GivenValue::Number(text)) => Err(rejected(field, &text)),
            Some(GivenValue::Other) => Err(rejected(field, "a list or an object")),
        }
    }

    pub fn text_if_given(&self, name: &str) -> Result<Option<String>, FieldError> {
        let field = self.field(name);
        let Kind::Text { max_chars } = field.kind else {
            unreachable!("{name} is no text field")
        };
        match self.word(field)? {
            Some(text) if text.chars().count() > max_chars => Err(rejected(field, &text)),
            other => Ok(other),
        }
    }

    /// The word of a choice, in lower case.
    pub fn choice(&self, name: &str) -> Result<&'static str, FieldError> {
        self.choice_if_given(name)?
            .ok_or_else(|| self.missing(name))
    }

    pub fn choice_if_given(&self, name: &str) -> Result<Option<&'static str>, FieldError> {
        let field = self.field(name);
        let Kind::Choice(words) = field.kind else {
            unreachable!("{name} is no choice")
        };
        let Some(text) = self.word(field)? else {
            return Ok(None);
        };
        let word = words
            .iter()
            .find(|word| word.eq_ignore_ascii_case(text.trim()));
        word.map(|word| Some(*word))
            .ok_or_else(|| rejected(field, &text))
    }

    /// A format, given or by default.
    pub fn format(&self, name: &str) -> Result<Format, FieldError> {
        self.format_if_given(name)?
            .ok_or_else(|| self.missing(name))
    }

    pub fn format_if_given(&self, name: &str) -> Result<Option<Format>, FieldError> {
        let field = self.field(name);
        let Kind::Format(formats) = field.kind else {
            unreachable!("{name} is no format field")
        };
        let Some(text) = self.word(field)? else {
            return Ok(None);
        };
        Format::parse(&text)
            .filter(|format| formats.contains(format))
            .map(Some)
            .ok_or_else(|| rejected(field, &text))
    }

    /// An error about a field that other fields made wrong.
    pub fn error(&self, name: &str, message: impl Into<String>) -> FieldError {
        FieldError::new(self.field(name).name, message)
    }

    fn missing(&self, name: &str) -> FieldError {
        let field = self.field(name);
        FieldError::new(
            field.name,
            format!("{} is missing: give {}", field.name, field.allowed()),
        )
    }

    fn word(&self, field: &'static Field) -> Result<Option<String>, FieldError> {
        match self.given(field) {
            None => Ok(None),
            Some(GivenValue::Text(text)) => Ok(Some(text.to_owned())),
            Some(GivenValue::Number(text)) => Ok(Some(text)),
            Some(GivenValue::Flag(flag)) => Ok(Some(flag.to_string())),
            Some(GivenValue::Other) => Err(rejected(field, "a list or an object")),
        }
    }

    fn given(&self, field: &'static Field) -> Option<GivenValue<'_>> {
        match self.value(field) {
            None => field.default.map(GivenValue::Text),
            Some(Value::String(text)) => Some(GivenValue::Text(text)),
            Some(Value::Number(number)) => Some(GivenValue::Number(whole(number))),
            Some(Value::Bool(flag)) => Some(GivenValue::Flag(*flag)),
            Some(_) => Some(GivenValue::Other),
        }
    }

    fn value(&self, field: &Field) -> Option<&Value> {
        let by_name = |name: &str| self.params.get(name);
        by_name(field.name).or_else(|| field.alias.and_then(by_name))
    }

    fn field(&self, name: &str) -> &'static Field {
        self.row
            .fields
            .iter()
            .find(|field| field.name == name)
            .expect("an operation reads only fields of its row")
    }
}

/// Writes a number without needless decimals: JSON does not distinguish 800.0 from 800.
fn whole(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(value) if value.fract() == 0.0 && value.abs() < 1e15 => format!("{value:.0}"),
        _ => number.to_string(),
    }
}

fn rejected(field: &Field, given: &str) -> FieldError {
    FieldError::new(
        field.name,
        format!(
            "{} must be {}, got `{}`",
            field.name,
            field.allowed(),
            shorten(given)
        ),
    )
}
