//! Workflows and their runs: made by a template, run on a photograph, mended, run again, cancelled; versions and settings.

use serde_json::json;

use super::{scene, walk, welcome};
use crate::{
    browser::Turn,
    support::{Failure, server::Settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workflows_are_run_followed_and_mended() -> Result<(), Failure> {
    let Some(_turn) = Turn::beside_another().await? else {
        return Ok(());
    };
    // Runs are followed from their beginning, and the second of a workflow waits.
    let server = Settings::new()
        .env("SLUICE_WORKFLOWS__INLINE_WAIT", "0s")
        .env("SLUICE_WORKFLOWS__MAX_ACTIVE_PER_WORKFLOW", "1")
        .env("SLUICE_SIGN_IN__REQUESTS_PER_MINUTE", "100000")
        .start()
        .await?;
    let more = json!({ "viewer": welcome(&server, "vera", "viewer").await? });
    walk("runs", &scene(&server, &more)).await
}
