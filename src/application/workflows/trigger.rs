//! Runs of workflows that begin when a file is stored in their folder (`trigger.folderId`).

use sluice_actors::{events, workflow::Workflows};
use sluice_store::{Error, Tx, files::File};

use crate::{application::workflows::operations::allowance, config::Plan};

/// Makes the runs of the workflows bound to the folder of a file just uploaded, in the upload's transaction. Returns
/// whether there are any: [`Workflows::announce`] them after the commit. A run that cannot be charged is recorded as
/// failed; the file is stored all the same.
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
