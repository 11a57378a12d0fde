//! The path from node to node.

use serde_json::{Value, json};

use super::{super::Definition, node, valid};

fn definition(ways: &[(&str, &str, Value)]) -> Definition {
    let condition = json!({"condition": {"conditions": []}});
    let mut nodes = vec![
        node("up", "upload", json!({})),
        node("b", "branch", condition),
    ];
    nodes.extend(["x", "y", "z"].map(|id| node(id, "storage", json!({}))));
    let edges: Vec<Value> = ways
        .iter()
        .map(|(source, target, kind)| json!({"source": source, "target": target, "kind": kind}))
        .collect();
    valid(&json!({"nodes": nodes, "edges": edges}))
}

fn walk(definition: &Definition, result: bool) -> Vec<&str> {
    let mut path = vec![definition.upload().id.as_str()];
    while let Some(node) = definition.next(path[path.len() - 1], Some(result)) {
        path.push(&node.id);
    }
    path
}

#[test]
fn a_branch_goes_its_results_way_and_paths_may_join() {
    let (on, yes, no) = (Value::Null, json!(true), json!("false"));
    let to_branch = ("up", "b", on.clone());
    for (ways, if_true, if_false) in [
        (
            vec![
                to_branch.clone(),
                ("b", "x", yes.clone()),
                ("b", "y", no.clone()),
                ("x", "z", on.clone()),
                ("y", "z", on.clone()),
            ],
            vec!["up", "b", "x", "z"],
            vec!["up", "b", "y", "z"],
        ),
        (
            vec![
                to_branch.clone(),
                ("b", "x", yes.clone()),
                ("b", "x", no.clone()),
            ],
            vec!["up", "b", "x"],
            vec!["up", "b", "x"],
        ),
        (
            vec![to_branch.clone(), ("b", "x", no.clone())],
            vec!["up", "b"],
            vec!["up", "b", "x"],
        ),
        (
            vec![
                to_branch.clone(),
                ("b", "x", yes.clone()),
                ("b", "y", on.clone()),
            ],
            vec!["up", "b", "x"],
            vec!["up", "b", "y"],
        ),
        (
            vec![("up", "x", no.clone()), ("x", "y", yes)],
            vec!["up", "x", "y"],
            vec!["up", "x", "y"],
        ),
        (vec![("b", "x", no), ("x", "y", on)], vec!["up"], vec!["up"]),
    ] {
        let definition = definition(&ways);
        assert_eq!(walk(&definition, true), if_true, "{ways:?}");
        assert_eq!(walk(&definition, false), if_false, "{ways:?}");
    }
}

#[test]
fn a_result_is_looked_at_only_after_a_branch() {
    let definition = definition(&[
        ("up", "x", Value::Null),
        ("x", "b", Value::Null),
        ("b", "y", json!(true)),
    ]);
    assert_eq!(
        definition
            .next("up", Some(false))
            .map(|node| node.id.as_str()),
        Some("x")
    );
    assert_eq!(definition.next("b", None), None);
    assert_eq!(definition.next("unknown", None), None);
    assert_eq!(definition.steps_ahead("up"), 2);
    assert_eq!(definition.steps_ahead("b"), 0);
    assert_eq!(definition.steps_ahead("y"), 0);
}
