//! A ladder and a conversion do not slow a concurrent live stream: live has the higher priority.

use serde_json::json;

use super::{
    patient,
    streams::{create, wait_ready},
};
use crate::support::{Failure, json::text, media::Recipe, on_air::OnAir};

/// Length of the live stream: longer than the work beside it on an idle machine.
const SECONDS: u32 = 14;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ladder_and_a_conversion_cost_a_stream_no_part() -> Result<(), Failure> {
    let source = Recipe::numbered(0).lasting(10).enlarged(4)?;
    let source_bytes = std::fs::read(&source)?;
    let clip = Recipe::numbered(0).lasting(SECONDS).make()?;
    let server = patient().await?;
    let api = server.api();
    let on_air = OnAir::start(&server, &clip).await?;

    let stream = create(&api, &source, json!({"profile": "basic"})).await?;
    let fields = [("format", "mp4"), ("resizeWidth", "480")];
    let (record, _) = api.convert("film.mp4", &source_bytes, &fields).await?;
    assert_eq!(record["width"], json!(480), "{record}");
    wait_ready(&api, &text(&stream["id"])?).await?;

    on_air.check_whole().await
}
