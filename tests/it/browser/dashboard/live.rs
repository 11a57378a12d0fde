//! Live inputs: encoders come, are watched, forwarded and recorded, and go.

use serde_json::json;

use super::{scene, walk};
use crate::{
    browser::Turn,
    support::{Failure, server::Settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn live_inputs_are_connected_watched_and_ended() -> Result<(), Failure> {
    let Some(_turn) = Turn::beside_another().await? else {
        return Ok(());
    };
    let server = Settings::new()
        .env("SLUICE_SIGN_IN__REQUESTS_PER_MINUTE", "100000")
        .reaching_this_machine()
        .start()
        .await?;
    let second = server
        .api()
        .create(json!({"name": "Second platform"}))
        .await?;
    let more = json!({ "second": second.rtmp_url() });
    walk("live", &scene(&server, &more)).await
}
