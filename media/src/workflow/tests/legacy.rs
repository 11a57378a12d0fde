//! Older forms are equivalent to the new forms that they mean.

use serde_json::{Value, json};

use super::{super::*, chain, check, codes, node, valid, with};

/// Returns the meaning of each word, in the new form.
fn new_form(word: &str) -> Value {
    let (field, operator, value) = match word {
        "images-only" => ("mime", "starts_with", json!("image/")),
        "videos-only" => ("mime", "starts_with", json!("video/")),
        "audio-only" => ("mime", "starts_with", json!("audio/")),
        "from-google-drive" => ("upload_source", "matches", json!("^google[-_ ]?drive$")),
        "larger-than-100mb" => ("size_bytes", "gt", json!(100_000_000)),
        "image/" | "image/*" => ("mime", "starts_with", json!("image/")),
        "image/png" => ("mime", "equals", json!("image/png")),
        other => panic!("{other}"),
    };
    json!({"field": field, "operator": operator, "value": value})
}

const WORDS: &[&str] = &[
    "images-only",
    "videos-only",
    "audio-only",
    "from-google-drive",
    "larger-than-100mb",
    "image/",
    "image/*",
    "image/png",
];

fn plain() -> Value {
    chain(&[node("keep", "storage", json!({}))])
}

fn branching() -> Value {
    chain(&[
        node("b", "branch", json!({})),
        node("keep", "storage", json!({})),
    ])
}

fn branch(definition: &Definition) -> &Group {
    match &definition.node("b").expect("the branch").kind {
        Kind::Branch(group) => group,
        other => panic!("{other:?}"),
    }
}

#[test]
fn gates_of_words_equal_gates_of_conditions() {
    for word in WORDS {
        let expected = with(
            plain(),
            "uploadGate",
            json!({"conditions": [new_form(word)]}),
        );
        let expected = valid(&expected).gate;
        for (name, value) in [
            ("uploadConditions", json!([word])),
            ("upload_conditions", json!([word])),
            ("uploadConditions", json!(word)),
            ("uploadConditions", json!(word.to_uppercase())),
            ("uploadGate", json!({"conditions": [word]})),
        ] {
            let old = with(plain(), name, value);
            assert_eq!(valid(&old).gate, expected, "{old}");
            assert_eq!(codes(&check(&old)), [Code::LegacyForm], "{old}");
        }
    }
    for spelling in ["images_only", "imagesOnly", " Images Only "] {
        let old = with(plain(), "uploadConditions", json!([spelling]));
        let expected = with(plain(), "uploadConditions", json!(["images-only"]));
        assert_eq!(valid(&old).gate, valid(&expected).gate, "{spelling}");
    }
}

#[test]
fn the_logic_gate_joins_the_words() {
    let words = json!(["images-only", "larger-than-100mb"]);
    let rules = json!([new_form("images-only"), new_form("larger-than-100mb")]);
    for (gate, logic) in [
        (Value::Null, "and"),
        (json!("AND"), "and"),
        (json!("and"), "and"),
        (json!("OR"), "or"),
        (json!("any"), "or"),
    ] {
        let old = with(plain(), "uploadConditions", words.clone());
        let old = with(old, "uploadLogicGate", gate);
        let new = with(
            plain(),
            "uploadGate",
            json!({"logic": logic, "conditions": rules}),
        );
        assert_eq!(valid(&old).gate, valid(&new).gate, "{old}");
    }
    let old = with(plain(), "uploadConditions", words);
    let old = with(old, "uploadLogicGate", json!("nand"));
    assert_eq!(
        check(&old).error().map(|error| error.code),
        Some(Code::UnknownLogic)
    );
}

#[test]
fn branches_take_the_older_form_wherever_it_is() {
    for word in WORDS {
        let group = json!({"conditions": [new_form(word)]});
        let expected = with(branching(), "branchConditions", json!({"b": group}));
        let expected = valid(&expected);
        let in_config = |config: Value| {
            chain(&[
                node("b", "branch", config),
                node("keep", "storage", json!({})),
            ])
        };
        for old in [
            with(branching(), "branchCondition", json!(word)),
            with(branching(), "branchCondition", json!([word])),
            with(branching(), "branch_condition", json!([word])),
            with(branching(), "branchConditions", json!({"b": word})),
            in_config(json!({"branchCondition": word})),
            in_config(json!({"branchCondition": [word]})),
            in_config(json!({"condition": word})),
        ] {
            assert_eq!(branch(&valid(&old)), branch(&expected), "{old}");
        }
        for new in [
            in_config(json!({"condition": group})),
            in_config(group.clone()),
            in_config(new_form(word)),
        ] {
            assert_eq!(branch(&valid(&new)), branch(&expected), "{new}");
        }
    }
}

#[test]
fn the_new_form_wins_and_nothing_is_no_form() {
    let new = json!({"conditions": [{"field": "width", "operator": "gt", "value": 1}]});
    let both = with(plain(), "uploadGate", new.clone());
    let both = with(both, "uploadConditions", json!(["no such word"]));
    assert_eq!(
        valid(&both).gate.map(|gate| gate.fields()),
        Some([Field::Width].into())
    );

    let both = with(branching(), "branchConditions", json!({"b": new}));
    let both = with(both, "branchCondition", json!("no such word"));
    assert_eq!(branch(&valid(&both)).fields(), [Field::Width].into());

    for nothing in [Value::Null, json!([]), json!(""), json!(" ")] {
        let empty = with(plain(), "uploadConditions", nothing.clone());
        assert_eq!(valid(&empty).gate, None, "{nothing}");
        let empty = with(branching(), "branchCondition", nothing.clone());
        let error = check(&empty);
        let error = error.error().expect("a branch without a condition");
        assert_eq!(
            (error.code, error.node_id.as_deref()),
            (Code::MissingCondition, Some("b"))
        );
    }
}

#[test]
fn sources_of_google_drive_are_known_by_any_spelling() {
    let gate = valid(&with(
        plain(),
        "uploadConditions",
        json!(["from-google-drive"]),
    ))
    .gate;
    let gate = gate.expect("a gate");
    for (source, expected) in [
        ("google-drive", true),
        ("Google Drive", true),
        ("google_drive", true),
        ("googledrive", true),
        ("api", false),
        ("not google drive", false),
    ] {
        let facts = Facts {
            upload_source: Some(source.to_owned()),
            ..Facts::default()
        };
        assert_eq!(gate.is_met(&facts), expected, "{source}");
    }
}
