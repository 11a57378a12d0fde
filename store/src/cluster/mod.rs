//! Nodes: processes that share one PostgreSQL schema, each a row of the table `nodes` with a lease; clock of all of them,
//! placement of keys on nodes.
//!
//! - The list of nodes decides who *tries*; that only one succeeds is up to rows (fences, claims, `FOR UPDATE SKIP LOCKED`). Two
//!   nodes may have different lists for a second.
//! - A process without `cluster.listen`, and each on SQLite, is solo: its list is itself, and none of this costs anything.

mod clock;
mod log_age;
mod membership;
mod rendezvous;
mod settings;
mod takeover;

use std::{sync::Arc, time::Duration};

use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};
use uuid::Uuid;

use crate::migrate;

pub use clock::now_ms;
pub use settings::ClusterSettings;

pub(crate) use log_age::LogAge;
pub(crate) use membership::{Membership, join};
pub(crate) use takeover::{DELETE_DEAD, forget_all, inherit, reject_copy};

/// Time for which a node counts as live after it renewed its row, by the database's clock.
pub const LEASE: Duration = Duration::from_secs(5);
/// Time within which a node reads the log of changes: a read that is given up after `store.busy_timeout` and the next one, unless
/// that is set higher.
pub const LOG_READ_WITHIN: Duration = LEASE.saturating_mul(2);
/// Time by which a lease ends at most in the future: one that ends later was written before the database's clock was set back, by
/// a node that has not renewed itself since.
pub(crate) const MOST_AHEAD: Duration = LEASE.saturating_mul(2);
/// Difference between the clock of a node's machine and the database's above which it is named.
pub const MOST_CLOCK_OFFSET: Duration = Duration::from_secs(5);
/// Key of the node that does what one node at a time does for all.
const JANITOR: &[u8] = b"janitor";

text_enum! {
    /// Part of the service that a node takes (`cluster.roles`).
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Role {
        Api = "api",
        Live = "live",
        Worker = "worker",
    }
}

text_enum! {
    /// State of a node in its row.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum NodeState {
        /// Its listeners are not open yet.
        Starting = "starting",
        Up = "up",
        /// Ending: it finishes its work, and takes nothing new.
        Draining = "draining",
        /// Over: its rows were given to others.
        Dead = "dead",
    }
}

impl NodeState {
    /// Returns the state of a node as its row says. One that this program does not know is of a newer program's node, which lives
    /// and takes nothing as far as this one can say: [`NodeState::Draining`].
    fn of_column(text: &str) -> Self {
        Self::parse(text).unwrap_or(Self::Draining)
    }
}

impl From<String> for NodeState {
    fn from(column: String) -> Self {
        Self::of_column(&column)
    }
}

/// Roles of a node as its row says, without those that only a newer program knows.
#[derive(sqlx::Type)]
#[sqlx(transparent)]
struct RolesText(String);

impl TryFrom<RolesText> for Vec<Role> {
    type Error = serde_json::Error;

    fn try_from(column: RolesText) -> Result<Self, serde_json::Error> {
        let names: Vec<String> = serde_json::from_str(&column.0)?;
        Ok(names.iter().filter_map(|name| Role::parse(name)).collect())
    }
}

/// Row of a process.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Node {
    pub id: Uuid,
    /// `cluster.name`, for people; two nodes may have the same.
    pub name: String,
    /// Address for other nodes, `http://HOST:PORT`; empty when solo.
    pub address: String,
    #[sqlx(try_from = "RolesText")]
    pub roles: Vec<Role>,
    /// Version of the program.
    pub version: String,
    /// The last migration that the program knows.
    pub schema: i64,
    #[sqlx(try_from = "String")]
    pub state: NodeState,
    pub started_at: i64,
    /// Time of its last renewal by the database's clock, as the two below.
    pub renewed_at: i64,
    pub lease_until: i64,
    /// Milliseconds by which the database's clock is ahead of the machine's.
    pub clock_offset_ms: i64,
}

impl Node {
    pub fn has_role(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Returns whether keys are placed on it.
    fn takes(&self, role: Role) -> bool {
        self.state == NodeState::Up && self.has_role(role)
    }

    /// Returns whether its machine's clock is wrong by more than [`MOST_CLOCK_OFFSET`], in which case the service runs by the
    /// database's all the same, and the operator should know.
    pub fn has_wrong_clock(&self) -> bool {
        u128::from(self.clock_offset_ms.unsigned_abs()) > MOST_CLOCK_OFFSET.as_millis()
    }
}

/// The nodes of the service as this one knows them. Clones share it.
#[derive(Clone)]
pub struct Cluster {
    shared: Arc<Shared>,
}

struct Shared {
    id: Uuid,
    is_solo: bool,
    /// Live nodes by id, this one included.
    nodes: RwLock<Arc<[Node]>>,
    changes: watch::Sender<u64>,
    own: Mutex<Own>,
    /// Wakes the membership when `own` has changed.
    renew: Notify,
    /// When this node last began a renewal that succeeded.
    renewed_at: Mutex<Option<Instant>>,
    log_age: LogAge,
}

/// Facts that this node writes into its row at the next renewal.
#[derive(Clone, Debug)]
struct Own {
    state: NodeState,
    address: String,
}

impl Cluster {
    /// Returns the cluster of a process that is alone.
    pub(crate) fn solo(id: Uuid) -> Self {
        let node = Node {
            state: NodeState::Up,
            ..myself(id, &ClusterSettings::default())
        };
        Self::of(node, true, LogAge::default())
    }

    /// Returns the cluster of a node before its first renewal.
    fn node(id: Uuid, settings: &ClusterSettings, log_age: LogAge) -> Self {
        Self::of(myself(id, settings), false, log_age)
    }

    fn of(node: Node, is_solo: bool, log_age: LogAge) -> Self {
        let own = Own {
            state: node.state,
            address: node.address.clone(),
        };
        Self {
            shared: Arc::new(Shared {
                id: node.id,
                is_solo,
                nodes: RwLock::new(Arc::from([node])),
                changes: watch::Sender::new(0),
                own: Mutex::new(own),
                renew: Notify::new(),
                renewed_at: Mutex::new(None),
                log_age,
            }),
        }
    }

    /// Returns whether this process has the database alone.
    pub fn is_solo(&self) -> bool {
        self.shared.is_solo
    }

    /// The id of this process, under which it also holds leases ([`crate::Store::owner`]).
    pub fn node_id(&self) -> Uuid {
        self.shared.id
    }

    /// Returns the live nodes by id, this one included, as they were read within the last second; the last known ones while the
    /// database is away. Costs no query.
    pub fn nodes(&self) -> Arc<[Node]> {
        self.shared.nodes.read().clone()
    }

    /// Returns the live nodes without this one.
    pub fn others(&self) -> Vec<Node> {
        let nodes = self.nodes();
        let others = nodes.iter().filter(|node| node.id != self.node_id());
        others.cloned().collect()
    }

    /// Returns this node as the others see it.
    pub fn this(&self) -> Node {
        let nodes = self.nodes();
        let this = nodes.iter().find(|node| node.id == self.node_id());
        this.cloned().expect("the list includes this node")
    }

    /// Returns the node on which a key is placed, the same one on each node with the same list: of those that are up and have
    /// the role. This node when there is none.
    pub fn owner_of(&self, role: Role, key: &[u8]) -> Node {
        let nodes = self.nodes();
        let candidates = nodes.iter().filter(|node| node.takes(role));
        match rendezvous::highest(candidates, key) {
            Some(owner) => owner.clone(),
            None => self.this(),
        }
    }

    /// Returns whether a key is placed on this node; true when solo.
    pub fn is_mine(&self, role: Role, key: &[u8]) -> bool {
        if self.is_solo() {
            return true;
        }
        let nodes = self.nodes();
        let candidates = nodes.iter().filter(|node| node.takes(role));
        rendezvous::highest(candidates, key).is_none_or(|owner| owner.id == self.node_id())
    }

    /// Returns whether this node does what one does for all, such as sweeps of rows; true when solo. During a change of the list
    /// two nodes may think so, or none.
    pub fn is_janitor(&self) -> bool {
        self.is_mine(Role::Worker, JANITOR) && self.is_renewed()
    }

    /// Returns whether this node renewed itself within the last lease; true when solo. Others may have given away what it held
    /// when it did not.
    pub fn is_renewed(&self) -> bool {
        self.is_solo() || self.lease_age().is_some_and(|age| age < LEASE)
    }

    /// Returns whether this node read what others changed within [`LOG_READ_WITHIN`]; true when solo.
    pub fn reads_changes(&self) -> bool {
        self.log_age().is_none_or(|age| age < LOG_READ_WITHIN)
    }

    /// Returns the time for which this node may have missed what others did: since it last renewed itself, or since it last read
    /// the log of changes when that is longer ago. `None` before the first renewal and when solo.
    pub fn since_renewal(&self) -> Option<Duration> {
        let lease_age = self.lease_age()?;
        Some(lease_age.max(self.log_age().unwrap_or_default()))
    }

    /// Returns the time since this node last renewed itself; `None` before the first time and when solo.
    pub fn lease_age(&self) -> Option<Duration> {
        self.shared.renewed_at.lock().map(|at| at.elapsed())
    }

    /// Returns the time since this node last read the log of changes; `None` before the first time and when solo.
    pub fn log_age(&self) -> Option<Duration> {
        self.shared.log_age.get()
    }

    /// Counts changes of the list (of nodes, states, roles and addresses, not of renewals), and take-overs of this node from dead
    /// ones, after which their work is due.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// Says at once in which state this node is.
    pub fn set_state(&self, state: NodeState) {
        self.set(|own| own.state = state);
    }

    /// Sets the `http://HOST:PORT` at which other nodes reach this one, when it differs from the settings: of a listener that
    /// took a free port.
    pub fn set_address(&self, address: &str) {
        self.set(|own| own.address = address.to_owned());
    }

    fn set(&self, change: impl FnOnce(&mut Own)) {
        if self.is_solo() {
            return;
        }
        // Held up to the end: the membership publishes what it has read under it, too.
        let mut own = self.shared.own.lock();
        change(&mut own);
        let mut nodes = self.nodes().to_vec();
        for node in &mut nodes {
            if node.id == self.node_id() {
                node.state = own.state;
                node.address.clone_from(&own.address);
            }
        }
        self.publish(nodes);
        drop(own);
        self.shared.renew.notify_one();
    }

    /// Returns the number of nodes that are up and have the role, at least 1.
    pub fn live_count(&self, role: Role) -> u32 {
        let nodes = self.nodes();
        let count = nodes.iter().filter(|node| node.takes(role)).count();
        u32::try_from(count).unwrap_or(u32::MAX).max(1)
    }

    /// Replaces the list, and counts a change when it says something else.
    fn publish(&self, nodes: Vec<Node>) {
        let mut list = self.shared.nodes.write();
        let has_changed = !rendezvous::is_same_list(&list, &nodes);
        *list = nodes.into();
        drop(list);
        if has_changed {
            self.count_change();
        }
    }

    fn count_change(&self) {
        self.shared.changes.send_modify(|count| *count += 1);
    }
}

/// Returns the row of this process before it is written.
fn myself(id: Uuid, settings: &ClusterSettings) -> Node {
    Node {
        id,
        name: settings.name(),
        address: settings.address(),
        roles: settings.roles.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        schema: migrate::schema_version(),
        state: NodeState::Starting,
        started_at: now_ms(),
        renewed_at: now_ms(),
        lease_until: now_ms(),
        clock_offset_ms: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_renews_itself_and_does_not_read_the_log_is_cut_off() {
        let log_age = LogAge::default();
        let cluster = Cluster::node(Uuid::nil(), &ClusterSettings::default(), log_age.clone());
        assert_eq!(cluster.since_renewal(), None);
        let minute = Duration::from_secs(60);
        let (now, before) = (Instant::now(), Instant::now() - minute);
        let is_cut_off = || cluster.since_renewal().is_some_and(|since| since >= minute);
        let renew = |at| *cluster.shared.renewed_at.lock() = Some(at);
        renew(now);
        assert!(cluster.is_renewed() && cluster.reads_changes() && !is_cut_off());
        log_age.note_read(before);
        assert!(cluster.is_renewed() && !cluster.reads_changes() && is_cut_off());
        log_age.note_read(now);
        assert!(cluster.is_renewed() && cluster.reads_changes() && !is_cut_off());
        renew(before);
        assert!(!cluster.is_renewed() && cluster.reads_changes() && is_cut_off());
    }
}
