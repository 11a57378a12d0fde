//! Reads condition groups out of JSON: depth, number of conditions, `logic`, `negate`, warning about `image/*`.
//!
//! The depth is bounded before it recurses, and conditions and regular expressions are counted over the whole
//! definition, so that reading costs no more than the limits allow, whatever comes.

use serde_json::{Map, Value};

use super::{Field, Group, Logic, Operand, Operator, Rule, letters, operand::Operands};
use crate::{
    operation::shorten,
    workflow::{
        MAX_CONDITIONS, MAX_GROUP_DEPTH, json, legacy,
        problem::{Code, Place, Problems},
    },
};

/// State of reading a definition's conditions.
#[derive(Default)]
pub struct Reading {
    conditions: usize,
    operands: Operands,
}

/// Place of a group in the definition.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// Node of the group, or the definition.
    pub place: &'a Place,
    /// Path in the definition or the node's config: `uploadGate.groups[1]`.
    pub path: &'a str,
}

/// Receiver of problems.
pub(super) struct Report<'a> {
    at: At<'a>,
    problems: &'a mut Problems,
}

impl Reading {
    /// Returns the state for a definition that was accepted before.
    pub fn saved() -> Self {
        Self {
            operands: Operands::saved(),
            ..Self::default()
        }
    }

    /// Reads a condition in any of its forms: a group, one condition, a legacy word, or a list of these, which `logic`
    /// joins. `None`: there is none, or it has problems.
    pub fn read(
        &mut self,
        value: &Value,
        logic: Option<&Value>,
        at: At<'_>,
        problems: &mut Problems,
    ) -> Option<Group> {
        match value {
            Value::String(word) if word.trim().is_empty() => None,
            Value::Array(parts) if parts.is_empty() => None,
            Value::String(_) => {
                let rule = self.part(value, 1, at, problems)?;
                Some(rule.into_group())
            }
            Value::Array(parts) => {
                let logic = read_logic(logic, &mut Report { at, problems });
                let mut group = Group::joined_by(logic.unwrap_or(Logic::And));
                for (index, part) in parts.iter().enumerate() {
                    let path = format!("{}[{index}]", at.path);
                    let at = At { path: &path, ..at };
                    if self.is_full() {
                        break;
                    }
                    if let Some(part) = self.part(part, 1, at, problems) {
                        group.push(part);
                    }
                }
                Some(group)
            }
            other => self.part(other, 0, at, problems).map(Part::into_group),
        }
    }

    /// Reads a condition or a group at depth `depth`.
    fn part(
        &mut self,
        value: &Value,
        depth: usize,
        at: At<'_>,
        problems: &mut Problems,
    ) -> Option<Part> {
        if !self.counted(&mut Report { at, problems }) {
            return None;
        }
        match value {
            Value::String(word) => self.legacy(word, at, problems).map(Part::Rule),
            Value::Object(object) if json::get(object, "field").is_some() => self
                .rule(object, &mut Report { at, problems })
                .map(Part::Rule),
            Value::Object(object) => self.group(object, depth + 1, at, problems).map(Part::Group),
            other => {
                Report { at, problems }.problem(
                    Code::InvalidCondition,
                    "",
                    format!(
                        "must be a condition {{field, operator, value}} or a group {{logic, conditions}}, got {}",
                        json::shown(other)
                    ),
                );
                None
            }
        }
    }

    fn group(
        &mut self,
        object: &Map<String, Value>,
        depth: usize,
        at: At<'_>,
        problems: &mut Problems,
    ) -> Option<Group> {
        let mut report = Report { at, problems };
        if depth > MAX_GROUP_DEPTH {
            report.problem(
                Code::GroupTooDeep,
                "",
                format!("groups may be nested {MAX_GROUP_DEPTH} deep: join some of them into one"),
            );
            return None;
        }
        let conditions = json::first(object, &["conditions", "rules"]);
        let groups = json::get(object, "groups");
        let logic = json::first(object, &["logic", "combinator"]);
        if conditions.is_none() && groups.is_none() && logic.is_none() {
            report.problem(
                Code::InvalidCondition,
                "",
                "must have `conditions`, a list of {field, operator, value}, or `groups`",
            );
            return None;
        }
        let logic = read_logic(logic, &mut report);
        let negate = read_negate(object, &mut report);
        let mut group = Group::joined_by(logic.unwrap_or(Logic::And));
        group.negate = negate?;
        for (name, list) in [("conditions", conditions), ("groups", groups)] {
            for (index, part) in parts(list, name, &mut Report { at, problems })
                .iter()
                .enumerate()
            {
                if self.is_full() {
                    return None;
                }
                let path = format!("{}.{name}[{index}]", at.path);
                if let Some(part) = self.part(part, depth, At { path: &path, ..at }, problems) {
                    group.push(part);
                }
            }
        }
        logic.map(|_| group)
    }

    fn rule(&mut self, object: &Map<String, Value>, report: &mut Report<'_>) -> Option<Rule> {
        let field = read_field(object, report);
        let operator = read_operator(object, report);
        let negate = read_negate(object, report);
        let (field, operator, negate) = (field?, operator?, negate?);
        let operand = self
            .operands
            .read(field, operator, json::get(object, "value"), report)?;
        if !negate {
            warn_of_wildcard(field, operator, &operand, report);
        }
        Some(Rule {
            field,
            operator,
            operand,
            negate,
        })
    }

    fn legacy(&mut self, word: &str, at: At<'_>, problems: &mut Problems) -> Option<Rule> {
        let mut report = Report { at, problems };
        let Some(condition) = legacy::condition(word) else {
            let known: Vec<&str> = legacy::WORDS.iter().map(|[name, ..]| *name).collect();
            report.problem(
                Code::UnknownLegacyCondition,
                "",
                format!(
                    "knows no condition `{}`: use {}, or a condition {{field, operator, value}}",
                    shorten(word),
                    known.join(", ")
                ),
            );
            return None;
        };
        report.problem(
            Code::LegacyForm,
            "",
            format!("`{}` is an older form of {condition}", shorten(word)),
        );
        let object = condition.as_object().expect("a condition is an object");
        self.rule(object, &mut report)
    }

    /// Counts a condition or a group; says once that there are too many.
    fn counted(&mut self, report: &mut Report<'_>) -> bool {
        self.conditions += 1;
        if self.conditions == MAX_CONDITIONS + 1 {
            report.problem(
                Code::TooManyConditions,
                "",
                format!(
                    "is one too many: a definition may have {MAX_CONDITIONS} conditions and groups"
                ),
            );
        }
        self.conditions <= MAX_CONDITIONS
    }

    fn is_full(&self) -> bool {
        self.conditions > MAX_CONDITIONS
    }
}

enum Part {
    Rule(Rule),
    Group(Group),
}

impl Part {
    fn into_group(self) -> Group {
        match self {
            Self::Group(group) => group,
            rule => {
                let mut group = Group::joined_by(Logic::And);
                group.push(rule);
                group
            }
        }
    }
}

impl Group {
    fn joined_by(logic: Logic) -> Self {
        Self {
            logic,
            negate: false,
            rules: Vec::new(),
            groups: Vec::new(),
        }
    }

    fn push(&mut self, part: Part) {
        match part {
            Part::Rule(rule) => self.rules.push(rule),
            Part::Group(group) => self.groups.push(group),
        }
    }
}

impl Report<'_> {
    /// Adds a problem. `field` is one of the condition or group, or empty for all of it.
    pub(super) fn problem(&mut self, code: Code, field: &str, what: impl AsRef<str>) {
        let path = match field {
            "" => self.at.path.to_owned(),
            field => format!("{}.{field}", self.at.path),
        };
        let message = format!("{path}: {}", what.as_ref());
        let problem = self.at.place.problem(code, Some(&path), message);
        self.problems.push(problem);
    }
}

fn parts<'a>(list: Option<&'a Value>, name: &str, report: &mut Report<'_>) -> &'a [Value] {
    match list {
        None => &[],
        Some(Value::Array(parts)) => parts,
        Some(other) => {
            report.problem(
                Code::InvalidCondition,
                name,
                format!("must be a list, got {}", json::shown(other)),
            );
            &[]
        }
    }
}

/// Reads `logic`; and by default.
fn read_logic(value: Option<&Value>, report: &mut Report<'_>) -> Option<Logic> {
    let Some(value) = value else {
        return Some(Logic::And);
    };
    let logic = value
        .as_str()
        .and_then(|text| match letters(text).as_str() {
            "and" | "all" | "&&" => Some(Logic::And),
            "or" | "any" | "||" => Some(Logic::Or),
            _ => None,
        });
    if logic.is_none() {
        report.problem(
            Code::UnknownLogic,
            "logic",
            format!("must be and or or, got {}", json::shown(value)),
        );
    }
    logic
}

fn read_negate(object: &Map<String, Value>, report: &mut Report<'_>) -> Option<bool> {
    match json::first(object, &["negate", "not"]) {
        None => Some(false),
        Some(Value::Bool(negate)) => Some(*negate),
        Some(Value::String(text)) if text.trim().eq_ignore_ascii_case("true") => Some(true),
        Some(Value::String(text)) if text.trim().eq_ignore_ascii_case("false") => Some(false),
        Some(other) => {
            report.problem(
                Code::InvalidCondition,
                "negate",
                format!("must be true or false, got {}", json::shown(other)),
            );
            None
        }
    }
}

fn read_field(object: &Map<String, Value>, report: &mut Report<'_>) -> Option<Field> {
    let given = json::get(object, "field")?;
    let field = given.as_str().and_then(Field::parse);
    if field.is_none() {
        let names: Vec<&str> = Field::ALL.iter().map(|field| field.name()).collect();
        report.problem(
            Code::UnknownField,
            "field",
            format!(
                "must be one of {}, got {}",
                names.join(", "),
                json::shown(given)
            ),
        );
    }
    field
}

fn read_operator(object: &Map<String, Value>, report: &mut Report<'_>) -> Option<Operator> {
    let given = json::get(object, "operator");
    let operator = given.and_then(Value::as_str).and_then(Operator::parse);
    if operator.is_none() {
        let names: Vec<&str> = Operator::all().map(Operator::name).collect();
        let got = given.map_or("nothing".to_owned(), json::shown);
        report.problem(
            Code::UnknownOperator,
            "operator",
            format!("must be one of {}, got {got}", names.join(", ")),
        );
    }
    operator
}

/// Warns of `image/*` and `image`, which no media type equals: the author wants `starts_with`.
fn warn_of_wildcard(field: Field, operator: Operator, operand: &Operand, report: &mut Report<'_>) {
    let Operand::Text(text) = operand else { return };
    let is_never = match operator {
        Operator::Equals => text.contains('*') || text.ends_with('/') || !text.contains('/'),
        Operator::StartsWith | Operator::EndsWith | Operator::Contains => text.contains('*'),
        _ => false,
    };
    if field == Field::Mime && is_never {
        let class = text.split(['/', '*']).next().unwrap_or_default();
        report.problem(
            Code::NeverMet,
            "value",
            format!(
                "no media type is `{}`: use starts_with `{}/`",
                shorten(text),
                shorten(class)
            ),
        );
    }
}
