//! Rows of workflows and their versions: create, replace, pause, list, delete; workflows of a folder
//! (`MOST_OF_FOLDER`).

use uuid::Uuid;

use super::{EndingTerms, Run, addresses, ending};
use crate::{
    Connection, Error, Page, Secret, Tx, credentials,
    statement::{query, query_as, query_scalar},
};

/// Workflows that one folder may start: each file stored there makes a run of each, in the transaction that stores it.
const MOST_OF_FOLDER: i64 = 20;

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Workflow {
    pub id: Uuid,
    pub account_id: Uuid,
    pub name: String,
    /// False when it is paused.
    pub is_active: bool,
    /// The current one, from 1.
    pub version: i64,
    /// JSON, as it was sent.
    pub definition: String,
    /// The short form that the definition was made from.
    pub template: Option<String>,
    pub output_format: Option<String>,
    /// JSON: a string or a number.
    pub compression_mode: Option<String>,
    /// Every file stored there by upload runs it.
    pub trigger_folder_id: Option<Uuid>,
    /// Secret that signs deliveries to the workflow's own addresses.
    pub webhook_secret: Secret,
    /// Runs that were ever made.
    pub run_count: i64,
    pub created_at: i64,
    pub updated_at: i64,
    pub last_run_at: Option<i64>,
}

/// Contents of a save.
#[derive(Clone, Debug)]
pub struct NewWorkflow {
    pub name: String,
    pub is_active: bool,
    pub definition: String,
    pub template: Option<String>,
    pub output_format: Option<String>,
    pub compression_mode: Option<String>,
    /// Folder whose files trigger runs. One that the account does not have counts as none.
    pub trigger_folder_id: Option<Uuid>,
    /// Addresses of the workflow, to which events of its runs are sent.
    pub webhook_urls: Vec<String>,
}

/// The answer to [`replace`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replaced {
    Saved(Box<Workflow>),
    /// Another save was first; nothing was changed. Holds the current version.
    Crossed {
        version: i64,
    },
}

/// Saved version of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Version {
    pub version: i64,
    pub created_at: i64,
}

const SELECT: &str = "SELECT w.*, v.definition FROM workflows w
     CROSS JOIN workflow_versions v ON v.workflow_id = w.id AND v.version = w.version ";

/// Makes a workflow with its version 1. `Error::Conflict` when the account has `most` already, and when too many are bound to
/// the folder.
pub async fn create(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    new: NewWorkflow,
    most: usize,
    now_ms: i64,
) -> Result<Workflow, Error> {
    check_room(tx, account_id, most).await?;
    let id = Uuid::now_v7();
    check_folder(tx, id, &new).await?;
    query(
        "INSERT INTO workflows (id, account_id, name, is_active, version, template, output_format, compression_mode,
             trigger_folder_id, webhook_secret, created_at, updated_at)
         VALUES ($1, $2, $3, $4, 1, $5, $6, $7, (SELECT id FROM folders WHERE id = $8 AND account_id = $2), $9, $10, $10)",
    )
    .bind(id)
    .bind(account_id)
    .bind(&new.name)
    .bind(new.is_active)
    .bind(&new.template)
    .bind(&new.output_format)
    .bind(&new.compression_mode)
    .bind(new.trigger_folder_id)
    .bind(credentials::webhook_secret().expose())
    .bind(now_ms)
    .execute(tx)
    .await?;
    add_version(tx, id, 1, &new.definition, now_ms).await?;
    let workflow = get(tx, account_id, id).await?;
    addresses::replace(tx, &workflow, &new.webhook_urls, now_ms).await?;
    Ok(workflow)
}

async fn check_room(tx: &mut Tx<'_>, account_id: Uuid, most: usize) -> Result<(), Error> {
    let count: i64 =
        query_scalar("SELECT count(*) FROM workflows WHERE account_id = $1 AND deleted_at IS NULL")
            .bind(account_id)
            .fetch_one(tx)
            .await?;
    match usize::try_from(count).unwrap_or(usize::MAX) < most {
        true => Ok(()),
        false => Err(Error::Conflict(format!(
            "the account has {count} workflows, which is as many as it may have: delete one, or raise \
             workflows.max_workflows"
        ))),
    }
}

async fn check_folder(tx: &mut Tx<'_>, id: Uuid, new: &NewWorkflow) -> Result<(), Error> {
    let Some(folder_id) = new.trigger_folder_id else {
        return Ok(());
    };
    let others: i64 = query_scalar(
        "SELECT count(*) FROM workflows WHERE trigger_folder_id = $1 AND deleted_at IS NULL AND id <> $2",
    )
    .bind(folder_id)
    .bind(id)
    .fetch_one(tx)
    .await?;
    match others < MOST_OF_FOLDER {
        true => Ok(()),
        false => Err(Error::Conflict(format!(
            "the folder starts {others} workflows, which is as many as it may start: take the trigger out of one first"
        ))),
    }
}

async fn add_version(
    tx: &mut Tx<'_>,
    workflow_id: Uuid,
    version: i64,
    definition: &str,
    now_ms: i64,
) -> Result<(), Error> {
    query("INSERT INTO workflow_versions (workflow_id, version, definition, created_at) VALUES ($1, $2, $3, $4)")
        .bind(workflow_id)
        .bind(version)
        .bind(definition)
        .bind(now_ms)
        .execute(tx)
        .await?;
    Ok(())
}

/// Saves a new version, unless the current one is not the `expected` one (`None`: whatever it is). Of the older
/// versions, `keep_versions` are kept with the new one among them, and those that a run names. Errors as [`get`] and
/// [`create`].
pub async fn replace(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    new: NewWorkflow,
    expected: Option<i64>,
    keep_versions: usize,
    now_ms: i64,
) -> Result<Replaced, Error> {
    let current = version_of(tx, account_id, id).await?;
    if expected.is_some_and(|expected| expected != current) {
        return Ok(Replaced::Crossed { version: current });
    }
    check_folder(tx, id, &new).await?;
    let version = current + 1;
    add_version(tx, id, version, &new.definition, now_ms).await?;
    query(
        "UPDATE workflows SET name = $3, is_active = $4, version = $5, template = $6, output_format = $7,
             compression_mode = $8, trigger_folder_id = (SELECT id FROM folders WHERE id = $9 AND account_id = $2),
             updated_at = $10
         WHERE id = $1 AND account_id = $2",
    )
    .bind(id)
    .bind(account_id)
    .bind(&new.name)
    .bind(new.is_active)
    .bind(version)
    .bind(&new.template)
    .bind(&new.output_format)
    .bind(&new.compression_mode)
    .bind(new.trigger_folder_id)
    .bind(now_ms)
    .execute(tx)
    .await?;
    forget_versions(tx, id, version, keep_versions).await?;
    let workflow = get(tx, account_id, id).await?;
    addresses::replace(tx, &workflow, &new.webhook_urls, now_ms).await?;
    Ok(Replaced::Saved(Box::new(workflow)))
}

async fn version_of(db: &mut impl Connection, account_id: Uuid, id: Uuid) -> Result<i64, Error> {
    query_scalar(
        "SELECT version FROM workflows WHERE id = $1 AND account_id = $2 AND deleted_at IS NULL",
    )
    .bind(id)
    .bind(account_id)
    .fetch_optional(db)
    .await?
    .ok_or(Error::NotFound("workflow"))
}

async fn forget_versions(
    tx: &mut Tx<'_>,
    id: Uuid,
    version: i64,
    keep_versions: usize,
) -> Result<(), Error> {
    let kept = i64::try_from(keep_versions.max(1)).unwrap_or(i64::MAX);
    query(
        "DELETE FROM workflow_versions WHERE workflow_id = $1 AND version <= $2 AND NOT EXISTS (
             SELECT 1 FROM workflow_runs r
             WHERE r.workflow_id = workflow_versions.workflow_id AND r.workflow_version = workflow_versions.version)",
    )
    .bind(id)
    .bind(version.saturating_sub(kept))
    .execute(tx)
    .await?;
    Ok(())
}

/// Pauses or resumes a workflow; existing runs continue. Errors as [`get`].
pub async fn set_active(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    is_active: bool,
    now_ms: i64,
) -> Result<Workflow, Error> {
    query(
        "UPDATE workflows SET is_active = $3, updated_at = $4
         WHERE id = $1 AND account_id = $2 AND deleted_at IS NULL AND is_active <> $3",
    )
    .bind(id)
    .bind(account_id)
    .bind(is_active)
    .bind(now_ms)
    .execute(tx)
    .await?;
    get(tx, account_id, id).await
}

/// Returns a workflow; `Error::NotFound` for an unknown or deleted one and for another account's.
pub async fn get(db: &mut impl Connection, account_id: Uuid, id: Uuid) -> Result<Workflow, Error> {
    let statement =
        format!("{SELECT} WHERE w.id = $1 AND w.account_id = $2 AND w.deleted_at IS NULL");
    query_as(statement)
        .bind(id)
        .bind(account_id)
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound("workflow"))
}

/// The account's workflows, newest first.
pub async fn list(
    db: &mut impl Connection,
    account_id: Uuid,
    page: Page,
) -> Result<Vec<Workflow>, Error> {
    let statement = format!(
        "{SELECT} WHERE w.account_id = $1 AND w.deleted_at IS NULL AND (w.created_at, w.id) < ($2, $3)
         ORDER BY w.created_at DESC, w.id DESC LIMIT $4"
    );
    let query = query_as(statement).bind(account_id);
    page.read(query, db).await
}

/// Returns a version's JSON, also of a deleted workflow whose runs are not deleted yet. `Error::NotFound` for one that
/// is not kept.
pub async fn definition_of(
    db: &mut impl Connection,
    workflow_id: Uuid,
    version: i64,
) -> Result<String, Error> {
    query_scalar("SELECT definition FROM workflow_versions WHERE workflow_id = $1 AND version = $2")
        .bind(workflow_id)
        .bind(version)
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound("version"))
}

/// The versions that are kept, newest first, at most `limit`. Errors as [`get`].
pub async fn versions(
    db: &mut impl Connection,
    account_id: Uuid,
    id: Uuid,
    limit: u32,
) -> Result<Vec<Version>, Error> {
    version_of(db, account_id, id).await?;
    Ok(query_as(
        "SELECT version, created_at FROM workflow_versions WHERE workflow_id = $1 ORDER BY version DESC LIMIT $2",
    )
    .bind(id)
    .bind(limit)
    .fetch_all(db)
    .await?)
}

/// Deletes a workflow, and cancels at most `rows` of its unfinished runs, which are returned; when these are `rows`,
/// call [`super::cancel_deleted`] for the others. It and its runs cannot be found any more, the sweep removes their
/// rows, and the files that runs stored are kept. Errors as [`get`].
pub async fn delete(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    rows: u32,
    terms: EndingTerms,
    now_ms: i64,
) -> Result<Vec<Run>, Error> {
    let deleted = query(
        "UPDATE workflows SET deleted_at = $3, is_active = 0, updated_at = $3
         WHERE id = $1 AND account_id = $2 AND deleted_at IS NULL",
    )
    .bind(id)
    .bind(account_id)
    .bind(now_ms)
    .execute(tx)
    .await?;
    if deleted.rows_affected() == 0 {
        return Err(Error::NotFound("workflow"));
    }
    addresses::delete(tx, id, now_ms).await?;
    ending::cancel_deleted(tx, id, rows, terms, now_ms).await
}
