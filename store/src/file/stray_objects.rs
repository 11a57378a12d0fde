//! Search for objects that no row names, because a crash or a rollback came between their upload and a commit, or between a
//! commit and their deletion: a bounded part of the object store in each sweep.
//!
//! - Objects of a base are looked at when it is a day old, and deleted when no row has it. Units of work record only bases
//!   that are younger, and take a base from an upload's row to a blob's row in one commit, which one statement here sees before
//!   or after.
//! - While an upload's row has the base, all its objects are kept: those that its next request needs are not known here.
//! - When only a blob's row has it, tails and pieces that are not the blob's are deleted: requests that were superseded wrote
//!   them. A blob's pieces do not change.
//! - Each object of a video stream has a row of its own.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use uuid::Uuid;

use crate::{
    Error, Store,
    blob::{
        StraySearch,
        pieces::{KEY_HASH_DIGITS, Place, made_ms},
    },
    derived::DerivedTokens,
    now_ms,
    objects::Objects,
    statement::Builder,
    video,
};

/// Lists that one sweep reads, with up to a thousand objects each.
const LISTS_PER_SWEEP: usize = 10;
/// Bases that are looked up in one statement.
const PAGE: usize = 200;
/// Objects that are deleted at a time.
const DELETED_AT_ONCE: usize = 8;
/// Beginning of the keys of blobs and uploads.
const PREFIX: &str = "b/";

/// Objects that are searched by themselves.
#[derive(Clone, Copy)]
enum Searched {
    /// Objects of blobs and uploads.
    Blobs,
    /// Objects of video streams.
    Streams,
}

impl Searched {
    const ALL: [Self; 2] = [Self::Blobs, Self::Streams];

    fn prefix(self) -> &'static str {
        match self {
            Self::Blobs => PREFIX,
            Self::Streams => video::OBJECT_PREFIX,
        }
    }

    /// Returns those of these objects that were made before a time and can be deleted.
    async fn strays(
        self,
        store: &Store,
        keys: Vec<String>,
        before_ms: i64,
    ) -> Result<Vec<String>, Error> {
        match self {
            Self::Blobs => strays(store, keys, before_ms).await,
            Self::Streams => video::stray_objects(store, keys, before_ms).await,
        }
    }
}

/// Rows that name a base.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Named {
    by_upload: bool,
    /// Place of a blob, or of recorded media.
    by_blob: Option<Place>,
}

/// Continues where the last sweep ended; deletes objects that were made before a time and that no row names.
pub(crate) async fn sweep(store: &Store, before_ms: i64) -> Result<(), Error> {
    let Some(objects) = store.blobs().objects() else {
        return Ok(());
    };
    let derived = DerivedTokens::of(&mut store.read().await?).await?;
    if !objects.is_owned_by(&derived.object_owner()).await? {
        tracing::warn!(
            "no objects are deleted: store.objects_url has no object that names this installation, or one of another, too"
        );
        return Ok(());
    }
    let mut deleted = 0;
    for searched in Searched::ALL {
        deleted += search(store, searched, before_ms).await?;
    }
    store.blobs().note_search(StraySearch {
        at_ms: now_ms(),
        deleted,
    });
    Ok(())
}

/// Searches a bounded part of the objects of a kind; returns how many were deleted.
async fn search(store: &Store, searched: Searched, before_ms: i64) -> Result<u64, Error> {
    let blobs = store.blobs();
    let (Some(objects), Some(positions)) = (blobs.objects(), blobs.searched()) else {
        return Ok(0);
    };
    let prefix = searched.prefix();
    let mut deleted = 0;
    for _ in 0..LISTS_PER_SWEEP {
        let after = positions.lock().get(prefix).cloned();
        let listed = objects.list(prefix, after.as_deref()).await?;
        let Some(last) = listed.last().map(|entry| entry.key.clone()) else {
            positions.lock().remove(prefix);
            return Ok(deleted);
        };
        let keys: Vec<String> = listed.into_iter().map(|entry| entry.key).collect();
        let strays = searched.strays(store, keys, before_ms).await?;
        if !strays.is_empty() {
            let count = strays.len();
            tracing::info!(count, "objects without a row are deleted");
            delete(objects, strays).await?;
            deleted += count as u64;
        }
        positions.lock().insert(prefix, last);
    }
    Ok(deleted)
}

/// Returns the objects of bases that were made before a time and that no row names, and the tails and pieces that uploads which
/// have become blobs left beside them.
async fn strays(store: &Store, keys: Vec<String>, before_ms: i64) -> Result<Vec<String>, Error> {
    let old: BTreeSet<Uuid> = keys
        .iter()
        .filter_map(|key| base_of(key))
        .filter(|base| made_ms(*base).is_some_and(|made| made < before_ms))
        .collect();
    let old: Vec<Uuid> = old.into_iter().collect();
    let named = named(store, &old).await?;
    let strays = keys.into_iter().filter(|key| is_stray(key, &named));
    Ok(strays.collect())
}

/// Finds which rows name these bases; each has an entry.
async fn named(store: &Store, bases: &[Uuid]) -> Result<BTreeMap<Uuid, Named>, Error> {
    let mut named: BTreeMap<Uuid, Named> =
        bases.iter().map(|base| (*base, Named::default())).collect();
    for page in bases.chunks(PAGE) {
        let mut statement = Builder::new(
            "SELECT base, CAST(0 AS INTEGER), piece_hashes FROM blobs WHERE base IN (",
        );
        statement.push_list(page.iter().copied());
        statement.push(
            ") UNION ALL SELECT base, CAST(0 AS INTEGER), piece_hashes FROM live_segments WHERE base IN (",
        );
        statement.push_list(page.iter().copied());
        statement.push(
            ") UNION ALL SELECT base, CAST(1 AS INTEGER), NULL FROM tus_uploads WHERE base IN (",
        );
        statement.push_list(page.iter().copied()).push(")");
        let rows: Vec<(Uuid, i64, Option<Vec<u8>>)> = statement
            .build_query_as()
            .fetch_all(&mut store.read().await?)
            .await?;
        for (base, is_upload, piece_hashes) in rows {
            let rows = named.entry(base).or_default();
            match is_upload {
                1 => rows.by_upload = true,
                _ => {
                    rows.by_blob = Some(Place {
                        base,
                        piece_hashes: piece_hashes.unwrap_or_default(),
                    });
                }
            }
        }
    }
    Ok(named)
}

/// Returns whether an object can be deleted. `named` has the bases that are old enough.
fn is_stray(key: &str, named: &BTreeMap<Uuid, Named>) -> bool {
    match base_of(key).and_then(|base| named.get(&base)) {
        None => false,
        Some(rows) if rows.by_upload => false,
        Some(rows) => match &rows.by_blob {
            Some(place) => !place.has_key(key),
            None => true,
        },
    }
}

/// Returns the base of an object; `None` for a key of another form.
fn base_of(key: &str) -> Option<Uuid> {
    let (base, name) = key.strip_prefix(PREFIX)?.split_once('/')?;
    let is_own = match name.strip_prefix('t') {
        Some(number) => is_number(number),
        None => name
            .split_once('-')
            .is_some_and(|(number, hash)| is_number(number) && is_hash(hash)),
    };
    Uuid::try_parse(base)
        .ok()
        .filter(|parsed| is_own && parsed.simple().to_string() == base)
}

fn is_number(text: &str) -> bool {
    let number = text.parse::<u64>();
    number.is_ok_and(|number| number.to_string() == text)
}

fn is_hash(text: &str) -> bool {
    let is_digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    text.len() == KEY_HASH_DIGITS && text.bytes().all(is_digit)
}

async fn delete(objects: &Objects, keys: Vec<String>) -> Result<(), Error> {
    stream::iter(keys)
        .map(|key| async move { objects.delete(&key).await })
        .buffer_unordered(DELETED_AT_ONCE)
        .try_collect()
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_objects_that_no_row_names_are_strays() {
        let [lost, of_blob, of_upload, of_both, young] = [1, 2, 3, 4, 5].map(Uuid::from_u128);
        let rows = |by_upload, by_blob: Option<Uuid>| Named {
            by_upload,
            by_blob: by_blob.map(|base| Place {
                base,
                piece_hashes: [[0x11; 16], [0x22; 16]].concat(),
            }),
        };
        let named = BTreeMap::from([
            (lost, rows(false, None)),
            (of_blob, rows(false, Some(of_blob))),
            (of_upload, rows(true, None)),
            (of_both, rows(true, Some(of_both))),
        ]);
        let cases = [
            (lost, "0-1111111111111111", true),
            (lost, "t7", true),
            (of_blob, "0-1111111111111111", false),
            (of_blob, "1-2222222222222222", false),
            // Of a request that was superseded.
            (of_blob, "0-2222222222222222", true),
            (of_blob, "2-1111111111111111", true),
            (of_blob, "t7", true),
            (of_upload, "0-1111111111111111", false),
            (of_upload, "t7", false),
            (of_both, "0-3333333333333333", false),
            (of_both, "t7", false),
            (young, "0-1111111111111111", false),
        ];
        for (base, name, expected) in cases {
            let key = format!("b/{}/{name}", base.simple());
            assert_eq!(is_stray(&key, &named), expected, "{key}");
        }
        let lost = lost.simple();
        for foreign in [
            format!("b/{lost}"),
            format!("b/{lost}/"),
            format!("b/{lost}/t"),
            format!("b/{lost}/t01"),
            format!("b/{lost}/x1"),
            format!("b/{lost}/0"),
            format!("b/{lost}/0-"),
            format!("b/{lost}/0-111111111111111"),
            format!("b/{lost}/0-111111111111111A"),
            format!("b/{lost}/00-1111111111111111"),
            format!("b/{lost}/-1111111111111111"),
            format!("b/{lost}/0-1111111111111111/1"),
            format!("c/{lost}/0-1111111111111111"),
            "b/00000000-0000-0000-0000-000000000001/0-1111111111111111".to_owned(),
        ] {
            assert!(!is_stray(&foreign, &named), "{foreign}");
        }
    }
}
