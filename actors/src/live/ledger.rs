//! Ledger: rows and events of live inputs (broadcasts, connections, totals, recordings), written in groups, later while the
//! database is locked.
//!
//! No part ever waits for a row. Entries go into a bounded queue and are written in groups, at once. While the database is
//! locked they wait, and beyond the bound the oldest are left out: for playback the window journal is the truth, not the
//! rows.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use parking_lot::Mutex;
use sluice_store::{
    Error as StoreError, Page, Store, Tx,
    broadcasts::{self, BroadcastState, Lost, Totals},
    live_inputs, publisher_connections, recordings,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};
use uuid::Uuid;

use super::{
    connections::{self, Connection, Disconnection},
    unix_ms,
};

/// Most entries that wait for the database.
const BOUND: usize = 8192;
/// Most entries written in one transaction.
const GROUP: usize = 512;
/// Interval at which the janitor looks for broadcasts of dead nodes.
const LOOK_FOR_DEAD_EVERY: Duration = Duration::from_secs(2);
/// Interval at which entries that the database did not take are tried again.
const RETRY_EVERY: Duration = Duration::from_secs(5);

/// A fact about a broadcast.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Entry {
    Started {
        input_id: Uuid,
        broadcast: String,
        at_ms: i64,
        fence: i64,
    },
    /// A publisher was admitted.
    Connected(Connection),
    /// The publisher of a [`Entry::Connected`] is gone.
    Disconnected(Disconnection),
    /// Adds to the totals of a broadcast.
    Totals {
        broadcast: String,
        fence: i64,
        totals: Totals,
        at_ms: i64,
    },
    Ended {
        input_id: Uuid,
        broadcast: String,
        at_ms: i64,
        target_duration_s: Option<u32>,
        fence: i64,
    },
    /// A broadcast is recorded; may be noted again.
    RecordingBegun {
        input_id: Uuid,
        broadcast: String,
        at_ms: i64,
    },
    /// Nothing more of it is recorded, for that reason.
    RecordingStopped { broadcast: String, reason: String },
    /// A recorded broadcast is over, and all of it is on the disk.
    RecordingEnded { broadcast: String, at_ms: i64 },
}

#[derive(Debug, Default)]
struct Queue {
    entries: Mutex<VecDeque<Entry>>,
    came: Notify,
}

/// The handle that actors write to; never blocks, never fails.
#[derive(Clone, Debug)]
pub(super) struct Ledger(Arc<Queue>);

impl Ledger {
    pub fn new() -> Self {
        Self(Arc::default())
    }

    pub fn note(&self, entry: Entry) {
        let mut entries = self.0.entries.lock();
        entries.push_back(entry);
        keep_bound(&mut entries);
        self.0.came.notify_one();
    }

    /// Ends the rows of broadcasts that an earlier process left and no one recovered, then writes until `stop`, and once
    /// more then.
    pub async fn run(self, store: Store, recovered: Vec<String>, stop: CancellationToken) {
        end_lost(&store, lost_at_start(&store), recovered).await;
        // True once a commit of the oldest entries was not answered.
        let mut may_be_written = false;
        while !stop.is_cancelled() {
            tokio::select! {
                () = self.0.came.notified() => {}
                () = tokio::time::sleep(RETRY_EVERY) => {}
                () = stop.cancelled() => {}
            }
            while let Some(group) = self.next_group() {
                match write(&store, group.clone(), may_be_written).await {
                    Ok(()) => may_be_written = false,
                    Err(error) if error.is_retryable() => {
                        warn!(%error, "live rows are written later");
                        may_be_written |= matches!(error, StoreError::Unknown);
                        self.put_back(group);
                        break;
                    }
                    Err(_) => {
                        write_one_by_one(&store, group, may_be_written).await;
                        may_be_written = false;
                    }
                }
            }
        }
    }

    fn next_group(&self) -> Option<Vec<Entry>> {
        let mut entries = self.0.entries.lock();
        let count = entries.len().min(GROUP);
        (count > 0).then(|| entries.drain(..count).collect())
    }

    fn put_back(&self, group: Vec<Entry>) {
        let mut entries = self.0.entries.lock();
        group
            .into_iter()
            .rev()
            .for_each(|entry| entries.push_front(entry));
        keep_bound(&mut entries);
    }
}

/// Returns whose broadcasts a process ends at its start: those that nothing of its data folder continues.
pub(super) fn lost_at_start(store: &Store) -> Lost {
    match store.cluster().is_solo() {
        true => Lost::OfAll,
        false => Lost::OfNode(store.owner()),
    }
}

/// Ends the broadcasts of nodes that have died, while this one is the janitor, until `stop`. Does nothing when solo.
pub(super) async fn follow_deaths(store: Store, stop: CancellationToken) {
    if store.cluster().is_solo() {
        return;
    }
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_FOR_DEAD_EVERY) => {}
            () = stop.cancelled() => return,
        }
        if !store.cluster().is_janitor() {
            continue;
        }
        let has_lost = async { broadcasts::has_lost(&mut store.read().await?).await };
        // While the database is away nothing can be ended either.
        if has_lost.await.unwrap_or(false) {
            end_lost(&store, Lost::OfDeadNodes, Vec::new()).await;
        }
    }
}

/// Ends rows of broadcasts and connections of which nothing is left.
async fn end_lost(store: &Store, of: Lost, recovered: Vec<String>) {
    if let Err(error) = connections::emit_lost(store, of, &recovered).await {
        warn!(%error, "the end of lost publishers is reported with the next one");
        // Broadcasts that stay live are looked for again, and what was not reported with them.
        if of == Lost::OfDeadNodes {
            return;
        }
    }
    if let Err(error) = end_lost_broadcasts(store, of, recovered).await {
        warn!(%error, "broadcasts that were lost stay noted as live");
    }
}

async fn end_lost_broadcasts(
    store: &Store,
    of: Lost,
    recovered: Vec<String>,
) -> Result<(), StoreError> {
    let recovered = Arc::new(recovered);
    loop {
        let keep = recovered.clone();
        let ended = store
            .write(move |tx| {
                Box::pin(async move { broadcasts::end_lost(tx, of, &keep, unix_ms()).await })
            })
            .await?;
        if ended == 0 {
            return Ok(());
        }
    }
}

/// Leaves out the oldest entries beyond the bound.
fn keep_bound(entries: &mut VecDeque<Entry>) {
    let excess = entries.len().saturating_sub(BOUND);
    entries.drain(..excess);
}

/// Writes entries one by one: one that the database rejects must not hold up the others.
async fn write_one_by_one(store: &Store, group: Vec<Entry>, may_be_written: bool) {
    for entry in group {
        if let Err(error) = write(store, vec![entry.clone()], may_be_written).await {
            error!(%error, ?entry, "a live row could not be written");
        }
    }
}

async fn write(store: &Store, group: Vec<Entry>, may_be_written: bool) -> Result<(), StoreError> {
    let node = (!store.cluster().is_solo()).then(|| store.owner());
    store
        .write(move |tx| Box::pin(async move { apply_all(tx, &group, may_be_written, node).await }))
        .await
}

/// Writes entries; `node` is the process that writes them in a cluster.
async fn apply_all(
    tx: &mut Tx<'_>,
    group: &[Entry],
    may_be_written: bool,
    node: Option<Uuid>,
) -> Result<(), StoreError> {
    for entry in group {
        if may_be_written && is_written(tx, entry).await? {
            continue;
        }
        match apply(tx, entry, node).await {
            // The input was deleted meanwhile, or another node owns the broadcast by now: nothing is left to note.
            Err(StoreError::NotFound(_) | StoreError::Conflict(_)) | Ok(()) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns whether the rows show that an entry was written, by a commit that was not answered: written again, a begin would
/// change the times of its input, totals would count twice, and a connection would be reported as lost. Entries that are not
/// looked up change nothing the second time.
async fn is_written(tx: &mut Tx<'_>, entry: &Entry) -> Result<bool, StoreError> {
    let id = match entry {
        Entry::Connected(connection) => {
            let newest = Page::first(GROUP as u32);
            let known = publisher_connections::list(tx, connection.input_id, newest).await?;
            return Ok(known.iter().any(|it| it.id == connection.id));
        }
        Entry::Started { broadcast, .. }
        | Entry::Totals { broadcast, .. }
        | Entry::Ended { broadcast, .. } => broadcast,
        Entry::Disconnected(_)
        | Entry::RecordingBegun { .. }
        | Entry::RecordingStopped { .. }
        | Entry::RecordingEnded { .. } => return Ok(false),
    };
    let broadcast = match broadcasts::get(tx, id).await {
        Err(StoreError::NotFound(_)) => return Ok(false),
        found => found?,
    };
    Ok(match entry {
        Entry::Totals { at_ms, .. } => broadcast.seen_at.is_some_and(|seen_at| seen_at >= *at_ms),
        Entry::Ended { .. } => broadcast.state == BroadcastState::Ended,
        _ => true,
    })
}

async fn apply(tx: &mut Tx<'_>, entry: &Entry, node: Option<Uuid>) -> Result<(), StoreError> {
    match entry {
        Entry::Started {
            input_id,
            broadcast,
            at_ms,
            fence,
        } => {
            live_inputs::raise_fence(tx, *input_id, *fence).await?;
            live_inputs::set_started(tx, *input_id, *at_ms).await?;
            broadcasts::begin(tx, broadcast, *input_id, *fence, *at_ms).await?;
            if let Some(node) = node {
                broadcasts::set_node(tx, broadcast, node).await?;
            }
        }
        Entry::Connected(connection) => {
            connections::emit_connected(tx, connection, node).await?;
        }
        Entry::Disconnected(gone) => connections::emit_disconnected(tx, gone).await?,
        Entry::Ended {
            input_id,
            broadcast,
            at_ms,
            target_duration_s,
            fence,
        } => {
            // First, since nothing is over of a broadcast that has a newer owner.
            match broadcasts::end(tx, broadcast, *fence, *at_ms).await {
                // Its begin was left out.
                Ok(_) | Err(StoreError::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
            connections::emit_broadcast_over(tx, *input_id, broadcast).await?;
            live_inputs::set_ended(tx, *input_id, broadcast, *at_ms).await?;
            if let Some(seconds) = target_duration_s {
                live_inputs::set_target_duration(tx, *input_id, *seconds).await?;
            }
        }
        Entry::Totals {
            broadcast,
            fence,
            totals,
            at_ms,
        } => broadcasts::add_totals(tx, broadcast, *fence, *totals, *at_ms).await?,
        Entry::RecordingBegun {
            input_id,
            broadcast,
            at_ms,
        } => {
            if let Some(input) = live_inputs::by_id(tx, *input_id).await? {
                recordings::begin(tx, &input, broadcast, *at_ms).await?;
            }
        }
        Entry::RecordingStopped { broadcast, reason } => {
            recordings::stopped(tx, broadcast, reason, unix_ms()).await?;
        }
        Entry::RecordingEnded { broadcast, at_ms } => {
            recordings::end(tx, broadcast, *at_ms, unix_ms()).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use sluice_store::{broadcasts::BroadcastRow, events, live_inputs::NewLiveInput};

    use super::*;
    use crate::{
        events::{Parting, tests::feed},
        fixtures::{account, open_store},
    };

    /// A commit of the group that was made and not answered is followed by the same group.
    #[tokio::test]
    async fn a_group_that_may_be_written_is_written_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = open_store(&folder).await;
        let account_id = account(&store).await;
        let made = store.write(move |tx| {
            Box::pin(async move {
                live_inputs::create(tx, account_id, NewLiveInput::default(), 1).await
            })
        });
        let (input, _) = made.await.unwrap();
        let broadcast = "0a".repeat(16);
        let group = vec![
            Entry::Started {
                input_id: input.id,
                broadcast: broadcast.clone(),
                at_ms: 10,
                fence: 1,
            },
            Entry::Connected(Connection {
                id: Uuid::from_u128(1),
                input_id: input.id,
                broadcast: broadcast.clone(),
                protocol: "rtmp",
                remote: [127, 0, 0, 1].into(),
                encoder: None,
                connected_ms: 10,
            }),
            Entry::Totals {
                broadcast: broadcast.clone(),
                fence: 1,
                totals: Totals {
                    bytes: 7,
                    peak_viewers: Some(2),
                },
                at_ms: 11,
            },
        ];
        let state = async || -> (i64, BroadcastRow, i64) {
            let mut db = store.read().await.unwrap();
            let input = live_inputs::by_id(&mut db, input.id).await.unwrap();
            let row = broadcasts::get(&mut db, &broadcast).await.unwrap();
            let newest = events::newest(&mut db, account_id).await.unwrap();
            (input.unwrap().fence, row, newest)
        };

        write(&store, group.clone(), true).await.unwrap();
        let first = state().await;
        assert_eq!((first.0, first.1.bytes), (1, 7));
        write(&store, group, true).await.unwrap();
        assert_eq!(state().await, first);

        let ended = Entry::Ended {
            input_id: input.id,
            broadcast: broadcast.clone(),
            at_ms: 12,
            target_duration_s: None,
            fence: 1,
        };
        write(&store, vec![ended], true).await.unwrap();
        assert_eq!(state().await.1.state, BroadcastState::Ended);
    }

    /// Makes a live input of a new account.
    async fn input(store: &Store) -> Uuid {
        let account_id = account(store).await;
        let made = store.write(move |tx| {
            Box::pin(async move {
                live_inputs::create(tx, account_id, NewLiveInput::default(), 1).await
            })
        });
        made.await.unwrap().0.id
    }

    /// Encoders of one stream key that reached two nodes, and the second one again, before each knew of the others.
    #[tokio::test]
    async fn broadcasts_of_one_input_on_two_nodes_have_rows_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let store = open_store(&folder).await;
        let input_id = input(&store).await;
        let known = [("0a", 1), ("0b", 1), ("0c", 2), ("0d", 1)];
        let known = known.map(|(digits, fence)| (digits.repeat(16), fence));
        let starts = known.iter().map(|(broadcast, fence)| Entry::Started {
            input_id,
            broadcast: broadcast.clone(),
            at_ms: 10,
            fence: *fence,
        });
        let totals = known.iter().map(|(broadcast, fence)| Entry::Totals {
            broadcast: broadcast.clone(),
            fence: *fence,
            totals: Totals {
                bytes: 7,
                peak_viewers: None,
            },
            at_ms: 11,
        });
        let ends = known.iter().map(|(broadcast, fence)| Entry::Ended {
            input_id,
            broadcast: broadcast.clone(),
            at_ms: 12,
            target_duration_s: None,
            fence: *fence,
        });
        let entries = starts.chain(totals).chain(ends).collect();
        write(&store, entries, false).await.unwrap();

        let mut db = store.read().await.unwrap();
        for (broadcast, _) in &known {
            let row = broadcasts::get(&mut db, broadcast).await.unwrap();
            assert_eq!((row.state, row.bytes), (BroadcastState::Ended, 7));
        }
        let input = live_inputs::by_id(&mut db, input_id).await.unwrap();
        assert_eq!(input.unwrap().fence, 2);
    }

    /// The end of an encoder's broadcast that another node has continued, or whose encoder has reached another node since.
    #[tokio::test]
    async fn a_late_end_leaves_the_input_on_air() {
        let folder = tempfile::tempdir().unwrap();
        let store = open_store(&folder).await;
        let input_id = input(&store).await;
        let (older, newer) = ("0a".repeat(16), "0b".repeat(16));
        let started = |broadcast: &str, at_ms, fence| Entry::Started {
            input_id,
            broadcast: broadcast.to_owned(),
            at_ms,
            fence,
        };
        let ended = |broadcast: &str, at_ms, fence| Entry::Ended {
            input_id,
            broadcast: broadcast.to_owned(),
            at_ms,
            target_duration_s: None,
            fence,
        };
        let steps = [
            (started(&older, 10, 1), None),
            (started(&newer, 20, 2), None),
            (ended(&older, 25, 1), None),
            // By an owner that was replaced.
            (ended(&newer, 30, 1), None),
            (ended(&newer, 40, 2), Some(40)),
            (ended(&older, 26, 1), Some(40)),
        ];
        for (entry, last_ended_at) in steps {
            let step = format!("{entry:?}");
            write(&store, vec![entry], false).await.unwrap();
            let mut db = store.read().await.unwrap();
            let input = live_inputs::by_id(&mut db, input_id).await.unwrap();
            assert_eq!(input.unwrap().last_ended_at, last_ended_at, "{step}");
        }
    }

    /// Encoders of one stream key that reached two nodes before each knew of the other, as the rows and events have them.
    struct Two {
        store: Store,
        input_id: Uuid,
        account_id: Uuid,
        broadcasts: [String; 2],
        _folder: tempfile::TempDir,
    }

    impl Two {
        /// Begins both; their connections are 1 and 2, like their nodes.
        async fn begin() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let store = open_store(&folder).await;
            let input_id = input(&store).await;
            let found = live_inputs::by_id(&mut store.read().await.unwrap(), input_id).await;
            let two = Self {
                store,
                input_id,
                account_id: found.unwrap().unwrap().account_id,
                broadcasts: ["0a", "0b"].map(|digits| digits.repeat(16)),
                _folder: folder,
            };
            for node in [1, 2] {
                let started = Entry::Started {
                    input_id,
                    broadcast: two.broadcast(node),
                    at_ms: 10,
                    fence: 1,
                };
                two.note(node, started).await;
                two.note(node, two.connected(node, node)).await;
            }
            two.saw(&[("connected", 1), ("connected", 2)]).await;
            two
        }

        fn broadcast(&self, node: u128) -> String {
            self.broadcasts[node as usize - 1].clone()
        }

        fn connected(&self, id: u128, node: u128) -> Entry {
            Entry::Connected(Connection {
                id: Uuid::from_u128(id),
                input_id: self.input_id,
                broadcast: self.broadcast(node),
                protocol: "rtmp",
                remote: [127, 0, 0, 1].into(),
                encoder: None,
                connected_ms: 10,
            })
        }

        fn disconnected(&self, id: u128) -> Entry {
            Entry::Disconnected(Disconnection {
                input_id: self.input_id,
                connection_id: Uuid::from_u128(id),
                reason: Parting::Dropped,
                encoder: None,
                at_ms: 20,
            })
        }

        fn ended(&self, node: u128) -> Entry {
            Entry::Ended {
                input_id: self.input_id,
                broadcast: self.broadcast(node),
                at_ms: 30,
                target_duration_s: None,
                fence: 1,
            }
        }

        /// Writes an entry as that node of a cluster.
        async fn note(&self, node: u128, entry: Entry) {
            let node = Some(Uuid::from_u128(node));
            let written = self.store.write(move |tx| {
                Box::pin(async move { apply_all(tx, &[entry], false, node).await })
            });
            written.await.unwrap();
        }

        /// Checks all events so far: `connected`, or the reason of a disconnection, with the node of the broadcast.
        async fn saw(&self, expected: &[(&str, u128)]) {
            let events = feed(&self.store, self.account_id).await;
            let seen = events.iter().map(|(kind, data)| {
                let word = match kind.as_str() {
                    "live.input.connected" => "connected",
                    _ => data["reason"].as_str().unwrap(),
                };
                let node: u128 = match data["broadcastId"] == self.broadcasts[0] {
                    true => 1,
                    false => 2,
                };
                (word, node)
            });
            assert_eq!(seen.collect::<Vec<_>>(), expected);
        }

        /// Returns how many connections the history of the input shows as open.
        async fn open_count(&self) -> usize {
            let mut db = self.store.read().await.unwrap();
            let page = Page::first(10);
            let listed = publisher_connections::list(&mut db, self.input_id, page).await;
            let listed = listed.unwrap();
            listed
                .iter()
                .filter(|it| it.disconnected_at.is_none())
                .count()
        }
    }

    #[tokio::test]
    async fn each_connection_of_one_input_to_two_nodes_ends_once() {
        let two = Two::begin().await;
        let mut expected = vec![("connected", 1), ("connected", 2)];
        // An encoder that is back at its node, which did not see the end.
        two.note(1, two.connected(3, 1)).await;
        expected.extend([("interrupted", 1), ("connected", 1)]);
        two.saw(&expected).await;
        two.note(2, two.disconnected(2)).await;
        expected.push(("dropped", 2));
        two.saw(&expected).await;
        assert_eq!(two.open_count().await, 1);
        two.note(1, two.ended(1)).await;
        expected.push(("interrupted", 1));
        for late in [two.disconnected(3), two.disconnected(1), two.ended(2)] {
            two.note(2, late).await;
            two.saw(&expected).await;
        }
        assert_eq!(two.open_count().await, 0);
    }

    #[tokio::test]
    async fn the_connection_to_the_other_node_outlives_a_killed_one() {
        let two = Two::begin().await;
        let of = Lost::OfNode(Uuid::from_u128(1));
        end_lost(&two.store, of, Vec::new()).await;
        let mut expected = vec![("connected", 1), ("connected", 2), ("interrupted", 1)];
        two.saw(&expected).await;
        two.note(2, two.disconnected(2)).await;
        expected.push(("dropped", 2));
        two.saw(&expected).await;
        assert_eq!(two.open_count().await, 0);
    }

    /// A service that is alone by now starts with the data folder of one of the nodes.
    #[tokio::test]
    async fn a_service_that_starts_alone_ends_what_it_does_not_recover() {
        let two = Two::begin().await;
        end_lost(&two.store, Lost::OfAll, vec![two.broadcast(2)]).await;
        let mut expected = vec![("connected", 1), ("connected", 2), ("interrupted", 1)];
        two.saw(&expected).await;
        let back = vec![two.connected(3, 2)];
        write(&two.store, back, false).await.unwrap();
        expected.extend([("interrupted", 2), ("connected", 2)]);
        two.saw(&expected).await;
        assert_eq!(two.open_count().await, 1);
    }

    fn stopped(number: usize) -> Entry {
        Entry::RecordingEnded {
            broadcast: number.to_string(),
            at_ms: 1,
        }
    }

    #[test]
    fn what_is_put_back_keeps_the_bound_and_the_order() {
        let ledger = Ledger::new();
        (0..BOUND).for_each(|number| ledger.note(stopped(number)));
        let group = ledger.next_group().unwrap();
        (0..7).for_each(|number| ledger.note(stopped(BOUND + number)));
        ledger.put_back(group);
        assert_eq!(ledger.0.entries.lock().len(), BOUND);
        assert_eq!(ledger.next_group().unwrap()[0], stopped(7));
    }
}
