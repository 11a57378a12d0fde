//! The audit log: entries of who made a change, when, from which network, on what; their filter.
//!
//! [`append`] runs in the transaction of the change, so that there is never one without the other. Names are kept as they were
//! then: user, key and target may be deleted later. No entry holds a secret.

use sqlx::{query_as, query_scalar};
use uuid::Uuid;

use crate::{Connection, Error, Page, Tx};

/// Longest `detail` and name that are kept, in characters.
const MOST_CHARACTERS: usize = 500;

/// Deletes entries that were written before the time `$1`, `$2` at most.
pub(crate) const DELETE_BEFORE: &str =
    "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE created_at < $1 LIMIT $2)";

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
}

/// Writes an entry, in the transaction of the change.
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
    .fetch_one(tx.sqlite())
    .await?;
    Ok(entry)
}

async fn actor_name(tx: &mut Tx<'_>, actor: Actor) -> Result<String, Error> {
    let statement = match actor {
        Actor::User(_) => "SELECT username FROM users WHERE id = $1",
        Actor::Key(_) => "SELECT name FROM api_keys WHERE id = $1",
    };
    let name: Option<String> = query_scalar(statement)
        .bind(actor.id())
        .fetch_optional(tx.sqlite())
        .await?;
    Ok(name.unwrap_or_default())
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
        "SELECT * FROM audit WHERE account_id = $1 AND (created_at, id) < ($5, $6)
             AND ($2 IS NULL OR actor_id = $2)
             AND ($3 IS NULL OR action = $3 OR (substr($3, -1) = '.' AND substr(action, 1, length($3)) = $3))
             AND ($4 IS NULL OR created_at >= $4)
         ORDER BY created_at DESC, id DESC LIMIT $7",
    )
    .bind(account_id)
    .bind(filter.actor)
    .bind(filter.action.as_deref())
    .bind(filter.since);
    page.read(query, db).await
}
