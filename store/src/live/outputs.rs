//! Rows of the outputs of live inputs: create (`restream.max_outputs`), list, patch, delete. The caller has checked
//! whose input it is.

use std::fmt;

use uuid::Uuid;

use crate::{
    Connection, Error, Tx,
    statement::{query_as, query_scalar},
};

/// `Debug` hides the address, for the target's stream key is in it.
#[derive(Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Output {
    pub id: Uuid,
    pub input_id: Uuid,
    pub url: String,
    pub enabled: bool,
    pub created_at: i64,
    pub updated_at: i64,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("id", &self.id)
            .field("input_id", &self.input_id)
            .field("enabled", &self.enabled)
            .finish_non_exhaustive()
    }
}

/// An output to be made.
#[derive(Clone)]
pub struct NewOutput {
    pub input_id: Uuid,
    pub url: String,
    pub enabled: bool,
}

/// Bounds of the number of outputs.
#[derive(Clone, Copy, Debug)]
pub struct OutputLimits {
    pub of_input: u32,
    pub in_all: u32,
}

/// Changes of an output; `None` leaves a field as it is. No `Debug`, for the secret in it.
#[derive(Clone, Default)]
pub struct OutputPatch {
    pub url: Option<String>,
    pub enabled: Option<bool>,
}

/// Creates an output. `Error::Conflict` when there are too many already.
pub async fn create(
    tx: &mut Tx<'_>,
    new: NewOutput,
    limits: OutputLimits,
    now_ms: i64,
) -> Result<Output, Error> {
    let of_input: i64 = query_scalar("SELECT count(*) FROM live_outputs WHERE input_id = $1")
        .bind(new.input_id)
        .fetch_one(tx)
        .await?;
    if of_input >= i64::from(limits.of_input) {
        return Err(Error::Conflict(format!(
            "a live input has at most {} outputs (restream.max_outputs_per_input): delete one first",
            limits.of_input
        )));
    }
    let in_all: i64 = query_scalar("SELECT count(*) FROM live_outputs")
        .fetch_one(tx)
        .await?;
    if in_all >= i64::from(limits.in_all) {
        return Err(Error::Conflict(format!(
            "the service has at most {} outputs (restream.max_outputs)",
            limits.in_all
        )));
    }
    Ok(query_as(
        "INSERT INTO live_outputs (id, input_id, url, enabled, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $5) RETURNING *",
    )
    .bind(Uuid::now_v7())
    .bind(new.input_id)
    .bind(new.url)
    .bind(new.enabled)
    .bind(now_ms)
    .fetch_one(tx)
    .await?)
}

/// Returns an output; `Error::NotFound` for an unknown id and for another input's.
pub async fn get(db: &mut impl Connection, input_id: Uuid, id: Uuid) -> Result<Output, Error> {
    query_as("SELECT * FROM live_outputs WHERE id = $1 AND input_id = $2")
        .bind(id)
        .bind(input_id)
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound("output"))
}

/// Returns an output of any input, for the task that sends it.
pub async fn by_id(db: &mut impl Connection, id: Uuid) -> Result<Option<Output>, Error> {
    Ok(query_as("SELECT * FROM live_outputs WHERE id = $1")
        .bind(id)
        .fetch_optional(db)
        .await?)
}

/// All outputs of an input, newest first; their number has a bound.
pub async fn list(db: &mut impl Connection, input_id: Uuid) -> Result<Vec<Output>, Error> {
    Ok(
        query_as(
            "SELECT * FROM live_outputs WHERE input_id = $1 ORDER BY created_at DESC, id DESC",
        )
        .bind(input_id)
        .fetch_all(db)
        .await?,
    )
}

/// Every output, for the start of the service; their number has a bound.
pub async fn all(db: &mut impl Connection) -> Result<Vec<Output>, Error> {
    Ok(query_as("SELECT * FROM live_outputs ORDER BY id")
        .fetch_all(db)
        .await?)
}

/// Changes the fields of the patch; returns the row as it is then.
pub async fn patch(
    tx: &mut Tx<'_>,
    input_id: Uuid,
    id: Uuid,
    patch: OutputPatch,
    now_ms: i64,
) -> Result<Output, Error> {
    query_as(
        "UPDATE live_outputs SET
             url = coalesce($3, url),
             enabled = coalesce($4, enabled),
             updated_at = $5
         WHERE id = $1 AND input_id = $2 RETURNING *",
    )
    .bind(id)
    .bind(input_id)
    .bind(patch.url)
    .bind(patch.enabled)
    .bind(now_ms)
    .fetch_optional(tx)
    .await?
    .ok_or(Error::NotFound("output"))
}

/// Deletes an output, and returns its row; `Error::NotFound` for an unknown id and for another input's.
pub async fn delete(tx: &mut Tx<'_>, input_id: Uuid, id: Uuid) -> Result<Output, Error> {
    query_as("DELETE FROM live_outputs WHERE id = $1 AND input_id = $2 RETURNING *")
        .bind(id)
        .bind(input_id)
        .fetch_optional(tx)
        .await?
        .ok_or(Error::NotFound("output"))
}
