//! Conditions of upload gates and branches: groups of rules with `and`, `or`, `negate`.
//!
//! A group joins conditions and further groups by and or or, and each of them may be negated. Text compares without
//! case. What a file lacks is empty and compares with nothing, so every comparison of it is false, before negation.

mod classes;
mod evaluate;
mod expression;
mod facts;
mod field;
mod operand;
mod operator;
mod read;

pub use facts::Facts;
pub use field::Field;
pub use operator::{Operator, Takes};
pub(super) use operator::{is_spelled, letters};
pub(super) use read::{At, Reading};

use std::collections::BTreeSet;

use expression::Expression;

/// Conditions and groups that are met together.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub(super) logic: Logic,
    pub(super) negate: bool,
    pub(super) rules: Vec<Rule>,
    pub(super) groups: Vec<Group>,
}

/// Operator that joins the parts of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logic {
    And,
    Or,
}

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rule {
    pub field: Field,
    pub operator: Operator,
    pub operand: Operand,
    pub negate: bool,
}

/// Right side of a condition, prepared once.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    /// No right side, as of `is_empty`.
    Nothing,
    /// Folded text, see [`fold`](evaluate::fold).
    Text(String),
    Number(f64),
    Expression(Expression),
}

impl Group {
    /// Returns the fields that it uses.
    pub fn fields(&self) -> BTreeSet<Field> {
        let mut fields: BTreeSet<Field> = self.rules.iter().map(|rule| rule.field).collect();
        for group in &self.groups {
            fields.extend(group.fields());
        }
        fields
    }

    /// Returns whether it uses width, height or duration.
    pub fn needs_dimensions(&self) -> bool {
        self.fields().into_iter().any(Field::is_dimension)
    }
}
