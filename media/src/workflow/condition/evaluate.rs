//! Evaluates a workflow condition on a file: comparison of numbers and texts, case folding, missing properties, facts that are
//! not known yet.

use std::borrow::Cow;

use serde_json::Number;

use super::{Facts, Field, Group, Logic, Operand, Operator, Rule, field::Property};

impl Group {
    /// Returns whether the file meets it; an empty group is met.
    pub fn is_met(&self, facts: &Facts) -> bool {
        self.outcome(facts, &|_| false) == Some(true)
    }

    /// Returns whether a file of which some facts are not known yet meets it; `None`: that depends on one of them.
    pub fn outcome(&self, facts: &Facts, is_unknown: &dyn Fn(Field) -> bool) -> Option<bool> {
        let met = self.joined(facts, is_unknown)?;
        Some(met != self.negate)
    }

    /// Joins its parts in the three-valued logic of Kleene, and looks at no part behind the one that decides.
    fn joined(&self, facts: &Facts, is_unknown: &dyn Fn(Field) -> bool) -> Option<bool> {
        if self.rules.is_empty() && self.groups.is_empty() {
            return Some(true);
        }
        let rules = self
            .rules
            .iter()
            .map(|rule| rule.outcome(facts, is_unknown));
        let groups = self
            .groups
            .iter()
            .map(|group| group.outcome(facts, is_unknown));
        let deciding = self.logic == Logic::Or;
        let mut joined = Some(!deciding);
        for part in rules.chain(groups) {
            match part {
                Some(met) if met == deciding => return Some(deciding),
                Some(_) => {}
                None => joined = None,
            }
        }
        joined
    }
}

impl Rule {
    fn outcome(&self, facts: &Facts, is_unknown: &dyn Fn(Field) -> bool) -> Option<bool> {
        (!is_unknown(self.field)).then(|| self.is_met(facts))
    }

    fn is_met(&self, facts: &Facts) -> bool {
        let property = self.field.of(facts);
        let met = match self.operator {
            Operator::IsEmpty => property.is_none(),
            Operator::IsNotEmpty => property.is_some(),
            _ => property.is_some_and(|property| self.compares(property)),
        };
        met != self.negate
    }

    fn compares(&self, property: Property<'_>) -> bool {
        match &self.operand {
            Operand::Nothing => false,
            Operand::Number(number) => property
                .number()
                .is_some_and(|own| compare_numbers(self.operator, own, *number)),
            Operand::Text(text) => compare_texts(self.operator, &fold(&property.text()), text),
            Operand::Expression(expression) => {
                let found = expression.is_match(&property.text());
                found != (self.operator == Operator::NotMatches)
            }
        }
    }
}

fn compare_numbers(operator: Operator, own: f64, other: f64) -> bool {
    match operator {
        Operator::Equals => own == other,
        Operator::NotEquals => own != other,
        Operator::Gt => own > other,
        Operator::Lt => own < other,
        Operator::Gte => own >= other,
        Operator::Lte => own <= other,
        _ => false,
    }
}

fn compare_texts(operator: Operator, own: &str, other: &str) -> bool {
    match operator {
        Operator::Equals => own == other,
        Operator::NotEquals => own != other,
        Operator::Contains => own.contains(other),
        Operator::NotContains => !own.contains(other),
        Operator::StartsWith => own.starts_with(other),
        Operator::NotStartsWith => !own.starts_with(other),
        Operator::EndsWith => own.ends_with(other),
        Operator::NotEndsWith => !own.ends_with(other),
        _ => false,
    }
}

impl<'a> Property<'a> {
    /// A number; text that is one counts.
    fn number(self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Text(text) => number(text),
        }
    }

    pub(super) fn text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text.into(),
            Self::Number(number) => number.to_string().into(),
        }
    }
}

/// Parses a finite number.
pub(super) fn number(text: &str) -> Option<f64> {
    let number: f64 = text.trim().parse().ok()?;
    number.is_finite().then_some(number)
}

/// Text as it is compared: in lower case, letter by letter, so that a part of a text folds as the whole does. The two
/// small sigmas of Greek are one.
pub(super) fn fold(text: &str) -> String {
    text.chars()
        .flat_map(char::to_lowercase)
        .map(|c| if c == 'ς' { 'σ' } else { c })
        .collect()
}

/// The text that a condition compares with. An extension has no dot, though people write one.
pub(super) fn operand(field: Field, text: &str) -> String {
    let bare = match text.trim_start_matches('.') {
        bare if field == Field::Extension && !bare.is_empty() => bare,
        _ => text,
    };
    fold(bare)
}

/// Writes a number of JSON as text, which does not distinguish 800.0 from 800.
pub(super) fn written(number: &Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() => value.to_string(),
        _ => number.to_string(),
    }
}
