//! What the service answers about a live input beside its stream: lists, health over time, connections, the end by its
//! owner.

use std::{path::Path, time::Duration};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::{
    Failure,
    command::run,
    encoder::Publish,
    eventually,
    json::{list, text},
    media::{Clip, Recipe},
    publisher::{Pace, Publisher},
    server::{Api, Input, Server},
    viewer::Viewer,
};

const SOON: Duration = Duration::from_secs(20);
const PLAYED: Duration = Duration::from_secs(40);
/// Columns of the history that have a value only while media come.
const OF_MEDIA: [&str; 4] = ["videoKbps", "audioKbps", "fps", "driftMs"];

fn numbered() -> Result<Clip, Failure> {
    Recipe::numbered(0).lasting(120).make()
}

async fn below(api: &Api, input: &Input, name: &str) -> Result<Value, Failure> {
    let path = format!("/api/live/inputs/{}/{name}", input.id);
    api.expect(StatusCode::OK, Method::GET, &path, None).await
}

async fn end(api: &Api, input: &Input) -> Result<(StatusCode, Value), Failure> {
    let path = format!("/api/live/inputs/{}/end", input.id);
    api.call(Method::POST, &path, None).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_ends_a_broadcast_and_the_encoder_may_come_back() -> Result<(), Failure> {
    let clip = numbered()?;
    let server = Server::start().await?;
    let api = server.api();
    let input = api
        .create(json!({"name": "Main stage", "recordMode": "automatic"}))
        .await?;
    assert_eq!(end(&api, &input).await?.0, 409, "nothing is on air");
    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    viewing.until_frames(30, PLAYED).await?;
    let on_air = listed(&api, "status=live").await?;
    assert_eq!(on_air["liveInputs"][0]["id"], json!(input.id));
    assert_eq!(on_air["counts"]["live"], 1, "{on_air}");
    let record = api.get(&input.id).await?;
    assert!(
        record["startedAt"].is_string() && record["reconnectUntil"].is_null(),
        "{record}"
    );
    api.wait_health(&input.id, "a viewer is counted", SOON, |health| {
        health["viewers"] == 1
    })
    .await?;

    let (status, ended) = end(&api, &input).await?;
    assert_eq!(
        (status.as_u16(), &ended["liveInput"]["status"]),
        (200, &json!("idle"))
    );
    assert!(ended["liveInput"]["startedAt"].is_null(), "{ended}");
    assert!(
        !encoder.wait(SOON).await?.success(),
        "the encoder was sent away"
    );
    viewing.until_ended(SOON).await?;
    let (status, again) = end(&api, &input).await?;
    assert_eq!((status.as_u16(), &again["code"]), (409, &json!("not_live")));

    let connection = eventually("the connection's end is noted", SOON, async || {
        let connections = below(&api, &input, "connections").await.ok()?;
        let newest = connections["connections"][0].clone();
        newest["reason"].is_string().then_some(newest)
    })
    .await?;
    assert_eq!(
        (
            &connection["reason"],
            &connection["protocol"],
            &connection["remoteAddress"]
        ),
        (&json!("closed"), &json!("rtmp"), &json!("127.0.0.1"))
    );
    assert!(
        text(&connection["encoder"])?.starts_with("Lavf"),
        "{connection}"
    );
    assert!(
        connection["duration"].as_f64().is_some_and(|s| s > 0.5),
        "{connection}"
    );
    // Noted after the connection's end, not always in one transaction with it.
    let broadcast = eventually("the broadcast's viewer is noted", SOON, async || {
        let broadcasts = below(&api, &input, "broadcasts").await.ok()?;
        let newest = broadcasts["broadcasts"][0].clone();
        (newest["peakViewers"] == 1).then_some(newest)
    })
    .await?;
    assert_eq!(broadcast["id"], connection["broadcastId"]);
    let recording = below(&api, &input, "recordings").await?["recordings"][0].clone();
    assert_eq!(recording["peakViewers"], 1, "{recording}");

    let mut back = Publisher::open(&input.target(), &clip).await?;
    back.send_frames(60, Pace::RealTime).await?;
    api.wait_status(&input.id, "live", SOON).await?;
    let connections = eventually("the next connection is noted", SOON, async || {
        let connections = below(&api, &input, "connections?limit=1").await.ok()?;
        connections["nextCursor"].is_string().then_some(connections)
    })
    .await?;
    let cursor = text(&connections["nextCursor"])?;
    let older = below(
        &api,
        &input,
        &format!("connections?limit=1&cursor={cursor}"),
    )
    .await?;
    assert_eq!(older["connections"][0], connection);
    let newest = &connections["connections"][0];
    assert_ne!(
        newest["broadcastId"], connection["broadcastId"],
        "a broadcast of its own"
    );
    assert!(newest["disconnectedAt"].is_null(), "{newest}");

    // A window that is open can be closed, too.
    back.cut().await?;
    let waiting = api.wait_status(&input.id, "reconnecting", SOON).await?;
    assert!(waiting["reconnectUntil"].is_string(), "{waiting}");
    assert_eq!(
        listed(&api, "status=reconnecting").await?["pagination"]["total"],
        1
    );
    assert_eq!(end(&api, &input).await?.0, 200);
    api.wait_status(&input.id, "idle", SOON).await?;
    Ok(())
}

async fn listed(api: &Api, query: &str) -> Result<Value, Failure> {
    let path = format!("/api/live/inputs?{query}");
    api.expect(StatusCode::OK, Method::GET, &path, None).await
}

/// The history once it satisfies `met`.
async fn history(
    api: &Api,
    input: &Input,
    what: &str,
    met: impl Fn(&Value) -> bool,
) -> Result<Value, Failure> {
    eventually(what, PLAYED, async || {
        let history = below(api, input, "health/history").await.ok()?;
        met(&history).then_some(history)
    })
    .await
}

/// The values of a column that are there.
fn values(history: &Value, column: &str) -> Vec<f64> {
    let values = list(&history[column]).unwrap_or_default();
    values.iter().filter_map(Value::as_f64).collect()
}

fn ends_with_a_gap(history: &Value) -> bool {
    let last = |column: &str| list(&history[column]).ok()?.pop();
    !values(history, "t").is_empty()
        && OF_MEDIA
            .iter()
            .all(|column| last(column) == Some(Value::Null))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_has_a_past_with_gaps_and_without_zeros() -> Result<(), Failure> {
    let clip = numbered()?;
    let mut server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({"reconnectWindowSeconds": 600})).await?;
    let mut encoder = Publisher::open(&input.target(), &clip).await?;
    encoder.send_frames(250, Pace::RealTime).await?;
    let sent = history(&api, &input, "some seconds of health", |history| {
        OF_MEDIA
            .iter()
            .all(|column| values(history, column).len() >= 3)
    })
    .await?;
    check_columns(&sent)?;
    assert!(
        values(&sent, "videoKbps").iter().all(|kbps| *kbps > 0.0),
        "{sent}"
    );
    assert_eq!(values(&sent, "lostPackets"), [0.0; 0], "RTMP loses none");

    // An encoder that is silent, then one that is gone.
    let silent = history(&api, &input, "silence is a gap", ends_with_a_gap).await?;
    assert_eq!(api.get(&input.id).await?["status"], "live", "{silent}");
    encoder.cut().await?;
    api.wait_status(&input.id, "reconnecting", SOON).await?;
    let gone = values(&silent, "fps").len();
    let mut encoder = Publisher::open(&input.target(), &clip).await?;
    encoder.send_frames(150, Pace::RealTime).await?;
    let back = history(&api, &input, "values after the gap", |history| {
        values(history, "fps").len() > gone
    })
    .await?;
    check_columns(&back)?;
    let fps = list(&back["fps"])?;
    let gap = fps
        .iter()
        .skip_while(|value| value.is_null())
        .skip_while(|value| !value.is_null());
    assert!(
        gap.clone().any(|value| !value.is_null()),
        "a gap in the middle: {back}"
    );
    assert!(values(&back, "fps").iter().all(|fps| *fps > 0.0), "{back}");
    let little = below(&api, &input, "health/history?seconds=2").await?;
    assert!(list(&little["t"])?.len() <= 2, "{little}");

    encoder.end().await?;
    api.wait_status(&input.id, "idle", SOON).await?;
    let ended = history(&api, &input, "the end is a gap", ends_with_a_gap).await?;
    assert!(values(&ended, "fps").len() >= gone, "kept after the end");

    server.kill().await?;
    server.restart().await?;
    let after = below(&api, &input, "health/history").await?;
    assert_eq!(after["t"], json!([]), "lost with the process");
    Ok(())
}

/// All columns are as long as `t`, which has every second.
fn check_columns(history: &Value) -> Result<(), Failure> {
    let t = values(history, "t");
    assert!(
        t.windows(2).all(|pair| pair[1] - pair[0] == 1.0),
        "{history}"
    );
    for column in ["viewers", "lostPackets", "roundTripMs"]
        .iter()
        .chain(&OF_MEDIA)
    {
        assert_eq!(list(&history[*column])?.len(), t.len(), "{column}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_survive_a_kill_and_a_key_without_its_id_cannot_be_shown() -> Result<(), Failure>
{
    let clip = numbered()?;
    let mut server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let mut encoder = Publisher::open(&input.target(), &clip).await?;
    encoder.send_frames(60, Pace::RealTime).await?;
    eventually("the connection is noted", SOON, async || {
        let connections = below(&api, &input, "connections").await.ok()?;
        connections["connections"][0]["connectedAt"]
            .is_string()
            .then_some(())
    })
    .await?;
    server.kill().await?;
    drop(encoder);
    forget_key_ids(&server.data_dir().join("sluice.db")).await?;
    server.restart().await?;

    let mut encoder = Publisher::open(&input.target(), &clip).await?;
    encoder.send_frames(30, Pace::RealTime).await?;
    let connections = eventually("the end of the first one is noted", SOON, async || {
        let connections =
            list(&below(&api, &input, "connections").await.ok()?["connections"]).ok()?;
        (connections.len() == 2).then_some(connections)
    })
    .await?;
    assert_eq!(connections[0]["reason"], Value::Null);
    assert_eq!(connections[1]["reason"], "interrupted");

    assert_eq!(api.get(&input.id).await?["streamKeyRevealable"], false);
    let reveal = format!("/api/live/inputs/{}/reveal-key", input.id);
    let (status, refused) = api.call(Method::POST, &reveal, None).await?;
    assert_eq!(
        (status.as_u16(), &refused["code"]),
        (409, &json!("stream_key_not_kept"))
    );
    assert!(text(&refused["error"])?.contains("rotate-key"), "{refused}");
    let audit = api
        .expect(
            StatusCode::OK,
            Method::GET,
            "/api/audit?action=live.input.key_revealed",
            None,
        )
        .await?;
    assert_eq!(audit["entries"], json!([]), "nothing was shown");
    let rotated = api.rotate(&input.id).await?;
    let revealed = api
        .expect(StatusCode::OK, Method::POST, &reveal, None)
        .await?;
    assert_eq!(revealed["streamKey"], rotated.record["streamKey"]);
    Ok(())
}

/// Leaves stream keys as an earlier version made them; the service must not run.
async fn forget_key_ids(database: &Path) -> Result<(), Failure> {
    const SCRIPT: &str = "import sqlite3, sys\n\
        database = sqlite3.connect(sys.argv[1])\n\
        database.execute('UPDATE live_inputs SET stream_key_id = NULL')\n\
        database.commit()";
    let mut command = Command::new("python3");
    command.args(["-c", SCRIPT]).arg(database);
    let output = run(&mut command, b"", SOON).await?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}
