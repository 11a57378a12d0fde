//! Counts that the nodes of a cluster have together (table `counters`): requests of a minute, failed attempts within a window.
//!
//! A count has a kind, a name and an end, after which it begins again. The verbs are right beside any other
//! ([`crate::Store::write_beside`]): several rows are taken in the order of their names. A service that is alone counts in memory
//! and has no rows.

use serde::Serialize;

use crate::{
    Connection, Error, Tx, rows,
    statement::{query, query_as, query_scalar},
};

/// Deletes at most `$2` counts that have ended by `$1`.
pub(crate) const DELETE_ENDED: &str = "DELETE FROM counters WHERE ends_at <= $1 AND (kind, name) IN (
         SELECT kind, name FROM counters WHERE ends_at <= $1 ORDER BY kind, name LIMIT $2 /*skip*/)";

/// Counts that are kept at a sweep; beyond them those that end first are dropped.
pub(crate) const MOST: i64 = 100_000;

/// Uses that a node adds to a count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Added {
    pub name: String,
    pub used: u32,
    /// End of the count when these are its first uses.
    pub ends_at: i64,
}

/// A count that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Count {
    pub name: String,
    pub used: i64,
    pub ends_at: i64,
}

/// Adds uses to counts of one kind, no name twice.
pub async fn add(tx: &mut Tx<'_>, kind: &str, added: &[Added], now_ms: i64) -> Result<(), Error> {
    query(
        "INSERT INTO counters (kind, name, used, ends_at)
         SELECT $1, value ->> 'name', CAST(value ->> 'used' AS INTEGER), CAST(value ->> 'ends_at' AS INTEGER)
         FROM json_each($2) WHERE true ORDER BY 2
         ON CONFLICT (kind, name) DO UPDATE SET
             used = excluded.used + CASE WHEN counters.ends_at > $3 THEN counters.used ELSE 0 END,
             ends_at = CASE WHEN counters.ends_at > $3 THEN counters.ends_at ELSE excluded.ends_at END",
    )
    .bind(kind)
    .bind(rows::json(added)?)
    .bind(now_ms)
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns the counts of these names; those without a use are left out.
pub async fn of_names(
    db: &mut impl Connection,
    kind: &str,
    names: &[String],
    now_ms: i64,
) -> Result<Vec<Count>, Error> {
    Ok(query_as(
        "SELECT c.name, c.used, c.ends_at FROM json_each($1) j CROSS JOIN counters c ON c.kind = $2 AND c.name = j.value
         WHERE c.ends_at > $3",
    )
    .bind(rows::json(names)?)
    .bind(kind)
    .bind(now_ms)
    .fetch_all(db)
    .await?)
}

/// Returns at most `most` counts of a kind with `limit` uses or more, by name from the name `from` on.
pub async fn at_limit(
    db: &mut impl Connection,
    kind: &str,
    limit: u32,
    from: &str,
    now_ms: i64,
    most: u32,
) -> Result<Vec<Count>, Error> {
    Ok(query_as(
        "SELECT name, used, ends_at FROM counters WHERE kind = $1 AND name >= $2 AND used >= $3 AND ends_at > $4
         ORDER BY name LIMIT $5",
    )
    .bind(kind)
    .bind(from)
    .bind(limit)
    .bind(now_ms)
    .bind(most)
    .fetch_all(db)
    .await?)
}

/// Takes one use of at most `limit` (1 or more) until the count ends, `window_ms` after its first one. Returns the uses with this
/// one, or the end of a count that is at its limit.
pub async fn take(
    tx: &mut Tx<'_>,
    kind: &str,
    name: &str,
    limit: u32,
    window_ms: i64,
    now_ms: i64,
) -> Result<Result<i64, i64>, Error> {
    let taken: Option<i64> = query_scalar(
        "INSERT INTO counters (kind, name, used, ends_at) VALUES ($1, $2, 1, $3)
         ON CONFLICT (kind, name) DO UPDATE SET
             used = CASE WHEN counters.ends_at > $4 THEN counters.used + 1 ELSE 1 END,
             ends_at = CASE WHEN counters.ends_at > $4 THEN counters.ends_at ELSE excluded.ends_at END
         WHERE counters.ends_at <= $4 OR counters.used < $5
         RETURNING used",
    )
    .bind(kind)
    .bind(name)
    .bind(now_ms.saturating_add(window_ms))
    .bind(now_ms)
    .bind(limit)
    .fetch_optional(tx)
    .await?;
    if let Some(used) = taken {
        return Ok(Ok(used));
    }
    let ends_at: Option<i64> =
        query_scalar("SELECT ends_at FROM counters WHERE kind = $1 AND name = $2")
            .bind(kind)
            .bind(name)
            .fetch_optional(tx)
            .await?;
    Ok(Err(ends_at.unwrap_or(now_ms)))
}

/// Gives one use back.
pub async fn give_back(tx: &mut Tx<'_>, kind: &str, name: &str) -> Result<(), Error> {
    query("UPDATE counters SET used = max(used - 1, 0) WHERE kind = $1 AND name = $2")
        .bind(kind)
        .bind(name)
        .execute(tx)
        .await?;
    Ok(())
}

/// Forgets a count.
pub async fn forget(tx: &mut Tx<'_>, kind: &str, name: &str) -> Result<(), Error> {
    query("DELETE FROM counters WHERE kind = $1 AND name = $2")
        .bind(kind)
        .bind(name)
        .execute(tx)
        .await?;
    Ok(())
}

/// Drops counts beyond `most` ([`MOST`]), those that end first; returns how many.
pub(crate) async fn drop_beyond(tx: &mut Tx<'_>, most: i64) -> Result<u64, Error> {
    let dropped = query(
        "DELETE FROM counters WHERE (kind, name) IN (
             SELECT kind, name FROM counters ORDER BY ends_at DESC LIMIT -1 OFFSET $1)",
    )
    .bind(most)
    .execute(tx)
    .await?;
    Ok(dropped.rows_affected())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Store, StoreSettings, write_tx};

    const KIND: &str = "requests";
    const NOW: i64 = 1_795_219_200_000;
    const WINDOW_MS: i64 = 60_000;

    async fn open(folder: &tempfile::TempDir) -> Store {
        let settings = StoreSettings::without_reserve(folder.path());
        Store::open(&settings).await.unwrap()
    }

    async fn add_at(store: &Store, uses: &[(&str, u32)], now_ms: i64) {
        let added: Vec<Added> = uses
            .iter()
            .map(|(name, used)| Added {
                name: (*name).to_owned(),
                used: *used,
                ends_at: now_ms + WINDOW_MS,
            })
            .collect();
        let written = store
            .write_beside(move |tx| Box::pin(async move { add(tx, KIND, &added, now_ms).await }));
        written.await.unwrap();
    }

    async fn used_at(store: &Store, now_ms: i64) -> Vec<(String, i64)> {
        let names = ["a", "b", "c"].map(str::to_owned);
        let mut db = store.read().await.unwrap();
        let counts = of_names(&mut db, KIND, &names, now_ms).await.unwrap();
        let mut counts: Vec<_> = counts.into_iter().map(|it| (it.name, it.used)).collect();
        counts.sort();
        counts
    }

    #[tokio::test]
    async fn nodes_add_to_one_count_that_begins_again_at_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder).await;
        add_at(&store, &[("b", 2), ("a", 1)], NOW).await;
        add_at(&store, &[("a", 4)], NOW + 1).await;
        let counted = |a, b| vec![("a".to_owned(), a), ("b".to_owned(), b)];
        assert_eq!(used_at(&store, NOW + 1).await, counted(5, 2));
        assert_eq!(used_at(&store, NOW + WINDOW_MS).await, []);
        add_at(&store, &[("a", 3), ("b", 1)], NOW + WINDOW_MS).await;
        assert_eq!(used_at(&store, NOW + WINDOW_MS).await, counted(3, 1));

        let mut db = store.read().await.unwrap();
        for (limit, from, most, expected) in [
            (2, "", 10, vec!["a"]),
            (1, "", 10, vec!["a", "b"]),
            (1, "", 1, vec!["a"]),
            (1, "b", 10, vec!["b"]),
        ] {
            let full = at_limit(&mut db, KIND, limit, from, NOW + WINDOW_MS, most).await;
            let names: Vec<String> = full.unwrap().into_iter().map(|it| it.name).collect();
            assert_eq!(names, expected);
        }
    }

    #[tokio::test]
    async fn no_use_is_taken_beyond_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder).await;
        let take_at = async |now_ms| {
            write_tx!(store, |tx| take(tx, KIND, "a", 2, WINDOW_MS, now_ms).await).unwrap()
        };
        assert_eq!(take_at(NOW).await, Ok(1));
        assert_eq!(take_at(NOW + 10).await, Ok(2));
        assert_eq!(take_at(NOW + 20).await, Err(NOW + WINDOW_MS));
        write_tx!(store, |tx| give_back(tx, KIND, "a").await).unwrap();
        assert_eq!(take_at(NOW + 30).await, Ok(2));
        assert_eq!(take_at(NOW + 40).await, Err(NOW + WINDOW_MS));
        assert_eq!(take_at(NOW + WINDOW_MS).await, Ok(1), "a new window");
        assert_eq!(take_at(NOW + WINDOW_MS).await, Ok(2));
        write_tx!(store, |tx| forget(tx, KIND, "a").await).unwrap();
        assert_eq!(take_at(NOW + WINDOW_MS).await, Ok(1));
        write_tx!(store, |tx| give_back(tx, KIND, "missing").await).unwrap();
    }

    #[tokio::test]
    async fn a_sweep_drops_what_has_ended_and_what_is_too_much() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder).await;
        add_at(&store, &[("a", 1)], NOW).await;
        add_at(&store, &[("b", 1)], NOW + 1_000).await;
        add_at(&store, &[("c", 1)], NOW + 2_000).await;
        let dropped = write_tx!(store, |tx| drop_beyond(tx, 2).await).unwrap();
        assert_eq!(dropped, 1, "the one that ends first");
        store.sweep(NOW + 1_000 + WINDOW_MS).await.unwrap();
        let left = used_at(&store, NOW).await;
        assert_eq!(left, [("c".to_owned(), 1)]);
    }
}
