//! Path of a workflow run through its definition: next node, branches, skipped nodes and the reasons in the log (`not
//! reached, because …`). Pure.

use std::collections::HashSet;

use sluice_media::workflow::{Definition, Kind, Node};
use sluice_store::workflows::SkipReason;

/// The nodes that a run has come to, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Path {
    visits: Vec<Visit>,
}

/// A node that the run has done, and where it sent the run if it is a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Visit {
    node_id: String,
    branch: Option<bool>,
}

/// Converts a number of nodes to the type of rows and progress.
pub(super) fn count(nodes: usize) -> u32 {
    u32::try_from(nodes).unwrap_or(u32::MAX)
}

/// Reason why a run ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PathEnd<'a> {
    /// Nothing follows.
    Reached,
    /// The upload did not meet the gate.
    TurnedAway,
    /// The node failed.
    Failed(&'a Node),
    /// The run was ended from outside before its next node, for this reason.
    Stopped(&'a str),
}

/// Node that a run does not come to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LeftOut<'d> {
    pub(super) node: &'d Node,
    pub(super) reason: SkipReason,
    /// The branch whose other path it lies on, or the node that failed before it.
    pub(super) by: Option<&'d str>,
    /// The reason in words.
    pub(super) message: String,
}

impl Path {
    /// Adds a node that is done.
    pub(super) fn visit(&mut self, node: &Node, branch: Option<bool>) {
        self.visits.push(Visit {
            node_id: node.id.clone(),
            branch,
        });
    }

    /// Forgets the visits from that position on.
    pub(super) fn truncate(&mut self, position: usize) {
        self.visits.truncate(position);
    }

    /// Returns the number of finished nodes: the position of the next one.
    pub(super) fn len(&self) -> usize {
        self.visits.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.visits.is_empty()
    }

    /// Returns the node that comes next; `None` at the end.
    pub(super) fn next<'d>(&self, definition: &'d Definition) -> Option<&'d Node> {
        match self.visits.last() {
            None => Some(definition.upload()),
            Some(last) => definition.next(&last.node_id, last.branch),
        }
    }

    /// Returns the number of the path's nodes as far as they are known: up to its end or the next branch.
    pub(super) fn known_len(&self, definition: &Definition) -> usize {
        let ahead = self
            .next(definition)
            .map_or(0, |next| 1 + definition.steps_ahead(&next.id));
        self.len() + ahead
    }

    /// Returns whether a node of that sort is done.
    pub(super) fn has(&self, definition: &Definition, is_sort: fn(&Kind) -> bool) -> bool {
        self.nodes(definition).any(|node| is_sort(&node.kind))
    }

    /// Returns the nodes that are done.
    pub(super) fn nodes<'d>(&self, definition: &'d Definition) -> impl Iterator<Item = &'d Node> {
        self.visits
            .iter()
            .filter_map(|visit| definition.node(&visit.node_id))
    }

    /// Returns the nodes that the run does not come to, in the order of the definition, each with the reason.
    pub(super) fn left_out<'d>(
        &self,
        definition: &'d Definition,
        end: PathEnd<'d>,
    ) -> Vec<LeftOut<'d>> {
        let mut done: HashSet<&str> = self.visits.iter().map(|it| it.node_id.as_str()).collect();
        let mut ahead = HashSet::new();
        match end {
            PathEnd::Failed(failed) => {
                done.insert(&failed.id);
                ahead = reachable(definition, [failed.id.as_str()]);
            }
            PathEnd::Stopped(_) => {
                let next = self.next(definition).map(|next| next.id.as_str());
                ahead = reachable(definition, next);
                ahead.extend(next);
            }
            PathEnd::Reached | PathEnd::TurnedAway => {}
        }
        let others = self.other_paths(definition);
        let reason = |node: &Node| match end {
            PathEnd::TurnedAway => (
                SkipReason::Gate,
                None,
                "the upload does not meet the condition of the workflow".to_owned(),
            ),
            PathEnd::Failed(failed) if ahead.contains(node.id.as_str()) => (
                SkipReason::Failure,
                Some(failed.id.as_str()),
                format!("not reached, because `{}` failed", failed.title),
            ),
            PathEnd::Stopped(reason) if ahead.contains(node.id.as_str()) => {
                (SkipReason::Stopped, None, reason.to_owned())
            }
            _ => others
                .iter()
                .find(|other| other.nodes.contains(node.id.as_str()))
                .map_or_else(
                    || (SkipReason::NoPath, None, "no path leads here".to_owned()),
                    OtherPath::reason,
                ),
        };
        definition
            .nodes
            .iter()
            .filter(|node| !done.contains(node.id.as_str()))
            .map(|node| {
                let (reason, by, message) = reason(node);
                LeftOut {
                    node,
                    reason,
                    by,
                    message,
                }
            })
            .collect()
    }

    /// Returns the paths behind the edges that its branches did not take, the last branch first: it is the nearest.
    fn other_paths<'d>(&self, definition: &'d Definition) -> Vec<OtherPath<'d>> {
        let mut others = Vec::new();
        for visit in self.visits.iter().rev() {
            let Some((taken, branch)) = visit.branch.zip(definition.node(&visit.node_id)) else {
                continue;
            };
            if let Some(first) = definition.next(&branch.id, Some(!taken)) {
                let mut nodes = reachable(definition, [first.id.as_str()]);
                nodes.insert(&first.id);
                others.push(OtherPath {
                    branch,
                    label: !taken,
                    nodes,
                });
            }
        }
        others
    }
}

struct OtherPath<'d> {
    branch: &'d Node,
    label: bool,
    nodes: HashSet<&'d str>,
}

impl<'d> OtherPath<'d> {
    fn reason(&self) -> (SkipReason, Option<&'d str>, String) {
        let message = format!(
            "on the `{}` path of `{}`, which was not taken",
            self.label, self.branch.title
        );
        (SkipReason::OtherPath, Some(&self.branch.id), message)
    }
}

/// Returns every node behind those, by any edge.
fn reachable<'d>(
    definition: &'d Definition,
    from: impl IntoIterator<Item = &'d str>,
) -> HashSet<&'d str> {
    let mut found = HashSet::new();
    let mut open: Vec<&str> = from.into_iter().collect();
    while let Some(at) = open.pop() {
        for edge in definition.edges.iter().filter(|edge| edge.source == at) {
            if found.insert(edge.target.as_str()) {
                open.push(&edge.target);
            }
        }
    }
    found
}
