//! Rows of live inputs: create, patch, stream keys, record mode, latency, defaults such as the reconnect window. The
//! row is the truth that actors work from.

use uuid::Uuid;

use crate::{
    Connection, Error, Page, Secret, Tx, credentials,
    derived::DerivedTokens,
    page,
    rows::Json,
    rows::{JsonText, Narrow},
    statement::query_as,
};

text_enum! {
    /// Recording mode: whether broadcasts are kept.
    pub enum RecordMode {
        Off = "off",
        Automatic = "automatic",
    }
}

text_enum! {
    /// Latency mode: whether playlists carry low-latency parts.
    pub enum Latency {
        Standard = "standard",
        Low = "low",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct LiveInput {
    pub id: Uuid,
    pub account_id: Uuid,
    pub name: String,
    /// 12 of `0-9 a-z`, unique: names the input in an ingest address.
    pub input_slug: String,
    /// `pb_` and 20 base62, unique: names the input in a playback address.
    pub playback_id: String,
    pub enabled: bool,
    /// Seconds for which the playlist stays open after a drop, 0 to 1800.
    #[sqlx(try_from = "i64")]
    pub reconnect_window_s: u32,
    pub require_signed_playback: bool,
    #[sqlx(try_from = "JsonText")]
    pub allowed_domains: Vec<String>,
    pub record_mode: RecordMode,
    pub latency: Latency,
    pub pull_url: Option<String>,
    /// SHA-256, hexadecimal.
    pub stream_key_hash: String,
    pub stream_key_prefix: String,
    /// The id that the stream key is derived from; `None`: an earlier version made the key, and only its hash is known.
    pub stream_key_id: Option<Uuid>,
    /// The target duration that fits the key-frame interval of the last broadcast.
    #[sqlx(try_from = "Narrow")]
    pub last_target_duration_s: Option<u32>,
    pub last_started_at: Option<i64>,
    /// `None` while a broadcast is on air.
    pub last_ended_at: Option<i64>,
    pub created_at: i64,
    pub updated_at: i64,
    /// Rises with every owner; a write that carries an older one is rejected.
    pub fence: i64,
}

impl LiveInput {
    /// Compares a stream key with the input's, in constant time.
    pub fn accepts_stream_key(&self, stream_key: &str) -> bool {
        credentials::same(&credentials::hash(stream_key), &self.stream_key_hash)
    }
}

/// A live input to be made; [`Default`] has the values of the interface.
#[derive(Clone, Debug)]
pub struct NewLiveInput {
    pub name: String,
    pub reconnect_window_s: u32,
    pub require_signed_playback: bool,
    pub allowed_domains: Vec<String>,
    pub record_mode: RecordMode,
    pub latency: Latency,
    pub pull_url: Option<String>,
}

impl Default for NewLiveInput {
    fn default() -> Self {
        Self {
            name: "Live input".into(),
            reconnect_window_s: 60,
            require_signed_playback: false,
            allowed_domains: Vec::new(),
            record_mode: RecordMode::Off,
            latency: Latency::Low,
            pull_url: None,
        }
    }
}

/// Changes of a live input; `None` leaves a field as it is.
#[derive(Clone, Debug, Default)]
pub struct LiveInputPatch {
    pub name: Option<String>,
    pub enabled: Option<bool>,
    pub reconnect_window_s: Option<u32>,
    pub require_signed_playback: Option<bool>,
    pub allowed_domains: Option<Vec<String>>,
    pub record_mode: Option<RecordMode>,
    pub latency: Option<Latency>,
    /// `Some(None)` removes the address.
    pub pull_url: Option<Option<String>>,
}

/// Makes an input with fresh names, and returns its stream key in plain; [`stream_key`] returns it again.
pub async fn create(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    new: NewLiveInput,
    now_ms: i64,
) -> Result<(LiveInput, Secret), Error> {
    let (key_id, stream_key) = new_stream_key(tx).await?;
    let input = query_as(
        "INSERT INTO live_inputs (id, account_id, name, input_slug, playback_id, enabled, reconnect_window_s,
             require_signed_playback, allowed_domains, record_mode, latency, pull_url, stream_key_hash, stream_key_prefix,
             stream_key_id, created_at, updated_at, fence)
         VALUES ($1, $2, $3, $4, $5, true, $6, $7, $8, $9, $10, $11, $12, $13, $15, $14, $14, 0) RETURNING *",
    )
    .bind(Uuid::now_v7())
    .bind(account_id)
    .bind(new.name)
    .bind(credentials::input_slug())
    .bind(credentials::playback_id())
    .bind(new.reconnect_window_s)
    .bind(new.require_signed_playback)
    .bind(Json(new.allowed_domains))
    .bind(new.record_mode)
    .bind(new.latency)
    .bind(new.pull_url)
    .bind(credentials::hash(stream_key.expose()))
    .bind(credentials::prefix(stream_key.expose()))
    .bind(now_ms)
    .bind(key_id)
    .fetch_one(tx)
    .await?;
    Ok((input, stream_key))
}

/// Derives a stream key from an id that nothing else has.
async fn new_stream_key(tx: &mut Tx<'_>) -> Result<(Uuid, Secret), Error> {
    let key_id = Uuid::now_v7();
    Ok((key_id, DerivedTokens::of(tx).await?.stream_key(key_id)))
}

/// Returns the input's stream key in plain; `None` when an earlier version made it, or an installation with another key.
pub async fn stream_key(
    db: &mut impl Connection,
    input: &LiveInput,
) -> Result<Option<Secret>, Error> {
    let Some(key_id) = input.stream_key_id else {
        return Ok(None);
    };
    let stream_key = DerivedTokens::of(db).await?.stream_key(key_id);
    Ok(Some(stream_key).filter(|key| input.accepts_stream_key(key.expose())))
}

/// Returns a live input; `Error::NotFound` for an unknown id and for another account's.
pub async fn get(db: &mut impl Connection, account_id: Uuid, id: Uuid) -> Result<LiveInput, Error> {
    query_as("SELECT * FROM live_inputs WHERE id = $1 AND account_id = $2")
        .bind(id)
        .bind(account_id)
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound("live input"))
}

/// Returns a live input of any account, for actors.
pub async fn by_id(db: &mut impl Connection, id: Uuid) -> Result<Option<LiveInput>, Error> {
    Ok(query_as("SELECT * FROM live_inputs WHERE id = $1")
        .bind(id)
        .fetch_optional(db)
        .await?)
}

pub async fn by_slug(
    db: &mut impl Connection,
    input_slug: &str,
) -> Result<Option<LiveInput>, Error> {
    let input = query_as("SELECT * FROM live_inputs WHERE input_slug = $1")
        .bind(input_slug)
        .fetch_optional(db)
        .await?;
    Ok(input)
}

pub async fn by_playback_id(
    db: &mut impl Connection,
    playback_id: &str,
) -> Result<Option<LiveInput>, Error> {
    let input = query_as("SELECT * FROM live_inputs WHERE playback_id = $1")
        .bind(playback_id)
        .fetch_optional(db)
        .await?;
    Ok(input)
}

/// The account's inputs, newest first.
pub async fn list(
    db: &mut impl Connection,
    account_id: Uuid,
    page: Page,
) -> Result<Vec<LiveInput>, Error> {
    let query = query_as(
        "SELECT * FROM live_inputs WHERE account_id = $1 AND (created_at, id) < ($2, $3)
         ORDER BY created_at DESC, id DESC LIMIT $4",
    )
    .bind(account_id);
    page.read(query, db).await
}

/// Every input of one account, for a change that affects the whole account.
pub async fn all_of(db: &mut impl Connection, account_id: Uuid) -> Result<Vec<LiveInput>, Error> {
    Ok(
        query_as("SELECT * FROM live_inputs WHERE account_id = $1 ORDER BY id")
            .bind(account_id)
            .fetch_all(db)
            .await?,
    )
}

/// Every input of every account, oldest first, for the start of the service; read in pages, not in one long statement.
pub async fn all(db: &mut impl Connection) -> Result<Vec<LiveInput>, Error> {
    page::all(
        db,
        "SELECT * FROM live_inputs WHERE id > $1 ORDER BY id LIMIT $2",
    )
    .await
}

/// Changes the fields of the patch; returns the row as it is then.
pub async fn patch(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    patch: LiveInputPatch,
    now_ms: i64,
) -> Result<LiveInput, Error> {
    query_as(
        "UPDATE live_inputs SET
             name = coalesce($3, name),
             enabled = coalesce($4, enabled),
             reconnect_window_s = coalesce($5, reconnect_window_s),
             require_signed_playback = coalesce($6, require_signed_playback),
             allowed_domains = coalesce($7, allowed_domains),
             record_mode = coalesce($8, record_mode),
             latency = coalesce($9, latency),
             pull_url = CASE WHEN $10 THEN $11 ELSE pull_url END,
             updated_at = $12
         WHERE id = $1 AND account_id = $2 RETURNING *",
    )
    .bind(id)
    .bind(account_id)
    .bind(patch.name)
    .bind(patch.enabled)
    .bind(patch.reconnect_window_s)
    .bind(patch.require_signed_playback)
    .bind(patch.allowed_domains.map(Json))
    .bind(patch.record_mode)
    .bind(patch.latency)
    .bind(patch.pull_url.is_some())
    .bind(patch.pull_url.flatten())
    .bind(now_ms)
    .fetch_optional(tx)
    .await?
    .ok_or(Error::NotFound("live input"))
}

/// Replaces the stream key, and returns the new one in plain; the old one is invalid from the commit on.
pub async fn rotate_key(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    now_ms: i64,
) -> Result<(LiveInput, Secret), Error> {
    let (key_id, stream_key) = new_stream_key(tx).await?;
    let input = query_as(
        "UPDATE live_inputs SET stream_key_hash = $3, stream_key_prefix = $4, stream_key_id = $6, updated_at = $5
         WHERE id = $1 AND account_id = $2 RETURNING *",
    )
    .bind(id)
    .bind(account_id)
    .bind(credentials::hash(stream_key.expose()))
    .bind(credentials::prefix(stream_key.expose()))
    .bind(now_ms)
    .bind(key_id)
    .fetch_optional(tx)
    .await?
    .ok_or(Error::NotFound("live input"))?;
    Ok((input, stream_key))
}

/// Deletes the input with its broadcasts, and returns its row.
pub async fn delete(tx: &mut Tx<'_>, account_id: Uuid, id: Uuid) -> Result<LiveInput, Error> {
    query_as("DELETE FROM live_inputs WHERE id = $1 AND account_id = $2 RETURNING *")
        .bind(id)
        .bind(account_id)
        .fetch_optional(tx)
        .await?
        .ok_or(Error::NotFound("live input"))
}

/// Records the begin of a broadcast: from now on the input has no last end.
pub async fn set_started(tx: &mut Tx<'_>, id: Uuid, started_at: i64) -> Result<LiveInput, Error> {
    query_as("UPDATE live_inputs SET last_started_at = $2, last_ended_at = NULL WHERE id = $1 RETURNING *")
        .bind(id)
        .bind(started_at)
        .fetch_optional(tx)
        .await?
        .ok_or(Error::NotFound("live input"))
}

/// Records the end of a broadcast; `ended_at` is the time of its last media. Changes nothing while a broadcast of the input is on
/// air that began later, as on another node, and keeps a later end.
pub async fn set_ended(
    tx: &mut Tx<'_>,
    id: Uuid,
    broadcast: &str,
    ended_at: i64,
) -> Result<LiveInput, Error> {
    query_as(
        "UPDATE live_inputs SET last_ended_at = CASE
             WHEN EXISTS (SELECT 1 FROM broadcasts later JOIN broadcasts b ON b.id = $3
                 WHERE later.input_id = $1 AND later.state = 'live' AND later.id <> b.id
                     AND later.started_at >= b.started_at)
             THEN last_ended_at ELSE max(coalesce(last_ended_at, $2), $2) END
         WHERE id = $1 RETURNING *",
    )
    .bind(id)
    .bind(ended_at)
    .bind(broadcast)
    .fetch_optional(tx)
    .await?
    .ok_or(Error::NotFound("live input"))
}

/// Notes the target duration, in seconds, with which the next broadcast should start.
pub async fn set_target_duration(
    tx: &mut Tx<'_>,
    id: Uuid,
    target_duration_s: u32,
) -> Result<LiveInput, Error> {
    query_as("UPDATE live_inputs SET last_target_duration_s = $2 WHERE id = $1 RETURNING *")
        .bind(id)
        .bind(target_duration_s)
        .fetch_optional(tx)
        .await?
        .ok_or(Error::NotFound("live input"))
}

/// Raises the fence of the input to that of a broadcast; never lowers it. Two nodes that were published to at the same time
/// have the same one.
pub async fn raise_fence(tx: &mut Tx<'_>, id: Uuid, fence: i64) -> Result<LiveInput, Error> {
    query_as("UPDATE live_inputs SET fence = max(fence, $2) WHERE id = $1 RETURNING *")
        .bind(id)
        .bind(fence)
        .fetch_optional(tx)
        .await?
        .ok_or(Error::NotFound("live input"))
}
