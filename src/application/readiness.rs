//! Reasons why `/readyz` is not ready or degraded: stage, components, database, disk (`store.min_free`); they are looked at each
//! second. The task makes a change when the reasons differ, as long as changes are followed.
//!
//! Reasons that no commit of this process shows are looked for each second while changes are followed.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use serde::Serialize;
use sluice_actors::compute::{PoolStatus, WorkerDeath};
use sluice_store::{
    Cluster,
    changes::{Action, Change, Kind},
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use super::context::{ServiceContext, Stage};

/// Time between two looks while changes are followed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Time for which an incident is shown.
const SHOWN_FOR: Duration = Duration::from_secs(15);

/// Longest wait for the database. Longer than the writer takes to publish that changes fail, so that this look sees it already.
const NOTICE_WAIT: Duration = Duration::from_millis(1_500);

/// A reason why the service is not well.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub struct Reason {
    /// Subject: `service`, `database`, `objects`, `cluster`, `disk`, `image workers`, `video`, or a component of the tree.
    pub(crate) name: String,
    /// In plain words.
    pub(crate) reason: String,
    /// True when it makes the service unready.
    pub(crate) blocking: bool,
}

/// Returns everything that is not well; empty when ready.
pub(crate) fn reasons(context: &ServiceContext) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let mut add = |name: &str, reason: String, blocking| {
        reasons.push(Reason {
            name: name.to_owned(),
            reason,
            blocking,
        });
    };
    match context.stage() {
        Stage::Ready => {}
        Stage::Starting => add("service", "the service is starting".to_owned(), true),
        Stage::Draining => add("service", "the service is shutting down".to_owned(), true),
    }
    for component in context
        .components
        .states()
        .into_iter()
        .filter(|component| !component.running)
    {
        let reason = component
            .reason
            .unwrap_or_else(|| "it does not run".to_owned());
        add(component.name, reason, true);
    }
    if let Some(failure) = context.store.write_failure() {
        add("database", failure.reason, false);
    }
    if let Some(reason) = context.store.object_failure() {
        add("objects", reason, false);
    }
    for reason in of_cluster(context.store.cluster()) {
        add("cluster", reason, false);
    }
    for subsystem in context.subsystems.iter() {
        for degradation in subsystem.degradations() {
            add(degradation.name, degradation.reason, false);
        }
    }
    match context.store.disk_space() {
        Ok(space) if space.is_low() => {
            let reason = format!(
                "{} bytes are free, less than store.min_free ({})",
                space.free_bytes, space.min_free_bytes
            );
            add("disk", reason, false);
        }
        Ok(_) => {}
        Err(error) => add("disk", error.to_string(), false),
    }
    reasons
}

/// Returns what is not well with this node; nothing when solo.
fn of_cluster(cluster: &Cluster) -> Vec<String> {
    let mut reasons = Vec::new();
    if !cluster.is_renewed() {
        reasons.push(
            "this node could not renew its lease, and others take its work: see whether it reaches PostgreSQL"
                .to_owned(),
        );
    }
    if !cluster.reads_changes() {
        reasons.push(
            "this node could not read what others have changed, such as keys that were revoked: see whether it reaches PostgreSQL"
                .to_owned(),
        );
    }
    let this = cluster.this();
    if this.has_wrong_clock() {
        reasons.push(format!(
            "the machine's clock differs from the database's by {} ms: set it, by NTP for instance",
            this.clock_offset_ms
        ));
    }
    reasons
}

/// Returns incidents of the last seconds: reasons that passed by themselves, such as a worker process that was killed and replaced.
pub(crate) fn incidents(status: &PoolStatus) -> Vec<Reason> {
    let deaths = [
        ("image workers", &status.last_death),
        ("video workers", &status.video.last_death),
    ];
    deaths
        .into_iter()
        .filter_map(|(name, death)| incident(name, death.as_ref()?))
        .collect()
}

fn incident(name: &str, death: &WorkerDeath) -> Option<Reason> {
    let ago = death.at.elapsed();
    (ago < SHOWN_FOR).then(|| Reason {
        name: name.to_owned(),
        reason: format!(
            "a process ended {} s ago and was replaced: {}",
            ago.as_secs(),
            death.reason
        ),
        blocking: false,
    })
}

/// Notifies followers of changes when other reasons (`service`), incidents or nodes (`system`) hold than before, and has workers
/// that ended replaced, until `stop`.
pub(crate) async fn follow(context: Arc<ServiceContext>, stop: CancellationToken) {
    let (mut known, mut known_incidents) = (BTreeSet::new(), BTreeSet::new());
    let mut nodes = context.store.cluster().changed();
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = stop.cancelled() => return,
        }
        context.compute.replace_dead();
        if context.store.changes().followers() == 0 {
            continue;
        }
        // Also shows within seconds that the database takes no changes; while it does not, the writer probes by itself.
        if context.store.write_failure().is_none() {
            let _ = timeout(NOTICE_WAIT, context.store.notice_foreign_commits()).await;
        }
        let found = names(reasons(&context));
        let found_incidents = names(incidents(&context.compute.status()));
        let is_other = found != known;
        let has_other_nodes = nodes.has_changed().unwrap_or(false);
        nodes.mark_unchanged();
        let is_news = found_incidents != known_incidents || has_other_nodes;
        (known, known_incidents) = (found, found_incidents);
        let mut kinds = Vec::new();
        if is_other {
            kinds.push(Kind::Service);
        }
        if is_other || is_news {
            kinds.push(Kind::System);
        }
        for kind in kinds {
            context.store.changes().append_to_all(Change {
                kind,
                id: None,
                action: Action::Changed,
            });
        }
    }
}

/// Returns the reasons without their texts, which name numbers that differ each time.
fn names(reasons: Vec<Reason>) -> BTreeSet<(String, bool)> {
    let names = reasons.into_iter();
    names.map(|reason| (reason.name, reason.blocking)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn death(ago: Duration) -> Option<WorkerDeath> {
        Some(WorkerDeath {
            at: Instant::now().checked_sub(ago)?,
            reason: "signal: 9".into(),
        })
    }

    #[test]
    fn a_death_is_an_incident_for_a_while() {
        let mut status = PoolStatus::default();
        assert!(incidents(&status).is_empty());
        status.last_death = death(Duration::from_secs(3));
        status.video.last_death = death(SHOWN_FOR);
        let found = incidents(&status);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].name, "image workers");
        assert!(found[0].reason.ends_with("signal: 9") && !found[0].blocking);
    }
}
