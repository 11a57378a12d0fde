//! `live.input.*`, with a real encoder.

use serde_json::{Value, json};

use super::{SOON, check_numbers, wait_for_events};
use crate::support::{
    Failure,
    encoder::Publish,
    media::{Recipe, numbered},
    server::Server,
};

const LIVE: &str = "live.input.";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_encoder_is_reported_when_it_comes_and_when_it_goes() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).lasting(4).make()?;
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({"name": "Stage left"})).await?;
    let mut encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    let events = wait_for_events(&api, LIVE, 1).await?;
    let (kind, connected) = &events[0];
    assert_eq!(
        (kind.as_str(), connected),
        (
            "live.input.connected",
            &json!({
                "liveInputId": input.id, "name": "Stage left", "playbackId": input.playback_id,
                "broadcastId": connected["broadcastId"], "protocol": "rtmp", "remoteAddress": "127.0.0.1",
                "sequence": 1,
            })
        )
    );
    let status = encoder.wait(SOON).await?;
    assert!(status.success(), "{}", encoder.complaints());
    let events = wait_for_events(&api, LIVE, 2).await?;
    let mut expected = connected.clone();
    expected["reason"] = json!("ended");
    expected["sequence"] = json!(2);
    assert_eq!(
        (events[1].0.as_str(), &events[1].1),
        ("live.input.disconnected", &expected)
    );
    assert_eq!(events.len(), 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_service_tells_the_end_that_it_did_not_see() -> Result<(), Failure> {
    let mut server = Server::start().await?;
    let api = server.api();
    let back = api.create(json!({"name": "comes back"})).await?;
    let gone = json!({"name": "stays away", "reconnectWindowSeconds": 1});
    let gone = api.create(gone).await?;
    let mut encoders = Vec::new();
    for input in [&back, &gone] {
        encoders.push(Publish::new(&numbered(0), &input.rtmp_url())?.start()?);
        api.wait_status(&input.id, "live", SOON).await?;
    }
    wait_for_events(&api, LIVE, 2).await?;
    server.kill().await?;
    for encoder in &mut encoders {
        encoder.wait(SOON).await?;
    }
    server.restart().await?;
    let api = server.api();
    let mut encoder = Publish::new(&numbered(20_000), &back.rtmp_url())?.start()?;
    let events = wait_for_events(&api, LIVE, 5).await?;
    for (id, expected) in [
        (
            &back.id,
            vec![json!(null), json!("interrupted"), json!(null)],
        ),
        (&gone.id, vec![json!(null), json!("interrupted")]),
    ] {
        let of_input: Vec<(String, Value)> = events
            .iter()
            .filter(|(_, data)| data["liveInputId"] == json!(id))
            .cloned()
            .collect();
        check_numbers(&of_input);
        let reasons: Vec<Value> = of_input
            .iter()
            .map(|(_, data)| data.get("reason").cloned().unwrap_or_default())
            .collect();
        assert_eq!(reasons, expected, "{id}");
    }
    encoder.stop().await?;
    Ok(())
}
