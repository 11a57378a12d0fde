//! Invariants of every definition, with a second, naive reading of conditions and graphs to compare with.

mod checks;
mod conditions;
mod dry_run;
mod hostile;
mod legacy;
mod naive;
mod pattern;
mod reference;
mod template;
mod walk;

use serde_json::{Value, json};

use super::{Checked, Code, Definition, Facts, check, saved};

/// A definition of an upload and these nodes, each after the one before.
fn chain(nodes: &[Value]) -> Value {
    let mut all = vec![json!({"id": "up", "data": {"kind": "upload"}})];
    all.extend(nodes.iter().cloned());
    let edges: Vec<Value> = all
        .windows(2)
        .map(|pair| json!({"source": pair[0]["id"], "target": pair[1]["id"]}))
        .collect();
    json!({"nodes": all, "edges": edges})
}

fn node(id: &str, kind: &str, config: Value) -> Value {
    json!({"id": id, "data": {"kind": kind, "config": config}})
}

/// A definition with a field more, or another value for one.
fn with(mut definition: Value, name: &str, value: Value) -> Value {
    definition[name] = value;
    definition
}

fn gated(gate: Value) -> Value {
    with(
        chain(&[node("keep", "storage", json!({}))]),
        "uploadGate",
        gate,
    )
}

/// Returns whether a file meets a gate that is written so.
fn meets(gate: &Value, facts: &Facts) -> bool {
    let definition = gated(gate.clone());
    let gate = valid(&definition).gate.expect("a gate was given");
    let saved = saved(&definition).expect("it is valid").gate;
    let saved = saved.expect("a gate was given");
    assert_eq!((gate.is_met(facts), &gate), (saved.is_met(facts), &saved));
    gate.is_met(facts)
}

/// The definition, which has no errors.
fn valid(definition: &Value) -> Definition {
    let checked = check(definition);
    match checked.definition {
        Some(definition) => definition,
        None => panic!("{definition} has {:#?}", checked.problems),
    }
}

fn codes(checked: &Checked) -> Vec<Code> {
    checked
        .problems
        .iter()
        .map(|problem| problem.code)
        .collect()
}
