//! Bulk changes of files in one transaction: move, delete, add and remove tags. A file that the account does not have
//! is left out, and the others are changed.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use crate::{
    Connection, Error, Tx, files, folders, rows,
    rows::Json,
    statement::{query, query_as, query_scalar},
};

/// Tags to be removed and added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagChange {
    pub removed: Vec<String>,
    pub added: Vec<String>,
    /// Tags that one file may have.
    pub most: usize,
}

impl TagChange {
    /// Returns the tags of a file as they are afterwards; `None` when there would be too many.
    fn applied(&self, tags: &[String]) -> Option<Vec<String>> {
        let kept = tags.iter().filter(|tag| !self.removed.contains(tag));
        let mut changed: Vec<String> = kept.cloned().collect();
        for tag in &self.added {
            if !changed.contains(tag) {
                changed.push(tag.clone());
            }
        }
        (changed.len() <= self.most).then_some(changed)
    }
}

/// Result of a change of tags for one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tagged {
    Done,
    /// The file would have more tags than it may have.
    TooMany,
}

/// Moves files into a folder, `None` being the top; returns those that the account has. `Error::NotFound` for the folder.
pub async fn move_to(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    ids: &[Uuid],
    folder_id: Option<Uuid>,
    now_ms: i64,
) -> Result<HashSet<Uuid>, Error> {
    if let Some(folder_id) = folder_id {
        folders::get(tx, account_id, folder_id).await?;
    }
    let moved: Vec<Uuid> = query_scalar(
        "UPDATE files SET folder_id = $3, updated_at = $4
         WHERE account_id = $1 AND id IN (SELECT unhex(value) FROM json_each($2)) RETURNING id",
    )
    .bind(account_id)
    .bind(rows::ids(ids)?)
    .bind(folder_id)
    .bind(now_ms)
    .fetch_all(tx)
    .await?;
    Ok(moved.into_iter().collect())
}

/// Deletes files as [`files::delete`] does; returns those that the account had.
pub async fn delete(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    ids: &[Uuid],
) -> Result<HashSet<Uuid>, Error> {
    let mut deleted = HashSet::with_capacity(ids.len());
    for id in ids {
        match files::delete(tx, account_id, *id).await {
            Ok(file) => deleted.insert(file.id),
            Err(Error::NotFound(_)) => continue,
            Err(error) => return Err(error),
        };
    }
    Ok(deleted)
}

/// Changes the tags of files; returns what became of those that the account has.
pub async fn tag(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    ids: &[Uuid],
    change: &TagChange,
    now_ms: i64,
) -> Result<HashMap<Uuid, Tagged>, Error> {
    let found: Vec<(Uuid, Json<Vec<String>>)> = query_as(
        "SELECT id, tags FROM files
         WHERE account_id = $1 AND id IN (SELECT unhex(value) FROM json_each($2))",
    )
    .bind(account_id)
    .bind(rows::ids(ids)?)
    .fetch_all(tx)
    .await?;
    let mut outcomes = HashMap::with_capacity(found.len());
    for (id, Json(tags)) in found {
        let outcome = match change.applied(&tags) {
            None => Tagged::TooMany,
            Some(changed) => {
                if changed != tags {
                    set_tags(tx, id, changed, now_ms).await?;
                }
                Tagged::Done
            }
        };
        outcomes.insert(id, outcome);
    }
    Ok(outcomes)
}

async fn set_tags(tx: &mut Tx<'_>, id: Uuid, tags: Vec<String>, now_ms: i64) -> Result<(), Error> {
    query("UPDATE files SET tags = $2, updated_at = $3 WHERE id = $1")
        .bind(id)
        .bind(Json(tags))
        .bind(now_ms)
        .execute(tx)
        .await?;
    Ok(())
}

/// Returns those of the files that the account has.
pub async fn existing(
    db: &mut impl Connection,
    account_id: Uuid,
    ids: &[Uuid],
) -> Result<HashSet<Uuid>, Error> {
    let found: Vec<Uuid> = query_scalar(
        "SELECT f.id FROM json_each($2) j CROSS JOIN files f ON f.id = unhex(j.value) WHERE f.account_id = $1",
    )
    .bind(account_id)
    .bind(rows::ids(ids)?)
    .fetch_all(db)
    .await?;
    Ok(found.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_removed_then_added_once_each() {
        let texts = |all: &[&str]| all.iter().map(|it| it.to_string()).collect::<Vec<_>>();
        let change = TagChange {
            removed: texts(&["a", "x"]),
            added: texts(&["b", "c", "a"]),
            most: 3,
        };
        assert_eq!(
            change.applied(&texts(&["a", "b"])),
            Some(texts(&["b", "c", "a"]))
        );
        let again = change.applied(&texts(&["b", "c", "a"]));
        assert_eq!(again, Some(texts(&["b", "c", "a"])));
        assert_eq!(change.applied(&texts(&["d"])), None);
    }
}
