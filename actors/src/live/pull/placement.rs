//! Placement of pulls on the nodes of a cluster: a source is pulled by the node on which its input is placed among those with
//! the role `live`.
//!
//! A node that cannot renew its lease continues while every node that answers still takes it for live: none has the lease
//! when the database is away, and streams on air go on. It stops when one has given its inputs away, or when none answers.

use std::{future::pending, time::Duration};

use bytes::Bytes;
use futures_util::future::join_all;
use hyper::Method;
use sluice_store::cluster::{Cluster, NodeState, Role};
use tokio::{
    sync::watch,
    time::{Interval, MissedTickBehavior, interval},
};
use tracing::warn;
use uuid::Uuid;

use crate::cluster::{PeerError, Peers};

/// Interval between two looks at the lease.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Longest wait for the answer of another node.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
const PING: &str = "/peer/ping";

/// Says which inputs' sources this node pulls.
pub(super) struct Placement {
    cluster: Cluster,
    peers: Peers,
    /// Other nodes have, or may have, taken over what was placed here.
    is_replaced: bool,
    /// `None` when solo.
    events: Option<Events>,
}

/// Events after which the pulls are decided again.
struct Events {
    nodes: watch::Receiver<u64>,
    looks: Interval,
}

/// Opinion of another node about one whose lease may be over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opinion {
    Live,
    /// It takes no calls of this node any more.
    Dead,
    Unknown,
}

impl Placement {
    pub(super) fn new(peers: Peers) -> Self {
        let cluster = peers.cluster().clone();
        let events = (!cluster.is_solo()).then(|| Events {
            nodes: cluster.changed(),
            looks: looks(),
        });
        Self {
            cluster,
            peers,
            is_replaced: false,
            events,
        }
    }

    /// Returns whether this node pulls the source of an input; true when solo.
    pub(super) fn is_here(&self, input_id: Uuid) -> bool {
        if self.cluster.is_solo() {
            return true;
        }
        let this = self.cluster.this();
        this.state == NodeState::Up
            && this.has_role(Role::Live)
            && !self.is_replaced
            && self.cluster.is_mine(Role::Live, input_id.as_bytes())
    }

    /// Waits until another node may pull what this one did, or the other way round; for ever when solo.
    pub(super) async fn changed(&mut self) {
        loop {
            let Some(events) = &mut self.events else {
                return pending().await;
            };
            tokio::select! {
                changed = events.nodes.changed() => match changed {
                    Ok(()) => return,
                    Err(_) => return pending().await,
                },
                _ = events.looks.tick() => {}
            }
            let is_replaced = !self.cluster.is_renewed() && ask(&self.peers).await;
            if std::mem::replace(&mut self.is_replaced, is_replaced) == is_replaced {
                continue;
            }
            if is_replaced {
                warn!("this node has lost its lease: other nodes pull its sources");
            }
            return;
        }
    }
}

/// Asks the other nodes with the role `live`; returns whether this one is replaced.
async fn ask(peers: &Peers) -> bool {
    let others = peers.cluster().others().into_iter();
    let others = others.filter(|node| node.has_role(Role::Live));
    let answers = join_all(others.map(|node| async move {
        let call = peers.call(&node, Method::GET, PING, Bytes::new(), ANSWER_WITHIN);
        match call.await {
            Ok(_) => Opinion::Live,
            Err(PeerError::Rejected { .. }) => Opinion::Dead,
            Err(_) => Opinion::Unknown,
        }
    }));
    is_replaced(&answers.await)
}

fn looks() -> Interval {
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks
}

/// Returns whether a node without a lease has to take its inputs for another's, by what the others say; one without others has
/// them for itself.
fn is_replaced(opinions: &[Opinion]) -> bool {
    let is_dead_to_one = opinions.contains(&Opinion::Dead);
    let is_cut_off = !opinions.is_empty() && !opinions.contains(&Opinion::Live);
    is_dead_to_one || is_cut_off
}

#[cfg(test)]
mod tests {
    use sluice_store::{Store, StoreSettings, cluster::ClusterSettings};
    use tempfile::TempDir;
    use tokio::time::timeout;

    use super::*;
    use crate::fixtures::{PATIENCE, until};

    #[test]
    fn a_node_without_a_lease_goes_by_what_others_say() {
        use Opinion::{Dead, Live, Unknown};
        let cases: [(&[Opinion], bool); 7] = [
            (&[], false),
            (&[Live], false),
            (&[Live, Unknown], false),
            (&[Unknown], true),
            (&[Unknown, Unknown], true),
            (&[Dead, Live], true),
            (&[Unknown, Dead], true),
        ];
        for (opinions, expected) in cases {
            assert_eq!(is_replaced(opinions), expected, "{opinions:?}");
        }
    }

    #[tokio::test]
    async fn a_service_that_is_alone_pulls_all_and_waits_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings::without_reserve(folder.path());
        let store = Store::open(&settings).await.unwrap();
        let mut placement = Placement::new(Peers::new(&store));
        assert!(placement.is_here(Uuid::now_v7()));
        let waited = timeout(Duration::from_millis(20), placement.changed()).await;
        assert!(waited.is_err());
    }

    async fn open(folder: &TempDir, schema: &str, roles: &[Role]) -> Store {
        let settings = StoreSettings {
            database_schema: schema.to_owned(),
            ..StoreSettings::without_reserve(folder.path())
        };
        let cluster = ClusterSettings {
            listen: "127.0.0.1:1".into(),
            roles: roles.to_vec(),
            ..ClusterSettings::default()
        };
        Store::open_node(&settings, &cluster).await.unwrap()
    }

    fn count(placement: &Placement, inputs: &[Uuid]) -> usize {
        let here = inputs.iter().filter(|id| placement.is_here(**id));
        here.count()
    }

    /// Waits until a placement has announced this number of inputs.
    async fn comes_to(placement: &mut Placement, inputs: &[Uuid], expected: usize) {
        let waiting = async {
            while count(placement, inputs) != expected {
                placement.changed().await;
            }
        };
        let waited = timeout(PATIENCE, waiting).await;
        let found = count(placement, inputs);
        assert!(waited.is_ok(), "{found} inputs instead of {expected}");
    }

    /// Ends at once where the rows are on SQLite.
    #[tokio::test(flavor = "multi_thread")]
    async fn each_source_is_pulled_by_one_live_node_and_moves_with_the_list() {
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let settings = StoreSettings::without_reserve(folders[0].path());
        if !settings.is_on_postgres() {
            return;
        }
        let schema = &settings.database_schema;
        let live = [Role::Live, Role::Worker];
        let one = open(&folders[0], schema, &live).await;
        let other = open(&folders[1], schema, &live).await;
        let worker = open(&folders[2], schema, &[Role::Worker]).await;
        let nodes = [&one, &other, &worker];
        let inputs: Vec<Uuid> = (0..64).map(|_| Uuid::now_v7()).collect();
        let [mut first, mut second, third] = nodes.map(|store| Placement::new(Peers::new(store)));
        assert_eq!(count(&first, &inputs), 0, "it is not up");

        one.cluster().set_state(NodeState::Up);
        comes_to(&mut first, &inputs, 64).await;
        other.cluster().set_state(NodeState::Up);
        worker.cluster().set_state(NodeState::Up);
        until("the nodes know each other", async || {
            let knows = |store: &&Store| store.cluster().live_count(Role::Live) == 2;
            nodes.iter().all(knows)
        })
        .await;
        for id in &inputs {
            assert!(first.is_here(*id) != second.is_here(*id), "{id}");
            assert!(!third.is_here(*id), "it has no role for it");
        }

        other.cluster().set_state(NodeState::Draining);
        comes_to(&mut second, &inputs, 0).await;
        comes_to(&mut first, &inputs, 64).await;
        one.cluster().set_state(NodeState::Draining);
        comes_to(&mut first, &inputs, 0).await;
        assert_eq!(count(&third, &inputs), 0);
    }
}
