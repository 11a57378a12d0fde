//! Events of publishers' connections: one beginning, one end, whatever dies in between.

use serde_json::{Value, json};
use sluice_store::live_inputs::LiveInputPatch;

use super::*;
use crate::events::tests::{feed, sequence};

impl Service {
    /// Ends everything without a word: what the ledger has not written is lost.
    async fn kill(self) {
        self.root.kill();
        self.root.wait_for_shutdown().await;
        self.store.close().await;
        self.stop.cancel();
    }

    /// Waits until exactly these events of the input were sent: `connected`, or the reason of a disconnection.
    async fn events(&self, first: &FirstCredentials, expected: &[&str]) -> Vec<Value> {
        let account_id = first.live_input.account_id;
        let waiting = async {
            loop {
                let events = feed(&self.store, account_id).await;
                if events.len() >= expected.len() {
                    return events;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let events = tokio::time::timeout(Duration::from_secs(20), waiting).await;
        let events = events.unwrap_or_else(|_| panic!("waited in vain for {expected:?}"));
        let words: Vec<&str> = events
            .iter()
            .map(|(kind, data)| match kind.as_str() {
                "live.input.connected" => "connected",
                "live.input.disconnected" => data["reason"].as_str().unwrap(),
                other => panic!("{other}"),
            })
            .collect();
        assert_eq!(words, expected);
        events.into_iter().map(|(_, data)| data).collect()
    }
}

fn check_numbers(events: &[Value]) {
    let numbers: Vec<u64> = events.iter().map(sequence).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn each_connection_is_reported_with_its_end_and_why() {
    let dir = tempfile::tempdir().unwrap();
    let (service, first) = start(dir.path()).await;
    let first = first.unwrap();
    let mut row = first.live_input.clone();

    let session = service.publish(&first, 1).await;
    service.events(&first, &["connected"]).await;
    session.end(Ended::Dropped).await;
    service.events(&first, &["connected", "dropped"]).await;

    let mut older = service.publish(&first, 1).await;
    send(&mut older, 0..2).await.unwrap();
    let newer = service.publish(&first, 2).await;
    let mut words = vec![
        "connected",
        "dropped",
        "connected",
        "taken_over",
        "connected",
    ];
    let events = service.events(&first, &words).await;
    assert_eq!(
        events[4],
        json!({
            "liveInputId": row.id,
            "name": row.name,
            "playbackId": row.playback_id,
            "broadcastId": events[0]["broadcastId"],
            "protocol": "rtmp",
            "remoteAddress": "10.0.0.2",
            "sequence": 5,
        })
    );
    newer.end(Ended::Clean).await;
    words.push("ended");
    let events = service.events(&first, &words).await;
    assert_eq!(events[5]["remoteAddress"], "10.0.0.2");

    let session = service.publish(&first, 1).await;
    words.push("connected");
    let events = service.events(&first, &words).await;
    assert_ne!(events[6]["broadcastId"], events[0]["broadcastId"]);
    row.enabled = false;
    service.live.changed(row.clone()).await.unwrap();
    session.closed().await;
    session.end(Ended::Dropped).await;
    words.push("closed");
    check_numbers(&service.events(&first, &words).await);

    row.enabled = true;
    service.live.changed(row.clone()).await.unwrap();
    let session = service.publish(&first, 1).await;
    words.push("connected");
    service.events(&first, &words).await;
    let (account_id, id) = (row.account_id, row.id);
    let deleted = service
        .store
        .write(move |tx| Box::pin(live_inputs::delete(tx, account_id, id)));
    deleted.await.unwrap();
    service.live.deleted(id).await.unwrap();
    words.push("deleted");
    check_numbers(&service.events(&first, &words).await);
    drop(session);
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orderly_stop_tells_the_end_and_the_next_start_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (service, first) = start(dir.path()).await;
    let first = first.unwrap();
    let _session = service.publish(&first, 1).await;
    service.events(&first, &["connected"]).await;
    service.live.drain().await;
    service.events(&first, &["connected", "closed"]).await;
    service.stop().await;

    let (service, _) = start(dir.path()).await;
    let _session = service.publish(&first, 1).await;
    let words = ["connected", "closed", "connected"];
    check_numbers(&service.events(&first, &words).await);
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_the_end_is_reported_when_the_encoder_is_back() {
    let dir = tempfile::tempdir().unwrap();
    let (service, first) = start(dir.path()).await;
    let first = first.unwrap();
    let mut session = service.publish(&first, 1).await;
    send(&mut session, 0..100).await.unwrap();
    service.events(&first, &["connected"]).await;
    service.kill().await;

    let (service, _) = start(dir.path()).await;
    let playback = service.playback(&first);
    assert_eq!(playback.now().phase, Phase::Reconnecting);
    let _session = service.publish(&first, 2).await;
    let words = ["connected", "interrupted", "connected"];
    let events = service.events(&first, &words).await;
    check_numbers(&events);
    assert_eq!(events[1]["remoteAddress"], "10.0.0.1");
    assert_eq!(events[2]["remoteAddress"], "10.0.0.2");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_the_end_is_reported_when_the_window_has_passed() {
    let dir = tempfile::tempdir().unwrap();
    let (service, first) = start(dir.path()).await;
    let first = first.unwrap();
    let (account_id, id) = (first.live_input.account_id, first.live_input.id);
    let patch = LiveInputPatch {
        reconnect_window_s: Some(1),
        ..LiveInputPatch::default()
    };
    let patched = service.store.write(move |tx| {
        Box::pin(live_inputs::patch(
            tx,
            account_id,
            id,
            patch,
            sluice_store::now_ms(),
        ))
    });
    patched.await.unwrap();
    let mut session = service.publish(&first, 1).await;
    send(&mut session, 0..100).await.unwrap();
    service.events(&first, &["connected"]).await;
    service.kill().await;

    let (service, _) = start(dir.path()).await;
    check_numbers(&service.events(&first, &["connected", "interrupted"]).await);
    service.stop().await;

    let (service, _) = start(dir.path()).await;
    service.events(&first, &["connected", "interrupted"]).await;
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_that_left_nothing_to_continue_with_the_end_is_reported_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let (service, first) = start(dir.path()).await;
    let first = first.unwrap();
    let _session = service.publish(&first, 1).await;
    service.events(&first, &["connected"]).await;
    service.kill().await;
    std::fs::remove_dir_all(dir.path().join("live")).unwrap();

    let (service, _) = start(dir.path()).await;
    service.events(&first, &["connected", "interrupted"]).await;
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crashed_input_is_made_good_by_its_next_connection() {
    let dir = tempfile::tempdir().unwrap();
    let (service, first) = start(dir.path()).await;
    let first = first.unwrap();
    let mut session = service.publish(&first, 1).await;
    send(&mut session, 0..100).await.unwrap();
    service.events(&first, &["connected"]).await;
    let playback = service.playback(&first);
    eventually("most of it is listed", || {
        listed_video_frames(&playback) >= 90
    })
    .await;
    service.crash(&first).await;
    let session = service.publish(&first, 1).await;
    session.end(Ended::Clean).await;
    let words = ["connected", "interrupted", "connected", "ended"];
    check_numbers(&service.events(&first, &words).await);
    service.stop().await;
}
