//! Files, folders and links: uploads over cuts and a reload, what is done with them, and what a viewer may not do.

use serde_json::json;

use super::{scene, walk, welcome};
use crate::{
    browser::Turn,
<<<<<<< HEAD
    support::{Failure, server::Server},
=======
    support::{Failure, command::sluice, server::Server},
>>>>>>> j4
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_uploaded_arranged_and_shared() -> Result<(), Failure> {
    let Some(_turn) = Turn::begin().await? else {
        return Ok(());
    };
    let server = Server::start().await?;
<<<<<<< HEAD
    let more = json!({ "viewer": welcome(&server, "vera", "viewer").await? });
=======
    let beside = |arguments: &[&str]| sluice(arguments).data_dir(server.data_dir());
    beside(&["users", "add", "vera", "--role", "viewer"])
        .succeed()
        .await?;
    let made = beside(&["users", "welcome", "vera"]).succeed().await?;
    let link = made.lines().find(|line| line.contains("/app/welcome#"));
    let (_, path) = link
        .and_then(|link| link.trim().split_once("/app/"))
        .ok_or_else(|| made.clone())?;
    let more = json!({ "viewer": format!("{}/app/{path}", server.base_url()) });
>>>>>>> j4
    walk("files", &scene(&server, &more)).await
}
