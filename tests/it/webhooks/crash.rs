//! `kill -9` every few seconds under load: no acknowledged event is lost, and the record agrees with what receivers
//! saw.
//!
//! The run follows a seed, which it prints: `SLUICE_TEST_SEED=7 cargo test --test it -- webhooks::crash`. What the
//! receivers saw is in this process and in `target/tmp`, outside the data folder.

mod books;

use std::{
    collections::HashSet,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use self::books::{Books, Outage};
use super::{Endpoint, settings, subscribe, wait_settled};
use crate::support::{
    Failure,
    dice::{Dice, seed},
    eventually,
    media::target_folder,
    receiver::{Behaviour, Receiver},
    server::{Api, Server},
};

const KILLS: usize = 8;
const CLIENTS: usize = 4;
/// Pause of one client before its next upload.
const PAUSE: Duration = Duration::from_millis(8);
/// Each kill may make a duplicate of the attempts in flight to an endpoint; the load continues until that is
/// [`MAX_DUPLICATES`] ...
const ENOUGH: usize = KILLS * AT_A_TIME * 100;
/// ... or for so long, on a machine that is slow.
const ENOUGH_WITHIN: Duration = Duration::from_secs(25);
/// `webhooks.max_per_endpoint` by default.
const AT_A_TIME: usize = 4;
/// All deliveries end within so long.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);
/// Share of all requests; see [`Books::check_duplicates`].
const MAX_DUPLICATES: f64 = 0.01;

/// An endpoint and the receiver behind it.
struct Subscriber {
    receiver: Receiver,
    endpoint: Endpoint,
}

/// Uploads from several clients at a time, until it is stopped.
struct Load {
    clients: JoinSet<()>,
    acknowledged: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
}

impl Load {
    fn start(api: &Api) -> Self {
        let acknowledged = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        let number = Arc::new(AtomicUsize::new(0));
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            clients.spawn(upload_until(
                api.clone(),
                number.clone(),
                stop.clone(),
                Arc::clone(&acknowledged),
            ));
        }
        Self {
            clients,
            acknowledged,
            stop,
        }
    }

    /// Waits until that many files were acknowledged, with some patience.
    async fn reach(&self, files: usize) {
        let reached = eventually("enough uploads", ENOUGH_WITHIN, async || {
            let acknowledged = self.acknowledged.lock().expect("no client panics");
            (acknowledged.len() >= files).then_some(())
        });
        if let Err(late) = reached.await {
            eprintln!("{late}");
        }
    }

    /// Ids of all files that the service said it has.
    async fn finish(mut self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        while self.clients.join_next().await.is_some() {}
        let mut acknowledged = self.acknowledged.lock().expect("no client panics");
        std::mem::take(&mut *acknowledged)
    }
}

async fn upload_until(
    api: Api,
    number: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    acknowledged: Arc<Mutex<Vec<String>>>,
) {
    while !stop.load(Ordering::Relaxed) {
        let number = number.fetch_add(1, Ordering::Relaxed);
        // Without an answer nothing was promised.
        if let Ok(file) = super::upload(&api, number).await {
            acknowledged.lock().expect("no client panics").push(file);
        }
        sleep(PAUSE).await;
    }
}

/// Makes subscribers: one that is in good order, one that takes its time, and one that refuses some events at first.
async fn subscribers(api: &Api, ledger: &Path, dice: Dice) -> Result<Vec<Subscriber>, Failure> {
    let prompt = || Behaviour::status(200);
    let behaviours = [
        ("prompt", prompt(), "*"),
        (
            "slow",
            Behaviour::after(Duration::from_millis(10), prompt()),
            "file.uploaded",
        ),
        ("moody", moody(dice), "file.uploaded"),
    ];
    let mut subscribers = Vec::new();
    for (name, behaviour, event_type) in behaviours {
        let receiver = Receiver::start_with_ledger(behaviour, ledger).await?;
        let url = receiver.url(&format!("/{name}"));
        subscribers.push(Subscriber {
            endpoint: subscribe(api, &url, &[event_type]).await?,
            receiver,
        });
    }
    Ok(subscribers)
}

/// Answers one of twelve events with 500, the first time it sees it.
fn moody(dice: Dice) -> Behaviour {
    let state = Mutex::new((dice, HashSet::new()));
    Behaviour::script(move |request| {
        let mut state = state.lock().expect("scripts do not panic");
        let (dice, seen) = &mut *state;
        let is_new = seen.insert(request.event_id().to_owned());
        Behaviour::status(if is_new && dice.below(12) == 0 {
            500
        } else {
            200
        })
    })
}

/// Kills the service after random pauses; returns the times between which it was away.
async fn kill_again_and_again(
    server: &mut Server,
    dice: &mut Dice,
) -> Result<Vec<Outage>, Failure> {
    let mut outages = Vec::new();
    for _ in 0..KILLS {
        sleep(Duration::from_millis(1_000 + dice.below(2_000))).await;
        let began = Instant::now();
        server.kill().await?;
        server.restart().await?;
        outages.push(Outage {
            began,
            ended: Instant::now(),
        });
    }
    Ok(outages)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_again_and_again_under_load_no_acknowledged_event_is_lost() -> Result<(), Failure> {
    let seed = seed()?;
    let ledger = target_folder().join(format!("tmp/webhooks-{seed}.jsonl"));
    eprintln!("SLUICE_TEST_SEED={seed}; requests in {}", ledger.display());
    // A fresh one for each run.
    let _ = std::fs::remove_file(&ledger);
    let mut dice = Dice::new(seed);
    let mut server = settings()
        .env("SLUICE_WEBHOOKS__RETRY_AFTER_S", "1,1,1,1,1")
        .start()
        .await?;
    let api = server.api();
    let subscribers = subscribers(&api, &ledger, dice.another()).await?;

    let load = Load::start(&api);
    let outages = kill_again_and_again(&mut server, &mut dice).await?;
    load.reach(ENOUGH).await;
    let acknowledged = load.finish().await;
    wait_settled(&api, SETTLED_WITHIN).await?;

    let books = Books::read(&api, &subscribers, outages).await?;
    eprintln!("{books}");
    books.check_feed(&acknowledged);
    books.check_arrivals();
    books.check_bodies();
    books.check_signatures();
    books.check_attempts(&api).await?;
    books.check_duplicates(MAX_DUPLICATES);
    std::fs::remove_file(&ledger)?;
    Ok(())
}
