//! Chosen files as one archive: in other people's programs, in parts, and after a restart.

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{PATIENCE, folder, store};
use crate::support::{Failure, json::text, server::Server, shell::Shell};

/// Half of it, then the rest, without a credential.
const GO_ON: &str = "
curl -sS -f -r 0-$((SIZE / 2)) -o part.zip \"$ADDRESS\"
curl -sS -f -C - -o part.zip \"$ADDRESS\"
cmp whole.zip part.zip
unzip -tqq part.zip
unzip -Z1 part.zip | sort
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_selection_is_downloaded_in_parts_also_after_a_restart() -> Result<(), Failure> {
    let mut server = Server::start().await?;
    let api = server.api();
    let album = folder(&api, "Wedding", None).await?;
    let inner = folder(&api, "inner", Some(&album)).await?;
    store(&api, &inner, "deep.bin", &crate::files::noise(1, 70_000)).await?;
    let mut ids = Vec::new();
    for number in 0..5_u64 {
        let bytes = crate::files::noise(number + 2, 90_000);
        let file = api.upload("photo.jpg", &bytes).await?;
        ids.push(text(&file["id"])?);
    }
    let body = json!({"ids": ids, "folderIds": [album], "name": "Ünser Tag"});
    let path = "/api/files/zip";
    let made = api
        .expect(StatusCode::CREATED, Method::POST, path, Some(&body))
        .await?;
    let url = text(&made["url"])?;
    let whole = api.fetch(&url).await?.expect(200)?;
    assert_eq!(made["bytes"], whole.bytes.len());
    assert_eq!(whole.header("content-type"), "application/zip");
    let disposition = whole.header("content-disposition");
    assert!(
        disposition.contains("%C3%9Cnser%20Tag.zip"),
        "{disposition}"
    );

    server.terminate().await?;
    server.restart().await?;
    let address = url.replace(api.base(), &server.base_url());
    let files = [("whole.zip", whole.bytes.as_ref())];
    let size = whole.bytes.len().to_string();
    let environment = [("ADDRESS", address.as_str()), ("SIZE", size.as_str())];
    let mut shell = Shell::start_beside(&files, GO_ON, &environment)?;
    let listed = shell.succeed(PATIENCE).await?;
    for name in ["Wedding/inner/deep.bin", "photo.jpg", "photo (5).jpg"] {
        assert!(listed.lines().any(|line| line == name), "{listed}");
    }
    Ok(())
}
