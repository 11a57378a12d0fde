//! Lineage: the files that a file was made from, and those made from it.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{
    Failure,
    json::{each, text},
    server::{Api, Server},
};

const SVG: &[u8] = br#"<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30"><rect width="40" height="30" fill="red"/></svg>"#;

async fn lineage(api: &Api, id: &str, query: &str) -> Result<Value, Failure> {
    let path = format!("/api/files/{id}/lineage{query}");
    let (status, answer) = api.call(Method::GET, &path, None).await?;
    assert_eq!(status, StatusCode::OK, "{answer}");
    assert_eq!(answer["id"], id);
    Ok(answer)
}

async fn thumbnail(api: &Api, id: &str) -> Result<String, Failure> {
    let body = json!({"tool": "thumbnail", "params": {"width": 16, "height": 16}});
    let path = format!("/api/files/{id}/tools");
    let (status, answer) = api.call(Method::POST, &path, Some(&body)).await?;
    assert_eq!(status, StatusCode::OK, "{answer}");
    text(&answer["files"][0]["storedFileId"])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_shows_its_source_and_what_was_made_of_it() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let source = text(&api.upload("red.svg", SVG).await?["id"])?;
    let first = thumbnail(&api, &source).await?;
    let second = thumbnail(&api, &source).await?;

    let of_source = lineage(&api, &source, "").await?;
    assert_eq!(of_source["sources"], json!([]), "it was uploaded");
    let derived = of_source["derived"].as_array().ok_or("no derived")?;
    let files: Vec<&Value> = derived.iter().filter(|it| it["kind"] == "file").collect();
    assert_eq!(files.len(), 2, "{of_source}");
    assert_eq!(
        (&files[0]["id"], &files[1]["id"]),
        (&json!(first), &json!(second))
    );
    assert_eq!(files[0]["mimeType"], "image/jpeg");
    assert_eq!(files[0]["operation"]["tool"], "thumbnail");
    assert!(files[0]["sizeBytes"].as_u64() > Some(0) && files[0]["createdAt"].is_string());

    let total = derived.len();
    let page = lineage(&api, &source, "?limit=1&offset=1").await?;
    assert_eq!(page["derived"], json!([derived[1]]));
    assert_eq!(page["pagination"]["total"], total);
    assert_eq!(page["pagination"]["hasMore"], total > 2);

    let of_first = lineage(&api, &first, "").await?;
    assert_eq!(each(&of_first["sources"], "id")?, [source.as_str()]);
    let origin = &of_first["sources"][0];
    assert_eq!(
        (&origin["filename"], &origin["exists"]),
        (&json!("red.svg"), &json!(true))
    );
    assert_eq!(of_first["derived"], json!([]));

    for (query, problem) in [("?limit=0", "limit"), ("?offset=-1", "offset")] {
        let path = format!("/api/files/{source}/lineage{query}");
        let (status, answer) = api.call(Method::GET, &path, None).await?;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
        assert!(text(&answer["error"])?.contains(problem), "{answer}");
    }

    api.call(Method::DELETE, &format!("/api/files/{second}"), None)
        .await?;
    let left = lineage(&api, &source, "").await?;
    assert!(!left.to_string().contains(&second), "{left}");
    api.call(Method::DELETE, &format!("/api/files/{source}"), None)
        .await?;
    let orphan = lineage(&api, &first, "").await?;
    let origin = &orphan["sources"][0];
    assert_eq!(
        (&origin["id"], &origin["exists"]),
        (&Value::Null, &json!(false))
    );
    assert_eq!(origin["operation"]["tool"], "thumbnail");
    let path = format!("/api/files/{source}/lineage");
    let (status, _) = api.call(Method::GET, &path, None).await?;
    assert_eq!(status, StatusCode::NOT_FOUND);
    Ok(())
}
