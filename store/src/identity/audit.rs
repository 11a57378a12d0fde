//! The audit log: entries of who made a change, when, from which network, on what; their filter, names of targets, bounds.
//!
//! Names are kept as they were then: user, key and target may be deleted later. No entry holds a secret: names come from the
//! columns of [`NAMES`], which hold none.

use uuid::Uuid;

use crate::{
    Connection, Error, Page, Store, Tx, accounts,
    statement::{query, query_as, query_scalar},
    turns::in_turns,
};

/// Longest `detail` and name that are kept, in characters.
const MOST_CHARACTERS: usize = 500;

/// Deletes entries that were written before the time `$1`, `$2` at most.
pub(crate) const DELETE_BEFORE: &str = "DELETE FROM audit WHERE id IN (
     SELECT id FROM audit WHERE created_at < $1 ORDER BY created_at LIMIT $2)";

/// Kinds of targets that have a name, and the statement that finds it: by the target's id and its account.
const NAMES: &[(&str, &str)] = &[
    (
        "apiKey",
        "SELECT name FROM api_keys WHERE id = $1 AND account_id = $2",
    ),
    (
        "playbackKey",
        "SELECT name FROM playback_keys WHERE id = $1 AND account_id = $2",
    ),
    (
        "deliveryKey",
        "SELECT name FROM delivery_keys WHERE id = $1 AND account_id = $2",
    ),
    (
        "preset",
        "SELECT name FROM cdn_presets WHERE id = $1 AND account_id = $2",
    ),
    (
        "liveInput",
        "SELECT name FROM live_inputs WHERE id = $1 AND account_id = $2",
    ),
    (
        "file",
        "SELECT filename FROM files WHERE id = $1 AND account_id = $2",
    ),
    (
        "folder",
        "SELECT name FROM folders WHERE id = $1 AND account_id = $2",
    ),
    (
        "videoStream",
        "SELECT title FROM video_streams WHERE id = $1 AND account_id = $2",
    ),
    (
        "workflow",
        "SELECT name FROM workflows WHERE id = $1 AND account_id = $2",
    ),
    (
        "run",
        "SELECT workflow_name FROM workflow_runs WHERE id = $1 AND account_id = $2",
    ),
    // The address may hold a secret of the receiver.
    (
        "webhook",
        "SELECT description FROM webhook_endpoints WHERE id = $1 AND account_id = $2",
    ),
];

/// The credential that made the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A user with a dashboard session.
    User(Uuid),
    /// An API key.
    Key(Uuid),
}

impl Actor {
    fn kind(self) -> &'static str {
        match self {
            Self::User(_) => "user",
            Self::Key(_) => "key",
        }
    }

    fn id(self) -> Uuid {
        match self {
            Self::User(id) | Self::Key(id) => id,
        }
    }
}

/// The resource that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The resource's name in the API, for instance `liveInput`.
    pub kind: &'static str,
    pub id: String,
    pub name: Option<String>,
}

/// An entry to be written.
#[derive(Clone, Debug)]
pub struct NewEntry {
    pub account_id: Uuid,
    pub actor: Actor,
    /// Resource and past participle, for instance `live.input.key_rotated`.
    pub action: &'static str,
    pub target: Option<Target>,
    /// Address of the client's network.
    pub network: Option<String>,
    /// One sentence; cut after 500 characters.
    pub detail: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Entry {
    pub id: Uuid,
    pub account_id: Uuid,
    /// `user` or `key`.
    pub actor_kind: String,
    pub actor_id: Uuid,
    /// Name of the user or key at that time; empty when it was deleted in the same moment.
    pub actor_name: String,
    pub action: String,
    pub target_kind: Option<String>,
    pub target_id: Option<String>,
    pub target_name: Option<String>,
    pub network: Option<String>,
    pub detail: Option<String>,
    pub created_at: i64,
}

/// Entries to be listed; `None` does not narrow.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Id of a user or an API key.
    pub actor: Option<Uuid>,
    /// A whole action, or the beginning of some, which ends in a dot.
    pub action: Option<String>,
    /// Unix milliseconds; entries from then on.
    pub since: Option<i64>,
    /// Unix milliseconds; entries before then.
    pub until: Option<i64>,
}

/// Writes an entry, in the transaction of the change where there is one.
pub async fn append(tx: &mut Tx<'_>, new: NewEntry, now_ms: i64) -> Result<Entry, Error> {
    let actor_name = actor_name(tx, new.actor).await?;
    let target = new.target;
    let entry = query_as(
        "INSERT INTO audit (id, account_id, actor_kind, actor_id, actor_name, action, target_kind, target_id, target_name,
             network, detail, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING *",
    )
    .bind(Uuid::now_v7())
    .bind(new.account_id)
    .bind(new.actor.kind())
    .bind(new.actor.id())
    .bind(actor_name)
    .bind(new.action)
    .bind(target.as_ref().map(|target| target.kind))
    .bind(target.as_ref().map(|target| &target.id))
    .bind(target.as_ref().and_then(|target| cut(target.name.as_deref())))
    .bind(new.network)
    .bind(cut(new.detail.as_deref()))
    .bind(now_ms)
    .fetch_one(tx)
    .await?;
    Ok(entry)
}

/// The name of a user or key; empty when there is none.
pub async fn actor_name(db: &mut impl Connection, actor: Actor) -> Result<String, Error> {
    let statement = match actor {
        Actor::User(_) => "SELECT username FROM users WHERE id = $1",
        Actor::Key(_) => "SELECT name FROM api_keys WHERE id = $1",
    };
    let name: Option<String> = query_scalar(statement)
        .bind(actor.id())
        .fetch_optional(db)
        .await?;
    Ok(name.unwrap_or_default())
}

/// The name of a resource of the account; `None` when it has none or is not there.
pub async fn target_name(
    db: &mut impl Connection,
    account_id: Uuid,
    kind: &str,
    id: Uuid,
) -> Result<Option<String>, Error> {
    let Some((_, statement)) = NAMES.iter().find(|(named, _)| *named == kind) else {
        return Ok(None);
    };
    let name: Option<Option<String>> = query_scalar(*statement)
        .bind(id)
        .bind(account_id)
        .fetch_optional(db)
        .await?;
    Ok(name.flatten())
}

/// Deletes the entries of each account beyond its newest `most`; returns how many.
pub(crate) async fn sweep_beyond(store: &Store, most: u32) -> Result<u64, Error> {
    let accounts = accounts::ids(&mut store.read().await?).await?;
    let mut deleted = 0;
    for account_id in accounts {
        // By a reader: the writer would walk over all that is kept, each time.
        let newest_beyond: Option<(i64, Uuid)> = query_as(
            "SELECT created_at, id FROM audit WHERE account_id = $1
             ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET $2",
        )
        .bind(account_id)
        .bind(most)
        .fetch_optional(&mut store.read().await?)
        .await?;
        let Some((created_at, id)) = newest_beyond else {
            continue;
        };
        deleted += in_turns(store, move |tx, rows| {
            Box::pin(async move {
                let gone = query(
                    "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE account_id = $1
                         AND (created_at, id) <= ($2, $3) ORDER BY created_at, id LIMIT $4)",
                )
                .bind(account_id)
                .bind(created_at)
                .bind(id)
                .bind(rows)
                .execute(tx)
                .await?;
                Ok(gone.rows_affected())
            })
        })
        .await?;
    }
    Ok(deleted)
}

fn cut(text: Option<&str>) -> Option<String> {
    text.map(|text| text.chars().take(MOST_CHARACTERS).collect())
}

/// The account's entries, newest first.
pub async fn list(
    db: &mut impl Connection,
    account_id: Uuid,
    filter: &Filter,
    page: Page,
) -> Result<Vec<Entry>, Error> {
    let query = query_as(
        "SELECT * FROM audit WHERE account_id = $1 AND (created_at, id) < ($6, $7)
             AND ($2 IS NULL OR actor_id = $2)
             AND ($3 IS NULL OR action = $3 OR ($3 LIKE '%.' AND substr(action, 1, length($3)) = $3))
             AND ($4 IS NULL OR created_at >= $4) AND ($5 IS NULL OR created_at < $5)
         ORDER BY created_at DESC, id DESC LIMIT $8",
    )
    .bind(account_id)
    .bind(filter.actor)
    .bind(filter.action.as_deref())
    .bind(filter.since)
    .bind(filter.until);
    page.read(query, db).await
}
