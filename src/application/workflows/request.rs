//! Fields of requests about workflows: save, lint, `isActive`, `fileId` and `uploadSource` of a run, version of a retry or a rerun; length of
//! `name`.

use serde::Deserialize;
use serde_json::{Map, Value};
use sluice_actors::workflow::RetryVersion;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{error::ApiError, field};

/// The longest name, in characters.
const MAX_NAME: usize = 80;

/// A workflow to be made, or, with an `id`, one to be replaced: what is left out of a replacement stays as it is.
///
/// `definition`, or the short form in its place; with both, the definition counts.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SaveWorkflow {
    /// Id of the workflow to replace; a new one is made without it.
    pub id: Option<Uuid>,
    /// 1 to 80 characters; needed for a new one.
    pub name: Option<String>,
    /// `true` without one.
    pub is_active: Option<bool>,
    /// `{nodes, edges, uploadGate?, branchConditions?, renamePattern?, webhookUrl?, trigger?}`; fields that are unknown are kept.
    #[schema(value_type = Option<Object>)]
    pub definition: Option<Map<String, Value>>,
    /// Version that the client knows: a newer one is answered 409. Without it the last save wins.
    pub version: Option<i64>,
    /// The short form: `convert-post`, `compress-post` or `convert-compress-post`; guessed from the other two without one.
    pub template: Option<String>,
    /// A format that `convert` can make.
    pub output_format: Option<String>,
    /// `high`, `balanced`, `ultra`, or the encoder's quality 1 to 100.
    #[schema(value_type = Option<Value>)]
    pub compression_mode: Option<Value>,
}

impl SaveWorkflow {
    /// Checks the name; `None` when it is not given.
    pub(crate) fn checked_name(&self) -> Result<Option<String>, ApiError> {
        field::name_within(self.name.clone(), MAX_NAME)
    }

    pub(crate) fn has_short_form(&self) -> bool {
        self.template.is_some() || self.output_format.is_some() || self.compression_mode.is_some()
    }
}

/// The subject of a lint: a request as `POST /api/workflows` takes it, or a definition itself (`{nodes, edges, …}`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LintWorkflow {
    #[serde(flatten)]
    save: SaveWorkflow,
    /// Fields of a definition without a request around it.
    #[serde(flatten)]
    bare: Map<String, Value>,
}

impl LintWorkflow {
    pub(crate) fn into_save(self) -> SaveWorkflow {
        let Self { mut save, bare } = self;
        if save.definition.is_none() && bare.contains_key("nodes") {
            save.definition = Some(bare);
        }
        save
    }
}

/// The one field to change.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChangeWorkflow {
    /// `false` pauses the workflow, `true` resumes it.
    #[schema(required, value_type = bool)]
    is_active: Option<bool>,
}

impl ChangeWorkflow {
    pub(crate) fn checked(self) -> Result<bool, ApiError> {
        self.is_active.ok_or_else(|| {
            invalid!(
                "isActive is missing: true or false; everything else is changed by POST /api/workflows with the `id`",
            )
        })
    }
}

/// A stored file to run a workflow on.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RunFile {
    /// A stored file of the account.
    #[schema(required, value_type = Uuid)]
    file_id: Option<Uuid>,
    /// Value of `upload_source` in conditions; `storage` without one, at most 64 characters.
    pub upload_source: Option<String>,
}

impl RunFile {
    pub(crate) fn file_id(&self) -> Result<Uuid, ApiError> {
        self.file_id
            .ok_or_else(|| invalid!("fileId is missing: the id of a stored file"))
    }
}

/// Options of a rerun.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RerunRun {
    /// `ran` (without one): the version that the run ran; `current`: the present one.
    #[schema(required = false, value_type = String)]
    version: Option<String>,
}

impl RerunRun {
    pub(crate) fn checked(self) -> Result<RetryVersion, ApiError> {
        version(self.version.as_deref())
    }
}

/// Options of a retry.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RetryRun {
    /// `ran`: the version it ran; `current`: the present one, whose changed steps are done again.
    #[schema(required = false, value_type = String)]
    version: Option<String>,
}

impl RetryRun {
    pub(crate) fn checked(self) -> Result<RetryVersion, ApiError> {
        version(self.version.as_deref())
    }
}

fn version(given: Option<&str>) -> Result<RetryVersion, ApiError> {
    let version = field::choice("version", given, &["ran", "current"], |word| match word {
        "ran" => Some(RetryVersion::Ran),
        "current" => Some(RetryVersion::Current),
        _ => None,
    })?;
    Ok(version.unwrap_or(RetryVersion::Ran))
}
