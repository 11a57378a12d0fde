//! Skipped steps in the log of a workflow run that was cancelled or given up.

use sluice_store::{
    Error, Tx,
    workflows::{self, Run},
};

use super::{definition, path::PathEnd, run::ending::left_out};

/// Notes the steps that an ended run has not done as skipped, those ahead for this reason. None when this version of the
/// service does not read the run's definition: that keeps no run from ending.
pub(super) async fn note(tx: &mut Tx<'_>, run: &Run, reason: &str) -> Result<(), Error> {
    let definition = match definition::load(tx, run).await {
        Err(Error::Internal(_)) => return Ok(()),
        loaded => loaded?,
    };
    let done = definition::done(workflows::steps(tx, run.id).await?);
    let Ok(path) = definition::journalled(&definition, &done) else {
        return Ok(());
    };
    let skipped = left_out(&path, &definition, PathEnd::Stopped(reason), path.len());
    workflows::record_skipped(tx, run.id, &skipped).await
}
