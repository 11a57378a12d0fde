//! Connections to PostgreSQL that are lost at any moment: what was acknowledged is there, what was answered as busy is not, and
//! the store recovers by itself. Where the rows are on SQLite, these tests end at once.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use sluice_store::{
    Error, Store, StoreSettings, accounts,
    api_keys::{self, Scope},
    changes::{Follower, Kind},
    write_tx,
};
use tempfile::TempDir;
use tokio::{sync::oneshot, time::timeout};
use uuid::Uuid;

use crate::support::{
    NOW, add_account, on_postgres,
    relay::{Line, Relay},
    settings, until,
};

/// Returns the names of all keys, each with the number of its rows.
async fn keys(store: &Store) -> HashMap<String, usize> {
    let keys = api_keys::all(&mut store.read().await.unwrap(), None).await;
    let mut counts = HashMap::new();
    for key in keys.unwrap() {
        *counts.entry(key.name).or_default() += 1;
    }
    counts
}

/// Answer to a unit that adds a key.
type Answer = (String, Result<Uuid, Error>);

async fn add_key(store: &Store, account: Uuid, name: String) -> Answer {
    let made = {
        let name = name.clone();
        write_tx!(store, account, |tx| {
            api_keys::create(tx, account, &name, Scope::Read, NOW).await
        })
    };
    (name, made.map(|(key, _)| key.id))
}

/// Checks that acknowledged keys are there once, and those answered as busy are not; of unknown ones both may be true.
async fn check_answers(store: &Store, answers: &[Answer]) {
    let keys = keys(store).await;
    for (name, answer) in answers {
        let rows = keys.get(name).copied().unwrap_or(0);
        let is_right = match answer {
            Ok(_) => rows == 1,
            Err(Error::Busy(_)) => rows == 0,
            Err(Error::Unknown) => rows <= 1,
            Err(_) => false,
        };
        assert!(is_right, "{name}: {rows} rows, and the answer {answer:?}");
    }
}

/// A store with some accounts, whose server is behind a relay.
struct Behind {
    relay: Relay,
    store: Store,
    accounts: Vec<Uuid>,
    _folder: TempDir,
}

impl Behind {
    async fn open(change: impl FnOnce(&mut StoreSettings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = settings(folder.path());
        let (user, place) = settings.database_url.rsplit_once('@').expect("a user");
        let (server, database) = place.split_once('/').expect("a database");
        let relay = Relay::start(server).await;
        settings.database_url = format!("{user}@{}/{database}", relay.address());
        change(&mut settings);
        let store = Store::open(&settings).await.unwrap();
        let mut accounts = Vec::new();
        for number in 0..8 {
            accounts.push(add_account(&store, &number.to_string()).await.unwrap());
        }
        Self {
            relay,
            store,
            accounts,
            _folder: folder,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_without_an_answer_is_looked_up_before_its_units_are_answered() {
    const UNITS: usize = 200;
    if !on_postgres() {
        return;
    }
    for commit_group in [1, 8] {
        let site = Behind::open(|settings| settings.commit_group = commit_group).await;
        site.relay.cut_at(b"COMMIT", 5);
        let mut units = Vec::new();
        for number in 0..UNITS {
            let (store, account) = (site.store.clone(), site.accounts[number % 8]);
            units.push(tokio::spawn(async move {
                add_key(&store, account, number.to_string()).await
            }));
        }
        let mut answers = Vec::new();
        for unit in units {
            answers.push(unit.await.unwrap());
        }
        let cuts = site.relay.stop_cutting();
        assert!(cuts >= UNITS / commit_group / 10, "{cuts} cuts");
        check_answers(&site.store, &answers).await;
        let is_unknown = |(_, answer): &Answer| matches!(answer, Err(Error::Unknown));
        assert!(!answers.iter().any(is_unknown), "{answers:?}");
        let busy = answers.iter().filter(|it| it.1.is_err()).count();
        assert!(
            busy > 0 && busy < UNITS,
            "{busy} are busy after {cuts} cuts"
        );
        until("the store has recovered by itself", async || {
            site.store.write_failure().is_none()
        })
        .await;
        site.store.close().await;
    }
}

/// Adds keys one after the other until it is stopped.
async fn add_keys(
    store: Store,
    account: Uuid,
    writer: usize,
    acknowledged: Arc<AtomicUsize>,
    rejected: Arc<AtomicUsize>,
    is_stopped: Arc<AtomicBool>,
) -> Vec<Answer> {
    let mut answers = Vec::new();
    while !is_stopped.load(SeqCst) {
        let name = format!("{writer}-{}", answers.len());
        let answer = add_key(&store, account, name).await;
        let count = match answer.1 {
            Ok(_) => &acknowledged,
            Err(_) => &rejected,
        };
        count.fetch_add(1, SeqCst);
        answers.push(answer);
    }
    answers
}

async fn check_outage(line: Line) {
    let site = Behind::open(|settings| {
        settings.busy_timeout = Duration::from_millis(600);
    })
    .await;
    let acknowledged = Arc::new(AtomicUsize::new(0));
    let rejected = Arc::new(AtomicUsize::new(0));
    let is_stopped = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for (writer, account) in site.accounts.iter().enumerate() {
        writers.push(tokio::spawn(add_keys(
            site.store.clone(),
            *account,
            writer,
            acknowledged.clone(),
            rejected.clone(),
            is_stopped.clone(),
        )));
    }
    let more = async |what: &str| {
        let enough = acknowledged.load(SeqCst) + 50;
        until(what, async || acknowledged.load(SeqCst) >= enough).await;
    };
    more("there are keys before the outage").await;
    site.relay.set(line);
    until("changes fail, and are known to", async || {
        rejected.load(SeqCst) > 0 && site.store.write_failure().is_some()
    })
    .await;
    let failure = site.store.write_failure().expect("it lasts");
    assert!(!failure.reason.is_empty());
    site.relay.set(Line::Passes);
    until("the store has recovered by itself", async || {
        site.store.write_failure().is_none()
    })
    .await;
    more("there are keys after the outage").await;
    is_stopped.store(true, SeqCst);
    let mut answers = Vec::new();
    for writer in writers {
        answers.extend(writer.await.unwrap());
    }
    check_answers(&site.store, &answers).await;
    site.store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_be_reached_is_waited_out() {
    if on_postgres() {
        check_outage(Line::IsCut).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_is_waited_out() {
    if on_postgres() {
        check_outage(Line::IsSilent).await;
    }
}

/// Checks a connection whose peer is gone without a word, in the middle of a unit: nothing on it may be waited for without end.
#[tokio::test(flavor = "multi_thread")]
async fn a_unit_whose_server_falls_silent_is_answered() {
    if !on_postgres() {
        return;
    }
    let site = Behind::open(|settings| {
        settings.busy_timeout = Duration::from_millis(600);
    })
    .await;
    let (begun, has_begun) = oneshot::channel();
    let (release, released) = oneshot::channel::<()>();
    let (store, account) = (site.store.clone(), site.accounts[0]);
    let unit = tokio::spawn(async move {
        write_tx!(store, account, |tx| {
            api_keys::create(tx, account, "silent", Scope::Read, NOW).await?;
            let _ = begun.send(());
            let _ = released.await;
            api_keys::create(tx, account, "silent", Scope::Read, NOW).await
        })
    });
    has_begun.await.unwrap();
    site.relay.set(Line::IsSilent);
    release.send(()).unwrap();
    until("the unit is answered", async || unit.is_finished()).await;
    let answer = unit.await.unwrap();
    assert!(matches!(answer, Err(Error::Busy(_))), "{answer:?}");
    site.relay.set(Line::Passes);
    until("the store has recovered by itself", async || {
        site.store.write_failure().is_none()
    })
    .await;
    assert_eq!(keys(&site.store).await, HashMap::new());
    site.store.close().await;
}

/// Checks changes that wait behind others, each in a group of its own: one after the other they would wait for minutes.
#[tokio::test(flavor = "multi_thread")]
async fn changes_that_wait_behind_others_are_rejected_while_the_server_is_silent() {
    const UNITS: usize = 60;
    if !on_postgres() {
        return;
    }
    let site = Behind::open(|settings| {
        settings.busy_timeout = Duration::from_secs(1);
        settings.commit_group = 1;
    })
    .await;
    site.relay.set(Line::IsSilent);
    let (store, account) = (site.store.clone(), site.accounts[0]);
    let mut units = vec![tokio::spawn(async move {
        let made = write_tx!(store, |tx| {
            api_keys::create(tx, account, "alone", Scope::Read, NOW).await
        });
        ("alone".to_owned(), made.map(|(key, _)| key.id))
    })];
    for number in 0..UNITS {
        let (store, account) = (site.store.clone(), site.accounts[number % 2]);
        units.push(tokio::spawn(async move {
            add_key(&store, account, number.to_string()).await
        }));
    }
    until("all are answered", async || {
        units.iter().all(|unit| unit.is_finished())
    })
    .await;
    for unit in units {
        let (name, answer) = unit.await.unwrap();
        assert!(matches!(answer, Err(Error::Busy(_))), "{name}: {answer:?}");
    }
    assert!(site.store.write_failure().is_some());
    site.relay.set(Line::Passes);
    until("the store has recovered by itself", async || {
        site.store.write_failure().is_none()
    })
    .await;
    assert_eq!(keys(&site.store).await, HashMap::new());
    let (_, answer) = add_key(&site.store, account, "later".to_owned()).await;
    answer.unwrap();
    site.store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_seen_while_nothing_is_written() {
    if !on_postgres() {
        return;
    }
    let site = Behind::open(|_| {}).await;
    site.relay.set(Line::IsCut);
    until("the outage is published", async || {
        site.store.write_failure().is_some()
    })
    .await;
    site.relay.set(Line::Passes);
    until("its end is published", async || {
        site.store.write_failure().is_none()
    })
    .await;
    site.store.close().await;
}

/// Waits until a new key comes to a follower of changes.
async fn until_followed(follower: &mut Follower, key: Option<Uuid>) {
    until("the change comes to its follower", async || {
        let mut batch = follower.take();
        batch.changes.retain(|change| change.id == key);
        batch.lost.contains(&Kind::ApiKey) || !batch.changes.is_empty()
    })
    .await;
}

/// Checks that writers, readers and the follower of changes leave connections whose peer is gone without a word.
#[tokio::test(flavor = "multi_thread")]
async fn connections_that_fell_silent_are_replaced() {
    if !on_postgres() {
        return;
    }
    let site = Behind::open(|settings| {
        settings.busy_timeout = Duration::from_millis(600);
    })
    .await;
    let (store, account) = (&site.store, site.accounts[0]);
    let mut follower = store.follow_changes(account).await.unwrap();
    for is_forgotten in [false, true] {
        if is_forgotten {
            site.relay.forget_connections();
        }
        let mut key = None;
        until("changes and reads succeed", async || {
            let (_, answer) = add_key(store, account, "key".to_owned()).await;
            key = answer.ok();
            let count = async { accounts::count(&mut store.read().await?).await };
            key.is_some() && count.await.is_ok()
        })
        .await;
        until_followed(&mut follower, key).await;
    }
    store.close().await;
}

/// Checks readers whose callers have left while the server was silent, and whose connections are never answered again.
#[tokio::test(flavor = "multi_thread")]
async fn readers_come_back_from_a_line_that_died_in_a_statement() {
    if !on_postgres() {
        return;
    }
    let site = Behind::open(|settings| {
        settings.busy_timeout = Duration::from_millis(600);
        settings.readers = 2;
    })
    .await;
    let store = &site.store;
    let mut readers = [store.read().await.unwrap(), store.read().await.unwrap()];
    site.relay.set(Line::IsSilent);
    for reader in &mut readers {
        let left = timeout(Duration::from_millis(50), accounts::count(reader)).await;
        assert!(left.is_err(), "the server is silent");
    }
    drop(readers);
    site.relay.forget_connections();
    site.relay.set(Line::Passes);
    until("reads succeed", async || {
        let count = async { accounts::count(&mut store.read().await?).await };
        count.await.is_ok()
    })
    .await;
    store.close().await;
}

/// Checks the follower of changes when its connection dies between a statement and its answer.
#[tokio::test(flavor = "multi_thread")]
async fn changes_are_followed_after_a_line_that_died_in_a_read() {
    if !on_postgres() {
        return;
    }
    let site = Behind::open(|settings| {
        settings.busy_timeout = Duration::from_millis(600);
    })
    .await;
    let (store, account) = (&site.store, site.accounts[0]);
    let mut follower = store.follow_changes(account).await.unwrap();
    // Its text is sent once for each connection.
    site.relay.fall_silent_at(b"pg_visible_in_snapshot");
    site.relay.set(Line::IsCut);
    until("the connections are cut", async || {
        store.write_failure().is_some()
    })
    .await;
    site.relay.set(Line::Passes);
    until("a read waits for a dead line", async || {
        site.relay.has_fallen_silent()
    })
    .await;
    let mut key = None;
    until("a change succeeds", async || {
        let (_, answer) = add_key(store, account, "key".to_owned()).await;
        key = answer.ok();
        key.is_some()
    })
    .await;
    until_followed(&mut follower, key).await;
    store.close().await;
}
