//! Uploads small files at a rate, each of which is an event.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use sluice_testkit::Failure;
use tokio::{task::JoinSet, time::sleep_until};
use uuid::Uuid;

use crate::{http::Client, upload::upload};

/// Connections that upload: enough to keep the rate while each waits for a commit.
const CLIENTS: usize = 16;

/// Time at which each file's upload was answered.
pub(super) type Acknowledged = HashMap<Uuid, Instant>;

#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Infinite: each client as fast as it is answered.
    pub(super) per_second: f64,
    pub(super) count: usize,
}

/// Uploads that many files to these addresses in turn; a rejected one ends the run.
pub(super) async fn upload_all(
    addresses: Vec<String>,
    pace: Pace,
) -> Result<Acknowledged, Failure> {
    let (started, next) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let mut clients = JoinSet::new();
    for address in addresses.iter().cycle().take(CLIENTS) {
        let (client, next) = (Client::new(address), Arc::clone(&next));
        clients.spawn(one_client(client, next, started, pace));
    }
    let mut acknowledged = Acknowledged::with_capacity(pace.count);
    while let Some(done) = clients.join_next().await {
        acknowledged.extend(done??);
    }
    Ok(acknowledged)
}

async fn one_client(
    mut client: Client,
    next: Arc<AtomicUsize>,
    started: Instant,
    pace: Pace,
) -> Result<Vec<(Uuid, Instant)>, Failure> {
    let mut done = Vec::new();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= pace.count {
            return Ok(done);
        }
        let due = started + Duration::from_secs_f64(number as f64 / pace.per_second);
        sleep_until(due.into()).await;
        let (name, bytes) = (format!("{number}.txt"), format!("contents of {number}"));
        let file = upload(&mut client, &name, bytes.as_bytes()).await?;
        done.push((file.parse()?, Instant::now()));
    }
}
