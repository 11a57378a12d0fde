//! Right side of conditions (`value`): text, number or regular expression; how many and how costly expressions may be.
//!
//! The cost of an expression in memory and time does not follow from its length, so each has a bound, and all of a
//! definition have one together.

use serde_json::Value;

use super::{
    Field, Operand, Operator,
    classes::wide_classes,
    evaluate,
    expression::{Expression, MAX_BYTES},
    operator::Takes,
    read::Report,
};
use crate::{
    operation::shorten,
    workflow::{MAX_EXPRESSION_CHARS_IN_ALL, MAX_EXPRESSIONS, json, problem::Code},
};

/// Most characters of a regular expression.
const MAX_EXPRESSION_CHARS: usize = 1_000;
/// Size of a compiled expression that most need; a definition may have few that need more.
const USUAL_EXPRESSION_BYTES: usize = 64 << 10;
/// Most expressions of a definition that need more than the usual size.
const MAX_LARGE_EXPRESSIONS: usize = 4;
/// Classes beyond ASCII of all expressions of a definition: each costs up to 8 ms, twice in a large one.
const MAX_WIDE_CLASSES: usize = 20;

/// Compiled operands of a definition so far.
#[derive(Default)]
pub struct Operands {
    expressions: usize,
    expression_chars: usize,
    large_expressions: usize,
    wide_classes: usize,
    /// True for a definition that was accepted before: expressions are compiled at their first use.
    is_saved: bool,
}

impl Operands {
    /// Returns the operands of a definition that was accepted before.
    pub fn saved() -> Self {
        Self {
            is_saved: true,
            ..Self::default()
        }
    }

    /// Reads the right side; `None`: there is a problem with it.
    pub fn read(
        &mut self,
        field: Field,
        operator: Operator,
        value: Option<&Value>,
        report: &mut Report<'_>,
    ) -> Option<Operand> {
        let takes = match operator.takes() {
            Takes::Nothing => return Some(Operand::Nothing),
            Takes::Same if field.is_number() => Takes::Number,
            takes => takes,
        };
        let text = read_value(operator, value, report)?;
        match takes {
            Takes::Number => match evaluate::number(&text) {
                Some(number) => Some(Operand::Number(number)),
                None => {
                    report.problem(
                        Code::InvalidValue,
                        "value",
                        format!(
                            "{} {} needs a number, got `{}`",
                            field.name(),
                            operator.name(),
                            shorten(&text)
                        ),
                    );
                    None
                }
            },
            Takes::Expression => self.expression(&text, report).map(Operand::Expression),
            _ => Some(Operand::Text(evaluate::operand(field, &text))),
        }
    }

    fn expression(&mut self, text: &str, report: &mut Report<'_>) -> Option<Expression> {
        if self.is_saved {
            return Some(Expression::saved(text));
        }
        if !self.counted(text, report) {
            return None;
        }
        let add_problem = |reason: String| {
            report.problem(
                Code::InvalidExpression,
                "value",
                format!("`{}` {reason}", shorten(text)),
            );
        };
        self.compile(text).map_err(add_problem).ok()
    }

    /// Compiles an expression; the error text follows the expression.
    fn compile(&mut self, text: &str) -> Result<Expression, String> {
        let length = text.chars().count();
        if length > MAX_EXPRESSION_CHARS {
            return Err(format!(
                "has {length} characters: a regular expression may have {MAX_EXPRESSION_CHARS}"
            ));
        }
        self.wide_classes += wide_classes(text);
        if self.wide_classes > MAX_WIDE_CLASSES {
            return Err(format!(
                r"has too many classes like [\w-] or \pL: a definition may have {MAX_WIDE_CLASSES} in all; write [a-z0-9], or use contains"
            ));
        }
        let mut compiled = Expression::compiled(text, USUAL_EXPRESSION_BYTES);
        if matches!(compiled, Err(regex::Error::CompiledTooBig(_)))
            && self.large_expressions < MAX_LARGE_EXPRESSIONS
        {
            self.large_expressions += 1;
            compiled = Expression::compiled(text, MAX_BYTES);
        }
        compiled.map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => {
                r"is too costly: repeat with + instead of numbers, write [a-z0-9] for \w, or use contains".to_owned()
            }
            error => format!(
                "is no regular expression (look-around and back-references are not known): {}",
                last_line(&error.to_string())
            ),
        })
    }

    /// Counts an expression and its length; says once that there are too many.
    fn counted(&mut self, text: &str, report: &mut Report<'_>) -> bool {
        let was_full = self.is_full();
        self.expressions += 1;
        self.expression_chars += text.chars().count().min(MAX_EXPRESSION_CHARS);
        if self.is_full() && !was_full {
            report.problem(
                Code::TooManyConditions,
                "value",
                format!(
                    "is one regular expression too many: a definition may have {MAX_EXPRESSIONS}, of {MAX_EXPRESSION_CHARS_IN_ALL} characters together; join some with `|`, or use contains"
                ),
            );
        }
        !self.is_full()
    }

    fn is_full(&self) -> bool {
        self.expressions > MAX_EXPRESSIONS || self.expression_chars > MAX_EXPRESSION_CHARS_IN_ALL
    }
}

/// Reads the right side as text.
fn read_value(
    operator: Operator,
    value: Option<&Value>,
    report: &mut Report<'_>,
) -> Option<String> {
    match value {
        Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
        Some(Value::Number(number)) => Some(evaluate::written(number)),
        None | Some(Value::String(_)) => {
            report.problem(
                Code::MissingValue,
                "value",
                format!(
                    "{} compares with nothing: give a value, or use is_empty",
                    operator.name()
                ),
            );
            None
        }
        Some(other) => {
            report.problem(
                Code::InvalidValue,
                "value",
                format!("must be text or a number, got {}", json::shown(other)),
            );
            None
        }
    }
}

/// Returns the last line of a syntax error, which holds the cause.
fn last_line(text: &str) -> &str {
    let line = text.trim_end().lines().last().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line)
}
