//! Kinds of workflow nodes (`upload`, `branch`, `rename`, `storage`, `webhook`, `hls`, every operation): summaries and
//! fields.

use serde::Serialize;

use super::pattern::{self, DEFAULT_PATTERN};
use crate::{
    av::ladder::Profile,
    format::Class,
    operation::{self, FieldInfo, Row, TABLE},
};

/// A kind of node, for those who write definitions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KindInfo {
    /// The word on the wire.
    pub kind: &'static str,
    pub summary: &'static str,
    /// Classes that its operation accepts, in words; empty: any.
    pub accepts: Vec<&'static str>,
    /// The fields of the node's `config`.
    pub fields: Vec<FieldInfo>,
}

/// Sort of a node, before its config has been read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sort {
    Upload,
    Branch,
    Rename,
    Storage,
    Webhook,
    Hls,
    Operation(&'static Row),
}

/// Profiles that a node may name; renditions of a user's own are for the API.
pub(super) const PROFILES: &[&str] = Profile::NAMES.split_at(4).0;

const OWN: &[Sort] = &[
    Sort::Upload,
    Sort::Branch,
    Sort::Rename,
    Sort::Storage,
    Sort::Webhook,
    Sort::Hls,
];

/// Every kind that a node can have.
pub fn kinds() -> impl Iterator<Item = KindInfo> {
    Sort::all().map(Sort::info)
}

impl Sort {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let operations = TABLE
            .iter()
            .filter(|row| row.node.is_some())
            .map(Self::Operation);
        OWN.iter().copied().chain(operations)
    }

    /// Parses the word on the wire, with underscores or hyphens.
    pub(super) fn parse(word: &str) -> Option<Self> {
        let word = spelled(word);
        Self::all().find(|sort| sort.name() == word)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Branch => "branch",
            Self::Rename => "rename",
            Self::Storage => "storage",
            Self::Webhook => "webhook",
            Self::Hls => "hls",
            Self::Operation(row) => row.node.expect("rows that are no nodes are left out"),
        }
    }

    /// The fields of its config.
    pub(super) fn fields(self) -> Vec<FieldInfo> {
        match self {
            Self::Upload => Vec::new(),
            Self::Branch => vec![FieldInfo {
                type_name: "object",
                input: "condition",
                ..FieldInfo::text(
                    "condition",
                    "a condition group",
                    "what the buffer must meet; definition.branchConditions under the node's id counts first",
                )
            }],
            Self::Rename => vec![FieldInfo {
                max_length: Some(pattern::MAX_CHARS),
                default: Some(DEFAULT_PATTERN.into()),
                ..FieldInfo::text(
                    "pattern",
                    format!(
                        "text of at most {} characters; {}",
                        pattern::MAX_CHARS,
                        pattern::allowed()
                    ),
                    "what the file is called from here on; the definition's renamePattern counts before the default",
                )
            }],
            Self::Storage => vec![FieldInfo {
                input: "folder",
                ..FieldInfo::text(
                    "folderId",
                    "the id of a folder",
                    "where the file is kept; the root without it",
                )
            }],
            Self::Webhook => vec![FieldInfo {
                input: "url",
                ..FieldInfo::text(
                    "url",
                    "an http or https address",
                    "address to which the event of the run is posted; the definition's webhookUrl without it",
                )
            }],
            Self::Hls => vec![FieldInfo {
                input: "choice",
                values: PROFILES.to_vec(),
                default: Some(Profile::default().name().into()),
                ..FieldInfo::text(
                    "profile",
                    format!("one of {}", PROFILES.join(", ")),
                    "which renditions it has; none is above the source",
                )
            }],
            Self::Operation(row) => row.fields.iter().map(in_config).collect(),
        }
    }

    fn info(self) -> KindInfo {
        let (summary, accepts) = match self {
            Self::Upload => ("Takes the file in; every run begins here", Vec::new()),
            Self::Branch => (
                "Looks at the file as it is now and follows the edge of kind true or false",
                Vec::new(),
            ),
            Self::Rename => ("Gives the file another name", Vec::new()),
            Self::Storage => ("Keeps the file as it is now in a folder", Vec::new()),
            Self::Webhook => (
                "Posts workflow.completed when the run has completed",
                Vec::new(),
            ),
            Self::Hls => (
                "Makes a video stream of the file, which is processed on its own, and passes the file on",
                [Class::Video, Class::Audio].map(Class::noun).to_vec(),
            ),
            Self::Operation(row) => (
                row.summary,
                row.accepts.iter().map(|class| class.noun()).collect(),
            ),
        };
        KindInfo {
            kind: self.name(),
            summary,
            accepts,
            fields: self.fields(),
        }
    }
}

/// Spells a kind's word as the table does.
pub(super) fn spelled(word: &str) -> String {
    word.trim().replace('-', "_").to_lowercase()
}

/// A field of an operation as the `config` of a node has it.
fn in_config(field: &'static operation::Field) -> FieldInfo {
    let info = FieldInfo::of(field);
    let alias = (field.name == "format").then_some("outputFormat");
    let allowed = match field.kind {
        operation::Kind::File => "the id of a stored file".to_owned(),
        _ => info.allowed,
    };
    FieldInfo {
        alias: info.alias.or(alias),
        allowed,
        ..info
    }
}
