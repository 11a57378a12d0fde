//! Pages beside the API: its description, the guides, the metrics.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use super::{json_of, status_of, text_of};
use crate::support::{
    Failure,
    http::client,
    server::{API_KEY, Server, Settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_description_names_paths_that_answer() -> Result<(), Failure> {
    let server = Server::start().await?;
    let url = |path: &str| format!("{}{path}", server.base_url());
    let document = json_of(client().get(url("/openapi.json"))).await?;
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["version"], "1.0.0");
    let paths = document["paths"].as_object().ok_or("no paths")?;
    assert!(paths.len() >= 15, "{:?}", paths.keys());
    let mut operations = BTreeSet::new();
    for (path, item) in paths {
        // An id that is well formed and unknown.
        let asked = path
            .replace("{id}", "01900000-0000-7000-8000-000000000000")
            .replace("{playback_id}", "pb_00000000000000000000")
            .replace("{playbackId}", "pb_00000000000000000000")
            .replace("{broadcast}", "x")
            .replace("{name}", "0.m4s")
            .replace("{file}", "none.js");
        for (method, operation) in item.as_object().ok_or("no operations")? {
            let id = operation["operationId"].as_str().unwrap_or_default();
            assert!(
                operations.insert(id.to_owned()),
                "{method} {path}: {id} names two"
            );
            let method: Method = method.to_uppercase().parse()?;
            let answer = client().request(method.clone(), url(&asked)).send().await?;
            let status = answer.status();
            assert!(
                status != 405 && status != 501 && status != 500,
                "{method} {path}: {status}"
            );
            // The answer for a link that is not available is a page.
            let is_page = text_of(answer.headers(), "content-type").starts_with("text/html");
            if status == 404 && !is_page {
                let error: Value = answer.json().await?;
                assert_ne!(error["error"], "path not found", "{method} {path}");
            }
            let described = &operation["responses"];
            assert!(
                described.get(status.as_str()).is_some(),
                "{method} {path}: {status} is not described"
            );
        }
    }
    let parameters = &paths["/live/v1/{playback_id}/media.m3u8"]["get"]["parameters"];
    let named: Vec<_> = parameters
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| one["name"].as_str())
        .collect();
    for name in ["_HLS_msn", "_HLS_part", "_HLS_skip"] {
        assert!(named.contains(&Some(name)), "{name} in {named:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_and_metrics_are_for_those_they_are_for() -> Result<(), Failure> {
    let server = Settings::new()
        .env("SLUICE_HTTP__TRUSTED_PROXIES", "127.0.0.1")
        .start()
        .await?;
    let input = server.api().create(json!({})).await?;
    let url = |path: &str| format!("{}{path}", server.base_url());
    for path in ["/docs".to_owned(), format!("/live/{}", input.playback_id)] {
        let page = client().get(url(&path)).send().await?;
        assert_eq!(page.status(), 200, "{path}");
        assert!(text_of(page.headers(), "content-type").starts_with("text/html"));
        let policy = text_of(page.headers(), "content-security-policy");
        assert!(
            policy.contains("default-src 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
        let tag = text_of(page.headers(), "etag");
        let html = page.text().await?;
        let known = client()
            .get(url(&path))
            .header("if-none-match", tag)
            .send()
            .await?;
        assert_eq!(known.status(), 304);
        let assets: Vec<&str> = html
            .split('"')
            .filter(|part| part.contains("assets/"))
            .collect();
        assert!(!assets.is_empty(), "{html}");
        for asset in assets {
            let address = reqwest::Url::parse(&url(&path))?.join(asset)?;
            let answer = client().get(address.clone()).send().await?;
            assert_eq!(answer.status(), 200, "{address}");
            assert!(text_of(answer.headers(), "cache-control").contains("immutable"));
        }
    }
    // To the dashboard, whose page is there without a session.
    let start = client().get(url("/")).send().await?;
    let leads_to = text_of(start.headers(), "location");
    assert_eq!((start.status().as_u16(), leads_to.as_str()), (302, "/app"));
    let page = client().get(url("/app")).send().await?;
    assert_eq!(page.status(), 200);
    let policy = text_of(page.headers(), "content-security-policy");
    assert!(
        policy.contains("require-trusted-types-for 'script'"),
        "{policy}"
    );
    let html = page.text().await?;
    assert!(!html.contains("svc_"), "{html}");
    // For people a page; for players JSON.
    for path in [
        "/live/pb_short",
        "/live/x",
        "/live/..%2f..%2fetc",
        "/video/x",
        "/video/pb_",
    ] {
        let page = client().get(url(path)).send().await?;
        assert_eq!(page.status(), 404, "{path}");
        let kind = text_of(page.headers(), "content-type");
        assert!(kind.starts_with("text/html"), "{path}: {kind}");
        assert!(!text_of(page.headers(), "content-security-policy").is_empty());
    }
    for path in ["/live/v1/x/index.m3u8", "/video/v1/x/master.m3u8"] {
        let refused = client().get(url(path)).send().await?;
        let kind = text_of(refused.headers(), "content-type");
        assert_eq!(
            (refused.status().as_u16(), kind.as_str()),
            (404, "application/json"),
            "{path}"
        );
    }

    let metrics = || client().get(url("/metrics"));
    let (_, read_key) = server
        .api()
        .call(Method::POST, "/api/keys", Some(&json!({"scope": "read"})))
        .await?;
    let read_key = read_key["token"].as_str().ok_or("no token")?;
    for (request, status) in [
        (metrics(), 200),
        (metrics().header("x-forwarded-for", "203.0.113.9"), 401),
        (metrics().header("x-forwarded-for", "127.0.0.1"), 401),
        (metrics().header("forwarded", "for=203.0.113.9"), 401),
        (
            metrics()
                .header("x-forwarded-for", "203.0.113.9")
                .bearer_auth(read_key),
            403,
        ),
        (
            metrics()
                .header("x-forwarded-for", "203.0.113.9")
                .bearer_auth(API_KEY),
            200,
        ),
    ] {
        assert_eq!(status_of(request).await?, status);
    }
    let text = metrics().send().await?.text().await?;
    assert!(
        text.contains("# TYPE") && text.trim_end().ends_with("# EOF"),
        "{text}"
    );
    assert!(
        !text.contains(&input.playback_id),
        "no label holds an address"
    );
    Ok(())
}
