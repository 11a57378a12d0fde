//! Checked workflow definition: nodes, edges, labels, and which node follows (traversal).
//!
//! There is exactly one upload node, every edge meets two nodes, a node has at most one edge to follow for a result,
//! and there is no cycle: a traversal visits a node at most once.

use serde_json::Value;
use uuid::Uuid;

use super::{condition::Group, json, node::uuid, pattern::Pattern};
use crate::{
    av::ladder::Profile,
    operation::{self, Operation},
};

/// A workflow's nodes and edges, and what counts for all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Nodes in the order in which they are written.
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    /// Conditions that an upload must meet for the workflow to run on it; `None`: every upload does.
    pub gate: Option<Group>,
    /// The pattern of rename nodes that have none of their own, and of outputs that no rename node named.
    pub rename_pattern: Option<Pattern>,
    /// Address to which webhook nodes without one of their own post. Its form alone is checked, not its host.
    pub webhook_url: Option<String>,
    /// Every file uploaded into this folder starts a run.
    pub trigger_folder: Option<Uuid>,
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub id: String,
    /// Title as given, else the kind in words.
    pub title: String,
    pub kind: Kind,
    /// Config as it was written, `{}` when absent; it holds a watermark's image under `watermarkFile`.
    pub config: Value,
}

/// Action of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Takes the file in; the traversal begins here.
    Upload,
    /// Looks at the buffer and chooses an edge.
    Branch(Group),
    Operation(Operation),
    Rename(Pattern),
    /// Keeps the buffer as a file; `None`: in the root folder.
    Storage {
        folder_id: Option<Uuid>,
    },
    /// Posts the event of the run once it has completed; `None`: to the definition's address, if it has one.
    Webhook {
        url: Option<String>,
    },
    /// Makes a video stream of the buffer, and passes it on.
    Hls {
        profile: Profile,
    },
}

/// Edge from one node to another, by ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub source: String,
    pub target: String,
    pub label: Label,
}

words! {
    /// Condition on which an edge is followed.
    pub enum Label {
        /// Always; out of a branch: when the result has no edge of its own.
        Default = "default",
        True = "true",
        False = "false",
    }
}

impl Label {
    pub(super) fn of(result: bool) -> Self {
        if result { Self::True } else { Self::False }
    }
}

impl Kind {
    /// The word on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Branch(_) => "branch",
            Self::Operation(operation) => operation
                .row()
                .node
                .expect("only operations that can be nodes are read into one"),
            Self::Rename(_) => "rename",
            Self::Storage { .. } => "storage",
            Self::Webhook { .. } => "webhook",
            Self::Hls { .. } => "hls",
        }
    }
}

impl Node {
    /// The stored files that it works with besides the buffer, each with the field of its config that names it.
    pub fn stored_files(&self) -> impl Iterator<Item = (&'static str, Uuid)> {
        let fields = match &self.kind {
            Kind::Operation(operation) => operation.row().fields,
            _ => &[],
        };
        let files = fields
            .iter()
            .filter(|field| field.kind == operation::Kind::File);
        files.filter_map(|field| Some((field.name, self.file(field.name)?)))
    }

    fn file(&self, field: &str) -> Option<Uuid> {
        let given = self
            .config
            .as_object()
            .and_then(|config| json::get(config, field));
        // A value that is no id was rejected when the definition was read.
        uuid(given).ok().flatten()
    }
}

impl Definition {
    /// Returns the node at which every traversal begins.
    pub fn upload(&self) -> &Node {
        self.nodes
            .iter()
            .find(|node| node.kind == Kind::Upload)
            .expect("a checked definition has an upload node")
    }

    pub fn node(&self, id: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// The step after `from`; `branch` is the result when `from` is a branch, and is not looked at otherwise.
    /// `None`: the run ends here.
    pub fn next(&self, from: &str, branch: Option<bool>) -> Option<&Node> {
        let result = self.is_branch(from).then_some(branch).flatten();
        let out = || self.edges.iter().filter(|edge| edge.source == from);
        let labelled = result.and_then(|result| out().find(|edge| edge.label == Label::of(result)));
        let edge = labelled.or_else(|| out().find(|edge| edge.label == Label::Default))?;
        self.node(&edge.target)
    }

    /// Returns how many steps follow `from` for certain: up to the end or the next branch, which is counted.
    pub fn steps_ahead(&self, from: &str) -> usize {
        let mut steps = 0;
        let mut at = from;
        while !self.is_branch(at)
            && let Some(node) = self.next(at, None)
        {
            steps += 1;
            at = &node.id;
        }
        steps
    }

    /// Returns whether a condition uses width, height or duration, which cost an inspection of the file.
    pub fn needs_dimensions(&self) -> bool {
        self.groups().any(Group::needs_dimensions)
    }

    /// The gate and the conditions of all branches.
    fn groups(&self) -> impl Iterator<Item = &Group> {
        let branches = self.nodes.iter().filter_map(|node| match &node.kind {
            Kind::Branch(group) => Some(group),
            _ => None,
        });
        self.gate.iter().chain(branches)
    }

    fn is_branch(&self, id: &str) -> bool {
        self.node(id)
            .is_some_and(|node| matches!(node.kind, Kind::Branch(_)))
    }
}
