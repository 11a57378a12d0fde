//! Workflows: limits of definitions (nodes, edges, conditions, regular expressions), their check, conditions,
//! traversal and dry runs.
//!
//! [`check`] reads the JSON that a user wrote into a [`Definition`], or reports in [`Problem`]s what to change;
//! everything else of this module works on checked definitions. Reading is bounded before it recurses: nodes, edges,
//! conditions, the depth of groups and the cost of regular expressions all have a limit below, so that a definition of
//! any shape is checked in time linear in its size.

mod check;
mod condition;
mod definition;
mod dry_run;
mod graph;
mod json;
mod kinds;
mod legacy;
mod lint;
mod node;
mod pattern;
mod problem;
mod template;
#[cfg(test)]
mod tests;

pub use check::{Checked, check, saved};
pub use condition::{Facts, Field, Group, Operator, Takes};
pub use definition::{Definition, Edge, Kind, Label, Node};
pub use dry_run::{Certainty, DryRun, DryRunStep, ExpectedFile, Operations, Premise, dry_run};
pub use kinds::{KindInfo, kinds};
pub use pattern::{Names, Pattern};
pub use problem::{Code, Problem, Severity};
pub use template::{Short, Template, generate};

/// Most nodes of a definition.
pub const MAX_NODES: usize = 50;
/// Most edges of a definition: three out of every node, if all were branches.
pub const MAX_EDGES: usize = 3 * MAX_NODES;
/// Levels of condition groups, the outermost counted.
pub const MAX_GROUP_DEPTH: usize = 8;
/// Conditions and groups of a whole definition.
pub const MAX_CONDITIONS: usize = 200;
/// Regular expressions of a whole definition.
pub const MAX_EXPRESSIONS: usize = 20;
/// Characters of all of them together: reading one costs up to a tenth of a millisecond for each, wide classes aside.
pub const MAX_EXPRESSION_CHARS_IN_ALL: usize = 2_000;
/// Characters of a node's id.
pub const MAX_ID_CHARS: usize = 100;
