//! Every operator on text, on numbers and on what is missing, plain and negated; groups; what cannot be read.

use serde_json::{Value, json};

use super::{super::*, check, codes, gated, meets, saved};

fn photo() -> Facts {
    Facts {
        mime: Some("image/jpeg".to_owned()),
        size_bytes: Some(2_500_000),
        width: Some(1200),
        duration_s: Some(12.5),
        upload_source: Some("Google Drive".to_owned()),
        ..Facts::named("Größe ΟΔΟΣ.JPG")
    }
}

fn rule(field: &str, operator: &str, value: &Value, negate: bool) -> Value {
    json!({"conditions": [
        {"field": field, "operator": operator, "value": value, "negate": negate}
    ]})
}

/// The field, the operator, a value for which it holds, and one for which it does not.
fn table() -> Vec<(&'static str, Operator, Value, Value)> {
    use Operator::*;
    vec![
        ("filename", Equals, json!("gRÖßE οδος.jpg"), json!("Größe")),
        (
            "filename",
            Equals,
            json!("größe οδοσ.jpg"),
            json!("größe οδοσ.jpeg"),
        ),
        ("filename", NotEquals, json!("x"), json!("GRÖẞE οδος.jpg")),
        ("filename", Contains, json!("ÖßE"), json!("grösse")),
        ("filename", Contains, json!(" ΟΔΟσ."), json!("  ")),
        ("filename", NotContains, json!("png"), json!("jPg")),
        ("filename", StartsWith, json!("grö"), json!("röß")),
        ("filename", NotStartsWith, json!("röß"), json!("GRÖ")),
        ("filename", EndsWith, json!(".jpg"), json!("größe")),
        ("filename", NotEndsWith, json!("größe"), json!(".jpg")),
        ("filename", Matches, json!(r"^gr\w+e\s"), json!(r"^\d")),
        ("filename", NotMatches, json!("^o"), json!("οδο[σς]")),
        ("filename", IsNotEmpty, Value::Null, Value::Null),
        ("extension", Equals, json!("jpg"), json!("jpeg")),
        ("extension", Equals, json!(".JPG"), json!(".")),
        ("mime", StartsWith, json!("IMAGE/"), json!("video/")),
        ("mime", Matches, json!("^image/(jpe?g|png)$"), json!("png")),
        ("upload_source", Equals, json!("google drive"), json!("api")),
        ("width", Equals, json!(1200), json!(1201)),
        ("width", Equals, json!(" 1200.0 "), json!("12e3")),
        ("width", NotEquals, json!("1201"), json!(1200.0)),
        ("width", Gt, json!("1199.5"), json!(1200)),
        ("width", Lt, json!(1200.5), json!("1200")),
        ("width", Gte, json!(1200), json!(1201)),
        ("width", Lte, json!("1.2e3"), json!(1199)),
        ("width", Contains, json!(20), json!("3")),
        ("width", NotContains, json!(3), json!("20")),
        ("width", StartsWith, json!("12"), json!(2)),
        ("width", NotStartsWith, json!("2"), json!(12)),
        ("width", EndsWith, json!("00"), json!(12)),
        ("width", NotEndsWith, json!(12), json!("00")),
        ("width", Matches, json!("^1.00$"), json!("^2")),
        ("width", NotMatches, json!("^2"), json!("^1.00$")),
        ("width", IsNotEmpty, Value::Null, Value::Null),
        ("duration", Equals, json!(12.5), json!(12)),
        ("duration", Gt, json!(12), json!("12.5")),
        ("duration", EndsWith, json!(".5"), json!("5.")),
        ("size_bytes", Gt, json!(2e6), json!("1e7")),
        ("size_bytes", Equals, json!(2_500_000), json!(-1)),
    ]
}

#[test]
fn every_operator_holds_where_it_should_and_negation_turns_it() {
    let mut seen = std::collections::HashSet::from([Operator::IsEmpty]);
    for (field, operator, held, missed) in table() {
        seen.insert(operator);
        let ask =
            |value: &Value, negate| meets(&rule(field, operator.name(), value, negate), &photo());
        let words = format!("{field} {}", operator.name());
        assert!(ask(&held, false), "{words} {held}");
        assert!(!ask(&held, true), "not {words} {held}");
        if operator != Operator::IsNotEmpty {
            assert!(!ask(&missed, false), "{words} {missed}");
            assert!(ask(&missed, true), "not {words} {missed}");
        }
    }
    assert_eq!(seen.len(), Operator::all().count());
}

#[test]
fn what_is_missing_is_empty_and_every_comparison_of_it_is_false() {
    let nothing = Facts {
        filename: Some(String::new()),
        ..Facts::default()
    };
    for field in Field::ALL {
        for operator in Operator::all() {
            let rule = |negate| rule(field.name(), operator.name(), &json!("1"), negate);
            let expected = operator == Operator::IsEmpty;
            let words = format!("{} {}", field.name(), operator.name());
            assert_eq!(meets(&rule(false), &nothing), expected, "{words}");
            assert_eq!(meets(&rule(true), &nothing), !expected, "not {words}");
        }
    }
}

#[test]
fn what_is_there_is_not_empty() {
    let zero = Facts {
        size_bytes: Some(0),
        ..Facts::named(" ")
    };
    for field in ["size_bytes", "filename"] {
        assert!(!meets(&rule(field, "is_empty", &Value::Null, false), &zero));
        assert!(meets(&rule(field, "is_empty", &Value::Null, true), &zero));
    }
}

#[test]
fn text_that_is_a_number_compares_as_one() {
    for (filename, operator, value, expected) in [
        ("0100", "gt", json!(99), true),
        (" 7 ", "lte", json!("7"), true),
        ("0100", "equals", json!(100), false),
        ("100", "equals", json!(100.0), true),
        ("photo", "gt", json!(-1), false),
        ("inf", "gt", json!(1), false),
        ("NaN", "lte", json!(1), false),
    ] {
        let facts = Facts::named(filename);
        let gate = rule("filename", operator, &value, false);
        assert_eq!(
            meets(&gate, &facts),
            expected,
            "{filename} {operator} {value}"
        );
    }
}

#[test]
fn operators_and_fields_go_by_every_spelling() {
    for (spelling, operator) in [
        ("greater-than", Operator::Gt),
        ("greater_than", Operator::Gt),
        ("GreaterThan", Operator::Gt),
        ("greater than", Operator::Gt),
        (" > ", Operator::Gt),
        ("gt", Operator::Gt),
        ("less-than", Operator::Lt),
        ("lessThanOrEqual", Operator::Lte),
        ("greater-than-or-equal-to", Operator::Gte),
        (">=", Operator::Gte),
        ("is-empty", Operator::IsEmpty),
        ("isEmpty", Operator::IsEmpty),
        ("IS NOT EMPTY", Operator::IsNotEmpty),
        ("not_exists", Operator::IsEmpty),
        ("==", Operator::Equals),
        ("does not equal", Operator::NotEquals),
        ("doesNotContain", Operator::NotContains),
        ("begins-with", Operator::StartsWith),
        ("regex", Operator::Matches),
        ("=~", Operator::Matches),
    ] {
        assert_eq!(Operator::parse(spelling), Some(operator), "{spelling}");
    }
    let mut words = std::collections::HashMap::new();
    for operator in Operator::all() {
        for spelling in std::iter::once(operator.name()).chain(operator.spellings()) {
            assert_eq!(Operator::parse(spelling), Some(operator), "{spelling}");
            let other = words.insert(spelling.replace('_', ""), operator);
            assert_eq!(other, None, "{spelling} is listed twice");
        }
    }
    for nonsense in ["", " ", "-", "_", "=>>", "gtt", "between", "ｇｔ"] {
        assert_eq!(Operator::parse(nonsense), None, "{nonsense:?}");
    }
    for (spelling, field) in [
        ("sizeBytes", Field::SizeBytes),
        ("file-size", Field::SizeBytes),
        ("mimeType", Field::Mime),
        ("Upload Source", Field::UploadSource),
        ("ext", Field::Extension),
    ] {
        assert_eq!(Field::parse(spelling), Some(field), "{spelling}");
    }
    for field in Field::ALL {
        for spelling in std::iter::once(&field.name()).chain(field.spellings()) {
            assert_eq!(Field::parse(spelling), Some(*field), "{spelling}");
        }
    }
    assert_eq!(Field::parse("colour"), None);
}

#[test]
fn groups_join_nest_and_negate() {
    let yes = json!({"field": "width", "operator": "gt", "value": 0});
    let no = json!({"field": "width", "operator": "lt", "value": 0});
    for (gate, expected) in [
        (json!({"conditions": []}), true),
        (json!({"logic": "or", "conditions": []}), true),
        (json!({"logic": "or", "groups": []}), true),
        (json!({"conditions": [], "negate": true}), false),
        (json!({"conditions": [yes, no]}), false),
        (json!({"logic": "AND", "conditions": [yes, yes]}), true),
        (json!({"logic": "or", "conditions": [no, yes]}), true),
        (json!({"logic": "Or", "conditions": [no, no]}), false),
        (
            json!({"logic": "any", "conditions": [no, no], "negate": true}),
            true,
        ),
        (
            json!({"logic": "all", "conditions": [yes], "groups": [{"conditions": [no]}]}),
            false,
        ),
        (
            json!({"logic": "or", "conditions": [no], "groups": [{"conditions": [yes]}]}),
            true,
        ),
        (
            json!({"logic": "or", "groups": [{"conditions": [no]}, {"conditions": [no], "negate": true}]}),
            true,
        ),
        (
            json!({"logic": "or", "conditions": [no], "groups": [{"conditions": []}]}),
            true,
        ),
        (
            json!({"conditions": [yes, {"logic": "or", "conditions": [no, yes]}]}),
            true,
        ),
        (
            json!({"combinator": "or", "rules": [no, yes], "not": "true"}),
            false,
        ),
        (yes.clone(), true),
        (no.clone(), false),
        (json!([yes, no]), false),
    ] {
        assert_eq!(meets(&gate, &photo()), expected, "{gate}");
    }
}

#[test]
fn what_cannot_be_read_is_named_with_its_place() {
    let nested = |levels: usize| {
        (1..levels).fold(
            json!({"conditions": []}),
            |group, _| json!({"groups": [group]}),
        )
    };
    assert!(codes(&check(&gated(nested(MAX_GROUP_DEPTH)))).is_empty());
    let many = vec![json!({"field": "width", "operator": "is_empty"}); MAX_CONDITIONS];
    let matching =
        vec![json!({"field": "mime", "operator": "matches", "value": "a"}); MAX_EXPRESSIONS + 5];
    let lengthy: Vec<Value> = [1_000, MAX_EXPRESSION_CHARS_IN_ALL - 1_000, 1]
        .map(|chars| json!({"field": "mime", "operator": "matches", "value": "a".repeat(chars)}))
        .into();
    for (gate, code, path) in [
        (
            nested(MAX_GROUP_DEPTH + 1),
            Code::GroupTooDeep,
            "uploadGate.groups[0].groups[0].groups[0].groups[0].groups[0].groups[0].groups[0].groups[0]",
        ),
        (
            json!({"conditions": many}),
            Code::TooManyConditions,
            "uploadGate.conditions[199]",
        ),
        (
            json!({"conditions": matching}),
            Code::TooManyConditions,
            "uploadGate.conditions[20].value",
        ),
        (
            json!({"conditions": lengthy}),
            Code::TooManyConditions,
            "uploadGate.conditions[2].value",
        ),
        (json!(7), Code::InvalidCondition, "uploadGate"),
        (json!({}), Code::InvalidCondition, "uploadGate"),
        (
            json!({"conditions": {}}),
            Code::InvalidCondition,
            "uploadGate.conditions",
        ),
        (
            json!({"conditions": [null]}),
            Code::InvalidCondition,
            "uploadGate.conditions[0]",
        ),
        (
            json!({"groups": [{"conditions": [], "negate": 1}]}),
            Code::InvalidCondition,
            "uploadGate.groups[0].negate",
        ),
        (
            json!({"logic": "xor", "conditions": []}),
            Code::UnknownLogic,
            "uploadGate.logic",
        ),
        (
            json!({"field": "colour", "operator": "equals", "value": 1}),
            Code::UnknownField,
            "uploadGate.field",
        ),
        (
            json!({"field": "mime"}),
            Code::UnknownOperator,
            "uploadGate.operator",
        ),
        (
            json!({"field": "mime", "operator": "between", "value": 1}),
            Code::UnknownOperator,
            "uploadGate.operator",
        ),
        (
            json!({"field": "mime", "operator": "equals"}),
            Code::MissingValue,
            "uploadGate.value",
        ),
        (
            json!({"field": "mime", "operator": "contains", "value": ""}),
            Code::MissingValue,
            "uploadGate.value",
        ),
        (
            json!({"field": "width", "operator": "gt", "value": "wide"}),
            Code::InvalidValue,
            "uploadGate.value",
        ),
        (
            json!({"field": "width", "operator": "equals", "value": "inf"}),
            Code::InvalidValue,
            "uploadGate.value",
        ),
        (
            json!({"field": "filename", "operator": "gt", "value": "b"}),
            Code::InvalidValue,
            "uploadGate.value",
        ),
        (
            json!({"field": "width", "operator": "gt", "value": [1]}),
            Code::InvalidValue,
            "uploadGate.value",
        ),
        (
            json!({"field": "mime", "operator": "matches", "value": "("}),
            Code::InvalidExpression,
            "uploadGate.value",
        ),
        (
            json!({"field": "mime", "operator": "matches", "value": r"(a)\1"}),
            Code::InvalidExpression,
            "uploadGate.value",
        ),
        (
            json!({"field": "mime", "operator": "matches", "value": r"\w{1000}{1000}"}),
            Code::InvalidExpression,
            "uploadGate.value",
        ),
        (
            json!({"field": "mime", "operator": "matches", "value": "a".repeat(1001)}),
            Code::InvalidExpression,
            "uploadGate.value",
        ),
        (
            json!(["everything"]),
            Code::UnknownLegacyCondition,
            "uploadGate[0]",
        ),
    ] {
        let checked = check(&gated(gate.clone()));
        let shown = gate.to_string().chars().take(200).collect::<String>();
        let error = checked
            .error()
            .unwrap_or_else(|| panic!("{shown} is accepted"));
        assert_eq!(
            (error.code, error.field.as_deref()),
            (code, Some(path)),
            "{shown}"
        );
        assert!(error.message.starts_with(path), "{}", error.message);
        assert!(checked.definition.is_none());
    }
}

#[test]
fn media_types_that_never_are_give_a_warning_and_a_way_out() {
    for (operator, value, is_warned) in [
        ("equals", "image/*", true),
        ("equals", "image/", true),
        ("equals", "image", true),
        ("starts_with", "image/*", true),
        ("equals", "image/png", false),
        ("starts_with", "image/", false),
        ("matches", "image/.*", false),
    ] {
        let checked = check(&gated(rule("mime", operator, &json!(value), false)));
        assert_eq!(
            codes(&checked) == [Code::NeverMet],
            is_warned,
            "{operator} {value}"
        );
        if is_warned {
            let message = &checked.problems[0].message;
            assert!(message.contains("starts_with `image/`"), "{message}");
        }
    }
}

#[test]
fn a_group_tells_what_it_asks_for() {
    let gate = json!({
        "conditions": [{"field": "mime", "operator": "is_empty"}],
        "groups": [{"conditions": [{"field": "height", "operator": "gt", "value": 1}]}]
    });
    let definition = super::valid(&gated(gate));
    let fields = definition.gate.as_ref().map(Group::fields);
    assert_eq!(fields, Some([Field::Mime, Field::Height].into()));
    assert!(definition.needs_dimensions());
    let definition = super::valid(&gated(rule("size", "gt", &json!(1), false)));
    assert!(!definition.needs_dimensions());
}

#[test]
fn few_expressions_may_be_large() {
    let matching = |expressions: &[&str]| {
        let rule =
            |value: &&str| json!({"field": "filename", "operator": "matches", "value": value});
        gated(json!({"conditions": expressions.iter().map(rule).collect::<Vec<_>>()}))
    };
    let (large, usual) = (r"^\w{10}", r"^IMG_\d{4}\.(jpe?g|heic)$");
    let most = [large, large, large, large, usual, usual];
    assert!(check(&matching(&most)).error().is_none());
    let checked = check(&matching(&[&most[..], &[large]].concat()));
    let error = checked.error().expect("one too many");
    assert_eq!(error.code, Code::InvalidExpression);
    assert_eq!(
        error.field.as_deref(),
        Some("uploadGate.conditions[6].value")
    );
}

/// Compiling takes up to a tenth of a second, which no one has who reads definitions inside a transaction.
#[test]
fn expressions_of_a_saved_definition_are_compiled_when_they_are_asked() {
    let gate =
        json!({"conditions": [{"field": "filename", "operator": "matches", "value": "(?<=a)b"}]});
    assert!(check(&gated(gate.clone())).definition.is_none());
    let saved = saved(&gated(gate)).expect("nothing was compiled");
    assert!(!saved.gate.expect("a gate was given").is_met(&photo()));
    let dangling = json!({"nodes": [], "edges": []});
    assert!(super::saved(&dangling).is_none(), "all else is checked");
}

#[test]
fn few_classes_may_reach_beyond_ascii() {
    let rule = |value: &str| json!({"field": "filename", "operator": "matches", "value": value});
    let gate = |rules: Vec<Value>| check(&gated(json!({ "conditions": rules })));
    let usual = rule(r"^IMG_[0-9]{4}[a-z]\.(jpe?g|heic)$");
    assert!(gate(vec![usual; MAX_EXPRESSIONS]).error().is_none());
    // Each alone: one that would be read for seconds, and one too many in the last of several.
    let wide = "[!-\u{10ffff}]";
    for rules in [
        vec![rule(&wide.repeat(200))],
        vec![rule(&r"[\w\W]".repeat(21))],
        vec![rule(&wide.repeat(10)), rule(&wide.repeat(10)), rule(wide)],
    ] {
        let last = format!("uploadGate.conditions[{}].value", rules.len() - 1);
        let checked = gate(rules);
        let error = checked.error().expect("too costly");
        assert_eq!(error.code, Code::InvalidExpression);
        assert!(
            error.message.contains("too many classes"),
            "{}",
            error.message
        );
        assert_eq!(error.field, Some(last));
    }
    assert!(
        gate(vec![rule(&wide.repeat(10)), rule(&wide.repeat(10))])
            .error()
            .is_none()
    );
}
