//! `POST /api/files/bulk`: move, delete or tag many files; most `ids`, files of one transaction. The answer says of each file
//! whether it was changed, also when the work stops halfway.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use sluice_store::{
    Error, bulk,
    bulk::{TagChange, Tagged},
    now_ms, write_tx,
};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    request::{MAX_TAGS, checked_tags},
    to_its_end,
};
use crate::application::{context::FileContext, error::ApiError, field::given};

/// Most files that one request changes.
pub(crate) const MAX_IDS: usize = 1_000;
/// Files that one unit of work changes, so that other work is done between them.
const PER_TURN: usize = 100;

/// A change of many files.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BulkRequest {
    /// Ids of files, 1 to 1000; one that is given twice counts once.
    ids: Vec<Uuid>,
    action: BulkAction,
    /// Folder of `move`; null: the top.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Uuid>)]
    folder_id: Option<Option<Uuid>>,
    /// Tags that `tag` adds to each file. A file has at most 50.
    #[serde(default)]
    tags: Vec<String>,
    /// Tags that `tag` removes from each file, before it adds the others.
    #[serde(default)]
    remove_tags: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BulkAction {
    Move,
    Delete,
    Tag,
}

/// Result for each file.
#[derive(Debug, Serialize, ToSchema)]
pub struct BulkAnswer {
    action: BulkAction,
    /// Numbers of results by their status.
    done: usize,
    missing: usize,
    failed: usize,
    /// In the order of `ids`.
    results: Vec<BulkResult>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct BulkResult {
    id: Uuid,
    status: BulkStatus,
    /// Advice for a failed one: what to change.
    error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BulkStatus {
    /// It is as the request asks, now or since before.
    Done,
    /// There is no such file, or not any more.
    Missing,
    /// Not changed.
    Failed,
}

/// The checked change.
#[derive(Clone, Debug)]
enum Change {
    Move(Option<Uuid>),
    Delete,
    Tag(TagChange),
}

impl BulkRequest {
    fn checked(self) -> Result<(BulkAction, Vec<Uuid>, Change), ApiError> {
        let ids = distinct("ids", self.ids, MAX_IDS)?;
        if ids.is_empty() {
            return Err(invalid!(
                "ids must have 1 to {MAX_IDS} ids of files, got none"
            ));
        }
        let (is_tagged, is_moved) = (
            !(self.tags.is_empty() && self.remove_tags.is_empty()),
            self.folder_id.is_some(),
        );
        let change = match (self.action, self.folder_id) {
            (BulkAction::Move, None) => {
                return Err(invalid!(
                    "folderId is missing: name the folder to move to, or null for the top"
                ));
            }
            (BulkAction::Move, Some(folder_id)) => Change::Move(folder_id),
            (BulkAction::Delete, _) => Change::Delete,
            (BulkAction::Tag, _) => Change::Tag(TagChange {
                added: checked_tags("tags", self.tags)?,
                removed: checked_tags("removeTags", self.remove_tags)?,
                most: MAX_TAGS,
            }),
        };
        match &change {
            Change::Tag(_) if !is_tagged => Err(invalid!(
                "tags is missing: name tags to add in tags, or to remove in removeTags"
            )),
            Change::Move(_) | Change::Delete if is_tagged => {
                Err(invalid!("tags and removeTags go with the action tag only"))
            }
            Change::Tag(_) | Change::Delete if is_moved => {
                Err(invalid!("folderId goes with the action move only"))
            }
            _ => Ok((self.action, ids, change)),
        }
    }
}

/// Returns the ids in their order, each once; 400 when there are more than `most`.
pub(crate) fn distinct(name: &str, ids: Vec<Uuid>, most: usize) -> Result<Vec<Uuid>, ApiError> {
    if ids.len() > most {
        return Err(invalid!(
            "{name} must have at most {most} ids, got {}",
            ids.len()
        ));
    }
    let mut seen = HashSet::with_capacity(ids.len());
    Ok(ids.into_iter().filter(|id| seen.insert(*id)).collect())
}

/// Changes files, also when the caller goes. Fails as a whole only while nothing was changed.
pub(crate) async fn change(
    context: Arc<FileContext>,
    account_id: Uuid,
    request: BulkRequest,
) -> Result<BulkAnswer, ApiError> {
    let (action, ids, change) = request.checked()?;
    to_its_end(async move {
        let mut results = Vec::with_capacity(ids.len());
        for some in ids.chunks(PER_TURN) {
            match turn(&context, account_id, some, &change).await {
                Ok(outcomes) => results.extend(some.iter().map(|id| outcomes.result(*id))),
                Err(error) if results.is_empty() => return Err(error.into()),
                Err(error) => {
                    tracing::warn!(%error, done = results.len(), "a change of many files stopped halfway");
                    let left = &ids[results.len()..];
                    results.extend(left.iter().map(|id| not_changed(*id, &error)));
                    break;
                }
            }
        }
        Ok(BulkAnswer::of(action, results))
    })
    .await
}

/// Results of the files that the account has; others are missing.
struct Outcomes(HashMap<Uuid, Tagged>);

impl Outcomes {
    fn done(ids: HashSet<Uuid>) -> Self {
        Self(ids.into_iter().map(|id| (id, Tagged::Done)).collect())
    }

    fn result(&self, id: Uuid) -> BulkResult {
        let (status, error) = match self.0.get(&id) {
            Some(Tagged::Done) => (BulkStatus::Done, None),
            Some(Tagged::TooMany) => (
                BulkStatus::Failed,
                Some(format!(
                    "it would have more than {MAX_TAGS} tags: remove some first"
                )),
            ),
            None => (BulkStatus::Missing, None),
        };
        BulkResult { id, status, error }
    }
}

/// Changes some of the files in one unit of work.
async fn turn(
    context: &FileContext,
    account_id: Uuid,
    asked: &[Uuid],
    change: &Change,
) -> Result<Outcomes, Error> {
    let (ids, change) = (asked.to_vec(), change.clone());
    match change {
        Change::Move(folder_id) => {
            let moved = write_tx!(context.store, account_id, |tx| {
                bulk::move_to(tx, account_id, &ids, folder_id, now_ms()).await
            })?;
            Ok(Outcomes::done(moved))
        }
        Change::Delete => {
            let deleted = write_tx!(context.store, account_id, |tx| {
                bulk::delete(tx, account_id, &ids).await
            });
            let purged: Vec<Uuid> = match &deleted {
                Ok(deleted) => deleted.iter().copied().collect(),
                // Images of a file that is still there are rendered again.
                Err(Error::Unknown) => asked.to_vec(),
                Err(_) => Vec::new(),
            };
            context.images.purge_files(&purged).await;
            Ok(Outcomes::done(deleted?))
        }
        Change::Tag(change) => {
            let tagged = write_tx!(context.store, account_id, |tx| {
                bulk::tag(tx, account_id, &ids, &change, now_ms()).await
            })?;
            Ok(Outcomes(tagged))
        }
    }
}

fn not_changed(id: Uuid, error: &Error) -> BulkResult {
    let reason = match error {
        Error::NotFound(what) => format!("not changed: the {what} was deleted meanwhile"),
        Error::Full => {
            "not changed, as the disk of the service is full: send it again later".to_owned()
        }
        Error::Unknown => {
            "perhaps changed: the database was lost during the change; look at the file before you send it again"
                .to_owned()
        }
        _ => "not changed, as the database is busy: send it again".to_owned(),
    };
    BulkResult {
        id,
        status: BulkStatus::Failed,
        error: Some(reason),
    }
}

impl BulkAnswer {
    fn of(action: BulkAction, results: Vec<BulkResult>) -> Self {
        let count = |status| results.iter().filter(|it| it.status == status).count();
        Self {
            action,
            done: count(BulkStatus::Done),
            missing: count(BulkStatus::Missing),
            failed: count(BulkStatus::Failed),
            results,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(body: serde_json::Value) -> Result<(BulkAction, Vec<Uuid>, Change), ApiError> {
        serde_json::from_value::<BulkRequest>(body)
            .unwrap()
            .checked()
    }

    #[test]
    fn ids_count_once_and_null_is_the_top() {
        let (one, other) = (Uuid::now_v7(), Uuid::now_v7());
        let body = json!({"ids": [other, one, other], "action": "move", "folderId": null});
        let (action, ids, change) = checked(body).unwrap();
        assert_eq!((action, ids), (BulkAction::Move, vec![other, one]));
        assert!(matches!(change, Change::Move(None)));
    }

    #[test]
    fn wrong_requests_name_the_field() {
        let id = Uuid::now_v7();
        for (body, named) in [
            (json!({"ids": [], "action": "delete"}), "ids must have 1"),
            (
                json!({"ids": vec![id; 1001], "action": "delete"}),
                "ids must have at most 1000",
            ),
            (
                json!({"ids": [id], "action": "move"}),
                "folderId is missing",
            ),
            (json!({"ids": [id], "action": "tag"}), "tags is missing"),
            (
                json!({"ids": [id], "action": "tag", "tags": [""]}),
                "tags[0] must",
            ),
            (
                json!({"ids": [id], "action": "tag", "removeTags": vec!["x"; 51]}),
                "removeTags must have at most 50",
            ),
            (
                json!({"ids": [id], "action": "delete", "tags": ["x"]}),
                "tags and removeTags go with",
            ),
            (
                json!({"ids": [id], "action": "delete", "folderId": null}),
                "folderId goes with",
            ),
        ] {
            let error = checked(body).map(|_| ()).unwrap_err().to_string();
            assert!(error.starts_with(named), "{error}");
        }
    }
}
