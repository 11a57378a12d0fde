//! Paths that a dry run finds possible: which nodes lie on all of them, and why a node lies on some or on none.

use std::collections::{HashMap, HashSet};

use crate::workflow::definition::{Definition, Kind, Node};

/// Edges that a run may follow, by the node that they leave.
#[derive(Default)]
pub(super) struct Ways<'d> {
    /// Targets; `None`: a run may end there.
    edges: HashMap<&'d str, Vec<Option<&'d str>>>,
    /// Nodes that fail.
    failing: Vec<&'d Node>,
    /// Branches in the order in which they were come to.
    branches: Vec<&'d Node>,
}

impl<'d> Ways<'d> {
    /// Adds an edge that a run may follow, or the end of a run.
    pub fn add(&mut self, from: &'d Node, to: Option<&'d Node>) {
        let to = to.map(|node| node.id.as_str());
        self.edges.entry(&from.id).or_default().push(to);
        let is_new = self.branches.last().is_none_or(|last| last.id != from.id);
        if matches!(from.kind, Kind::Branch(_)) && is_new {
            self.branches.push(from);
        }
    }

    /// Notes that every run that comes to the node ends there.
    pub fn fail(&mut self, at: &'d Node) {
        self.edges.insert(&at.id, vec![None]);
        self.failing.push(at);
    }

    /// Returns whether every path from the upload leads over the node: none is left without it.
    pub fn is_certain(&self, upload: &Node, node: &Node) -> bool {
        let mut seen = HashSet::from([node.id.as_str()]);
        let mut open = vec![upload.id.as_str()];
        while let Some(at) = open.pop() {
            if !seen.insert(at) {
                continue;
            }
            for target in self.targets(at) {
                match target {
                    Some(target) => open.push(target),
                    None => return false,
                }
            }
        }
        true
    }

    /// Returns the reason why a node is on some of the paths: the last branch that may lead past it.
    pub fn dependence(&self, definition: &'d Definition, node: &Node) -> String {
        let mut undecided = self.branches.iter().rev().filter_map(|branch| {
            let behind = |result| {
                let first = definition.next(&branch.id, Some(result));
                first.is_some_and(|first| {
                    first.id == node.id || self.reachable(&first.id).contains(node.id.as_str())
                })
            };
            match (
                self.targets(&branch.id).len() > 1,
                behind(true),
                behind(false),
            ) {
                (true, true, false) => Some((branch, "`true`")),
                (true, false, true) => Some((branch, "`false`")),
                _ => None,
            }
        });
        match undecided.next() {
            Some((branch, path)) => format!("only on the {path} path of `{}`", branch.title),
            None => "only on some of the paths that lead here".to_owned(),
        }
    }

    /// Returns the reason why no path comes to a node.
    pub fn absence(&self, definition: &'d Definition, node: &Node) -> String {
        let is_behind =
            |first: &str| first == node.id || behind(definition, first).contains(node.id.as_str());
        if let Some(failing) = self.failing.iter().find(|failing| {
            let nexts = definition
                .edges
                .iter()
                .filter(|edge| edge.source == failing.id);
            nexts.map(|edge| edge.target.as_str()).any(is_behind)
        }) {
            return format!("not reached, because `{}` fails", failing.title);
        }
        for branch in self.branches.iter().rev() {
            for result in [true, false] {
                let Some(first) = definition.next(&branch.id, Some(result)) else {
                    continue;
                };
                let is_possible = self.targets(&branch.id).contains(&Some(first.id.as_str()));
                if !is_possible && is_behind(&first.id) {
                    return format!(
                        "on the `{result}` path of `{}`, which is not taken",
                        branch.title
                    );
                }
            }
        }
        "no path leads here".to_owned()
    }

    fn targets(&self, from: &str) -> &[Option<&'d str>] {
        self.edges.get(from).map_or(&[], Vec::as_slice)
    }

    /// Returns every node behind one, by edges that a run may follow.
    fn reachable(&self, from: &str) -> HashSet<&'d str> {
        let mut found = HashSet::new();
        let mut open: Vec<&'d str> = self.targets(from).iter().flatten().copied().collect();
        while let Some(at) = open.pop() {
            if found.insert(at) {
                open.extend(self.targets(at).iter().flatten());
            }
        }
        found
    }
}

/// Returns every node behind one, by any edge.
fn behind<'d>(definition: &'d Definition, from: &str) -> HashSet<&'d str> {
    let mut found = HashSet::new();
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        for edge in definition.edges.iter().filter(|edge| edge.source == at) {
            if found.insert(edge.target.as_str()) {
                open.push(&edge.target);
            }
        }
    }
    found
}

/// Returns the nodes behind the upload, each after every node with an edge to it.
pub(super) fn topological(definition: &Definition) -> Vec<&Node> {
    let upload = definition.upload();
    let mut among = behind(definition, &upload.id);
    among.insert(&upload.id);
    let mut incoming: HashMap<&str, usize> = HashMap::new();
    let edges = || {
        let is_among = |id: &str| among.contains(id);
        definition
            .edges
            .iter()
            .filter(move |edge| is_among(&edge.source))
    };
    for edge in edges() {
        *incoming.entry(&edge.target).or_default() += 1;
    }
    let mut order = Vec::with_capacity(among.len());
    let mut open = vec![upload];
    while let Some(node) = open.pop() {
        order.push(node);
        for edge in edges().filter(|edge| edge.source == node.id) {
            let left = incoming.entry(&edge.target).or_default();
            *left = left.saturating_sub(1);
            if *left == 0 {
                open.extend(definition.node(&edge.target));
            }
        }
    }
    order
}
