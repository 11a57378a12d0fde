//! Things that a cluster does not take: calls of others, a data folder twice, a service that is alone, clocks that are wrong.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::process;
use uuid::Uuid;

use crate::{
    soak::load::image,
    support::{
        Failure,
        api::{API_KEY, client, fetch},
        dice::Dice,
        eventually,
        installation::Installation,
        node::Node,
        process::{free_address, root},
    },
};

/// A start that is rejected has ended by then, waits for locks included.
const ENDED: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(15);

/// Runs a command to its end, which is a failure; what it printed.
async fn rejected(command: Command) -> Result<String, Failure> {
    let mut command = process::Command::from(command);
    let running = command.kill_on_drop(true).output();
    let ended = tokio::time::timeout(ENDED, running).await;
    let ended = ended.map_err(|_| "it was not rejected, and runs")??;
    assert!(!ended.status.success(), "it ended well");
    Ok([ended.stdout, ended.stderr]
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .concat())
}

/// The settings of a node, with listeners of their own.
fn beside(node: &Node) -> Result<Command, Failure> {
    let mut command = node.command();
    for name in [
        "HTTP__LISTEN",
        "RTMP__LISTEN",
        "SRT__LISTEN",
        "WEBRTC__LISTEN",
        "WEBRTC__TCP_LISTEN",
    ] {
        command.env(format!("SLUICE_{name}"), "127.0.0.1:0");
    }
    let peer = free_address()?.to_string();
    command
        .env("SLUICE_CLUSTER__LISTEN", &peer)
        .env("SLUICE_CLUSTER__ADVERTISE", &peer);
    command.arg("serve");
    Ok(command)
}

/// Rejects and names what is no node of the cluster.
pub async fn reject_strangers(installation: &Installation) -> Result<(), Failure> {
    call_without_signature(installation).await?;
    start_wrongly(installation).await
}

/// In the data folder of a node, without being a node, and with another object store.
async fn start_wrongly(installation: &Installation) -> Result<(), Failure> {
    let node = &installation.nodes[0];
    let text = rejected(beside(node)?).await?;
    assert!(text.contains("the data folder"), "{text}");

    let copy = tempfile::TempDir::new()?;
    let copied = Command::new("cp")
        .arg("-a")
        .arg(node.data_dir().join("."))
        .arg(copy.path())
        .status()?;
    assert!(copied.success(), "the data folder is not copied");
    let mut copied = beside(node)?;
    copied.env("SLUICE_STORE__DATA_DIR", copy.path());
    let text = rejected(copied).await?;
    assert!(text.contains("is a copy"), "{text}");

    let other = tempfile::TempDir::new()?;
    let mut alone = beside(node)?;
    alone
        .env("SLUICE_STORE__DATA_DIR", other.path())
        .env_remove("SLUICE_CLUSTER__LISTEN")
        .env_remove("SLUICE_CLUSTER__ADVERTISE");
    let text = rejected(alone).await?;
    assert!(text.contains("cluster.listen"), "{text}");

    // Before there are files, which rows would name.
    let (folder, bucket) = (tempfile::TempDir::new()?, tempfile::TempDir::new()?);
    let mut elsewhere = beside(node)?;
    elsewhere.env("SLUICE_STORE__DATA_DIR", folder.path()).env(
        "SLUICE_STORE__OBJECTS_URL",
        format!("file://{}", bucket.path().display()),
    );
    let text = rejected(elsewhere).await?;
    let names_node = installation.nodes.iter().any(|node| {
        let named = format!("the node {},", node.name);
        text.contains(&named)
    });
    assert!(text.contains("store.objects_url") && names_node, "{text}");
    assert!(!bucket.path().join("owner").exists(), "it left nothing");
    // The nodes have noticed nothing.
    installation.nodes[0].api().get("/api/files").await?;
    Ok(())
}

async fn call_without_signature(installation: &Installation) -> Result<(), Failure> {
    let client = client();
    for node in &installation.nodes {
        let url = format!("http://{}/peer/ping", node.peer());
        let now_ms = jiff::Timestamp::now().as_millisecond();
        let forged = |from: Uuid, at_ms: i64| {
            format!(
                "v1 {from} {at_ms} {} {}",
                Uuid::now_v7().simple(),
                "ab".repeat(32)
            )
        };
        let sql = format!("SELECT id FROM sluice.nodes WHERE name = '{}'", node.name);
        let known: Uuid = installation
            .postgres
            .ask(&sql)?
            .pop()
            .ok_or("no row")?
            .parse()?;
        for header in [
            None,
            Some(String::new()),
            Some("v1".to_owned()),
            Some(format!("Bearer {API_KEY}")),
            Some(forged(Uuid::now_v7(), now_ms)),
            Some(forged(known, now_ms)),
            Some(forged(known, now_ms - 3_600_000)),
            Some("x".repeat(4_000)),
        ] {
            let mut request = client.get(&url);
            if let Some(header) = &header {
                request = request.header("sluice-peer", header);
            }
            let answer = fetch(request).await?;
            assert_eq!(answer.status, 401, "{header:?}: {}", answer.text());
        }
        // No page and no part of the API is there.
        let files = fetch(
            client
                .get(format!("http://{}/api/files", node.peer()))
                .bearer_auth(API_KEY),
        );
        assert_eq!(files.await?.status, 401);
    }
    Ok(())
}

/// The library that moves the clock of a process.
fn faketime() -> Result<PathBuf, Failure> {
    let unpacked = root().join("target/tools/faketime/usr/lib");
    let found = find(&unpacked).or_else(|| find(Path::new("/usr/lib")));
    Ok(found.ok_or("libfaketime is missing: scripts/install.sh test")?)
}

/// In the folder of one of the architectures.
fn find(libraries: &Path) -> Option<PathBuf> {
    let folders = std::fs::read_dir(libraries).ok()?;
    folders
        .filter_map(|folder| Some(folder.ok()?.path().join("faketime/libfaketimeMT.so.1")))
        .find(|library| library.exists())
}

/// The nodes go by the database's clock, and say that a machine's is wrong; the third one is an hour ahead from then on.
pub async fn name_wrong_clock(installation: &mut Installation) -> Result<(), Failure> {
    let library = faketime()?.display().to_string();
    let late = &mut installation.nodes[2];
    late.terminate().await?;
    late.set_environment(&[
        ("LD_PRELOAD", library.as_str()),
        ("FAKETIME", "+3600"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ]);
    late.start().await?;
    installation.wait_for_nodes(3).await?;
    let api = installation.nodes[2].api();
    let names_clock = |answer: &Value| {
        let reasons = answer["reasons"].as_array()?;
        let is_named = reasons.iter().any(|reason| reason["name"] == "cluster");
        (answer["status"] == "degraded" && is_named).then_some(())
    };
    api.wait("/readyz", "the clock is named", SOON, names_clock)
        .await?;

    let file = api.upload("late.txt", b"late").await?;
    let at: jiff::Timestamp = file["created_at"].as_str().ok_or("no time")?.parse()?;
    let off = at.duration_since(jiff::Timestamp::now()).as_secs().abs();
    assert!(off < 60, "the file is {off} s off");
    // Its work is neither due too early nor leased for too long: a job of it ends on any node.
    let job = api
        .convert("late.svg", &image(0, &mut Dice::new(13)))
        .await?;
    for node in &installation.nodes {
        let path = format!("/api/jobs/{job}");
        eventually("the job has completed", SOON, async || {
            let record = node.api().get(&path).await.ok()?;
            (record["status"] == json!("completed")).then_some(())
        })
        .await?;
    }
    Ok(())
}
