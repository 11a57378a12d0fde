//! Checks a workflow definition: nodes, edges, `uploadGate`, `branchConditions`, `renamePattern`, `webhookUrl`,
//! `trigger`.

use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    MAX_NODES,
    condition::{At, Group, Reading},
    definition::{Definition, Edge, Kind, Node},
    graph, json, lint,
    node::{self, Outline},
    pattern::Pattern,
    problem::{Code, Place, Problem, Problems},
};

/// Result of [`check`].
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The definition; `None` when a problem is an error.
    pub definition: Option<Definition>,
    /// Problems in the order in which they were found.
    pub problems: Vec<Problem>,
}

impl Checked {
    /// The first problem for which the definition cannot be saved.
    pub fn error(&self) -> Option<&Problem> {
        self.problems.iter().find(|problem| problem.is_error())
    }
}

/// Reads and checks a definition.
///
/// Fields come in camelCase or snake_case, unknown ones are ignored, `null` is absent. Time and stack are bounded by
/// the limits of this module, for any input. What only the service knows is left to it: whether folders and files
/// exist, and whether an address may be posted to.
pub fn check(value: &Value) -> Checked {
    let mut problems = Problems::default();
    let definition =
        read(value, Reading::default(), &mut problems).filter(|_| !problems.has_errors());
    if let Some(definition) = &definition {
        lint::lint(definition, &mut problems);
    }
    Checked {
        definition,
        problems: problems.into_list(),
    }
}

/// Reads a definition that [`check`] accepted before; `None` when it no longer does. Cheap, since regular expressions
/// are compiled at their first use: for callers that read definitions often, or where others wait.
pub fn saved(value: &Value) -> Option<Definition> {
    let mut problems = Problems::default();
    read(value, Reading::saved(), &mut problems).filter(|_| !problems.has_errors())
}

/// A definition, complete only where there are no errors.
fn read(value: &Value, conditions: Reading, problems: &mut Problems) -> Option<Definition> {
    let Some(object) = value.as_object() else {
        reject(
            Code::InvalidShape,
            None,
            format!(
                "a definition must be an object {{nodes, edges}}, got {}",
                json::shown(value)
            ),
            problems,
        );
        return None;
    };
    let outlines = read_outlines(list(object, "nodes", problems)?, problems)?;
    let edges = graph::read(list(object, "edges", problems)?, &outlines, problems);
    let reader = Reader {
        object,
        outlines: &outlines,
        whole: Place::definition(),
        conditions,
    };
    Some(reader.definition(edges, problems))
}

/// A list of the definition; an absent one is empty.
fn list<'a>(
    object: &'a Map<String, Value>,
    name: &str,
    problems: &mut Problems,
) -> Option<&'a [Value]> {
    match json::get(object, name) {
        None => Some(&[]),
        Some(Value::Array(values)) => Some(values),
        Some(other) => {
            let what = format!("{name} must be a list, got {}", json::shown(other));
            reject(Code::InvalidShape, Some(name), what, problems);
            None
        }
    }
}

fn read_outlines<'a>(nodes: &'a [Value], problems: &mut Problems) -> Option<Vec<Outline<'a>>> {
    if nodes.is_empty() {
        let what = "a definition needs nodes: begin with one of kind upload";
        reject(Code::NoNodes, Some("nodes"), what, problems);
        return None;
    }
    if let Some(further) = nodes.get(MAX_NODES) {
        let id = further.get("id").and_then(json::id);
        let place = Place::node(id.as_deref().unwrap_or_default(), None);
        problems.push(place.problem(
            Code::TooManyNodes,
            Some("nodes"),
            format!(
                "is one too many: a definition may have {MAX_NODES} nodes, got {}",
                nodes.len()
            ),
        ));
        return None;
    }
    let outlines = nodes
        .iter()
        .enumerate()
        .filter_map(|(index, node)| Outline::read(index, node, problems));
    Some(outlines.collect())
}

fn reject(code: Code, field: Option<&str>, what: impl AsRef<str>, problems: &mut Problems) {
    problems.push(Place::definition().problem(code, field, what));
}

/// Reads what the nodes are to do, and what counts for all of them.
struct Reader<'a> {
    object: &'a Map<String, Value>,
    outlines: &'a [Outline<'a>],
    whole: Place,
    conditions: Reading,
}

impl<'a> Reader<'a> {
    fn definition(mut self, edges: Vec<Edge>, problems: &mut Problems) -> Definition {
        let rename_pattern = self.rename_pattern(problems);
        Definition {
            gate: self.gate(problems),
            nodes: self.nodes(rename_pattern.as_ref(), problems),
            edges,
            rename_pattern,
            webhook_url: self.webhook_url(problems),
            trigger_folder: self.trigger_folder(problems),
        }
    }

    fn nodes(&mut self, pattern: Option<&Pattern>, problems: &mut Problems) -> Vec<Node> {
        let conditions = self.branch_conditions(problems);
        let mut nodes = Vec::with_capacity(self.outlines.len());
        for outline in self.outlines {
            outline.warn_of_unused(problems);
            let kind = if outline.is_branch() {
                self.branch(outline, conditions, problems).map(Kind::Branch)
            } else {
                outline.kind(pattern, problems)
            };
            nodes.extend(kind.map(|kind| outline.finish(kind)));
        }
        nodes
    }

    /// Reads the gate: the new form, else the older one.
    fn gate(&mut self, problems: &mut Problems) -> Option<Group> {
        let (name, logic) = match self.get("uploadGate") {
            Some(_) => ("uploadGate", None),
            None => ("uploadConditions", self.get("uploadLogicGate")),
        };
        let at = At {
            place: &self.whole,
            path: name,
        };
        let value = json::get(self.object, name)?;
        self.conditions.read(value, logic, at, problems)
    }

    /// Conditions of branches by node id; those of nodes that are no branches are warned of.
    fn branch_conditions(&self, problems: &mut Problems) -> Option<&'a Map<String, Value>> {
        const NAME: &str = "branchConditions";
        let conditions = match self.get(NAME)? {
            Value::Object(conditions) => conditions,
            other => {
                let what = format!(
                    "{NAME} must be an object of node ids and groups, got {}",
                    json::shown(other)
                );
                reject(Code::InvalidShape, Some(NAME), what, problems);
                return None;
            }
        };
        let is_branch = |id: &str| {
            let branches = || self.outlines.iter().filter(|outline| outline.is_branch());
            branches().any(|outline| outline.id == id)
        };
        if let Some(id) = conditions.keys().find(|id| !is_branch(id)) {
            problems.push(Place::node(id, None).problem(
                Code::UnusedCondition,
                Some(NAME),
                format!("{NAME} has a condition for it, and it is no branch: remove it"),
            ));
        }
        Some(conditions)
    }

    /// The condition of a branch: under its id in the definition, else in its config, each in the new form before the
    /// older one, else the older form that counts for all branches.
    fn branch(
        &mut self,
        outline: &Outline<'_>,
        conditions: Option<&Map<String, Value>>,
        problems: &mut Problems,
    ) -> Option<Group> {
        const OLD: &str = "branchCondition";
        let under_id = conditions.and_then(|conditions| conditions.get(&outline.id));
        let config = outline.config;
        let is_group = |config: &&Map<String, Value>| {
            json::first(config, &["conditions", "groups", "rules", "field"]).is_some()
        };
        let own_group = config.filter(is_group).cloned().map(Value::Object);
        let path = format!("branchConditions.{}", outline.id);
        let candidates = [
            (path.as_str(), under_id),
            ("config.condition", outline.given("condition")),
            ("config", own_group.as_ref()),
            ("config.branchCondition", outline.given(OLD)),
            (OLD, self.get(OLD)),
        ];
        let given = candidates.into_iter().find_map(|(path, value)| {
            value
                .filter(|value| is_given(value))
                .map(|value| (path, value))
        });
        let Some((path, value)) = given else {
            outline.problem(
                Code::MissingCondition,
                "branchConditions",
                "a branch needs a condition: give branchConditions a group {logic, conditions} under this id",
                problems,
            );
            return None;
        };
        let logic = outline
            .given("branchLogicGate")
            .or_else(|| self.get("branchLogicGate"));
        let at = At {
            place: &outline.place,
            path,
        };
        self.conditions.read(value, logic, at, problems)
    }

    fn rename_pattern(&self, problems: &mut Problems) -> Option<Pattern> {
        const NAME: &str = "renamePattern";
        let pattern = match json::text(self.get(NAME)) {
            Ok(text) => Pattern::parse(text?).map_err(|error| error.message),
            Err(other) => Err(format!("must be text, got {}", json::shown(other))),
        };
        pattern
            .map_err(|what| {
                let what = format!("{NAME}: {what}");
                reject(Code::InvalidPattern, Some(NAME), what, problems);
            })
            .ok()
    }

    fn webhook_url(&self, problems: &mut Problems) -> Option<String> {
        const NAME: &str = "webhookUrl";
        node::url(self.get(NAME))
            .map_err(|what| {
                let what = format!("{NAME} {what}");
                reject(Code::InvalidUrl, Some(NAME), what, problems);
            })
            .ok()?
    }

    fn trigger_folder(&self, problems: &mut Problems) -> Option<Uuid> {
        const NAME: &str = "trigger";
        let folder_id = match self.get(NAME)? {
            Value::Object(trigger) => node::uuid(json::get(trigger, "folderId")),
            other => Err(json::shown(other)),
        };
        folder_id
            .map_err(|got| {
                let what = format!(
                    "{NAME} must be {{folderId}} with the id of a folder, or null, got {got}"
                );
                reject(Code::InvalidTrigger, Some(NAME), what, problems);
            })
            .ok()?
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        json::get(self.object, name)
    }
}

/// Returns whether a condition is given: blank text and an empty list are none; an empty group is one, which every file
/// meets.
fn is_given(condition: &Value) -> bool {
    match condition {
        Value::Null => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(parts) => !parts.is_empty(),
        _ => true,
    }
}
