//! Keys, sessions, roles, and what a used-up plan and a suspended account look like.

use serde_json::json;

use super::{scene, walk, welcome};
use crate::{
    browser::Turn,
    support::{Failure, server::Settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_sessions_and_roles_are_managed() -> Result<(), Failure> {
    let Some(_turn) = Turn::beside_another().await? else {
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_used_up_plan_is_explained() -> Result<(), Failure> {
    let Some(_turn) = Turn::beside_another().await? else {
        return Ok(());
    };
    let server = Settings::new()
        .env("SLUICE_ACCOUNT__PLAN", "free")
        .env("SLUICE_PLANS__FREE__OPERATIONS_PER_MONTH", "2")
        .env("SLUICE_PLANS__FREE__STORAGE", "1 MB")
        .env("SLUICE_SIGN_IN__REQUESTS_PER_MINUTE", "150")
        .start()
        .await?;
    let more = json!({
        "program": env!("CARGO_BIN_EXE_sluice"),
        "dataDir": server.data_dir(),
    });
    walk("limits", &scene(&server, &more)).await
}
