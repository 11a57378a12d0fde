//! A thousand files at a time: uploaded into folders by path, moved, and deleted with the images made of them.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{
    Failure,
    images::svg,
    json::{each, text},
    server::{Form, Server},
};

/// More than two units of work change.
const FILES: usize = 230;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_of_files_is_uploaded_moved_and_deleted() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    // Each file of an uploaded folder asks for its own folder, several at a time.
    let ensure = async |path: &str| {
        let body = json!({"path": path});
        let (status, made) = api
            .call(Method::POST, "/api/folders/path", Some(&body))
            .await?;
        assert!(status.is_success(), "{made}");
        text(&made["folder"]["id"])
    };
    let asked = (0..32).map(|number| {
        let path = match number % 2 {
            0 => "Spring/Behind",
            _ => "Spring/Front",
        };
        ensure(path)
    });
    let mut folders = futures_util::future::try_join_all(asked).await?;
    folders.sort();
    folders.dedup();
    assert_eq!(folders.len(), 2);
    let target = ensure("Archive/2026").await?;

    let mut ids = Vec::new();
    for number in 0..FILES {
        let form = Form::new().field("folderId", &folders[number % 2]).file(
            "file",
            &format!("{number}.txt"),
            format!("{number}").as_bytes(),
        );
        let stored = api.post_form("/api/files", form).await?.expect(201)?;
        ids.push(text(&stored.json()?["file"]["id"])?);
    }
    let drawing = api.upload("x.svg", &svg("red")).await?;
    ids.push(text(&drawing["id"])?);
    let preview = format!("/api/files/{}/preview", text(&drawing["id"])?);
    let key = format!("Bearer {}", api.key());
    let with_key = [("authorization", key.as_str())];
    api.fetch_with(&preview, &with_key).await?.expect(200)?;

    let total = async |query: &str| {
        let path = format!("/api/files?limit=1&{query}");
        let list = api.expect(StatusCode::OK, Method::GET, &path, None).await?;
        Ok::<_, Failure>(list["pagination"]["total"].clone())
    };
    let bulk = async |body: Value| {
        let path = "/api/files/bulk";
        api.expect(StatusCode::OK, Method::POST, path, Some(&body))
            .await
    };
    let spring = ensure("Spring").await?;
    assert_eq!(
        total(&format!("folderId={spring}&recursive=true")).await?,
        FILES
    );
    let moved = bulk(json!({"ids": ids, "action": "move", "folderId": target})).await?;
    assert_eq!(moved["done"], FILES + 1, "{moved}");
    assert_eq!(
        each(&moved["results"], "id")?,
        ids.iter().map(|id| json!(id)).collect::<Vec<_>>()
    );
    assert_eq!(
        total(&format!("folderId={spring}&recursive=true")).await?,
        0
    );
    assert_eq!(total(&format!("folderId={target}")).await?, FILES + 1);
    let path = format!("/api/folders/{target}");
    let shown = api.expect(StatusCode::OK, Method::GET, &path, None).await?;
    assert_eq!(shown["folder"]["file_count"], FILES + 1, "{shown}");

    for done in [FILES + 1, 0] {
        let deleted = bulk(json!({"ids": ids, "action": "delete"})).await?;
        assert_eq!(
            (&deleted["done"], &deleted["failed"]),
            (&json!(done), &json!(0))
        );
    }
    assert_eq!(total("").await?, 0);
    api.fetch_with(&preview, &with_key).await?.expect(404)?;
    let usage = api
        .expect(StatusCode::OK, Method::GET, "/api/usage", None)
        .await?;
    assert_eq!(usage["storage"]["usedBytes"], 0, "{usage}");
    Ok(())
}
