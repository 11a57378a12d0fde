//! Reading of a shared folder: pages, files, previews, streams, and nothing beside it.

use std::collections::HashSet;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{SOON, Shared, make_folder, put};
use crate::support::{
    Failure, eventually,
    http::client,
    images::{drawn, look},
    json::{each, list, number, text},
    media::Recipe,
    server::Settings,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_is_looked_through_page_by_page() -> Result<(), Failure> {
    let shared = Shared::open(json!({})).await?;
    let api = &shared.api;
    let mut folders = Vec::new();
    for number in 0..49 {
        folders.push(make_folder(api, &format!("{number}"), Some(&shared.folder)).await?);
    }
    let mut files = Vec::new();
    for number in 0..52 {
        let name = format!("{number}.txt");
        files.push(shared.put(&name, name.as_bytes()).await?);
    }
    let outside = put(api, &make_folder(api, "beside", None).await?, "x", b"x").await?;

    let first = shared.list("").await?;
    assert_eq!(first["folder"]["name"], "Wedding & friends");
    assert_eq!(first["breadcrumb"], json!([first["folder"]]));
    assert_eq!(
        first["totals"],
        json!({"files": 52, "bytes": 52 * 6 - 10, "folders": 49, "isExact": true})
    );
    let (mut seen_folders, mut seen_files) = (Vec::new(), Vec::new());
    let (mut page, mut sizes) = (first, Vec::new());
    loop {
        let (some_folders, some_files) =
            (each(&page["folders"], "id")?, each(&page["files"], "id")?);
        sizes.push(some_folders.len() + some_files.len());
        seen_folders.extend(some_folders);
        seen_files.extend(some_files);
        match page["nextCursor"].as_str() {
            Some(cursor) => page = shared.list(&format!("?cursor={cursor}")).await?,
            None => break,
        }
    }
    assert_eq!(sizes, [50, 50, 1]);
    let newest_first = |ids: &[String]| ids.iter().rev().map(|id| json!(id)).collect::<Vec<_>>();
    assert_eq!(seen_folders, newest_first(&folders));
    assert_eq!(seen_files, newest_first(&files));

    // Fifty folders fill a page; the next one begins with the files.
    let inner = make_folder(api, "50th", Some(&shared.folder)).await?;
    let page = shared.list("").await?;
    assert_eq!(
        (list(&page["folders"])?.len(), list(&page["files"])?.len()),
        (50, 0)
    );
    let page = shared
        .list(&format!("?cursor={}", text(&page["nextCursor"])?))
        .await?;
    assert_eq!(
        (list(&page["folders"])?.len(), list(&page["files"])?.len()),
        (0, 50)
    );

    let below = put(api, &inner, "deep.txt", b"deep").await?;
    let page = shared.list(&format!("?folder_id={inner}")).await?;
    assert_eq!(
        each(&page["breadcrumb"], "id")?,
        [json!(shared.folder), json!(inner)]
    );
    assert_eq!(each(&page["files"], "id")?, [json!(below)]);
    assert_eq!(
        (&page["nextCursor"], number(&page["totals"]["bytes"])?),
        (&Value::Null, 4)
    );

    for (rest, status) in [
        (format!("?folderId={outside}"), 404),
        ("?folderId=../..".to_owned(), 404),
        ("?cursor=x".to_owned(), 400),
        (format!("/files/{outside}"), 404),
        (format!("/files/{outside}/preview"), 404),
        ("/files/x".to_owned(), 404),
        ("/nothing".to_owned(), 404),
    ] {
        let refused = api.fetch(&shared.path(&rest)).await?.expect(status)?;
        assert_ne!(
            refused.json()?["error"],
            "This link is no longer available.",
            "{rest}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_continues_where_it_was_cut_and_is_kept_by_no_one_else() -> Result<(), Failure> {
    let shared = Shared::open(json!({})).await?;
    let bytes: Vec<u8> = (0..1_000_003_u32)
        .map(|n| (n.wrapping_mul(n) >> 7) as u8)
        .collect();
    shared.put("写真 1.bin", &bytes).await?;
    let page = shared.list("").await?;
    let record = &page["files"][0];
    assert_eq!(
        (&record["filename"], number(&record["sizeBytes"])?),
        (&json!("写真 1.bin"), 1_000_003)
    );
    assert!(
        record["previewUrl"].is_null()
            && record["inlineUrl"].is_null()
            && record["streamUrl"].is_null()
    );
    let url = text(&record["downloadUrl"])?;
    let whole = shared.api.fetch(&url).await?.expect(200)?;
    assert!(whole.bytes == bytes);
    for (name, value) in [
        ("cache-control", "private, max-age=300"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "sandbox"),
        ("referrer-policy", "no-referrer"),
        ("x-robots-tag", "noindex, nofollow"),
        ("accept-ranges", "bytes"),
        ("access-control-allow-origin", ""),
        ("set-cookie", ""),
    ] {
        assert_eq!(whole.header(name), value, "{name}");
    }
    let disposition = whole.header("content-disposition");
    assert!(disposition.starts_with("attachment;"), "{disposition}");
    assert!(
        disposition.ends_with("UTF-8''%E5%86%99%E7%9C%9F%201.bin"),
        "{disposition}"
    );
    let tag = whole.header("etag").to_owned();
    for (range, if_range, expected) in [
        ("bytes=900000-", tag.as_str(), Some(900_000..1_000_003)),
        ("bytes=0-0", &tag, Some(0..1)),
        ("bytes=-3", &tag, Some(1_000_000..1_000_003)),
        ("bytes=0-99999999999", &tag, Some(0..1_000_003)),
        ("bytes=5-", "\"other\"", None),
        ("bytes=0-1,5-6", &tag, None),
        ("bytes=99999999999999999999-", &tag, None),
    ] {
        let headers = [("range", range), ("if-range", if_range)];
        let answer = shared.api.fetch_with(&url, &headers).await?;
        match expected {
            Some(expected) => {
                assert_eq!(answer.status, 206, "{range}");
                assert!(answer.bytes == bytes[expected], "{range}");
            }
            None => assert!(answer.status == 200 && answer.bytes == bytes, "{range}"),
        }
    }
    let outside = shared
        .api
        .fetch_with(&url, &[("range", "bytes=1000003-")])
        .await?;
    assert_eq!(outside.status, 416);
    let known = shared
        .api
        .fetch_with(&url, &[("if-none-match", &tag)])
        .await?;
    assert_eq!(
        (known.status, known.bytes.len()),
        (StatusCode::NOT_MODIFIED, 0)
    );
    let head = client().head(&url).send().await?;
    assert_eq!(head.headers()["content-length"], "1000003");

    let listing = shared.api.fetch(&shared.path("")).await?;
    assert_eq!(listing.header("cache-control"), "no-store");
    // Credentials have no effect under a link, and wrong ones are not counted.
    let own = [("authorization", "Bearer nonsense")];
    let listing = shared
        .api
        .fetch_with(&shared.path(""), &own)
        .await?
        .expect(200)?;
    assert_eq!(listing.header("x-ratelimit-limit"), "");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn previews_are_rendered_and_charged_to_the_owner() -> Result<(), Failure> {
    let cap = ("SLUICE_PLANS__UNLIMITED__DELIVERIES_PER_MONTH", "6");
    let shared = Shared::on(Settings::new().env(cap.0, cap.1), json!({})).await?;
    let clip = Recipe::video_only().make()?;
    for (name, bytes) in [
        ("a.png", drawn("hole.png")?),
        ("b.pdf", drawn("pages.pdf")?),
        ("c.mp4", std::fs::read(&clip.mp4)?),
    ] {
        shared.put(name, &bytes).await?;
    }
    let unknown = shared.put("d.txt", b"text").await?;
    let page = shared.list("").await?;
    let previews: Vec<Value> = each(&page["files"], "previewUrl")?;
    assert_eq!(previews.iter().filter(|url| url.is_string()).count(), 3);
    for url in previews.iter().filter_map(Value::as_str) {
        let answer = shared.api.fetch(url).await?.expect(200)?;
        let image = look(&answer.bytes).await?;
        let (width, height) = image.size();
        assert!(width.max(height) <= 640 && width.min(height) > 1, "{url}");
        assert_eq!(answer.header("cache-control"), "private, max-age=300");
        assert_eq!(answer.header("access-control-allow-origin"), "");
        assert_eq!(
            answer.header("x-service-cdn-used-month"),
            "",
            "no business of readers"
        );
    }
    let refused = shared.path(&format!("/files/{unknown}/preview"));
    shared.api.fetch(&refused).await?.expect(415)?;
    let url = previews
        .iter()
        .find_map(Value::as_str)
        .ok_or("no preview")?;
    let narrow = url.replace("w=640", "w=320");
    assert_ne!(narrow, url);
    let webp = [("accept", "image/webp,*/*")];
    let answer = shared.api.fetch_with(&narrow, &webp).await?.expect(200)?;
    assert_eq!(
        (answer.header("content-type"), answer.header("vary")),
        ("image/webp", "Accept")
    );
    for odd in ["w=321", "w=0", "w=", "w=-1", "w=99999999999", "w=x"] {
        let refused = shared
            .api
            .fetch(&url.replace("w=640", odd))
            .await?
            .expect(400)?;
        assert!(refused.text().contains("320, 640, 1280, 2560"), "{odd}");
    }
    let mut answers = HashSet::new();
    for _ in 0..4 {
        let answer = shared.api.fetch(url).await?;
        if answer.status == 429 {
            let rejection = answer.json()?;
            assert_eq!(rejection["code"], "deliveries_used_up");
            assert!(rejection["upgradeUrl"].is_null(), "{rejection}");
        }
        answers.insert(answer.status.as_u16());
    }
    assert_eq!(answers, HashSet::from([200, 429]), "two were left of six");
    shared.list("").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_video_plays_by_its_stream_else_by_ranges() -> Result<(), Failure> {
    let shared = Shared::open(json!({})).await?;
    let api = &shared.api;
    let clip = std::fs::read(Recipe::numbered(0).lasting(2).make()?.mp4)?;
    let video = shared.put("clip.mp4", &clip).await?;
    let record = async || Ok::<_, Failure>(shared.list("").await?["files"][0].clone());
    let before = record().await?;
    assert!(before["streamUrl"].is_null(), "{before}");
    let url = text(&before["inlineUrl"])?;
    let inline = api.fetch_with(&url, &[("range", "bytes=0-9")]).await?;
    let inline = inline.expect(206)?;
    assert!(inline.bytes == clip[..10]);
    assert!(inline.header("content-disposition").starts_with("inline;"));

    for (access, allowed, plays) in [
        ("signed", json!([]), true),
        ("public", json!(["example.org"]), false),
        ("public", json!([]), true),
    ] {
        let new = json!({"sourceFileId": video, "profile": "basic", "access": access, "allowedDomains": allowed});
        let path = "/api/video/streams";
        let made = api
            .expect(StatusCode::ACCEPTED, Method::POST, path, Some(&new))
            .await?;
        let path = format!("{path}/{}", text(&made["stream"]["id"])?);
        eventually("the stream is ready", SOON * 3, async || {
            let (_, answer) = api.call(Method::GET, &path, None).await.ok()?;
            (answer["stream"]["status"] == "ready").then_some(())
        })
        .await?;
        let record = record().await?;
        assert_eq!(record["streamUrl"].is_string(), plays, "{record}");
        if let Some(url) = record["streamUrl"].as_str() {
            let master = api.fetch(url).await?.expect(200)?;
            assert!(master.text().starts_with("#EXTM3U"), "{access}");
        }
        api.expect(StatusCode::OK, Method::DELETE, &path, None)
            .await?;
    }
    Ok(())
}
