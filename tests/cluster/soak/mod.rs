//! Faults under load: everything that was acknowledged is done once, whatever was killed, halted or cut off meanwhile.
//!
//! `make test` has 12 faults; `make cluster-soak` 300 and their load. The schedule follows a printed seed:
//! `SLUICE_TEST_SEED=7 cargo test --test cluster -- soak`.

pub mod load;

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use self::load::{Least, Load, make_workflow};
use crate::support::{
    FAULTS, Failure,
    api::Api,
    dice::{Dice, seed},
    faults::Fault,
    installation::Installation,
    ledger::Ledger,
    receiver::Receiver,
};

const FEW_FAULTS: usize = 12;
const ENDPOINTS: usize = 4;
/// Pause of the client that follows the feed.
const FOLLOW_EVERY: Duration = Duration::from_millis(500);
/// Longest pause between two faults.
const LONGEST_PAUSE_MS: u64 = 5_000;

/// A client that reads the feed all the time, from where it was.
struct Follower {
    task: JoinHandle<Vec<Value>>,
    stop: CancellationToken,
}

impl Follower {
    fn start(api: Api) -> Self {
        let stop = CancellationToken::new();
        Self {
            task: tokio::spawn(follow(api, stop.clone())),
            stop,
        }
    }

    /// Reads to the end of the feed.
    async fn finish(self) -> Result<Vec<Value>, Failure> {
        self.stop.cancel();
        Ok(self.task.await?)
    }
}

async fn follow(api: Api, stop: CancellationToken) -> Vec<Value> {
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let is_last = stop.is_cancelled();
        // A page that failed is asked for again, by the cursor before it.
        match api.events(after.clone()).await {
            Ok((events, next)) => {
                seen.extend(events);
                after = next;
                if is_last {
                    return seen;
                }
            }
            Err(_) => sleep(FOLLOW_EVERY).await,
        }
        sleep(FOLLOW_EVERY).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_killed_everything_acknowledged_is_done_once() -> Result<(), Failure> {
    let faults = match std::env::var(FAULTS) {
        Ok(faults) => faults.parse()?,
        Err(_) => FEW_FAULTS,
    };
    let seed = seed()?;
    eprintln!("SLUICE_TEST_SEED={seed} {FAULTS}={faults}");
    let mut dice = Dice::new(seed);
    let mut installation = Installation::start(&[
        ("SLUICE_WORKFLOWS__INLINE_WAIT", "0s"),
        ("SLUICE_WEBHOOKS__RETRY_AFTER_S", "1,1,2,2,5"),
    ])
    .await?;
    let api = installation.api();
    let receiver = Receiver::start().await?;
    let endpoints: Vec<String> = (0..ENDPOINTS).map(|number| format!("/{number}")).collect();
    for path in &endpoints {
        api.subscribe(&receiver.url(path)).await?;
    }
    let workflow = make_workflow(&api).await?;
    let ledger = Arc::new(Ledger::default());
    let follower = Follower::start(api.clone());
    let least = Least {
        files: faults,
        jobs: (faults * 2).min(200),
        runs: faults.min(50),
    };
    let mut load = Load::start(api, ledger.clone(), workflow, least, &mut dice);
    let began = Instant::now();
    for number in 1..=faults {
        sleep(Duration::from_millis(dice.below(LONGEST_PAUSE_MS))).await;
        let fault = Fault::draw(&mut dice, installation.nodes.len());
        eprintln!("{:.0?} fault {number}: {fault}", began.elapsed());
        fault.happen(&mut installation).await?;
        load.check().await?;
    }
    load.finish().await?;
    installation.wait_for_nodes(3).await?;
    let books = ledger.books();
    eprintln!(
        "{:.0?}: {} files, {} jobs, {} runs acknowledged",
        began.elapsed(),
        books.files.len(),
        books.jobs.len(),
        books.runs.len()
    );
    ledger
        .check(&installation, &receiver, &endpoints, async || {
            follower.finish().await
        })
        .await
}

/// Share of the commits of each node that are cut: one in that many, before or after the server has it.
const CUT_EVERY: usize = 20;
const CUTTING: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_that_are_cut_are_neither_lost_nor_made_twice() -> Result<(), Failure> {
    let installation = Installation::start(&[
        ("SLUICE_WORKFLOWS__INLINE_WAIT", "0s"),
        ("SLUICE_WEBHOOKS__RETRY_AFTER_S", "1,1,2,2,5"),
    ])
    .await?;
    let api = installation.api();
    let receiver = Receiver::start().await?;
    let endpoints = vec!["/only".to_owned()];
    api.subscribe(&receiver.url(&endpoints[0])).await?;
    let workflow = make_workflow(&api).await?;
    let ledger = Arc::new(Ledger::default());
    let follower = Follower::start(api.clone());
    for node in &installation.nodes {
        node.to_postgres.cut_at(b"COMMIT", CUT_EVERY);
    }
    let least = Least {
        files: 15,
        jobs: 15,
        runs: 5,
    };
    let mut dice = Dice::new(seed()?);
    let load = Load::start(api, ledger.clone(), workflow, least, &mut dice);
    sleep(CUTTING).await;
    let cuts = installation
        .nodes
        .iter()
        .map(|node| node.to_postgres.stop_cutting());
    let cuts: usize = cuts.sum();
    eprintln!("{cuts} commits were cut");
    assert!(cuts > 5, "{cuts} commits were cut");
    load.finish().await?;
    ledger
        .check(&installation, &receiver, &endpoints, async || {
            follower.finish().await
        })
        .await
}
