//! Events of workflow runs (`workflow.completed`, `workflow.failed`, `outputs`), in the transaction that ends the run.

use sluice_store::{
    Error, Tx,
    workflows::{self, Run, RunStatus},
};

use crate::events::{self, Event, RunOutput, WorkflowCompleted, WorkflowFailed, error_text};

/// Emits that the run has completed and passed a webhook step: to the subscribers, and to the addresses of its own.
pub(super) async fn completed(
    tx: &mut Tx<'_>,
    run: &Run,
    addresses: &[String],
    now_ms: i64,
) -> Result<(), Error> {
    let event = Event::WorkflowCompleted(WorkflowCompleted {
        workflow_id: run.workflow_id,
        run_id: run.id,
        name: run.workflow_name.clone(),
        status: run.status.as_str(),
        outputs: outputs(tx, run).await?,
    });
    let also = workflows::ensure_addresses(tx, run, addresses, now_ms).await?;
    events::emit_also(tx, run.account_id, &event, also, now_ms).await?;
    Ok(())
}

/// Emits that the run has failed or was cancelled.
pub(super) async fn failed(tx: &mut Tx<'_>, run: &Run, now_ms: i64) -> Result<(), Error> {
    let error = match (run.status, &run.error) {
        (RunStatus::Cancelled, _) => "the run was cancelled",
        (_, Some(error)) => error,
        (_, None) => "the run failed",
    };
    let event = Event::WorkflowFailed(WorkflowFailed {
        workflow_id: run.workflow_id,
        run_id: run.id,
        name: run.workflow_name.clone(),
        status: run.status.as_str(),
        error: error_text(error),
        outputs: outputs(tx, run).await?,
    });
    events::emit(tx, run.account_id, &event, now_ms).await?;
    Ok(())
}

/// Emits the ends of several runs, and returns the runs.
pub(super) async fn all_failed(
    tx: &mut Tx<'_>,
    runs: Vec<Run>,
    now_ms: i64,
) -> Result<Vec<Run>, Error> {
    for run in &runs {
        failed(tx, run, now_ms).await?;
    }
    Ok(runs)
}

/// Returns the files that the run stored, else its last buffer.
async fn outputs(tx: &mut Tx<'_>, run: &Run) -> Result<Vec<RunOutput>, Error> {
    let stored = workflows::stored_files(tx, &[run.id])
        .await?
        .remove(&run.id);
    let stored = stored
        .unwrap_or_default()
        .into_iter()
        .map(|file| RunOutput {
            filename: file.filename,
            mime_type: file.mime_type,
            size_bytes: file.size_bytes.unsigned_abs(),
            stored_file_id: Some(file.id),
        });
    let last = run.output().map(|output| RunOutput {
        filename: output.filename,
        mime_type: output.mime_type,
        size_bytes: output.size.unsigned_abs(),
        stored_file_id: None,
    });
    Ok(stored.chain(last).collect())
}
