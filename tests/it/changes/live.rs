//! Stream of changes: state of live inputs that no commit shows, and health each second.

use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio::time::Instant;

use super::SOON;
use crate::support::{
    Failure,
    changes::ChangeStream,
    encoder::Publish,
    media::Recipe,
    server::{API_KEY, Settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_input_goes_live_reconnects_and_ends_in_the_stream() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).lasting(60).make()?;
    let server = Settings::new().start().await?;
    let api = server.api();
    let input = api
        .create(json!({"name": "Main stage", "reconnectWindowSeconds": 2}))
        .await?;
    let mut stream = ChangeStream::open(&server, API_KEY, "").await?;
    let mut encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    // The status is read after each nudge, as a page does: no poll finds what no nudge has named.
    let mut reached = async |status: &str| -> Result<(), Failure> {
        while api.get(&input.id).await?["status"] != status {
            stream
                .until(status, SOON, |it| it.is_change("live_input", &input.id))
                .await?;
        }
        Ok(())
    };
    reached("live").await?;
    encoder.kill().await?;
    reached("reconnecting").await?;
    reached("idle").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_comes_each_second_until_the_input_is_deleted() -> Result<(), Failure> {
    let server = Settings::new().start().await?;
    let api = server.api();
    let input = api.create(json!({"name": "Studio"})).await?;
    // The first one may be read late.
    let begun = Instant::now();
    let mut stream = ChangeStream::open(&server, API_KEY, &format!("?health={}", input.id)).await?;
    let is_health = |it: &crate::support::changes::StreamEvent| it.name == "health";
    let mut times = Vec::new();
    for _ in 0..3 {
        let seen = stream.until("health", SOON, is_health).await?;
        let health = seen.last().ok_or("no event")?;
        assert_eq!(health.data["id"], json!(input.id));
        assert_eq!(health.data["health"], api.health(&input.id).await?);
        times.push(health.at);
    }
    assert!((times[2] - begun).as_secs_f64() > 1.0, "{times:?}");
    api.delete(&input.id).await?;
    stream.rest(SOON).await?;

    for (id, status) in [
        (input.id.as_str(), StatusCode::NOT_FOUND),
        ("main", StatusCode::BAD_REQUEST),
    ] {
        let path = format!("/api/changes?health={id}");
        api.expect(status, Method::GET, &path, None).await?;
    }
    Ok(())
}
