//! Dry run of a workflow: the path that a file would take, as far as its facts are known before the run; charged operations and
//! expected files. Pure.
//!
//! Conditions are decided by the evaluation that runs use ([`Group::outcome`]). A fact that a step changes is unknown behind it;
//! a branch that depends on an unknown fact has two possible paths, and both are followed. What is said for certain holds
//! for every run on such a file, unless one of its steps fails for a reason that only its bytes show.

mod buffer;
mod paths;

use std::collections::{BTreeSet, HashMap};

use uuid::Uuid;

use super::{
    condition::{Facts, Field, Group},
    definition::{Definition, Kind, Node},
};
use buffer::Buffer;
use paths::{Ways, topological};

/// A file before a run.
#[derive(Clone, Debug)]
pub struct Premise {
    pub facts: Facts,
    /// Facts that are not known; the other ones that are `None` are known to be missing.
    pub unknown: BTreeSet<Field>,
    /// The day in UTC, as names have it: `2026-11-21`.
    pub date: String,
    /// Makes a safe name of a pattern's result.
    pub clean: fn(&str) -> String,
}

words! {
    /// Certainty with which a run comes to a node.
    pub enum Certainty {
        Taken = "taken",
        NotTaken = "notTaken",
        Unknown = "unknown",
    }
}

/// Result of [`dry_run`].
#[derive(Clone, Debug, PartialEq)]
pub struct DryRun {
    /// Result of the gate, `None` inside when it is unknown; `None` without a gate.
    pub gate: Option<Option<bool>>,
    /// Every node: those that a run may come to in the order of the path, then the others in the order of the definition.
    pub path: Vec<DryRunStep>,
    pub operations: Operations,
    /// Files that storage steps would store, in the order of the path; when none would, the last buffer.
    pub files: Vec<ExpectedFile>,
}

/// A node in a dry run.
#[derive(Clone, Debug, PartialEq)]
pub struct DryRunStep {
    pub node_id: String,
    pub state: Certainty,
    /// Result of a branch that a run may come to, `None` inside when it is unknown; `None` for all other nodes.
    pub branch: Option<Option<bool>>,
    /// True when the step cannot be done on such a file, so that a run that comes to it fails.
    pub fails: bool,
    /// Action of the step, or the reason why a run does not come to it, or not for certain.
    pub because: String,
}

/// Media operations that a run is charged for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// Those that are certain.
    pub charged: u32,
    /// Those that depend on facts that are not known.
    pub unknown: u32,
}

/// A file that a run would leave.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedFile {
    /// The storage node; `None`: the last buffer, which is kept for a download.
    pub node_id: Option<String>,
    pub folder_id: Option<Uuid>,
    /// `Taken` or `Unknown`.
    pub state: Certainty,
    /// Its facts; what is not known is `None`, and so is what it lacks.
    pub facts: Facts,
}

/// Follows the paths that a file may take.
pub fn dry_run(definition: &Definition, premise: &Premise) -> DryRun {
    let mut traversal = Traversal {
        definition,
        premise,
        arrivals: HashMap::new(),
        ways: Ways::default(),
        ends: Vec::new(),
        visits: Vec::new(),
    };
    let input = Buffer::input(premise);
    let gate = definition.gate.as_ref();
    let gate = gate.map(|gate| (input.outcome(gate), input.values(gate)));
    if gate.as_ref().is_none_or(|(met, _)| *met != Some(false)) {
        traversal.follow(input);
    }
    traversal.result(gate)
}

/// A visit of a node by every path that leads to it.
struct Visit<'d> {
    node: &'d Node,
    /// Buffer as it comes to the node, where all paths agree.
    buffer: Buffer,
    branch: Option<Option<bool>>,
    fails: bool,
    action: String,
}

/// End of a path, behind a node that does not fail.
struct End<'d> {
    node: &'d Node,
    buffer: Buffer,
}

struct Traversal<'d> {
    definition: &'d Definition,
    premise: &'d Premise,
    arrivals: HashMap<&'d str, Buffer>,
    ways: Ways<'d>,
    ends: Vec<End<'d>>,
    visits: Vec<Visit<'d>>,
}

/// Work of a node on its buffer.
struct Performed {
    branch: Option<Option<bool>>,
    fails: bool,
    action: String,
}

impl From<String> for Performed {
    fn from(action: String) -> Self {
        Self {
            branch: None,
            fails: false,
            action,
        }
    }
}

impl<'d> Traversal<'d> {
    fn follow(&mut self, input: Buffer) {
        self.arrivals.insert(&self.definition.upload().id, input);
        for node in topological(self.definition) {
            if let Some(buffer) = self.arrivals.remove(node.id.as_str()) {
                self.visit(node, buffer);
            }
        }
    }

    fn visit(&mut self, node: &'d Node, arrived: Buffer) {
        let mut buffer = arrived.clone();
        let performed = self.perform(node, &mut buffer);
        if performed.fails {
            self.ways.fail(node);
        } else {
            for result in results(performed.branch) {
                let target = self.definition.next(&node.id, result);
                self.ways.add(node, target);
                match target {
                    Some(target) => self.arrive(target, buffer.clone()),
                    None => self.ends.push(End {
                        node,
                        buffer: buffer.clone(),
                    }),
                }
            }
        }
        self.visits.push(Visit {
            node,
            buffer: arrived,
            branch: performed.branch,
            fails: performed.fails,
            action: performed.action,
        });
    }

    fn arrive(&mut self, target: &'d Node, buffer: Buffer) {
        let merged = match self.arrivals.remove(target.id.as_str()) {
            Some(other) => other.merged(buffer, &target.title),
            None => buffer,
        };
        self.arrivals.insert(&target.id, merged);
    }

    fn perform(&self, node: &Node, buffer: &mut Buffer) -> Performed {
        match &node.kind {
            Kind::Upload => format!("takes in {}", buffer.shown_name()).into(),
            Kind::Branch(group) => decide(buffer, group),
            Kind::Rename(pattern) => {
                buffer.rename(pattern, self.premise);
                match buffer.name() {
                    Some(name) => format!("names it {name}").into(),
                    None => "names it by its pattern, in which not everything is known"
                        .to_owned()
                        .into(),
                }
            }
            Kind::Operation(operation) => match buffer.operate(operation, node) {
                Ok(action) => action.into(),
                Err(reason) => Performed {
                    fails: true,
                    ..format!("fails: {reason}").into()
                },
            },
            Kind::Storage { .. } => {
                buffer.has_stored = Some(true);
                let name = self.kept(buffer).shown_name();
                format!("stores {name}").into()
            }
            Kind::Webhook { .. } => "goes out when the run has completed".to_owned().into(),
            Kind::Hls { .. } => match buffer.stream() {
                Ok(()) => "makes a video stream".to_owned().into(),
                Err(reason) => Performed {
                    fails: true,
                    ..format!("fails: {reason}").into()
                },
            },
        }
    }

    /// Returns the buffer as it is kept: named by the definition's pattern, unless a rename step has named it.
    fn kept(&self, buffer: &Buffer) -> Buffer {
        let mut kept = buffer.clone();
        match (&self.definition.rename_pattern, buffer.is_named) {
            (None, _) | (_, Some(true)) => {}
            (Some(pattern), Some(false)) => kept.rename(pattern, self.premise),
            (Some(_), None) => kept.forget_name(),
        }
        kept
    }

    fn result(self, gate: Option<(Option<bool>, String)>) -> DryRun {
        let upload = self.definition.upload();
        let passes = match &gate {
            None => Some(true),
            Some((met, _)) => *met,
        };
        let state = |node: &Node| match passes {
            Some(true) if self.ways.is_certain(upload, node) => Certainty::Taken,
            _ => Certainty::Unknown,
        };
        let mut path = Vec::with_capacity(self.definition.nodes.len());
        for visit in &self.visits {
            let state = state(visit.node);
            let because = match (state, &gate) {
                (Certainty::Taken, _) => visit.action.clone(),
                (_, Some((None, values))) => {
                    format!("only when the upload meets the condition of the workflow: {values}")
                }
                _ => self.ways.dependence(self.definition, visit.node),
            };
            path.push(DryRunStep {
                node_id: visit.node.id.clone(),
                state,
                branch: visit.branch,
                fails: visit.fails,
                because,
            });
        }
        let is_visited = |node: &Node| self.visits.iter().any(|visit| visit.node.id == node.id);
        for node in self
            .definition
            .nodes
            .iter()
            .filter(|node| !is_visited(node))
        {
            let because = match &gate {
                Some((Some(false), values)) => {
                    format!("the upload does not meet the condition of the workflow: {values}")
                }
                _ => self.ways.absence(self.definition, node),
            };
            path.push(DryRunStep {
                node_id: node.id.clone(),
                state: Certainty::NotTaken,
                branch: None,
                fails: false,
                because,
            });
        }
        DryRun {
            gate: gate.as_ref().map(|(met, _)| *met),
            operations: self.operations(&state),
            files: self.files(&state),
            path,
        }
    }

    /// Counts the run itself, which is given back when it fails, and the streams that it makes, which are not.
    fn operations(&self, state: &dyn Fn(&Node) -> Certainty) -> Operations {
        let mut operations = Operations::default();
        let failing = self.visits.iter().filter(|visit| visit.fails);
        let failure = failing.map(|visit| state(visit.node)).fold(
            Certainty::NotTaken,
            |worst, state| match (worst, state) {
                (Certainty::Taken, _) | (_, Certainty::Taken) => Certainty::Taken,
                _ => Certainty::Unknown,
            },
        );
        match failure {
            Certainty::NotTaken => operations.charged += 1,
            Certainty::Unknown => operations.unknown += 1,
            Certainty::Taken => {}
        }
        let is_stream = |visit: &&Visit<'_>| matches!(visit.node.kind, Kind::Hls { .. });
        for visit in self.visits.iter().filter(is_stream).filter(|it| !it.fails) {
            match state(visit.node) {
                Certainty::Taken => operations.charged += 1,
                _ => operations.unknown += 1,
            }
        }
        operations
    }

    fn files(&self, state: &dyn Fn(&Node) -> Certainty) -> Vec<ExpectedFile> {
        let stored = self
            .visits
            .iter()
            .filter_map(|visit| match visit.node.kind {
                Kind::Storage { folder_id } => Some(ExpectedFile {
                    node_id: Some(visit.node.id.clone()),
                    folder_id,
                    state: state(visit.node),
                    facts: self.kept(&visit.buffer).facts,
                }),
                _ => None,
            });
        stored.chain(self.last_buffer(state)).collect()
    }

    /// Returns the buffer of runs that end without having stored a file.
    fn last_buffer(&self, state: &dyn Fn(&Node) -> Certainty) -> Option<ExpectedFile> {
        let upload = self.definition.upload();
        let has_failure = self.visits.iter().any(|visit| visit.fails);
        let (mut last, mut is_certain) = (None::<Buffer>, !has_failure);
        for end in &self.ends {
            match end.buffer.has_stored {
                Some(true) => {
                    is_certain = false;
                    continue;
                }
                None => is_certain = false,
                Some(false) => {}
            }
            let kept = self.kept(&end.buffer);
            last = Some(match last {
                Some(other) => other.merged(kept, &end.node.title),
                None => kept,
            });
        }
        Some(ExpectedFile {
            node_id: None,
            folder_id: None,
            state: match is_certain {
                true => state(upload),
                false => Certainty::Unknown,
            },
            facts: last?.facts,
        })
    }
}

/// Results of a branch to follow; one `None` for other nodes.
fn results(branch: Option<Option<bool>>) -> Vec<Option<bool>> {
    match branch {
        None => vec![None],
        Some(Some(result)) => vec![Some(result)],
        Some(None) => vec![Some(true), Some(false)],
    }
}

fn decide(buffer: &Buffer, group: &Group) -> Performed {
    let result = buffer.outcome(group);
    let values = buffer.values(group);
    let path = match result {
        Some(result) => format!("takes the `{result}` path"),
        None => "takes one of its paths".to_owned(),
    };
    let action = match values.is_empty() {
        true => path,
        false => format!("{path}: {values}"),
    };
    Performed {
        branch: Some(result),
        ..action.into()
    }
}
