//! Activity: jobs, runs, video streams, recordings and uploads in one list; help and guides.

use serde_json::json;

use super::{scene, walk, welcome};
use crate::{
    browser::Turn,
    support::{Failure, server::Settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_that_happens_is_listed_filtered_and_cancelled() -> Result<(), Failure> {
    let Some(_turn) = Turn::beside_another().await? else {
        return Ok(());
    };
    let server = Settings::new()
        .env("SLUICE_SIGN_IN__REQUESTS_PER_MINUTE", "100000")
        .start()
        .await?;
    let more = json!({ "viewer": welcome(&server, "vera", "viewer").await? });
    walk("activity", &scene(&server, &more)).await
}
