//! Runs of workflows: those that wait and are worked on, and what became of the others.

use prometheus_client::{
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};
use sluice_actors::workflow::RunTotals;
use sluice_store::workflows::RunCounts;

use super::{Failed, Status, signed};

#[derive(Debug, Default)]
pub(super) struct Workflows {
    unfinished: Family<Status, Gauge>,
    active: Gauge,
    ended: Family<Status, Gauge>,
    failed: Family<Failed, Gauge>,
}

impl Workflows {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "workflow_runs",
            "Workflow runs that have not ended, by status; those that wait for another one of their workflow are waiting",
            self.unfinished.clone(),
        );
        registry.register(
            "workflow_runs_active",
            "Workflow runs that are worked on",
            self.active.clone(),
        );
        registry.register(
            "workflow_runs_ended",
            "Workflow runs that ended since the start, by outcome; those turned away did not meet the condition of their workflow",
            self.ended.clone(),
        );
        registry.register(
            "workflow_runs_failed",
            "Workflow runs that failed since the start, by error code",
            self.failed.clone(),
        );
    }

    pub(super) fn show(&self, unfinished: &RunCounts, ended: &RunTotals) {
        for (status, count) in [
            ("waiting", unfinished.waiting),
            ("queued", unfinished.queued),
            ("processing", unfinished.processing),
        ] {
            self.unfinished.get_or_create(&Status { status }).set(count);
        }
        self.active.set(signed(ended.active as u64));
        let failed = ended.failed.values().sum();
        for (status, count) in [
            ("completed", ended.completed - ended.turned_away),
            ("turned_away", ended.turned_away),
            ("failed", failed),
            ("cancelled", ended.cancelled),
        ] {
            self.ended
                .get_or_create(&Status { status })
                .set(signed(count));
        }
        for (code, count) in &ended.failed {
            let code = code.clone();
            self.failed
                .get_or_create(&Failed { code })
                .set(signed(*count));
        }
    }
}
