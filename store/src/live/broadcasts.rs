//! Rows of broadcasts: begin, end, bytes, peak viewers, list of an input, those that a crash left live. A broadcast is
//! one run of an input on air, across reconnects. Writes carry the owner's fence.

use uuid::Uuid;

use crate::{
    Connection, Error, Tx,
    statement::{query, query_as, query_scalar},
};

/// Broadcasts that [`end_lost`] ends at once.
pub const MOST_ENDED: u32 = 1_000;

/// Deletes broadcasts that ended before the time `$1` and whose recordings are gone, `$2` at most.
pub(crate) const DELETE_ENDED: &str = "DELETE FROM broadcasts WHERE id IN (
     SELECT b.id FROM broadcasts b WHERE b.ended_at < $1
     AND NOT EXISTS (SELECT 1 FROM recordings r WHERE r.broadcast = b.id) ORDER BY b.ended_at LIMIT $2)";

text_enum! {
    pub enum BroadcastState {
        /// On air, or waiting for its encoder to reconnect.
        Live = "live",
        Ended = "ended",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct BroadcastRow {
    /// Lower-case hexadecimal, part of every media name.
    pub id: String,
    pub input_id: Uuid,
    pub state: BroadcastState,
    pub started_at: i64,
    pub ended_at: Option<i64>,
    pub fence: i64,
    /// Media received so far.
    pub bytes: i64,
    /// The most viewers at a time; `None` while none were counted.
    pub peak_viewers: Option<i64>,
    /// The time up to which the totals count.
    pub seen_at: Option<i64>,
}

/// Broadcasts whose process has ended, by that process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Those of every process but this one, at the start of the only one that has the database.
    OfAll,
    /// Those of a node, at its own start: it has taken over those of the process that had its data folder before.
    OfNode(Uuid),
    /// Those of nodes that have died, which another one ends.
    OfDeadNodes,
}

impl Lost {
    /// Returns the condition of a broadcast `b`, in which [`Lost::node`] is `$3`.
    pub(super) fn condition(self) -> &'static str {
        match self {
            Self::OfAll => "$3 IS NULL",
            Self::OfNode(_) => "b.node_id = $3",
            Self::OfDeadNodes => {
                "$3 IS NULL AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = b.node_id AND n.state <> 'dead')"
            }
        }
    }

    pub(super) fn node(self) -> Option<Uuid> {
        match self {
            Self::OfNode(id) => Some(id),
            Self::OfAll | Self::OfDeadNodes => None,
        }
    }
}

/// Totals since the last note of a broadcast that is on air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub bytes: u64,
    /// `None`: viewers are not counted.
    pub peak_viewers: Option<u64>,
}

/// Records a broadcast; repeating it (a repeated nudge) is fine. `Error::Conflict` when a newer owner has the broadcast,
/// `Error::NotFound` when the input was deleted.
pub async fn begin(
    tx: &mut Tx<'_>,
    id: &str,
    input_id: Uuid,
    fence: i64,
    started_at: i64,
) -> Result<BroadcastRow, Error> {
    let input: Option<i64> =
        query_scalar("SELECT CAST(1 AS INTEGER) FROM live_inputs WHERE id = $1")
            .bind(input_id)
            .fetch_optional(tx)
            .await?;
    if input.is_none() {
        return Err(Error::NotFound("live input"));
    }
    query_as(
        "INSERT INTO broadcasts (id, input_id, state, started_at, fence) VALUES ($1, $2, 'live', $3, $4)
         ON CONFLICT (id) DO UPDATE SET fence = excluded.fence WHERE broadcasts.fence <= excluded.fence RETURNING *",
    )
    .bind(id)
    .bind(input_id)
    .bind(started_at)
    .bind(fence)
    .fetch_optional(tx)
    .await?
    .ok_or_else(|| replaced(fence))
}

/// Notes the process on which a broadcast is on air.
pub async fn set_node(tx: &mut Tx<'_>, id: &str, node_id: Uuid) -> Result<(), Error> {
    query("UPDATE broadcasts SET node_id = $2 WHERE id = $1")
        .bind(id)
        .bind(node_id)
        .execute(tx)
        .await?;
    Ok(())
}

/// Gives the broadcasts of a process that has ended, as far as something of them is not over, to the one that has its data
/// folder now.
pub(crate) async fn inherit(tx: &mut Tx<'_>, from: Uuid, to: Uuid) -> Result<(), Error> {
    query(
        "UPDATE broadcasts SET node_id = $2 WHERE node_id = $1
             AND (state = 'live' OR EXISTS (SELECT 1 FROM recordings r
                     WHERE r.broadcast = broadcasts.id AND r.status = 'recording'))",
    )
    .bind(from)
    .bind(to)
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns whether a broadcast of a dead node is noted as live.
pub async fn has_lost(db: &mut impl Connection) -> Result<bool, Error> {
    let has_lost = query_scalar(
        "SELECT EXISTS (SELECT 1 FROM broadcasts b WHERE b.state = 'live'
             AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = b.node_id AND n.state <> 'dead'))",
    );
    Ok(has_lost.fetch_one(db).await?)
}

/// Notes the end; `ended_at` is the time of the last media. Errors as [`begin`].
pub async fn end(
    tx: &mut Tx<'_>,
    id: &str,
    fence: i64,
    ended_at: i64,
) -> Result<BroadcastRow, Error> {
    let broadcast = get(tx, id).await?;
    check_fence(&broadcast, fence)?;
    let ended = query_as("UPDATE broadcasts SET state = 'ended', ended_at = $2, fence = $3 WHERE id = $1 RETURNING *")
        .bind(id)
        .bind(ended_at)
        .bind(fence)
        .fetch_one(tx)
        .await?;
    Ok(ended)
}

/// Adds to the totals of a broadcast. Errors as [`begin`].
pub async fn add_totals(
    tx: &mut Tx<'_>,
    id: &str,
    fence: i64,
    totals: Totals,
    seen_at: i64,
) -> Result<(), Error> {
    let broadcast = get(tx, id).await?;
    check_fence(&broadcast, fence)?;
    let peak = totals.peak_viewers.map(|viewers| viewers as i64);
    query("UPDATE broadcasts SET bytes = bytes + $2, peak_viewers = max(coalesce(peak_viewers, $3), coalesce($3, peak_viewers)), seen_at = $4 WHERE id = $1")
        .bind(id)
        .bind(totals.bytes as i64)
        .bind(peak)
        .bind(seen_at)
        .execute(tx)
        .await?;
    Ok(())
}

pub async fn get(db: &mut impl Connection, id: &str) -> Result<BroadcastRow, Error> {
    query_as("SELECT * FROM broadcasts WHERE id = $1")
        .bind(id)
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound("broadcast"))
}

/// A broadcast as the history of its input shows it.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct PastBroadcast {
    pub id: String,
    pub started_at: i64,
    /// `None`: on air, or waiting for its encoder.
    pub ended_at: Option<i64>,
    /// Media received so far.
    pub bytes: i64,
    /// The most viewers at a time; `None`: none were counted.
    pub peak_viewers: Option<i64>,
    /// `None`: it was not recorded.
    pub recording_id: Option<Uuid>,
}

/// The broadcasts of an input, newest first: at most `limit`, after the first `offset`.
pub async fn list(
    db: &mut impl Connection,
    input_id: Uuid,
    limit: u32,
    offset: u32,
) -> Result<Vec<PastBroadcast>, Error> {
    let broadcasts = query_as(
        "SELECT b.id, b.started_at, b.ended_at, b.bytes, b.peak_viewers, r.id AS recording_id
         FROM broadcasts b LEFT JOIN recordings r ON r.broadcast = b.id
         WHERE b.input_id = $1 ORDER BY b.started_at DESC, b.id DESC LIMIT $2 OFFSET $3",
    )
    .bind(input_id)
    .bind(limit)
    .bind(offset)
    .fetch_all(db)
    .await?;
    Ok(broadcasts)
}

/// The most viewers of a broadcast at a time; `None` when they were not counted, or the broadcast's row is gone.
pub async fn peak_viewers(db: &mut impl Connection, id: &str) -> Result<Option<u64>, Error> {
    let peak: Option<Option<i64>> =
        query_scalar("SELECT peak_viewers FROM broadcasts WHERE id = $1")
            .bind(id)
            .fetch_optional(db)
            .await?;
    Ok(peak.flatten().map(i64::unsigned_abs))
}

/// Counts the broadcasts of an input.
pub async fn count(db: &mut impl Connection, input_id: Uuid) -> Result<u64, Error> {
    let (count,): (i64,) = query_as("SELECT count(*) FROM broadcasts WHERE input_id = $1")
        .bind(input_id)
        .fetch_one(db)
        .await?;
    Ok(count as u64)
}

/// Broadcasts that have not ended, for the start of the service.
pub async fn live(db: &mut impl Connection) -> Result<Vec<BroadcastRow>, Error> {
    Ok(
        query_as("SELECT * FROM broadcasts WHERE state = 'live' ORDER BY started_at, id")
            .fetch_all(db)
            .await?,
    )
}

/// Ends broadcasts that are recorded as live and are not among `keep`: their process died, and nothing of them is
/// left. For the start of the service, before anything is on air, and for the death of a node. They end when they were last seen
/// on air, else at `now_ms`. Ends at most [`MOST_ENDED`] and returns how many: repeat until none is left.
pub async fn end_lost(
    tx: &mut Tx<'_>,
    lost: Lost,
    keep: &[String],
    now_ms: i64,
) -> Result<u64, Error> {
    let keep = serde_json::to_string(keep).expect("texts become JSON");
    let ended = query(format!(
        "UPDATE broadcasts SET state = 'ended', ended_at = max(coalesce(seen_at, $1), started_at) WHERE id IN (
             SELECT b.id FROM broadcasts b WHERE b.state = 'live' AND b.ended_at IS NULL AND {}
             AND b.id NOT IN (SELECT value FROM json_each($2)) LIMIT $4)",
        lost.condition()
    ))
    .bind(now_ms)
    .bind(keep)
    .bind(lost.node())
    .bind(MOST_ENDED)
    .execute(tx)
    .await?;
    Ok(ended.rows_affected())
}

/// Rejects the write of an owner that has been replaced. The fence of the input does not count: another node may be on air with a
/// later broadcast of it while this one ends.
fn check_fence(broadcast: &BroadcastRow, fence: i64) -> Result<(), Error> {
    match broadcast.fence > fence {
        true => Err(replaced(fence)),
        false => Ok(()),
    }
}

fn replaced(fence: i64) -> Error {
    Error::Conflict(format!(
        "the broadcast has a newer owner (this one has the fence {fence})"
    ))
}
