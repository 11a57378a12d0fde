//! Runs that a file begins by being stored in a workflow's folder.

use sluice_actors::{events, workflow::Workflows};
use sluice_store::{Error, Tx, files::File};

use crate::{application::workflows::operations::allowance, config::Plan};

/// Tells of a file that an upload has just stored, and makes the runs of the workflows that wait for it, in the upload's
/// transaction. Whether there are any: [`Workflows::announce`] them once it is committed. A run that cannot be charged is a
/// failed one; the file is stored all the same.
pub(crate) async fn file_stored(
    tx: &mut Tx<'_>,
    engine: &Workflows,
    plan: &Plan,
    file: &File,
    now_ms: i64,
) -> Result<bool, Error> {
    events::file_stored(tx, file, now_ms).await?;
    let allowance = allowance(plan, &file.mime_type);
    let runs = engine.stored(tx, file, allowance, now_ms).await?;
    Ok(!runs.is_empty())
}
