//! The API reference, whose calls are sent to the service that it describes.

use serde_json::json;

use super::{scene, walk};
use crate::{
    browser::Turn,
    support::{Failure, server::Settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reference_is_searched_and_its_calls_are_tried() -> Result<(), Failure> {
    let Some(_turn) = Turn::beside_another().await? else {
        return Ok(());
    };
    let server = Settings::new()
        .env("SLUICE_SIGN_IN__REQUESTS_PER_MINUTE", "100000")
        .start()
        .await?;
    let more = json!({"key": server.api().key()});
    walk("docs", &scene(&server, &more)).await
}
