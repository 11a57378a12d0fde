//! An evaluator of conditions written a second time, straight from the words of the reference, on the JSON itself; the
//! two must agree on every group.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{super::Facts, meets};

/// Short texts of few letters, so that many comparisons hold.
fn word() -> impl Strategy<Value = String> {
    "[aAäÄßσΣς1.0]{1,4}"
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0u32..20).prop_map(Value::from),
        (0u32..40).prop_map(|halves| Value::from(f64::from(halves) / 2.0)),
        (0u32..20).prop_map(|number| Value::from(format!(" {number}.0 "))),
    ]
}

fn rule() -> impl Strategy<Value = Value> {
    let texts = prop::sample::select(vec!["filename", "mime", "extension", "upload_source"]);
    let numbers = prop::sample::select(vec!["size_bytes", "width", "height", "duration"]);
    let textual = prop::sample::select(vec![
        "equals",
        "not_equals",
        "contains",
        "not_contains",
        "starts_with",
        "not_starts_with",
        "ends_with",
        "not_ends_with",
    ]);
    let numeric = prop::sample::select(vec!["gt", "lt", "gte", "lte"]);
    let same = prop::sample::select(vec!["equals", "not_equals", "gt", "lt", "gte", "lte"]);
    let alone = prop::sample::select(vec!["is_empty", "is_not_empty"]);
    let any_field = prop_oneof![texts.clone(), numbers.clone()];
    let compared = prop_oneof![
        4 => (texts.clone(), textual, word().prop_map(Value::from)),
        1 => (texts, numeric, number()),
        4 => (numbers, same, number()),
        2 => (any_field, alone, Just(Value::Null)),
    ];
    (compared, any::<bool>()).prop_map(|((field, operator, value), negate)| {
        json!({"field": field, "operator": operator, "value": value, "negate": negate})
    })
}

fn group() -> impl Strategy<Value = Value> {
    let joined = |rules: Vec<Value>, groups: Vec<Value>, or: bool, negate: bool| {
        let logic = if or { "or" } else { "and" };
        json!({"logic": logic, "negate": negate, "conditions": rules, "groups": groups})
    };
    let flat = (
        prop::collection::vec(rule(), 0..4),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(move |(rules, or, negate)| joined(rules, Vec::new(), or, negate));
    flat.prop_recursive(7, 40, 4, move |inner| {
        (
            prop::collection::vec(rule(), 0..3),
            prop::collection::vec(inner, 0..4),
            any::<bool>(),
            any::<bool>(),
        )
            .prop_map(move |(rules, groups, or, negate)| joined(rules, groups, or, negate))
    })
}

fn facts() -> impl Strategy<Value = Facts> {
    let text = || prop::option::of(prop_oneof![Just(String::new()), word(), "[01]{1,2}"]);
    let side = || prop::option::of(0u32..20);
    let duration = prop::option::of((0u32..40).prop_map(|halves| f64::from(halves) / 2.0));
    (
        (text(), text(), text(), text()),
        (prop::option::of(0u64..20), side(), side(), duration),
    )
        .prop_map(|(texts, (size_bytes, width, height, duration_s))| Facts {
            mime: texts.0,
            filename: texts.1,
            extension: texts.2,
            upload_source: texts.3,
            size_bytes,
            width,
            height,
            duration_s,
        })
}

/// Returns a property of a file as text; numbers as they are written.
fn property(facts: &Facts, field: &str) -> Option<String> {
    let text = match field {
        "mime" => facts.mime.clone(),
        "filename" => facts.filename.clone(),
        "extension" => facts.extension.clone(),
        "upload_source" => facts.upload_source.clone(),
        "size_bytes" => facts.size_bytes.map(|number| number.to_string()),
        "width" => facts.width.map(|number| number.to_string()),
        "height" => facts.height.map(|number| number.to_string()),
        _ => facts.duration_s.map(|number| number.to_string()),
    };
    text.filter(|text| !text.is_empty())
}

fn rule_holds(rule: &Value, facts: &Facts) -> bool {
    let field = rule["field"].as_str().expect("a field");
    let operator = rule["operator"].as_str().expect("an operator");
    let holds = match (operator, property(facts, field)) {
        ("is_empty", property) => property.is_none(),
        ("is_not_empty", property) => property.is_some(),
        (_, None) => false,
        (_, Some(own)) => compares(field, operator, &own, &rule["value"]),
    };
    if rule["negate"] == true {
        !holds
    } else {
        holds
    }
}

fn compares(field: &str, operator: &str, own: &str, value: &Value) -> bool {
    let other = match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let is_number = ["size_bytes", "width", "height", "duration"].contains(&field);
    if is_number || ["gt", "lt", "gte", "lte"].contains(&operator) {
        let (Ok(own), Ok(other)) = (own.trim().parse::<f64>(), other.trim().parse::<f64>()) else {
            return false;
        };
        return match operator {
            "equals" => (own - other).abs() == 0.0,
            "not_equals" => (own - other).abs() > 0.0,
            "gt" => own - other > 0.0,
            "lt" => other - own > 0.0,
            "gte" => own - other >= 0.0,
            _ => other - own >= 0.0,
        };
    }
    let lower =
        |text: &str| -> Vec<char> { text.to_lowercase().replace('ς', "σ").chars().collect() };
    let own = lower(own);
    let mut other = lower(&other);
    if field == "extension" && other.iter().any(|&letter| letter != '.') {
        while other[0] == '.' {
            other.remove(0);
        }
    }
    let found_at =
        |at: usize| own.len() >= at + other.len() && own[at..at + other.len()] == other[..];
    let last = own.len().saturating_sub(other.len());
    let holds = match operator.trim_start_matches("not_") {
        "equals" => own == other,
        "contains" => (0..own.len()).any(found_at),
        "starts_with" => found_at(0),
        _ => found_at(last),
    };
    holds != operator.starts_with("not_")
}

fn group_holds(group: &Value, facts: &Facts) -> bool {
    let list = |name: &str| group[name].as_array().expect("a list").clone();
    let mut results: Vec<bool> = Vec::new();
    for rule in list("conditions") {
        results.push(rule_holds(&rule, facts));
    }
    for group in list("groups") {
        results.push(group_holds(&group, facts));
    }
    let met = results.iter().filter(|met| **met).count();
    let joined = match group["logic"].as_str() {
        Some("or") => met > 0 || results.is_empty(),
        _ => met == results.len(),
    };
    if group["negate"] == true {
        !joined
    } else {
        joined
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn two_evaluators_agree(group in group(), facts in facts()) {
        prop_assert_eq!(meets(&group, &facts), group_holds(&group, &facts));
    }
}
