//! Dashboard: welcome link, navigation, and what surrounds every screen.

use serde_json::json;

use super::{scene, walk};
use crate::{
    browser::Turn,
    support::{Failure, command::sluice, encoder::Publish, media::Recipe, server::Server},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newcomer_is_welcomed_and_finds_the_way() -> Result<(), Failure> {
    let Some(_turn) = Turn::begin().await? else {
        return Ok(());
    };
    let server = Server::start().await?;
    let clip = Recipe::numbered(0).make()?;
    let input = server.api().create(json!({"name": "Main stage"})).await?;
    let _encoder = Publish::new(&clip, &input.rtmp_url())?.looped().start()?;
    let beside = |arguments: &[&str]| sluice(arguments).data_dir(server.data_dir());
    beside(&["users", "add", "vera", "--role", "admin"])
        .succeed()
        .await?;
    let made = beside(&["users", "welcome", "vera"]).succeed().await?;
    let link = made.lines().find(|line| line.contains("/app/welcome#"));
    let link = link.ok_or_else(|| made.clone())?.trim();
    let (_, path) = link.split_once("/app/").ok_or_else(|| made.clone())?;
    let more = json!({
        "guest": "vera",
        "onAir": "Main stage",
        "welcome": format!("{}/app/{path}", server.base_url()),
    });
    walk("shell", &scene(&server, &more)).await
}
