//! Any input is judged: no panic, no depth without a bound, no list of problems without an end.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{super::*, chain, check, codes, gated, node, valid};

const MOST_PROBLEMS: usize = 201;

/// Names that definitions use, and one that they do not.
const NAMES: &[&str] = &[
    "nodes",
    "edges",
    "id",
    "data",
    "kind",
    "title",
    "config",
    "source",
    "target",
    "uploadGate",
    "branchConditions",
    "branchCondition",
    "uploadConditions",
    "uploadLogicGate",
    "renamePattern",
    "webhookUrl",
    "trigger",
    "folderId",
    "logic",
    "negate",
    "conditions",
    "groups",
    "field",
    "operator",
    "value",
    "format",
    "width",
    "text",
    "watermarkFile",
    "pattern",
    "url",
    "zzz",
];
const WORDS: &[&str] = &[
    "",
    "a",
    "b",
    "up",
    "upload",
    "branch",
    "storage",
    "webhook",
    "rename",
    "convert",
    "watermark",
    "gif",
    "true",
    "default",
    "and",
    "or",
    "mime",
    "size_bytes",
    "matches",
    "gt",
    "is_empty",
    "(",
    r"\w{1000}{1000}",
    "(a+)+$",
    "images-only",
    "{original}",
    "{x}",
    "http://host",
    "webp",
    "-1",
    "1e999",
    "\u{0}",
    "𝕏",
];

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(WORDS).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ]
}

fn anything() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(6, 200, 8, |inner| {
        let name = prop_oneof![
            9 => prop::sample::select(NAMES).prop_map(str::to_owned),
            1 => any::<String>(),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Nodes of kinds that exist, with configs of any shape, and edges between some of them.
fn nearly_audio() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(kinds().map(|info| info.kind).collect::<Vec<_>>());
    let nodes = prop::collection::vec((0u8..12, kind, anything()), 0..12).prop_map(|nodes| {
        let mut all = vec![node("0", "upload", json!({}))];
        all.extend(
            nodes
                .into_iter()
                .map(|(id, kind, config)| node(&id.to_string(), kind, config)),
        );
        all
    });
    let edges = prop::collection::vec((0u8..13, 0u8..13, leaf()), 0..14);
    (nodes, edges, anything(), anything()).prop_map(|(nodes, edges, gate, conditions)| {
        let edges: Vec<Value> = edges
            .iter()
            .map(|(source, target, kind)| json!({"source": source, "target": target, "kind": kind}))
            .collect();
        json!({"nodes": nodes, "edges": edges, "uploadGate": gate, "branchConditions": conditions})
    })
}

fn judged(value: &Value) -> Result<(), TestCaseError> {
    let checked = check(value);
    prop_assert!(checked.problems.len() <= MOST_PROBLEMS);
    prop_assert_eq!(checked.definition.is_none(), checked.error().is_some());
    for problem in &checked.problems {
        prop_assert!(
            problem.message.chars().count() < 1_500,
            "{}",
            problem.message
        );
        prop_assert!(
            problem
                .node_id
                .as_ref()
                .is_none_or(|id| id.chars().count() <= MAX_ID_CHARS)
        );
    }
    Ok(())
}

/// Returns whether a graph of branches is valid, by trying all paths of all lengths.
fn is_valid(count: usize, edges: &[(usize, usize, bool)]) -> bool {
    let mut reach = vec![vec![false; count]; count];
    for (at, &(source, target, label)) in edges.iter().enumerate() {
        if edges[..at]
            .iter()
            .any(|&(other, _, same)| other == source && same == label)
        {
            return false;
        }
        reach[source][target] = true;
    }
    for via in 0..count {
        for from in 0..count {
            for to in 0..count {
                reach[from][to] |= reach[from][via] && reach[via][to];
            }
        }
    }
    (0..count).all(|at| !reach[at][at])
}

/// An upload that leads to the first of some branches, between which the edges are.
fn branches(count: usize, edges: &[(usize, usize, bool)]) -> Value {
    let condition = json!({"condition": {"conditions": []}});
    let mut nodes = vec![node("up", "upload", json!({}))];
    nodes.extend((0..count).map(|at| node(&at.to_string(), "branch", condition.clone())));
    let mut all = vec![json!({"source": "up", "target": "0"})];
    all.extend(
        edges.iter().map(
            |(source, target, label)| json!({"source": source, "target": target, "kind": label}),
        ),
    );
    json!({"nodes": nodes, "edges": all})
}

fn graph() -> impl Strategy<Value = (usize, Vec<(usize, usize, bool)>)> {
    (1usize..12).prop_flat_map(|count| {
        // Mostly forward, so that many are valid.
        let edge = (0..count, 0..count, any::<bool>(), 0u8..12).prop_map(|(a, b, label, turn)| {
            if turn == 0 {
                (a, b, label)
            } else {
                (a.min(b), a.max(b), label)
            }
        });
        (Just(count), prop::collection::vec(edge, 0..count + 1))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn anything_in_a_audio_frame_is_judged(value in nearly_audio()) {
        judged(&value)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_json_is_judged(value in anything()) {
        judged(&value)?;
        judged(&gated(value))?;
    }

    #[test]
    fn graphs_are_refused_exactly_when_they_go_round_or_fork((count, edges) in graph(), results: u64) {
        let checked = check(&branches(count, &edges));
        prop_assert_eq!(checked.definition.is_some(), is_valid(count, &edges));
        if let Some(definition) = checked.definition {
            let mut at = definition.upload();
            let mut steps = 0;
            while let Some(next) = definition.next(&at.id, Some(results >> steps & 1 == 1)) {
                at = next;
                steps += 1;
                prop_assert!(steps <= count);
            }
        }
    }

    #[test]
    fn patterns_of_any_text_are_read_or_refused(text in ".{0,300}", stem in ".{0,20}") {
        let names = Names {
            original_stem: &stem, extension: "png", date: "2026-11-21", width: None, height: None, n: 1,
        };
        if let Ok(pattern) = Pattern::parse(&text) {
            prop_assert!(pattern.apply(&names).len() < 64 * 1024);
        }
    }
}

/// A value of such depth costs stack when it is dropped, which is not what is tested.
fn in_a_deep_stack(test: impl FnOnce() + Send + 'static) {
    const STACK_BYTES: usize = 64 << 20;
    let thread = std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(test);
    thread.expect("a thread").join().expect("the test passes");
}

#[test]
fn depth_is_refused_before_it_is_gone_into() {
    in_a_deep_stack(|| {
        let gate = (0..1_000).fold(json!({"conditions": []}), |group, level| match level % 2 {
            0 => json!({"groups": [group]}),
            _ => json!({"conditions": [group]}),
        });
        assert_eq!(codes(&check(&gated(gate))), [Code::GroupTooDeep]);
        let nest = (0..1_000).fold(json!("up"), |inner, _| json!([inner]));
        for name in ["id", "kind", "config", "title"] {
            let data = json!({"id": "x", "kind": "storage", name: nest});
            assert!(check(&json!({"nodes": [data]})).error().is_some(), "{name}");
        }
    });
}

#[test]
fn breadth_is_counted() {
    let mut wide = json!({"conditions": []});
    for (name, part) in [
        ("groups", json!({"conditions": []})),
        (
            "conditions",
            json!({"field": "mime", "operator": "matches", "value": r"(\w|\pL|\pN){9}"}),
        ),
        ("conditions", json!({"field": 1})),
        ("conditions", json!("who knows")),
        ("conditions", json!(0)),
    ] {
        wide[name] = vec![part; 50_000].into();
        let checked = check(&gated(wide.clone()));
        assert!(checked.error().is_some(), "{name}");
        assert!(checked.problems.len() <= MOST_PROBLEMS);
        wide[name] = json!([]);
    }
    let keys: Map<String, Value> = (0..50_000)
        .map(|at| (format!("k{at}"), json!(at)))
        .collect();
    let config = chain(&[node("x", "storage", Value::Object(keys.clone()))]);
    assert_eq!(codes(&check(&config)), [Code::UnusedConfig]);
    let mut conditions = chain(&[node("x", "storage", json!({}))]);
    conditions["branchConditions"] = Value::Object(keys);
    assert_eq!(codes(&check(&conditions)), [Code::UnusedCondition]);
}

#[test]
fn huge_words_are_refused_and_shown_short() {
    let huge = "x".repeat(100_000);
    let (pattern, open) = ("a".repeat(100_000), "{".repeat(100_000));
    for definition in [
        chain(&[node(&huge, "storage", json!({}))]),
        chain(&[node("x", &huge, json!({}))]),
        chain(&[node("x", "rename", json!({"pattern": pattern}))]),
        chain(&[node("x", "rename", json!({"pattern": open}))]),
        chain(&[node("x", "convert", json!({"format": huge}))]),
        chain(&[node(
            "x",
            "webhook",
            json!({"url": format!("http://{huge}")}),
        )]),
        gated(json!({"field": huge, "operator": huge, "value": huge})),
        gated(json!({"field": "mime", "operator": "matches", "value": huge})),
        gated(json!({"field": "width", "operator": "gt", "value": huge})),
        gated(json!([huge])),
        json!({"nodes": [{"id": "up", "kind": "upload"}], "edges": [{"source": huge, "target": huge}]}),
    ] {
        let checked = check(&definition);
        let error = checked.error().expect("refused");
        assert!(error.message.len() < 1_000, "{}", error.message);
    }
}

#[test]
fn expressions_that_are_exponential_elsewhere_are_linear_here() {
    let gate = json!({"field": "filename", "operator": "matches", "value": "(a+)+$"});
    let gate = valid(&gated(gate)).gate.expect("a gate");
    let almost = format!("{}!", "a".repeat(100_000));
    assert!(!gate.is_met(&Facts::named(&almost)));
}

#[test]
fn costly_expressions_are_refused_as_such() {
    for expression in [
        r"\w{1000}{1000}",
        r"(\pL{100}){100}",
        "((((a{99}){99}){99}){99})",
    ] {
        let gate = json!({"field": "filename", "operator": "matches", "value": expression});
        let checked = check(&gated(gate));
        let error = checked.error().expect(expression);
        assert_eq!(error.code, Code::InvalidExpression);
        assert!(error.message.contains("too costly"), "{}", error.message);
    }
}
