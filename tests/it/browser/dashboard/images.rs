//! Image delivery: addresses, presets, statistics and purging.

use serde_json::json;

use super::{scene, walk};
use crate::{
    browser::Turn,
    support::{Failure, server::Settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_of_images_are_built_named_and_purged() -> Result<(), Failure> {
    let Some(_turn) = Turn::beside_another().await? else {
        return Ok(());
    };
    let server = Settings::new()
        .env("SLUICE_SIGN_IN__REQUESTS_PER_MINUTE", "100000")
        .start()
        .await?;
    walk("images", &scene(&server, &json!({}))).await
}
