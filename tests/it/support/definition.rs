//! Definitions of workflows, and what they are made of.

use serde_json::{Value, json};

pub fn node(id: &str, kind: &str, config: Value) -> Value {
    json!({"id": id, "data": {"kind": kind, "config": config}})
}

pub fn edge(source: &str, target: &str) -> Value {
    json!({"source": source, "target": target})
}

/// From a branch, by `true` or `false`.
pub fn labelled(source: &str, label: bool, target: &str) -> Value {
    json!({"source": source, "target": target, "kind": label.to_string()})
}

/// Returns a definition of an upload node and these nodes in sequence.
pub fn chain(nodes: Vec<Value>) -> Value {
    let mut all = vec![node("upload", "upload", json!({}))];
    all.extend(nodes);
    let ids: Vec<&str> = all.iter().filter_map(|it| it["id"].as_str()).collect();
    let edges: Vec<_> = ids.windows(2).map(|pair| edge(pair[0], pair[1])).collect();
    json!({"nodes": all, "edges": edges})
}

/// Makes a group of one rule.
pub fn rule(field: &str, operator: &str, value: impl Into<Value>) -> Value {
    json!({"logic": "and", "conditions": [{"field": field, "operator": operator, "value": value.into()}]})
}
