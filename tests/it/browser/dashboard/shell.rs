//! Dashboard: welcome link, navigation, and what surrounds every screen.

use serde_json::json;

use super::{scene, walk, welcome};
use crate::{
    browser::Turn,
    support::{Failure, encoder::Publish, media::Recipe, server::Server},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newcomer_is_welcomed_and_finds_the_way() -> Result<(), Failure> {
    let Some(_turn) = Turn::beside_another().await? else {
        return Ok(());
    };
    let server = Server::start().await?;
    let clip = Recipe::numbered(0).make()?;
    let input = server.api().create(json!({"name": "Main stage"})).await?;
    let _encoder = Publish::new(&clip, &input.rtmp_url())?.looped().start()?;
    let more = json!({
        "guest": "vera",
        "onAir": "Main stage",
        "welcome": welcome(&server, "vera", "admin").await?,
    });
    walk("shell", &scene(&server, &more)).await
}
