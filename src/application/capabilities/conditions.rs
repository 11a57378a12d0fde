//! `conditions` of `GET /api/catalogue`: fields and operators of workflow conditions.

use serde::Serialize;
use sluice_media::workflow::{Field, Operator};
use utoipa::ToSchema;

/// Fields and operators that conditions are made of.
#[derive(Debug, Serialize, ToSchema)]
pub struct Conditions {
    fields: Vec<ConditionField>,
    operators: Vec<ConditionOperator>,
}

/// A property of a file.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConditionField {
    name: &'static str,
    aliases: &'static [&'static str],
    is_number: bool,
    /// Operators that make sense for it; the others are accepted too.
    operators: Vec<&'static str>,
    summary: &'static str,
}

/// A comparison.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConditionOperator {
    name: &'static str,
    /// Other words.
    aliases: &'static [&'static str],
    symbols: &'static [&'static str],
    /// Kind of its value: `nothing`, `same` (as the field), `text`, `number` or `expression` (regular).
    takes: &'static str,
}

impl Conditions {
    pub(super) fn all() -> Self {
        Self {
            fields: Field::ALL
                .iter()
                .copied()
                .map(ConditionField::from)
                .collect(),
            operators: Operator::all().map(ConditionOperator::from).collect(),
        }
    }
}

impl From<Field> for ConditionField {
    fn from(field: Field) -> Self {
        let suiting = Operator::all().filter(|operator| operator.suits(field));
        Self {
            name: field.name(),
            aliases: field.spellings(),
            is_number: field.is_number(),
            operators: suiting.map(Operator::name).collect(),
            summary: field.summary(),
        }
    }
}

impl From<Operator> for ConditionOperator {
    fn from(operator: Operator) -> Self {
        Self {
            name: operator.name(),
            aliases: operator.words(),
            symbols: operator.symbols(),
            takes: operator.takes().name(),
        }
    }
}
