//! Problems of workflow definitions: codes, severity, texts, most of them in one answer.

use serde::{Serialize, Serializer};

use super::MAX_ID_CHARS;
use crate::operation::shorten;

/// Severity of a problem: whether a definition can be saved in spite of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Rejected on save.
    Error,
    /// Saved; it probably does not do what its author wants.
    Warning,
}

/// A finding about a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    pub severity: Severity,
    /// Id of the node with the problem; `None`: the definition as a whole.
    pub node_id: Option<String>,
    /// Field with the problem, as the reference spells it: of the node's `config`, or of the definition.
    pub field: Option<String>,
    pub code: Code,
    /// A sentence that names the node and says what to change.
    pub message: String,
}

macro_rules! codes {
    ($($(#[doc = $meaning:literal])* $variant:ident = $word:literal, $severity:ident;)+) => {
        /// Kind of a problem, for programs; `docs/reference/workflows.md` lists them all.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[doc = $meaning])* $variant,)+
        }

        impl Code {
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word on the wire.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            pub fn severity(self) -> Severity {
                match self {
                    $(Self::$variant => Severity::$severity,)+
                }
            }
        }
    };
}

codes! {
    /// The definition, or a part of it that must be an object or a list, is something else.
    InvalidShape = "invalid_shape", Error;
    /// There are no nodes.
    NoNodes = "no_nodes", Error;
    TooManyNodes = "too_many_nodes", Error;
    TooManyEdges = "too_many_edges", Error;
    /// A node's id is missing, empty, too long or has control characters.
    InvalidId = "invalid_id", Error;
    DuplicateId = "duplicate_id", Error;
    /// A node's title is no text or too long.
    InvalidTitle = "invalid_title", Error;
    MissingKind = "missing_kind", Error;
    UnknownKind = "unknown_kind", Error;
    /// A field of a node's config is missing or out of range.
    InvalidConfig = "invalid_config", Error;
    NoUpload = "no_upload", Error;
    SeveralUploads = "several_uploads", Error;
    /// An edge names a node that does not exist.
    DanglingEdge = "dangling_edge", Error;
    /// An edge's kind is not default, true or false.
    UnknownLabel = "unknown_label", Error;
    /// A node has more outgoing edges than it can follow.
    SeveralEdges = "several_edges", Error;
    Cycle = "cycle", Error;
    /// A branch has no condition.
    MissingCondition = "missing_condition", Error;
    /// A condition group or a condition is not of the form that it must have.
    InvalidCondition = "invalid_condition", Error;
    GroupTooDeep = "group_too_deep", Error;
    TooManyConditions = "too_many_conditions", Error;
    UnknownLogic = "unknown_logic", Error;
    /// A condition looks at a property that no file has.
    UnknownField = "unknown_field", Error;
    UnknownOperator = "unknown_operator", Error;
    /// A condition compares with nothing.
    MissingValue = "missing_value", Error;
    /// A condition compares a number with something that is none, or with a list.
    InvalidValue = "invalid_value", Error;
    /// A regular expression does not parse, is too long or too costly.
    InvalidExpression = "invalid_expression", Error;
    /// A legacy condition's word is not known.
    UnknownLegacyCondition = "unknown_legacy_condition", Error;
    InvalidPattern = "invalid_pattern", Error;
    InvalidUrl = "invalid_url", Error;
    /// A field of a short form is missing, unknown or out of range.
    InvalidShortForm = "invalid_short_form", Error;
    InvalidTrigger = "invalid_trigger", Error;
    /// No path leads from the upload to this node.
    UnreachableNode = "unreachable_node", Warning;
    /// No storage, webhook or hls node: the result can only be downloaded.
    NoDelivery = "no_delivery", Warning;
    /// `webhookUrl` is given and no webhook node posts to it.
    UnusedWebhookUrl = "unused_webhook_url", Warning;
    /// A webhook node has no address: only subscribers of `workflow.completed` are notified of the run.
    WebhookWithoutUrl = "webhook_without_url", Warning;
    /// An edge that does not leave a branch is labelled true or false, which counts as default.
    IgnoredLabel = "ignored_label", Warning;
    /// A branch has no edge for one of its results: the run ends there.
    MissingBranchEdge = "missing_branch_edge", Warning;
    /// A branch has an edge without a label; it is taken where the result's own edge is missing.
    UnlabelledBranchEdge = "unlabelled_branch_edge", Warning;
    /// A condition is given for a node that is no branch.
    UnusedCondition = "unused_condition", Warning;
    /// A condition that no file meets as it is written.
    NeverMet = "never_met", Warning;
    /// A field of a node's config that its kind does not have.
    UnusedConfig = "unused_config", Warning;
    /// A legacy form is in use, and works.
    LegacyForm = "legacy_form", Warning;
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Problem {
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Subject of a problem, and its name in messages.
pub(super) struct Place {
    /// `None`: the definition as a whole.
    node_id: Option<String>,
    words: String,
}

impl Place {
    pub fn definition() -> Self {
        Self {
            node_id: None,
            words: String::new(),
        }
    }

    /// Names a node by its id, and by its title when it has one.
    pub fn node(id: &str, title: Option<&str>) -> Self {
        let words = match title {
            Some(title) => format!("node `{}` ({}): ", shorten(id), shorten(title)),
            None => format!("node `{}`: ", shorten(id)),
        };
        Self {
            node_id: Some(cut(id)),
            words,
        }
    }

    /// Makes a problem; `what` follows the node's name.
    pub fn problem(&self, code: Code, field: Option<&str>, what: impl AsRef<str>) -> Problem {
        Problem {
            severity: code.severity(),
            node_id: self.node_id.clone(),
            field: field.map(str::to_owned),
            code,
            message: format!("{}{}", self.words, what.as_ref()),
        }
    }
}

/// An id of a bounded length; only an invalid one is longer.
fn cut(id: &str) -> String {
    id.chars().take(MAX_ID_CHARS).collect()
}

/// Problems of one definition, bounded in number.
#[derive(Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    /// Most problems in one answer.
    const MOST: usize = 200;

    pub fn push(&mut self, problem: Problem) {
        // An error among too many warnings must not be lost.
        if self.0.len() < Self::MOST || (problem.is_error() && !self.has_errors()) {
            self.0.push(problem);
        }
    }

    pub fn has_errors(&self) -> bool {
        self.0.iter().any(Problem::is_error)
    }

    pub fn into_list(self) -> Vec<Problem> {
        self.0
    }
}
