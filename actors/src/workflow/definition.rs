//! Definition of a workflow run's version, the path of its journal in it, and the steps that a retry with another version
//! keeps.

use std::sync::Arc;

use sluice_media::workflow::{self, Definition};
use sluice_store::{
    Connection, Error, Tx,
    workflows::{self, Run, Step, StepStatus},
};
use uuid::Uuid;

use super::path::Path;

/// Loads the checked definition of the run's version.
pub(super) async fn load(db: &mut impl Connection, run: &Run) -> Result<Arc<Definition>, Error> {
    of_version(db, run.workflow_id, run.workflow_version).await
}

/// Loads a version's definition. `Error::Internal` when it was saved by a version of the service that allowed more.
pub(super) async fn of_version(
    db: &mut impl Connection,
    workflow_id: Uuid,
    version: i64,
) -> Result<Arc<Definition>, Error> {
    let text = workflows::definition_of(db, workflow_id, version).await?;
    let value = serde_json::from_str(&text)
        .map_err(|error| Error::Internal(format!("a stored definition is no JSON: {error}")))?;
    workflow::saved(&value).map(Arc::new).ok_or_else(|| {
        Error::Internal(format!(
            "version {version} of workflow {workflow_id} was saved by another version of the service"
        ))
    })
}

/// Returns the steps that were done, in the order of the path.
pub(super) fn done(mut steps: Vec<Step>) -> Vec<Step> {
    steps.retain(|step| step.status == StepStatus::Completed);
    steps.sort_by_key(|step| step.position);
    steps
}

/// Returns the path of the journalled steps. `Error::Internal` when the definition has another one.
pub(super) fn journalled(definition: &Definition, steps: &[Step]) -> Result<Path, Error> {
    let mut path = Path::default();
    for step in steps {
        match path.next(definition) {
            Some(node) if node.id == step.node_id => path.visit(node, step.branch),
            _ => {
                return Err(Error::Internal(format!(
                    "the journal of a run leaves its definition at step {}",
                    step.position
                )));
            }
        }
    }
    Ok(path)
}

/// Counts the first steps that another definition would do in the same way: the same nodes with the same
/// configuration, and branches with the same conditions. None behind another gate, which was not passed.
pub(super) fn kept(ran: &Definition, current: &Definition, steps: &[Step]) -> usize {
    if ran.gate != current.gate {
        return 0;
    }
    let mut path = Path::default();
    for step in steps {
        let Some(node) = path.next(current) else {
            break;
        };
        let before = ran.node(&step.node_id);
        let is_same = before.is_some_and(|before| {
            node.id == before.id && node.kind == before.kind && node.config == before.config
        });
        if !is_same {
            break;
        }
        path.visit(node, step.branch);
    }
    path.len()
}

/// Returns the current version of the run's workflow, and the number of the run's first steps that it does in the same way.
pub(super) async fn kept_of(tx: &mut Tx<'_>, run: &Run) -> Result<(Option<i64>, u32), Error> {
    let current = workflows::get(tx, run.account_id, run.workflow_id)
        .await?
        .version;
    let ran = load(tx, run).await?;
    let definition = of_version(tx, run.workflow_id, current).await?;
    let steps = done(workflows::steps(tx, run.id).await?);
    let kept = kept(&ran, &definition, &steps);
    Ok((Some(current), u32::try_from(kept).unwrap_or(u32::MAX)))
}
