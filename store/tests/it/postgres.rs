//! The store on PostgreSQL: one service at a time, units of accounts beside each other and in turn. Where the rows are on SQLite,
//! these tests end at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use futures_util::future::join_all;
use sluice_store::{
    Error, Store, StoreSettings, accounts,
    api_keys::{self, Scope},
    counters,
    events::{self, Audience, Event, EventPosition, NewEvent},
    operations::{self, Charge, ChargedWork},
    write_tx,
};
use tempfile::TempDir;
use tokio::{
    sync::{Barrier, oneshot},
    task::JoinHandle,
};
use uuid::Uuid;

use crate::support::{Held, NOW, add_account, count_accounts, on_postgres, settings, store, until};

/// A service and a command beside it, whose units are each a commit.
struct Site {
    service: Store,
    command: Store,
    _folder: TempDir,
}

impl Site {
    /// Returns `None` where the rows are on SQLite.
    async fn open() -> Option<Self> {
        if !on_postgres() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings {
            commit_group: 1,
            ..settings(folder.path())
        };
        Some(Self {
            service: Store::open(&settings).await.unwrap(),
            command: Store::open_beside(&settings).await.unwrap(),
            _folder: folder,
        })
    }

    async fn accounts(&self, count: usize) -> Vec<Uuid> {
        let mut accounts = Vec::new();
        for number in 0..count {
            accounts.push(
                add_account(&self.service, &number.to_string())
                    .await
                    .unwrap(),
            );
        }
        accounts
    }

    /// Returns the two by turns.
    fn either(&self, number: usize) -> Store {
        match number % 2 {
            0 => self.service.clone(),
            _ => self.command.clone(),
        }
    }
}

type Unit<T> = JoinHandle<Result<T, Error>>;

async fn answers<T>(units: Vec<Unit<T>>) -> Vec<T> {
    let mut answers = Vec::new();
    for unit in units {
        answers.push(unit.await.unwrap().unwrap());
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_has_one_service_at_a_time() {
    if !on_postgres() {
        return;
    }
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let settings = settings(here.path());
    let elsewhere = StoreSettings {
        data_dir: there.path().to_owned(),
        ..settings.clone()
    };
    let first = Store::open(&settings).await.unwrap();
    add_account(&first, "someone").await.unwrap();
    let second = Store::open(&elsewhere).await;
    let Err(Error::InUse { holder }) = second else {
        panic!("two services with one schema: {:?}", second.err());
    };
    assert!(holder.starts_with("process "), "{holder}");
    add_account(&first, "someone else").await.unwrap();
    first.close().await;
    let second = Store::open(&elsewhere).await.unwrap();
    assert_eq!(count_accounts(&second).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn units_of_two_accounts_run_beside_each_other() {
    let Some(site) = Site::open().await else {
        return;
    };
    let accounts = site.accounts(2).await;
    let both_run = Arc::new(Barrier::new(2));
    let mut units = Vec::new();
    for account in accounts {
        let (store, both_run) = (site.service.clone(), both_run.clone());
        units.push(tokio::spawn(async move {
            write_tx!(store, account, |_tx| {
                both_run.wait().await;
                Ok(())
            })
        }));
    }
    answers(units).await;
}

/// Units that run at present.
#[derive(Default)]
struct Running {
    of_accounts: [AtomicUsize; 2],
    of_all: AtomicUsize,
}

impl Running {
    /// Returns whether the units that run are those that may.
    fn is_right(&self) -> bool {
        let of_accounts = self.of_accounts.each_ref().map(|count| count.load(SeqCst));
        match self.of_all.load(SeqCst) {
            0 => of_accounts.iter().all(|count| *count <= 1),
            1 => of_accounts == [0, 0],
            _ => false,
        }
    }
}

/// Checks units of two accounts, and some of all, from two processes.
#[tokio::test(flavor = "multi_thread")]
async fn units_of_an_account_are_serial_and_those_of_all_run_alone() {
    let Some(site) = Site::open().await else {
        return;
    };
    let accounts = site.accounts(2).await;
    let running = Arc::new(Running::default());
    let mut units: Vec<Unit<bool>> = Vec::new();
    for number in 0..120 {
        let (store, running) = (site.either(number), running.clone());
        let of = number / 2 % 2;
        let account = accounts[of];
        units.push(tokio::spawn(async move {
            if number % 10 == 0 {
                return write_tx!(store, |tx| {
                    running.of_all.fetch_add(1, SeqCst);
                    let mut is_right = running.is_right();
                    accounts::count(tx).await?;
                    is_right &= running.is_right();
                    running.of_all.fetch_sub(1, SeqCst);
                    Ok(is_right)
                });
            }
            write_tx!(store, account, |tx| {
                running.of_accounts[of].fetch_add(1, SeqCst);
                let mut is_right = running.is_right();
                accounts::get(tx, account).await?;
                is_right &= running.is_right();
                running.of_accounts[of].fetch_sub(1, SeqCst);
                Ok(is_right)
            })
        }));
    }
    let answers = answers(units).await;
    assert!(answers.iter().all(|is_right| *is_right), "{answers:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_update_of_an_account_is_lost() {
    const CAP: u64 = 150;
    let Some(site) = Site::open().await else {
        return;
    };
    let account = add_account(&site.service, "0").await.unwrap();
    write_tx!(site.service, |tx| accounts::set_plan(tx, account, "0", NOW)
        .await)
    .unwrap();
    let mut units = Vec::new();
    for number in 0..200 {
        let store = site.either(number);
        units.push(tokio::spawn(async move {
            write_tx!(store, account, |tx| {
                let before: u32 = accounts::get(tx, account).await?.plan.parse().unwrap();
                let after = (before + 1).to_string();
                accounts::set_plan(tx, account, &after, NOW).await?;
                let work = ChargedWork {
                    kind: "convert",
                    asked_at: NOW,
                };
                operations::charge(tx, account, work, 1, CAP, NOW).await
            })
        }));
    }
    let charges = answers(units).await;
    let charged = charges.iter().filter(|it| matches!(it, Charge::Charged(_)));
    assert_eq!(charged.count() as u64, CAP);
    let mut reader = site.service.read().await.unwrap();
    let account = accounts::get(&mut reader, account).await.unwrap();
    assert_eq!(account.plan, "200");
    let used = operations::used(&mut reader, account.id, NOW).await;
    assert_eq!(used.unwrap().operations, CAP);
}

fn uploaded(account_id: Uuid) -> NewEvent {
    NewEvent {
        account_id,
        event_type: "file.uploaded",
        audience: Audience::Everyone,
        also: Vec::new(),
        resource: format!("file:{account_id}"),
        place: EventPosition::Next,
        data: serde_json::Map::new(),
    }
}

/// Reads an account's feed while it grows. An event that appeared behind the last that was read would be missed.
async fn follow_feed(store: &Store, account: Uuid, count: usize) -> Vec<Event> {
    let mut feed: Vec<Event> = Vec::new();
    until("the feed is read to its end", async || {
        let last = feed.last().map_or(0, |event| event.seq);
        let mut reader = store.read().await.unwrap();
        let more = events::after(&mut reader, account, last, 3).await;
        feed.extend(more.unwrap());
        feed.len() >= count
    })
    .await;
    feed
}

#[tokio::test(flavor = "multi_thread")]
async fn no_event_appears_behind_a_later_one_of_its_account() {
    const EVENTS: usize = 60;
    let Some(site) = Site::open().await else {
        return;
    };
    let (mut units, mut feeds) = (Vec::new(), Vec::new());
    for account in site.accounts(3).await {
        feeds.push(follow_feed(&site.service, account, EVENTS));
        for number in 0..EVENTS {
            let store = site.either(number);
            units.push(tokio::spawn(async move {
                match number % 7 {
                    0 => write_tx!(store, |tx| events::append(tx, uploaded(account), NOW).await),
                    _ => write_tx!(store, account, |tx| {
                        events::append(tx, uploaded(account), NOW).await
                    }),
                }
            }));
        }
    }
    let (feeds, _) = tokio::join!(join_all(feeds), answers(units));
    for feed in feeds {
        let sequence = |event: &Event| {
            let body: serde_json::Value = serde_json::from_str(&event.body).unwrap();
            body["data"]["sequence"].as_u64().unwrap() as usize
        };
        let sequences: Vec<usize> = feed.iter().map(sequence).collect();
        assert_eq!(sequences, (1..=EVENTS).collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_needs_a_unit_of_its_account() {
    let Some(site) = Site::open().await else {
        return;
    };
    let accounts = site.accounts(2).await;
    let (here, there) = (accounts[0], accounts[1]);
    let store = &site.service;
    let of_another = write_tx!(store, there, |tx| {
        events::append(tx, uploaded(here), NOW).await
    });
    let of_none = store.write_beside(move |tx| {
        Box::pin(async move { events::append(tx, uploaded(here), NOW).await })
    });
    for rejected in [of_another, of_none.await] {
        assert!(matches!(rejected, Err(Error::Internal(_))), "{rejected:?}");
    }
    let feed = events::after(&mut store.read().await.unwrap(), here, 0, 9).await;
    assert_eq!(feed.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_beside_others_does_not_wait_long_for_a_locked_row() {
    if !on_postgres() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Longer than a unit may hold a row.
    let settings = StoreSettings {
        busy_timeout: Duration::from_secs(30),
        ..settings(folder.path())
    };
    let store = Store::open(&settings).await.unwrap();
    let account = add_account(&store, "someone").await.unwrap();
    let (lock, is_locked) = oneshot::channel();
    let (release, released) = oneshot::channel();
    let holder = store.clone();
    let holding = tokio::spawn(async move {
        write_tx!(holder, account, |tx| {
            let taken = counters::take(tx, "test", "row", 9, 60_000, NOW).await?;
            let _ = lock.send(());
            let _ = released.await;
            Ok(taken)
        })
    });
    is_locked.await.unwrap();
    let waited = store
        .write_beside(move |tx| Box::pin(counters::take(tx, "test", "row", 9, 60_000, NOW)))
        .await;
    assert!(matches!(waited, Err(Error::Busy(_))), "{waited:?}");
    release.send(()).unwrap();
    assert_eq!(holding.await.unwrap().unwrap(), Ok(1));
    store.close().await;
}

/// Fails by a reference to an account that does not exist, after which a transaction of PostgreSQL takes nothing more.
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_fails_undoes_its_unit_and_no_other_of_the_group() {
    if !on_postgres() {
        return;
    }
    let (store, _folder) = store().await;
    let account = add_account(&store, "someone").await.unwrap();
    let held = Held::hold(&store).await;
    let mut units = Vec::new();
    for (name, owner) in [
        ("first", account),
        ("fails", Uuid::now_v7()),
        ("second", account),
        ("fails too", Uuid::now_v7()),
        ("last", account),
    ] {
        let (queued, waiting) = (store.clone(), units.len() as u64);
        units.push(tokio::spawn(async move {
            write_tx!(queued, account, |tx| {
                api_keys::create(tx, account, name, Scope::Read, NOW).await?;
                api_keys::create(tx, owner, name, Scope::Read, NOW).await
            })
        }));
        until("it is queued", async || {
            store.statistics().waiting == waiting + 1
        })
        .await;
    }
    let commits = store.statistics().commits;
    held.release().await;
    let mut done = Vec::new();
    for unit in units {
        let answer = unit.await.unwrap();
        if let Err(error) = &answer {
            assert!(matches!(error, Error::Database(_)), "{error:?}");
        }
        done.push(answer.is_ok());
    }
    assert_eq!(done, [true, false, true, false, true]);
    assert_eq!(store.statistics().commits - commits, 2, "and the held unit");
    let keys = api_keys::all(&mut store.read().await.unwrap(), None).await;
    let mut names: Vec<String> = keys.unwrap().into_iter().map(|key| key.name).collect();
    names.sort();
    assert_eq!(
        names,
        ["first", "first", "last", "last", "second", "second"]
    );
}
