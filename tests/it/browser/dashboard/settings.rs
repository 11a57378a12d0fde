//! Keys, sessions and roles.

use serde_json::json;

use super::{scene, walk, welcome};
use crate::{
    browser::Turn,
    support::{Failure, server::Settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_sessions_and_roles_are_managed() -> Result<(), Failure> {
    let Some(_turn) = Turn::begin().await? else {
        return Ok(());
    };
    let server = Settings::new()
        .env("SLUICE_SIGN_IN__REQUESTS_PER_MINUTE", "100000")
        .start()
        .await?;
    let more = json!({
        "viewer": welcome(&server, "vera", "viewer").await?,
        "member": welcome(&server, "mona", "member").await?,
    });
    walk("settings", &scene(&server, &more)).await
}
