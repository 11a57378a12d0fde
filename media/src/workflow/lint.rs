//! Warnings about workflow definitions that can be saved: unreachable nodes, branches without edges, no delivery,
//! unused `webhookUrl`.

use std::collections::HashSet;

use super::{
    definition::{Definition, Kind, Label, Node},
    problem::{Code, Place, Problems},
};

/// Adds warnings about a definition without errors.
pub fn lint(definition: &Definition, problems: &mut Problems) {
    warn_of_unreachable(definition, problems);
    for node in &definition.nodes {
        match &node.kind {
            Kind::Branch(_) => warn_of_branch(node, definition, problems),
            Kind::Webhook { url: None } if definition.webhook_url.is_none() => {
                problems.push(place(node).problem(
                    Code::WebhookWithoutUrl,
                    Some("url"),
                    "no url here and no webhookUrl in the definition: only subscribers of workflow.completed hear of the run",
                ));
            }
            _ => {}
        }
    }
    warn_of_delivery(definition, problems);
}

fn warn_of_unreachable(definition: &Definition, problems: &mut Problems) {
    let mut reached = HashSet::from([definition.upload().id.as_str()]);
    let mut open = vec![definition.upload().id.as_str()];
    while let Some(at) = open.pop() {
        for edge in definition.edges.iter().filter(|edge| edge.source == at) {
            if reached.insert(&edge.target) {
                open.push(&edge.target);
            }
        }
    }
    for node in &definition.nodes {
        if !reached.contains(node.id.as_str()) {
            problems.push(place(node).problem(
                Code::UnreachableNode,
                Some("edges"),
                "no path leads here from the upload: it is never done, add an edge or remove the node",
            ));
        }
    }
}

fn warn_of_branch(node: &Node, definition: &Definition, problems: &mut Problems) {
    let has = |label: Label| {
        definition
            .edges
            .iter()
            .any(|edge| edge.source == node.id && edge.label == label)
    };
    if has(Label::Default) {
        problems.push(place(node).problem(
            Code::UnlabelledBranchEdge,
            Some("edges"),
            "an edge leaves this branch without kind true or false: it is taken for a result that has no edge of its own",
        ));
        return;
    }
    for label in [Label::True, Label::False] {
        if !has(label) {
            problems.push(place(node).problem(
                Code::MissingBranchEdge,
                Some("edges"),
                format!(
                    "no edge of kind {} leaves this branch: the run ends here with that result",
                    label.name()
                ),
            ));
        }
    }
}

/// Warns about the delivery of the result.
fn warn_of_delivery(definition: &Definition, problems: &mut Problems) {
    let has = |is_kind: fn(&Kind) -> bool| definition.nodes.iter().any(|node| is_kind(&node.kind));
    let posts = has(|kind| matches!(kind, Kind::Webhook { .. }));
    let stores = has(|kind| matches!(kind, Kind::Storage { .. }));
    let streams = has(|kind| matches!(kind, Kind::Hls { .. }));
    if !posts && !stores && !streams {
        problems.push(Place::definition().problem(
            Code::NoDelivery,
            Some("nodes"),
            "no storage, webhook or hls node: results are kept for a while as downloads of the run, and no notification is sent",
        ));
    }
    if !posts && definition.webhook_url.is_some() {
        problems.push(Place::definition().problem(
            Code::UnusedWebhookUrl,
            Some("webhookUrl"),
            "webhookUrl is posted to by a webhook node, and there is none: add one",
        ));
    }
}

fn place(node: &Node) -> Place {
    Place::node(&node.id, Some(&node.title))
}
