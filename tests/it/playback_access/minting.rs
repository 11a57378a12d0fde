//! Tokens that an account mints itself, as the guide shows it.

use std::process::Command;

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{on_air, text};
use crate::support::{
    Failure,
    document::blocks,
    server::{Api, Server},
};

const GUIDE: &str = include_str!("../../../docs/guide/playback.md");

/// A playback key with its secret.
pub struct Key {
    pub id: String,
    pub secret: String,
}

impl Key {
    pub async fn make(api: &Api) -> Result<Self, Failure> {
        let path = "/api/playback-keys";
        let made = api
            .expect(
                StatusCode::CREATED,
                Method::POST,
                path,
                Some(&json!({"name": "site"})),
            )
            .await?;
        Ok(Self {
            id: text(&made["key"], "id")?,
            secret: text(&made, "secret")?,
        })
    }

    pub async fn revoke(&self, api: &Api) -> Result<(), Failure> {
        let path = format!("/api/playback-keys/{}", self.id);
        api.expect(StatusCode::OK, Method::DELETE, &path, None)
            .await?;
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guides_program_mints_tokens_without_the_service() -> Result<(), Failure> {
    let mut server = Server::start().await?;
    let api = server.api();
    let (input, mut encoder) = on_air(&api, json!({"requireSignedPlayback": true})).await?;
    let key = Key::make(&api).await?;
    let program = blocks(GUIDE, "python").into_iter().next();
    let program = program.ok_or("the guide has no Python")?;
    let minted = Command::new("python3")
        .args(["-c", &program, &key.id, &key.secret, &input.playback_id])
        .output()?;
    assert!(minted.status.success(), "{minted:?}");
    let token = String::from_utf8(minted.stdout)?.trim().to_owned();
    let path = format!("/live/v1/{token}/index.m3u8");
    let (status, playlist) = server.get(&path).await?;
    assert_eq!(status, 200, "{playlist:?}");

    // The secret is shown once, and the key outlives the process.
    let list = api
        .expect(StatusCode::OK, Method::GET, "/api/playback-keys", None)
        .await?;
    assert_eq!(list["keys"][0]["id"], key.id.as_str());
    assert!(!list.to_string().contains(&key.secret), "{list}");
    assert!(!server.log().contains(&key.secret) && !server.log().contains(&token));
    server.kill().await?;
    server.restart().await?;
    assert_eq!(server.get(&path).await?.0, 200);
    key.revoke(&server.api()).await?;
    assert_eq!(server.get(&path).await?.0, 403);
    encoder.kill().await
}
