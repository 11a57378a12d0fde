//! Image delivery as pages and the caches before it use it: `srcset`, ETag, `Vary`, 304.

use futures_util::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{Gallery, text};
use crate::support::{
    Failure,
    images::{available, drawn, look},
};

const CHROME: (&str, &str) = (
    "accept",
    "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_srcset_of_a_photograph_is_delivered_and_then_kept_by_the_browser() -> Result<(), Failure>
{
    if !available("a_srcset_of_a_photograph_is_delivered")? {
        return Ok(());
    }
    let gallery = Gallery::open().await?;
    for width in [320, 640, 960, 1280] {
        let path = gallery.path(&format!("w={width}"));
        let first = gallery
            .api
            .fetch_with(&path, &[CHROME])
            .await?
            .expect(200)?;
        let image = look(&first.bytes).await?;
        assert_eq!((image.format.as_str(), image.size().0), ("WEBP", width));
        assert_eq!(
            (first.header("x-cache"), first.header("vary")),
            ("miss", "Accept")
        );

        let again = gallery
            .api
            .fetch_with(&path, &[CHROME])
            .await?
            .expect(200)?;
        assert_eq!(
            (again.header("x-cache"), &again.bytes),
            ("hit", &first.bytes)
        );
        let tag = first.header("etag");
        let known = gallery
            .api
            .fetch_with(&path, &[CHROME, ("if-none-match", tag)])
            .await?;
        assert_eq!(
            (known.status, known.bytes.len()),
            (StatusCode::NOT_MODIFIED, 0)
        );
        let range = [CHROME, ("range", "bytes=0-11")];
        let part = gallery.api.fetch_with(&path, &range).await?.expect(206)?;
        assert_eq!(part.bytes[..], first.bytes[..12]);
    }
    assert_eq!(gallery.renders().await?, 4);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_equal_requests_at_once_make_one_render() -> Result<(), Failure> {
    let gallery = Gallery::open().await?;
    // Order and unknown parameters make no difference.
    let queries = [
        "w=333&q=70&format=jpeg",
        "format=jpg&q=70&w=333&utm_source=x",
    ];
    let asking = (0..1000).map(|number| {
        let path = gallery.path(queries[number % 2]);
        let api = gallery.api.clone();
        tokio::spawn(async move { api.fetch(&path).await })
    });
    let mut tags = Vec::new();
    for answer in join_all(asking).await {
        tags.push(answer??.expect(200)?.header("etag").to_owned());
    }
    tags.dedup();
    assert_eq!(tags.len(), 1);
    assert_eq!(gallery.renders().await?, 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn purge_delete_and_a_new_focal_point_reach_every_tier() -> Result<(), Failure> {
    let gallery = Gallery::open().await?;
    let path = gallery.path("w=100&h=300&format=png");
    let first = gallery.api.fetch(&path).await?.expect(200)?;
    gallery.wait_for_disk(1).await?;

    let body = json!({"tags": [format!("asset:{}", gallery.file)], "urls": [path]});
    let (status, answer) = gallery
        .api
        .call(Method::POST, "/api/cdn-purge", Some(&body))
        .await?;
    assert_eq!(
        (status, answer),
        (
            StatusCode::OK,
            json!({"ok": true, "purged": 1, "purgedTags": 1})
        )
    );
    let again = gallery.api.fetch(&path).await?.expect(200)?;
    assert_eq!(
        (again.header("x-cache"), &again.bytes),
        ("miss", &first.bytes)
    );

    let file = format!("/api/files/{}", gallery.file);
    let focus = json!({"focal_point": {"x": 0.02, "y": 0.5}});
    let (status, answer) = gallery.api.call(Method::PATCH, &file, Some(&focus)).await?;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let moved = gallery.api.fetch(&path).await?.expect(200)?;
    assert_eq!(moved.header("x-cache"), "miss");
    assert_ne!(moved.bytes, first.bytes);

    let (status, _) = gallery.api.call(Method::DELETE, &file, None).await?;
    assert_eq!(status, StatusCode::OK);
    let gone = gallery.api.fetch(&path).await?.expect(404)?;
    assert_eq!(gone.header("cache-control"), "no-store");
    gallery.wait_for_disk(0).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn facts_and_placeholders_are_delivered_as_text() -> Result<(), Failure> {
    let gallery = Gallery::open().await?;
    let file = gallery
        .api
        .upload_id("a.jpg", &drawn("orientation-6.jpg")?)
        .await?;
    let facts = gallery
        .api
        .deliver(&gallery.key, &file, "format=json")
        .await?
        .expect(200)?;
    assert_eq!(facts.header("content-type"), "application/json");
    let facts = facts.json()?;
    assert_eq!(
        (facts["width"].as_u64(), facts["height"].as_u64()),
        (Some(240), Some(160)),
        "{facts}"
    );
    assert_eq!(text(&facts, "mimeType"), "image/jpeg");
    for query in ["format=blurhash", "format=thumbhash"] {
        let answer = gallery
            .api
            .deliver(&gallery.key, &file, query)
            .await?
            .expect(200)?;
        assert!(answer.header("content-type").starts_with("text/plain"));
        assert!(
            (10..80).contains(&answer.bytes.len()),
            "{query}: {:?}",
            answer.bytes
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_image_is_refused_with_its_reason() -> Result<(), Failure> {
    let gallery = Gallery::open().await?;
    let cases = [
        ("notes.txt", b"no image at all".to_vec(), 415),
        (
            "broken.jpg",
            b"\xff\xd8\xff\xe0 and nothing more".to_vec(),
            415,
        ),
    ];
    for (name, bytes, status) in cases {
        let file = gallery.api.upload_id(name, &bytes).await?;
        let answer = gallery
            .api
            .deliver(&gallery.key, &file, "w=100")
            .await?
            .expect(status)?;
        assert_eq!(answer.header("cache-control"), "no-store", "{name}");
        assert!(!text(&answer.json()?, "error").is_empty(), "{name}");
    }
    let page = gallery.api.upload_id("c.pdf", &drawn("pages.pdf")?).await?;
    gallery
        .api
        .deliver(&gallery.key, &page, "page=99&w=100")
        .await?
        .expect(422)?;
    Ok(())
}
