//! Nodes on one PostgreSQL schema: list, placement, death and take-over, a node that was halted, starts at once, a service alone
//! against nodes, data folders, newer schemas. Where the rows are on SQLite, these tests end at once.

use std::{
    collections::HashSet,
    path::Path,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use sluice_store::{
    Bootstrap, ClusterSettings, Error, Store, StoreSettings, bootstrap,
    broadcasts::{self, BroadcastState, Lost},
    cluster::{LEASE, Node, NodeState, Role},
    examine_server, installation,
    live_connections::{self, LiveConnection},
    live_inputs::{self, NewLiveInput},
    now_ms,
    work::{self, Lane, Lease, Room},
    write_tx,
};
use sqlx::{Connection as _, PgConnection, query};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use uuid::Uuid;

use crate::support::{
    add_account, on_postgres,
    relay::{Line, Relay},
    settings, until,
};

const KIND: &str = "test";
/// Time from the end of a node to the end of its lease, of the next look, and of a take-over on a busy machine.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(8);

/// A schema of its own, and folders of nodes.
struct Site {
    settings: StoreSettings,
    folders: Vec<TempDir>,
}

impl Site {
    /// Returns `None` where the rows are on SQLite.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        on_postgres().then(|| Self {
            settings: settings(folder.path()),
            folders: vec![folder],
        })
    }

    /// Returns settings with the same schema and a folder of their own.
    fn elsewhere(&mut self) -> StoreSettings {
        let folder = tempfile::tempdir().unwrap();
        let settings = self.at(folder.path());
        self.folders.push(folder);
        settings
    }

    fn at(&self, data_dir: &Path) -> StoreSettings {
        StoreSettings {
            data_dir: data_dir.to_owned(),
            ..self.settings.clone()
        }
    }

    /// Opens a node that is up.
    async fn node(&mut self, name: &str) -> Store {
        let settings = self.elsewhere();
        open(&settings, name).await
    }
}

fn as_node(name: &str) -> ClusterSettings {
    ClusterSettings {
        listen: "127.0.0.1:8081".into(),
        name: name.into(),
        ..ClusterSettings::default()
    }
}

async fn open(settings: &StoreSettings, name: &str) -> Store {
    let store = Store::open_node(settings, &as_node(name)).await.unwrap();
    store.cluster().set_state(NodeState::Up);
    store
}

fn names(store: &Store) -> Vec<String> {
    let nodes = store.cluster().nodes();
    let mut names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
    names.sort();
    names
}

/// Waits until a node knows these live ones, all of them up.
async fn knows(store: &Store, expected: &[&str]) {
    until("it knows the nodes", async || {
        let nodes = store.cluster().nodes();
        nodes.iter().all(|node| node.state == NodeState::Up) && names(store) == expected
    })
    .await;
}

async fn enqueue(store: &Store, account: Uuid) -> Uuid {
    let id = Uuid::now_v7();
    write_tx!(store, account, |tx| {
        work::enqueue(tx, KIND, id, account, Lane::Batch, now_ms()).await
    })
    .unwrap();
    id
}

/// Puts an input on air on these nodes, and returns the connections, in their order.
async fn put_on_air(account: Uuid, nodes: &[&Store]) -> Vec<LiveConnection> {
    let input = write_tx!(nodes[0], account, |tx| {
        live_inputs::create(tx, account, NewLiveInput::default(), 1).await
    });
    let input_id = input.unwrap().0.id;
    let mut connections = Vec::new();
    for node in nodes {
        let (id, owner) = (Uuid::now_v7(), node.owner());
        let connection = LiveConnection {
            input_id,
            id,
            account_id: account,
            broadcast_id: id.simple().to_string(),
            payload: serde_json::json!({}),
        };
        connections.push(connection.clone());
        let begun = write_tx!(node, |tx| {
            broadcasts::begin(tx, &connection.broadcast_id, input_id, 0, 1).await?;
            broadcasts::set_node(tx, &connection.broadcast_id, owner).await?;
            live_connections::open(tx, &connection).await
        });
        begun.unwrap();
    }
    connections
}

/// Claims all that is due, for much longer than a node's lease, and begins it.
async fn claim(store: &Store) -> Vec<Lease> {
    let owner = store.owner();
    write_tx!(store, |tx| {
        let lease = Duration::from_secs(3_600);
        let room = Room::for_any(100);
        let claimed = work::claim(tx, KIND, owner, room, lease, now_ms()).await?;
        for lease in &claimed.leases {
            work::begin(tx, lease).await?;
        }
        Ok(claimed.leases)
    })
    .unwrap()
}

async fn is_due(store: &Store) -> bool {
    let mut reader = store.read().await.unwrap();
    // The only row that a node died of is due after a pause.
    let later = now_ms() + 600_000;
    work::is_due(&mut reader, KIND, Room::for_any(1), later)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_know_each_other_and_agree_on_what_is_whose() {
    let Some(mut site) = Site::new() else {
        return;
    };
    let nodes = [
        site.node("a").await,
        site.node("b").await,
        site.node("c").await,
    ];
    for node in &nodes {
        knows(node, &["a", "b", "c"]).await;
        let cluster = node.cluster();
        assert!(!cluster.is_solo() && cluster.is_renewed());
        assert_eq!(cluster.node_id(), node.owner());
        assert_eq!(cluster.others().len(), 2);
        assert_eq!(cluster.live_count(Role::Api), 3);
        let this = cluster.this();
        assert_eq!(this.address, "http://127.0.0.1:8081");
        assert_eq!(this.roles, Role::ALL);
        assert!(this.clock_offset_ms.abs() < 1_000, "{this:?}");
    }
    let owners = |key: &[u8]| -> HashSet<Uuid> {
        let owners = nodes
            .iter()
            .map(|it| it.cluster().owner_of(Role::Worker, key));
        owners.map(|owner| owner.id).collect()
    };
    for number in 0..50_u32 {
        let key = number.to_be_bytes();
        assert_eq!(owners(&key).len(), 1);
        let mine = nodes
            .iter()
            .filter(|it| it.cluster().is_mine(Role::Worker, &key));
        assert_eq!(mine.count(), 1);
    }
    let janitors = nodes.iter().filter(|it| it.cluster().is_janitor());
    assert_eq!(janitors.count(), 1);

    let mut changes = nodes[1].cluster().changed();
    changes.mark_unchanged();
    nodes[0].cluster().set_state(NodeState::Draining);
    let draining = |store: &Store| {
        let nodes = store.cluster().nodes();
        let states = nodes.iter().filter(|it| it.state == NodeState::Draining);
        states.count() == 1
    };
    assert!(draining(&nodes[0]), "it knows of itself at once");
    until("the others know", async || {
        draining(&nodes[1]) && draining(&nodes[2])
    })
    .await;
    assert!(changes.has_changed().unwrap());
    let drained = nodes[0].owner();
    for number in 0..50_u32 {
        assert!(!owners(&number.to_be_bytes()).contains(&drained));
    }
    assert_eq!(nodes[1].cluster().live_count(Role::Worker), 2);

    let began_at = Instant::now();
    nodes[0].close().await;
    knows(&nodes[1], &["b", "c"]).await;
    assert!(
        began_at.elapsed() < LEASE,
        "one that leaves is not waited for"
    );
    nodes[1].close().await;
    nodes[2].close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_node_held_is_taken_over_once() {
    let Some(mut site) = Site::new() else {
        return;
    };
    let (here, there, other) = (
        site.node("a").await,
        site.node("b").await,
        site.node("c").await,
    );
    let account = add_account(&here, "someone").await.unwrap();
    let ids = [enqueue(&here, account).await, enqueue(&here, account).await];
    let leases = claim(&there).await;
    assert_eq!(leases.len(), 2);
    assert_eq!(claim(&here).await, []);
    let connections = put_on_air(account, &[&there, &here]).await;
    for node in [&here, &other] {
        knows(node, &["a", "b", "c"]).await;
    }
    // Nodes judge when they have been renewed for a lease.
    tokio::time::sleep(LEASE + Duration::from_secs(1)).await;
    let began_at = Instant::now();
    drop(there);
    until("its work is due", async || is_due(&here).await).await;
    assert!(
        began_at.elapsed() < TAKEN_OVER_WITHIN,
        "{:?}",
        began_at.elapsed()
    );
    for node in [&here, &other] {
        knows(node, &["a", "c"]).await;
    }
    // Of the connections of one input those to other nodes go on.
    for lost in [&connections[..1], &[]] {
        let taken = write_tx!(&other, |tx| {
            live_connections::take_lost(tx, Lost::OfDeadNodes, &[]).await
        });
        assert_eq!(taken.unwrap(), lost);
    }
    let mut taken: Vec<Uuid> = Vec::new();
    until("all is claimed again", async || {
        // Both were running: suspects, of which one at a time is leased.
        for lease in claim(&here).await {
            let id = lease.id;
            assert!(
                leases
                    .iter()
                    .all(|it| it.id != id || it.fence + 1 < lease.fence)
            );
            write_tx!(&here, |tx| work::finish(tx, &lease).await).unwrap();
            taken.push(id);
        }
        taken.len() == 2
    })
    .await;
    taken.sort();
    let mut expected = ids.to_vec();
    expected.sort();
    assert_eq!(taken, expected);

    // The late write of the one that was taken for dead.
    let late = leases[0].clone();
    let late = write_tx!(&other, |tx| work::hold(tx, &late).await);
    assert!(matches!(late, Err(Error::Conflict(_))), "{late:?}");
    here.close().await;
    other.close().await;
}

/// A node in a runtime of one thread, which can be halted.
struct Halted {
    runtime: Runtime,
    store: Store,
}

impl Halted {
    fn open(settings: StoreSettings, name: &'static str) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let store = runtime.block_on(open(&settings, name));
        Self { runtime, store }
    }

    /// Halts its tasks, as SIGSTOP does. Returns when they continue.
    async fn stop_for(&self, time: Duration) {
        let halted = self.runtime.spawn(async move { std::thread::sleep(time) });
        halted.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_halted_is_fenced_and_goes_on() {
    let Some(mut site) = Site::new() else {
        return;
    };
    let here = site.node("a").await;
    let settings = site.elsewhere();
    let there = tokio::task::spawn_blocking(|| Halted::open(settings, "b"));
    let there = there.await.unwrap();
    let account = add_account(&here, "someone").await.unwrap();
    enqueue(&here, account).await;
    let lease = claim(&there.store).await.remove(0);
    tokio::time::sleep(LEASE + Duration::from_secs(1)).await;
    knows(&here, &["a", "b"]).await;

    let stopping = there.stop_for(LEASE + Duration::from_secs(4));
    let taking_over = async {
        until("it is dead to the other", async || names(&here) == ["a"]).await;
        until("its work is due", async || is_due(&here).await).await;
        let cluster = there.store.cluster();
        assert!(!cluster.is_renewed() && !cluster.is_janitor());
    };
    tokio::join!(stopping, taking_over);
    for node in [&here, &there.store] {
        knows(node, &["a", "b"]).await;
    }
    until("it is renewed", async || there.store.cluster().is_renewed()).await;
    let late = write_tx!(&here, |tx| work::hold(tx, &lease).await);
    assert!(matches!(late, Err(Error::Conflict(_))), "{late:?}");
    // It lives and works as before.
    assert_eq!(there.store.owner(), there.store.cluster().node_id());
    enqueue(&there.store, account).await;

    here.close().await;
    there.store.close().await;
    let Halted { runtime, store } = there;
    drop(store);
    runtime.shutdown_background();
}

#[tokio::test(flavor = "multi_thread")]
async fn three_start_at_once_on_an_empty_schema() {
    let Some(mut site) = Site::new() else {
        return;
    };
    let settings = [site.elsewhere(), site.elsewhere(), site.elsewhere()];
    let starts = settings.iter().map(|settings| async move {
        let store = open(settings, "node").await;
        let first = bootstrap(&store, Bootstrap::default(), now_ms()).await;
        (store, first.unwrap())
    });
    let started = join_all(starts).await;
    let shown = started.iter().filter(|(_, first)| first.is_some());
    assert_eq!(shown.count(), 1, "one node shows the first credentials");
    let mut keys = HashSet::new();
    for (store, _) in &started {
        let mut reader = store.read().await.unwrap();
        let installation = installation::get(&mut reader).await.unwrap();
        keys.insert(installation.key().to_vec());
        assert_eq!(sluice_store::accounts::count(&mut reader).await.unwrap(), 1);
        knows(store, &["node", "node", "node"]).await;
    }
    assert_eq!(keys.len(), 1);
    // Another start leaves them to the node that shows them, as long as it lives.
    let fourth = site.node("fourth").await;
    let first = bootstrap(&fourth, Bootstrap::default(), now_ms()).await;
    assert!(first.unwrap().is_none());
    for (store, _) in started {
        store.close().await;
    }
    let first = bootstrap(&fourth, Bootstrap::default(), now_ms()).await;
    assert!(first.unwrap().is_some(), "its node has ended");
    fourth.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_alone_and_nodes_exclude_each_other() {
    let Some(mut site) = Site::new() else {
        return;
    };
    let alone = Store::open(&site.elsewhere()).await.unwrap();
    assert!(alone.cluster().is_solo() && alone.cluster().is_janitor());
    let node = Store::open_node(&site.elsewhere(), &as_node("a")).await;
    let error = node.err().expect("a service has it alone");
    assert!(matches!(error, Error::InUseAlone { .. }), "{error:?}");
    assert!(error.to_string().contains("cluster.listen"), "{error}");
    alone.close().await;

    let node = site.node("a").await;
    let error = Store::open(&site.elsewhere()).await.err();
    let error = error.expect("a node has it");
    assert!(matches!(error, Error::InUse { .. }), "{error:?}");
    assert!(error.to_string().contains("cluster.listen"), "{error}");
    let report = examine_server(&site.settings).await.unwrap();
    let found: Vec<&str> = report.nodes.iter().map(|node| &*node.name).collect();
    assert_eq!(found, ["a"]);
    assert!(report.holder.is_some() && report.clock_offset_ms.abs() < 1_000);

    // A command beside it.
    let command = Store::open_beside(&site.elsewhere()).await.unwrap();
    assert!(command.cluster().is_solo());
    add_account(&command, "someone").await.unwrap();
    command.close().await;
    node.close().await;
    let alone = Store::open(&site.elsewhere()).await.unwrap();
    alone.close().await;
}

/// The lock of the folder shows that the process is dead: nothing waits for its lease.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_in_the_same_folder_takes_over_at_once() {
    let Some(mut site) = Site::new() else {
        return;
    };
    let settings = site.elsewhere();
    let first = open(&settings, "a").await;
    let second = Store::open_node(&settings, &as_node("a")).await;
    let error = second.err().expect("the folder is in use");
    assert!(matches!(error, Error::Locked { .. }), "{error:?}");

    let account = add_account(&first, "someone").await.unwrap();
    enqueue(&first, account).await;
    let lease = claim(&first).await.remove(0);
    let owner = first.owner();
    let input = write_tx!(&first, account, |tx| {
        let (input, _) = live_inputs::create(tx, account, NewLiveInput::default(), 1).await?;
        for broadcast in ["kept", "lost"] {
            broadcasts::begin(tx, broadcast, input.id, 0, 1).await?;
            broadcasts::set_node(tx, broadcast, owner).await?;
        }
        Ok(input)
    });
    let input = input.unwrap();
    drop(first);
    let began_at = Instant::now();
    let second = loop {
        match Store::open_node(&settings, &as_node("a")).await {
            Ok(store) => break store,
            Err(Error::Locked { .. }) => tokio::time::sleep(Duration::from_millis(10)).await,
            Err(error) => panic!("{error:?}"),
        }
    };
    assert!(is_due(&second).await);
    assert!(began_at.elapsed() < LEASE, "{:?}", began_at.elapsed());
    second.cluster().set_state(NodeState::Up);
    knows(&second, &["a"]).await;
    let late = write_tx!(&second, |tx| work::hold(tx, &lease).await);
    assert!(matches!(late, Err(Error::Conflict(_))), "{late:?}");

    // What is on the folder's disk continues, and what is not ends.
    let of = Lost::OfNode(second.owner());
    let ended = write_tx!(&second, |tx| {
        broadcasts::end_lost(tx, Lost::OfDeadNodes, &[], 9).await
    });
    assert_eq!(ended.unwrap(), 0, "they have a live node");
    let keep = ["kept".to_owned()];
    let ended = write_tx!(&second, |tx| broadcasts::end_lost(tx, of, &keep, 9).await);
    assert_eq!(ended.unwrap(), 1);
    let mut reader = second.read().await.unwrap();
    let state = broadcasts::get(&mut reader, "kept").await.unwrap().state;
    assert_eq!(state, BroadcastState::Live);
    assert!(!broadcasts::has_lost(&mut reader).await.unwrap());
    assert_eq!(broadcasts::count(&mut reader, input.id).await.unwrap(), 2);
    drop(reader);
    second.close().await;
}

/// Nodes that keep files in two places would each lack those of the other, which no row shows while there are no files.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_another_object_store_is_rejected() {
    let Some(mut site) = Site::new() else {
        return;
    };
    let buckets = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let url = |bucket: &TempDir| format!("file://{}", bucket.path().display());
    site.settings.objects_url = url(&buckets[0]);
    let first = site.node("a").await;
    let wrong = StoreSettings {
        objects_url: url(&buckets[1]),
        ..site.elsewhere()
    };
    let rejected = Store::open_node(&wrong, &as_node("b")).await;
    let error = rejected.err().expect("it is another object store");
    assert!(matches!(error, Error::Unsupported(_)), "{error:?}");
    let (text, place) = (error.to_string(), buckets[1].path().display().to_string());
    for part in ["store.objects_url", "the node a,", place.as_str()] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!buckets[1].path().join("owner").exists());

    let second = site.node("b").await;
    knows(&second, &["a", "b"]).await;
    first.close().await;
    second.close().await;
    // Neither nodes nor files are elsewhere.
    open(&wrong, "b").await.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_first_nodes_with_two_object_stores_one_starts() {
    let Some(mut site) = Site::new() else {
        return;
    };
    let buckets = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let settings = [&buckets[0], &buckets[1]].map(|bucket| StoreSettings {
        objects_url: format!("file://{}", bucket.path().display()),
        ..site.elsewhere()
    });
    let node = as_node("node");
    let (one, other) = tokio::join!(
        Store::open_node(&settings[0], &node),
        Store::open_node(&settings[1], &node)
    );
    assert_eq!(one.is_ok(), other.is_err());
    for store in [one, other].into_iter().flatten() {
        store.close().await;
    }
    let owners = buckets.iter().filter(|it| it.path().join("owner").exists());
    assert_eq!(owners.count(), 1);
}

/// Connects to the schema itself, for states that no verb makes.
async fn connect(settings: &StoreSettings) -> PgConnection {
    let mut connection = PgConnection::connect(&settings.database_url).await.unwrap();
    query("SELECT set_config('search_path', $1, false)")
        .bind(&settings.database_schema)
        .execute(&mut connection)
        .await
        .unwrap();
    connection
}

/// Changes the rows that say of which version the schema is.
async fn as_of_newer_program(settings: &StoreSettings, floor: i64) {
    let mut connection = connect(settings).await;
    query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9001, 'later', TRUE, '', 0) ON CONFLICT DO NOTHING",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    query("UPDATE schema_floor SET floor = $1")
        .bind(floor)
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_schema_is_used_when_it_is_for_older_programs_too() {
    let Some(mut site) = Site::new() else {
        return;
    };
    site.node("a").await.close().await;
    as_of_newer_program(&site.settings, sluice_store::schema_version()).await;
    let node = site.node("a").await;
    add_account(&node, "someone").await.unwrap();
    node.close().await;
    as_of_newer_program(&site.settings, 9_001).await;
    let rejected = Store::open_node(&site.elsewhere(), &as_node("a")).await;
    let error = rejected.err().expect("it needs the newer program");
    assert!(
        matches!(error, Error::Newer { found: 9_001, .. }),
        "{error:?}"
    );
}

/// A start that has to change a table waits for a dump of it, and others use the table meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_gives_way_to_those_that_use_the_table() {
    /// It makes an index of `work` again.
    const REPEATABLE: i64 = 44;
    let Some(mut site) = Site::new() else {
        return;
    };
    site.node("a").await.close().await;
    let mut dump = connect(&site.settings).await;
    query("DELETE FROM _sqlx_migrations WHERE version = $1")
        .bind(REPEATABLE)
        .execute(&mut dump)
        .await
        .unwrap();
    let mut dumping = dump.begin().await.unwrap();
    query("SELECT count(*) FROM work")
        .execute(&mut *dumping)
        .await
        .unwrap();
    let mut other = connect(&site.settings).await;
    let used = async {
        // Time in which the migration begins to wait for the table.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let reading = query("SELECT count(*) FROM work").execute(&mut other);
        let read = tokio::time::timeout(Duration::from_secs(30), reading).await;
        read.expect("it waits behind the migration").unwrap();
        dumping.commit().await.unwrap();
    };
    let (node, ()) = tokio::join!(site.node("a"), used);
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_and_states_of_a_newer_program_do_not_matter() {
    let Some(mut site) = Site::new() else {
        return;
    };
    let node = site.node("a").await;
    let mut connection = connect(&site.settings).await;
    query("ALTER TABLE nodes DROP CONSTRAINT nodes_state_check")
        .execute(&mut connection)
        .await
        .unwrap();
    let newer = Uuid::now_v7();
    query(
        "INSERT INTO nodes (id, name, address, roles, version, schema, state, started_at, renewed_at, lease_until, clock_offset_ms)
         SELECT $1, 'newer', address, '[\"archive\", \"worker\"]', version, schema, 'resting', started_at, renewed_at,
             renewed_at + 9000, 0 FROM nodes WHERE id = $2",
    )
    .bind(newer)
    .bind(node.owner())
    .execute(&mut connection)
    .await
    .unwrap();
    let mut others = Vec::new();
    until("it is known", async || {
        others = node.cluster().others();
        !others.is_empty()
    })
    .await;
    assert_eq!((others.len(), others[0].id), (1, newer));
    assert_eq!(others[0].state, NodeState::Draining);
    assert_eq!(others[0].roles, [Role::Worker]);
    assert_eq!(node.cluster().live_count(Role::Worker), 1);
    node.close().await;

    // A lease from before the clock of the database was set back.
    query("UPDATE nodes SET state = 'up', lease_until = lease_until + 3600000 WHERE id = $1")
        .bind(newer)
        .execute(&mut connection)
        .await
        .unwrap();
    let report = examine_server(&site.settings).await.unwrap();
    assert_eq!(report.nodes, []);
    connection.close().await.unwrap();
    let alone = Store::open(&site.elsewhere()).await.unwrap();
    alone.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_cannot_write_its_row_keeps_the_list() {
    let Some(mut site) = Site::new() else {
        return;
    };
    let other = site.node("b").await;
    let mut settings = site.elsewhere();
    let url = settings.database_url.clone();
    let (user, server) = url.rsplit_once('@').unwrap();
    let (server, database) = server.split_once('/').unwrap();
    let relay = Relay::start(server).await;
    settings.database_url = format!("{user}@{}/{database}", relay.address());
    let node = open(&settings, "a").await;
    knows(&node, &["a", "b"]).await;
    tokio::time::sleep(LEASE).await;
    relay.set(Line::IsCut);
    until("it is not renewed", async || !node.cluster().is_renewed()).await;
    knows(&node, &["a", "b"]).await;
    assert!(!node.cluster().is_janitor());
    until("it is dead to the other", async || names(&other) == ["b"]).await;
    relay.set(Line::Passes);
    until("it is renewed", async || node.cluster().is_renewed()).await;
    knows(&other, &["a", "b"]).await;
    let state = |node: &Node| node.state == NodeState::Up;
    assert!(node.cluster().nodes().iter().all(state));
    node.close().await;
    other.close().await;
}
