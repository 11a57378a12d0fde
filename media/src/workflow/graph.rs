//! Edges of a workflow: unknown nodes, labels (`true`, `false`, `default`), several edges, cycles. All of it iterates:
//! a definition's shape costs no stack.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{
    MAX_EDGES,
    definition::{Edge, Label},
    json,
    kinds::Sort,
    node::Outline,
    problem::{Code, Place, Problems},
};
use crate::operation::shorten;

/// Nodes by id; of those with the same id, the first.
type Index<'a> = HashMap<&'a str, usize>;

/// Reads the edges and checks the graph that they make.
pub fn read(edges: &[Value], outlines: &[Outline<'_>], problems: &mut Problems) -> Vec<Edge> {
    check_uploads(outlines, problems);
    let index = index(outlines, problems);
    if edges.len() > MAX_EDGES {
        problems.push(Place::definition().problem(
            Code::TooManyEdges,
            Some("edges"),
            format!(
                "a definition may have {MAX_EDGES} edges, got {}",
                edges.len()
            ),
        ));
        return Vec::new();
    }
    let edges: Vec<Edge> = edges
        .iter()
        .enumerate()
        .filter_map(|(at, edge)| read_edge(at, edge, outlines, &index, problems))
        .collect();
    check_outgoing(&edges, outlines, &index, problems);
    check_cycle(&edges, outlines, &index, problems);
    edges
}

fn check_uploads(outlines: &[Outline<'_>], problems: &mut Problems) {
    let mut uploads = outlines
        .iter()
        .filter(|outline| matches!(outline.sort, Some(Sort::Upload)));
    let Some(first) = uploads.next() else {
        problems.push(Place::definition().problem(
            Code::NoUpload,
            Some("nodes"),
            "a definition needs one node of kind upload, where the file comes in: add it",
        ));
        return;
    };
    for further in uploads {
        further.problem(
            Code::SeveralUploads,
            "kind",
            format!(
                "there is an upload node already, `{}`: a definition has one, remove the other",
                shorten(&first.id)
            ),
            problems,
        );
    }
}

fn index<'a>(outlines: &'a [Outline<'_>], problems: &mut Problems) -> Index<'a> {
    let mut index = Index::new();
    for (at, outline) in outlines.iter().enumerate() {
        if outline.id.is_empty() {
            continue;
        }
        if index.contains_key(outline.id.as_str()) {
            outline.problem(
                Code::DuplicateId,
                "id",
                "another node has the same id: give each its own",
                problems,
            );
            continue;
        }
        index.insert(&outline.id, at);
    }
    index
}

fn read_edge(
    at: usize,
    value: &Value,
    outlines: &[Outline<'_>],
    index: &Index<'_>,
    problems: &mut Problems,
) -> Option<Edge> {
    let end = |name: &str| {
        value
            .as_object()
            .and_then(|edge| json::get(edge, name))
            .and_then(json::id)
    };
    let (Some(source), Some(target)) = (end("source"), end("target")) else {
        problems.push(Place::definition().problem(
            Code::InvalidShape,
            Some("edges"),
            format!("edges[{at}] must be an object {{source, target}} with the ids of two nodes"),
        ));
        return None;
    };
    let is_known = |id: &String| index.contains_key(id.as_str());
    if let Some(missing) = [&source, &target].into_iter().find(|id| !is_known(id)) {
        let known = [&source, &target].into_iter().find(|id| is_known(id));
        let place = match known.or(Some(missing)) {
            Some(id) => match index.get(id.as_str()) {
                Some(&at) => &outlines[at].place,
                None => &Place::node(id, None),
            },
            None => &Place::definition(),
        };
        problems.push(place.problem(
            Code::DanglingEdge,
            Some("edges"),
            format!(
                "edges[{at}] from `{}` to `{}` names `{}`, and there is no such node: add it or remove the edge",
                shorten(&source),
                shorten(&target),
                shorten(missing)
            ),
        ));
        return None;
    }
    let outline = &outlines[index[source.as_str()]];
    let label = read_label(at, value, outline, problems)?;
    Some(Edge {
        source,
        target,
        label,
    })
}

/// The label; out of a node that is no branch it is always default.
fn read_label(
    at: usize,
    edge: &Value,
    source: &Outline<'_>,
    problems: &mut Problems,
) -> Option<Label> {
    // Editors that draw graphs keep a branch's way out in the edge's handle.
    let kind = &edge["kind"];
    let given = if kind.is_null() {
        &edge["sourceHandle"]
    } else {
        kind
    };
    let label = match given {
        Value::Null => Some(Label::Default),
        Value::Bool(result) => Some(Label::of(*result)),
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "" | "default" => Some(Label::Default),
            "true" => Some(Label::True),
            "false" => Some(Label::False),
            _ if kind.is_null() => Some(Label::Default),
            _ => None,
        },
        _ if kind.is_null() => Some(Label::Default),
        _ => None,
    };
    let Some(label) = label else {
        source.problem(
            Code::UnknownLabel,
            "edges",
            format!(
                "edges[{at}].kind must be default, true or false, got {}",
                json::shown(given)
            ),
            problems,
        );
        return None;
    };
    if label == Label::Default || source.is_branch() {
        return Some(label);
    }
    source.problem(
        Code::IgnoredLabel,
        "edges",
        format!(
            "edges[{at}] has kind {}, which counts as default: only a branch has a result",
            label.name()
        ),
        problems,
    );
    Some(Label::Default)
}

/// Checks that there is one edge for each result.
fn check_outgoing(
    edges: &[Edge],
    outlines: &[Outline<'_>],
    index: &Index<'_>,
    problems: &mut Problems,
) {
    let mut seen = HashSet::new();
    let mut reported = HashSet::new();
    for edge in edges {
        let way_out = (edge.source.as_str(), edge.label);
        if seen.insert(way_out) || !reported.insert(way_out) {
            continue;
        }
        let source = &outlines[index[edge.source.as_str()]];
        let what = if source.is_branch() {
            format!(
                "several edges of kind {} leave this branch: keep one",
                edge.label.name()
            )
        } else {
            "several edges leave this node, and only a branch chooses between them: keep one"
                .to_owned()
        };
        source.problem(Code::SeveralEdges, "edges", what, problems);
    }
}

/// Takes away nodes that no edge leads to, until none is left or all that are left lie on or behind a cycle; going back
/// from one of these ends in the cycle itself.
fn check_cycle(
    edges: &[Edge],
    outlines: &[Outline<'_>],
    index: &Index<'_>,
    problems: &mut Problems,
) {
    let mut incoming = vec![0; outlines.len()];
    let mut outgoing = vec![Vec::new(); outlines.len()];
    for edge in edges {
        let (source, target) = (index[edge.source.as_str()], index[edge.target.as_str()]);
        incoming[target] += 1;
        outgoing[source].push(target);
    }
    let mut free: Vec<usize> = (0..outlines.len())
        .filter(|&at| incoming[at] == 0)
        .collect();
    let mut is_left = vec![true; outlines.len()];
    while let Some(at) = free.pop() {
        is_left[at] = false;
        for &target in &outgoing[at] {
            incoming[target] -= 1;
            if incoming[target] == 0 {
                free.push(target);
            }
        }
    }
    let Some(start) = is_left.iter().position(|&left| left) else {
        return;
    };
    let mut before = vec![None; outlines.len()];
    for (source, targets) in outgoing.iter().enumerate().filter(|&(at, _)| is_left[at]) {
        for &target in targets {
            before[target] = Some(source);
        }
    }
    let back = |at: usize| before[at].expect("what is left has an edge from what is left");
    let on_cycle = (0..outlines.len()).fold(start, |at, _| back(at));
    let mut cycle = vec![on_cycle];
    let mut at = back(on_cycle);
    while at != on_cycle {
        cycle.push(at);
        at = back(at);
    }
    cycle.push(on_cycle);
    cycle.reverse();
    report_cycle(&cycle, outlines, problems);
}

fn report_cycle(cycle: &[usize], outlines: &[Outline<'_>], problems: &mut Problems) {
    const NAMED: usize = 8;
    let mut names: Vec<String> = cycle
        .iter()
        .take(NAMED)
        .map(|&at| format!("`{}`", shorten(&outlines[at].id)))
        .collect();
    if cycle.len() > NAMED {
        names.push("…".to_owned());
    }
    outlines[cycle[0]].problem(
        Code::Cycle,
        "edges",
        format!(
            "the edges come back to this node: {}; remove one of them",
            names.join(" → ")
        ),
        problems,
    );
}
