//! Webhooks: endpoints, deliveries and events, against a receiver that the steps open.

use serde_json::json;

use super::{scene, walk, welcome};
use crate::{
    browser::Turn,
    support::{Failure, server::Settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_are_made_followed_and_recovered() -> Result<(), Failure> {
    let Some(_turn) = Turn::beside_another().await? else {
        return Ok(());
    };
    // An endpoint is suspended after three attempts and one more; only its owner probes it.
    let server = Settings::new()
        .reaching_this_machine()
        .env("SLUICE_WEBHOOKS__RETRY_AFTER_S", "1,1")
        .env("SLUICE_WEBHOOKS__SUSPEND_AFTER", "4")
        .env("SLUICE_WEBHOOKS__SUSPEND_OVER", "0s")
        .env("SLUICE_WEBHOOKS__PROBE_EVERY", "1h")
        .env("SLUICE_SIGN_IN__REQUESTS_PER_MINUTE", "100000")
        .start()
        .await?;
    let more = json!({ "viewer": welcome(&server, "vera", "viewer").await? });
    walk("webhooks", &scene(&server, &more)).await
}
