//! Test that acknowledged changes survive SIGKILL. It starts its own binary as the process to be killed.

use std::{
    collections::HashSet,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
};

use sluice_store::{Store, accounts};
use sqlx::{ConnectOptions, query_scalar, sqlite::SqliteConnectOptions};

use crate::support::{add_account, on_postgres, settings};

const DATA_DIR: &str = "SLUICE_STORE_TEST_DATA_DIR";
const TASKS: usize = 8;
const ROUNDS: usize = 12;

#[test]
#[ignore = "the process that the test below kills"]
fn writes_and_acknowledges_until_killed() {
    let Some(data_dir) = std::env::var_os(DATA_DIR) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::open(&settings(Path::new(&data_dir))).await.unwrap();
        // The harness may have left an unfinished line.
        writeln!(std::io::stdout()).unwrap();
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| tokio::spawn(write_forever(store.clone(), task)))
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

async fn write_forever(store: Store, task: usize) {
    for n in 0_u64.. {
        let name = format!("{}-{task}-{n}", std::process::id());
        add_account(&store, &name).await.unwrap();
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "ack {name}").unwrap();
        stdout.flush().unwrap();
    }
}

/// Starts a writing process, kills it after a number of acknowledgements, and returns all that it printed.
fn acknowledged_before_kill(data_dir: &Path, kill_after: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "killed::writes_and_acknowledges_until_killed",
            "--ignored",
            "--nocapture",
        ])
        .env(DATA_DIR, data_dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut acknowledged = Vec::new();
    let mut line = String::new();
    // A line without its end was cut by the kill.
    while output.read_line(&mut line).unwrap() > 0 && line.ends_with('\n') {
        if let Some(name) = line.trim_end().strip_prefix("ack ") {
            acknowledged.push(name.to_owned());
        }
        line.clear();
        if acknowledged.len() == kill_after {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    acknowledged
}

#[tokio::test(flavor = "multi_thread")]
async fn every_acknowledged_change_is_there_after_sigkill() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..ROUNDS {
        let mut random = [0];
        getrandom::fill(&mut random).unwrap();
        let kill_after = 1 + usize::from(random[0]);
        let names = acknowledged_before_kill(folder.path(), kill_after);
        assert!(
            names.len() >= kill_after,
            "round {round}: {} of {kill_after}",
            names.len()
        );
        acknowledged.extend(names);
    }
    // Opening recovers the database, as the next start of the service does.
    let store = Store::open(&settings(folder.path())).await.unwrap();
    let all = accounts::list(&mut store.read().await.unwrap()).await;
    let stored: HashSet<String> = all.unwrap().into_iter().map(|it| it.account.name).collect();
    store.close().await;
    let lost: Vec<_> = acknowledged
        .iter()
        .filter(|name| !stored.contains(*name))
        .collect();
    assert!(
        lost.is_empty(),
        "{} of {} lost: {lost:?}",
        lost.len(),
        acknowledged.len()
    );
    if !on_postgres() {
        assert_eq!(integrity(folder.path()).await, "ok");
    }
}

/// Returns what SQLite says of its file.
async fn integrity(data_dir: &Path) -> String {
    let mut connection = SqliteConnectOptions::new()
        .filename(data_dir.join("sluice.db"))
        .connect()
        .await
        .unwrap();
    query_scalar("PRAGMA integrity_check")
        .fetch_one(&mut connection)
        .await
        .unwrap()
}
