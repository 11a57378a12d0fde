//! Files, folders and links: uploads over cuts and a reload, what is done with them, and what a viewer may not do.

use serde_json::json;

use super::{scene, walk, welcome};
use crate::{
    browser::Turn,
    support::{Failure, server::Settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_uploaded_arranged_and_shared() -> Result<(), Failure> {
    let Some(_turn) = Turn::beside_another().await? else {
        return Ok(());
    };
    // The previews of hundreds of pictures count too: a fast machine asks for many in one minute.
    let server = Settings::new()
        .env("SLUICE_SIGN_IN__REQUESTS_PER_MINUTE", "100000")
        .start()
        .await?;
    let more = json!({ "viewer": welcome(&server, "vera", "viewer").await? });
    walk("files", &scene(&server, &more)).await
}
