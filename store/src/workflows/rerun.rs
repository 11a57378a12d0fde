//! Rerun: a new run on the input of one that has ended, with the version that it ran or with the present one.

use uuid::Uuid;

use super::{
    NewRun, Run, RunLimits, Submitted, Trigger, definition_of, get_run, submission::submit,
};
use crate::{Error, Tx, jobs::Allowance, work::Lane};

/// Terms on which a run is made again.
#[derive(Clone, Copy, Debug)]
pub struct Rerun {
    /// The version that the run ran; else the present one.
    pub keeps_version: bool,
    pub trigger: Trigger,
    pub lane: Lane,
    pub allowance: Allowance,
    pub limits: RunLimits,
}

/// Makes a new run on the input of an ended run of the workflow, as [`submit`] does: charged and admitted as every other one. It keeps
/// the upload's source and generation. `Error::Conflict` while the run has not ended, and when its input is deleted;
/// `Error::NotFound` as for [`get_run`], for a run of another workflow, and for a version that is not kept.
pub async fn rerun(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    workflow_id: Uuid,
    id: Uuid,
    wanted: &Rerun,
    now_ms: i64,
) -> Result<Submitted, Error> {
    let run = get_run(tx, account_id, id).await?;
    if run.workflow_id != workflow_id {
        return Err(Error::NotFound("run"));
    }
    let new = repeated(run, wanted)?;
    if let Some(version) = new.version {
        definition_of(tx, workflow_id, version).await?;
    }
    submit(tx, &new, wanted.limits, None, now_ms).await
}

fn repeated(run: Run, wanted: &Rerun) -> Result<NewRun, Error> {
    if !run.status.has_ended() {
        return Err(Error::Conflict(format!(
            "only a run that has ended can be run again: this one is {}",
            run.status.as_str()
        )));
    }
    let input = run.input().ok_or_else(|| {
        Error::Conflict(
            "the run's input is kept no more: run the workflow with the file again".into(),
        )
    })?;
    Ok(NewRun {
        account_id: run.account_id,
        workflow_id: run.workflow_id,
        version: wanted.keeps_version.then_some(run.workflow_version),
        rerun_of: Some(run.id),
        trigger: wanted.trigger,
        lane: wanted.lane,
        generation: run.generation,
        upload_source: run.upload_source,
        input,
        source_file_id: run.source_file_id,
        allowance: wanted.allowance,
    })
}
