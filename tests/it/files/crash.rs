//! `kill -9` in mid-upload: what was acknowledged is whole, and nothing half is left.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::Value;
use tokio::task::JoinSet;

use super::{all_files, download, noise};
use crate::support::{
    Failure, eventually,
    server::{Api, Server},
};

const ROUNDS: u64 = 4;
const CLIENTS: u64 = 4;
const PATIENCE: Duration = Duration::from_secs(60);

/// Uploads that the service acknowledged: the seed that makes the bytes again, and the record.
type Acknowledged = Arc<Mutex<Vec<(u64, Value)>>>;

/// Lengths from nothing to several pieces.
fn bytes_of(seed: u64) -> Vec<u8> {
    noise(seed, (seed as usize).wrapping_mul(40_503) % 900_000)
}

/// Uploads until the service has ended.
async fn upload_for_ever(api: Api, first_seed: u64, acknowledged: Acknowledged) {
    for seed in first_seed.. {
        let name = format!("{seed}.bin");
        match api.upload(&name, &bytes_of(seed)).await {
            Ok(file) => {
                if let Ok(mut acknowledged) = acknowledged.lock() {
                    acknowledged.push((seed, file));
                }
            }
            Err(_) => return,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_in_mid_upload_nothing_acknowledged_is_lost_and_nothing_half_is_left()
-> Result<(), Failure> {
    let mut server = Server::start().await?;
    let acknowledged = Acknowledged::default();
    let count = |of: &Acknowledged| of.lock().map_or(0, |list| list.len());
    for round in 0..ROUNDS {
        let mut clients = JoinSet::new();
        for client in 0..CLIENTS {
            let first_seed = (round * CLIENTS + client + 1) * 10_000;
            clients.spawn(upload_for_ever(
                server.api(),
                first_seed,
                acknowledged.clone(),
            ));
        }
        // A different point in the load each time, always with uploads in progress.
        let wanted = count(&acknowledged) + 3 + 5 * round as usize;
        eventually("uploads are acknowledged", PATIENCE, async || {
            (count(&acknowledged) >= wanted).then_some(())
        })
        .await?;
        server.kill().await?;
        while clients.join_next().await.is_some() {}
        server.restart().await?;
        assert_eq!(server.temporary_files()?, 0, "round {round}");
    }

    let api = server.api();
    let files = all_files(&api).await?;
    let acknowledged = acknowledged
        .lock()
        .map_err(|_| "a client panicked")?
        .clone();
    for (seed, record) in &acknowledged {
        let kept = files.iter().any(|file| file["id"] == record["id"]);
        assert!(kept, "{seed} was acknowledged and is gone");
    }
    // Files that were stored and not acknowledged are whole, too.
    for file in &files {
        let name = file["filename"].as_str().ok_or("no name")?;
        let seed = name.trim_end_matches(".bin").parse()?;
        assert!(
            download(&api, file).await? == bytes_of(seed),
            "{name} has other bytes"
        );
    }
    assert!(acknowledged.len() as u64 >= ROUNDS * 3);
    Ok(())
}
