//! The editor of workflows: the guide's workflow by keyboard in the outline and by mouse on the canvas, and what surrounds it.

use serde_json::json;

use super::{scene, walk};
use crate::{
    browser::Turn,
    support::{Failure, server::Settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workflows_are_built_in_the_outline_and_on_the_canvas() -> Result<(), Failure> {
    let Some(_turn) = Turn::beside_another().await? else {
        return Ok(());
    };
    let server = Settings::new()
        .reaching_this_machine()
        .env("SLUICE_SIGN_IN__REQUESTS_PER_MINUTE", "100000")
        .start()
        .await?;
    walk("workflow_editor", &scene(&server, &json!({}))).await
}
