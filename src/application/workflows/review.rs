//! Problems of a workflow's definition (lint): folders, files and webhook URLs of the account; definitions checked at a time.
//!
//! The pure checks come first; a definition that passes them is also checked for folders and files that the account
//! does not have, and for addresses that the guarded connector would reject. All problems are reported at once.

use std::collections::BTreeSet;

use futures_util::{StreamExt as _, stream};
use serde::Serialize;
use serde_json::Value;
use sluice_media::workflow::{self, Checked, Definition, Kind, Node, Problem, Severity};
use sluice_store::{Reader, files, folders};
use tokio::{sync::Semaphore, task::spawn_blocking};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{
    context::WorkflowContext, error::ApiError, workflows::operations::RequestContext,
};

/// Names that are looked up at a time for one definition.
const CONCURRENT_LOOKUPS: usize = 8;
/// Definitions that are checked at a time.
const CONCURRENT_CHECKS: usize = 2;

/// A finding about a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProblemRecord {
    /// `error`: rejected on save; `warning`: saved, and probably not what was meant.
    severity: &'static str,
    /// The node it is about; null: the definition as a whole.
    node_id: Option<String>,
    /// Name of the field in the node's `config` or in the definition.
    field: Option<String>,
    /// Stable, for programs; the reference of definitions lists them.
    code: &'static str,
    /// A sentence that names the node and says what to change.
    message: String,
}

/// Answer of lint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct LintAnswer {
    /// Errors before warnings.
    problems: Vec<ProblemRecord>,
    /// True when it could be saved: there are no errors.
    valid: bool,
}

/// Definition with all of its problems.
pub(crate) struct Review {
    /// `None`: it has errors.
    definition: Option<Definition>,
    problems: Vec<ProblemRecord>,
}

impl Review {
    pub(crate) async fn of(context: &RequestContext, definition: &Value) -> Result<Self, ApiError> {
        let Checked {
            definition,
            problems,
        } = checked(definition.clone()).await?;
        let mut problems: Vec<_> = problems.into_iter().map(ProblemRecord::from).collect();
        if let Some(definition) = &definition {
            problems.extend(missing(context, definition).await?);
            problems.extend(unreachable(&context.handles, definition).await);
        }
        // Stable: within a severity in the order of the definition.
        problems.sort_by_key(|problem| problem.severity);
        let has_errors = problems.iter().any(ProblemRecord::is_error);
        Ok(Self {
            definition: definition.filter(|_| !has_errors),
            problems,
        })
    }

    /// Answer for input that is no definition.
    pub(crate) fn rejecting(problem: Problem) -> Self {
        Self {
            definition: None,
            problems: vec![problem.into()],
        }
    }

    /// Returns the definition, unless it has errors, and all of its problems.
    pub(crate) fn into_parts(self) -> (Option<Definition>, Vec<ProblemRecord>) {
        (self.definition, self.problems)
    }

    pub(crate) fn is_accepted(&self) -> bool {
        self.definition.is_some()
    }

    /// Returns the definition; 400 with all problems, where one of them is an error.
    pub(crate) fn accepted(self) -> Result<Definition, ApiError> {
        match self.definition {
            Some(definition) => Ok(definition),
            None => Err(rejection(&self.problems)),
        }
    }
}

/// Checks a definition on a thread of its own, as its regular expressions may take a while; [`CONCURRENT_CHECKS`] at a time, since others wait for the
/// processor too.
async fn checked(definition: Value) -> Result<Checked, ApiError> {
    static PERMITS: Semaphore = Semaphore::const_new(CONCURRENT_CHECKS);
    let permit = PERMITS.acquire().await.map_err(ApiError::internal)?;
    let checked = spawn_blocking(move || {
        // Held until the check is done, also after the client has disconnected.
        let _permit = permit;
        workflow::check(&definition)
    })
    .await;
    checked.map_err(ApiError::internal)
}

/// Makes the 400 for a definition that cannot be saved, with the message of the first error.
fn rejection(problems: &[ProblemRecord]) -> ApiError {
    let first = problems.iter().find(|problem| problem.is_error());
    ApiError::InvalidDefinition {
        message: first
            .map(|problem| problem.message.clone())
            .unwrap_or_default(),
        problems: serde_json::json!(problems),
    }
}

/// Makes the 400 for a request without a definition.
pub(crate) fn rejection_of(problem: Problem) -> ApiError {
    rejection(&[problem.into()])
}

impl From<Review> for LintAnswer {
    fn from(review: Review) -> Self {
        Self {
            valid: review.is_accepted(),
            problems: review.problems,
        }
    }
}

impl ProblemRecord {
    fn is_error(&self) -> bool {
        self.severity == "error"
    }

    /// An error of a field; of a node's, when one is named.
    fn error(node: Option<&Node>, field: &str, code: &'static str, message: String) -> Self {
        let message = match node {
            Some(node) => format!("node `{}`: {message}", node.id),
            None => message,
        };
        Self {
            severity: "error",
            node_id: node.map(|node| node.id.clone()),
            field: Some(field.to_owned()),
            code,
            message,
        }
    }
}

impl From<Problem> for ProblemRecord {
    fn from(problem: Problem) -> Self {
        Self {
            severity: match problem.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            node_id: problem.node_id,
            field: problem.field,
            code: problem.code.name(),
            message: problem.message,
        }
    }
}

/// Finds folders and files that the definition names and the account does not have.
async fn missing(
    context: &RequestContext,
    definition: &Definition,
) -> Result<Vec<ProblemRecord>, ApiError> {
    let mut db = context.handles.store.read().await?;
    let mut problems = Vec::new();
    if let Some(id) = definition.trigger_folder {
        let lacks = folder_problem(&mut db, context.account_id, id, None, "trigger.folderId");
        problems.extend(lacks.await?);
    }
    for node in &definition.nodes {
        if let Kind::Storage {
            folder_id: Some(id),
        } = node.kind
        {
            let lacks = folder_problem(&mut db, context.account_id, id, Some(node), "folderId");
            problems.extend(lacks.await?);
        }
        for (field, id) in node.stored_files() {
            problems.extend(file_problem(&mut db, context.account_id, id, node, field).await?);
        }
    }
    Ok(problems)
}

async fn folder_problem(
    db: &mut Reader,
    account_id: Uuid,
    id: Uuid,
    node: Option<&Node>,
    field: &str,
) -> Result<Option<ProblemRecord>, ApiError> {
    match folders::get(db, account_id, id).await {
        Ok(_) => Ok(None),
        Err(sluice_store::Error::NotFound(_)) => {
            let message = format!("{field} must be a folder of this account, got `{id}`");
            Ok(Some(ProblemRecord::error(
                node,
                field,
                "unknown_folder",
                message,
            )))
        }
        Err(error) => Err(error.into()),
    }
}

/// Finds a second input of an operation that is no image, such as a watermark's.
async fn file_problem(
    db: &mut Reader,
    account_id: Uuid,
    id: Uuid,
    node: &Node,
    field: &str,
) -> Result<Option<ProblemRecord>, ApiError> {
    let problem = match files::get(db, account_id, id).await {
        Ok(file) if file.mime_type.starts_with("image/") => return Ok(None),
        Ok(file) => format!(
            "{field} must be an image, the file {id} is {}",
            file.mime_type
        ),
        Err(sluice_store::Error::NotFound(_)) => {
            format!("{field} must be a stored file of this account, got `{id}`")
        }
        Err(error) => return Err(error.into()),
    };
    Ok(Some(ProblemRecord::error(
        Some(node),
        field,
        "unknown_file",
        problem,
    )))
}

/// Finds addresses that the guarded connector would reject.
async fn unreachable(context: &WorkflowContext, definition: &Definition) -> Vec<ProblemRecord> {
    let mut asked = BTreeSet::new();
    let lookups: Vec<_> = addresses(definition)
        .filter(|address| asked.insert(address.url))
        .map(|address| address.problem(context))
        .collect();
    let found: Vec<_> = stream::iter(lookups)
        .buffered(CONCURRENT_LOOKUPS)
        .collect()
        .await;
    found.into_iter().flatten().collect()
}

/// An address that a definition posts to.
struct Address<'a> {
    /// `None`: the definition's own.
    node: Option<&'a Node>,
    url: &'a str,
}

impl Address<'_> {
    async fn problem(self, context: &WorkflowContext) -> Option<ProblemRecord> {
        let field = match self.node {
            Some(_) => "url",
            None => "webhookUrl",
        };
        let problem = context.outbound.probe_url(self.url).await.err()?;
        let message = format!("{field}: {problem}");
        Some(ProblemRecord::error(
            self.node,
            field,
            "refused_url",
            message,
        ))
    }
}

fn addresses(definition: &Definition) -> impl Iterator<Item = Address<'_>> {
    let own = definition.webhook_url.as_deref();
    let of_nodes = definition.nodes.iter().filter_map(|node| match &node.kind {
        Kind::Webhook { url: Some(url) } => Some(Address {
            node: Some(node),
            url,
        }),
        _ => None,
    });
    own.map(|url| Address { node: None, url })
        .into_iter()
        .chain(of_nodes)
}

/// Returns the addresses that runs post to, each once: those of webhook nodes, the definition's own for a node without
/// one.
pub(crate) fn receivers(definition: &Definition) -> Vec<String> {
    let urls: BTreeSet<&String> = definition
        .nodes
        .iter()
        .filter_map(|node| match &node.kind {
            Kind::Webhook { url } => url.as_ref().or(definition.webhook_url.as_ref()),
            _ => None,
        })
        .collect();
    urls.into_iter().cloned().collect()
}
