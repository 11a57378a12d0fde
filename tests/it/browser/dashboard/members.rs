//! Members, invitations, links for a new password and the audit log.

use serde_json::json;

use super::{scene, walk};
use crate::{
    browser::Turn,
    support::{Failure, server::Settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_are_invited_changed_and_removed() -> Result<(), Failure> {
    let Some(_turn) = Turn::beside_another().await? else {
        return Ok(());
    };
    let server = Settings::new()
        .env("SLUICE_SIGN_IN__REQUESTS_PER_MINUTE", "100000")
        .start()
        .await?;
    walk("members", &scene(&server, &json!({}))).await
}
