//! The bounds of the plans, over HTTP.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{DRAWING, SOON, Tenant};
use crate::support::{
    Failure, eventually,
    http::client,
    json::number,
    server::{Fetched, Form, Server, Settings},
};

/// Limit of the plan `free`.
const REQUESTS_PER_MINUTE: u64 = 30;
const OPERATIONS_PER_MONTH: u64 = 500;
const DELIVERIES_PER_MONTH: u64 = 5_000;
const FILES_PER_BATCH: usize = 5;
const IMAGE_BYTES: usize = 50_000_000;
const STORAGE_BYTES: u64 = 1_000_000_000;

/// Requests in progress at a time.
const AT_A_TIME: usize = 8;

fn drawings(count: usize) -> Form {
    let name = |number| format!("{number}.svg");
    let form = Form::new().field("format", "png");
    (0..count).fold(form, |form, number| {
        form.file("files", &name(number), DRAWING)
    })
}

/// Checks the address of the offer, a page of the dashboard, and the public page with the plan's numbers.
async fn check_offer(tenant: &Tenant<'_>, rejection: &Value) -> Result<(), Failure> {
    let url = rejection["upgradeUrl"].as_str();
    let url = url.ok_or_else(|| format!("no upgradeUrl in {rejection}"))?;
    let base_url = tenant.server.base_url();
    assert_eq!(url, format!("{base_url}/app/settings/usage"));
    tenant.api.fetch(url).await?.expect(200)?;
    let page = tenant.api.fetch(&format!("{base_url}/plans")).await?;
    let page = page.expect(200)?;
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    let page = String::from_utf8(page.bytes.into())?;
    for words in ["<h2>Free</h2>", "<h2>Business</h2>", "50\u{202f}000"] {
        assert!(page.contains(words), "{words} in {page}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_per_minute_are_the_plan_s() -> Result<(), Failure> {
    let server = Server::start().await?;
    let tenant = Tenant::on_plan(&server, "tenant", "free").await?;
    let key = tenant.server.base_url() + "/api/usage";
    let ask = async || -> Result<_, Failure> {
        let answer = client().get(&key).bearer_auth(tenant.api.key()).send();
        Ok(answer.await?)
    };
    let header = |answer: &reqwest::Response, name: &str| -> Option<u64> {
        answer.headers().get(name)?.to_str().ok()?.parse().ok()
    };
    // A minute may end in between, which gives another thirty.
    let mut left = None;
    let mut refused = None;
    for _ in 0..10 * REQUESTS_PER_MINUTE {
        let answer = ask().await?;
        assert_eq!(
            header(&answer, "x-ratelimit-limit"),
            Some(REQUESTS_PER_MINUTE)
        );
        if answer.status() == 429 {
            refused = Some(answer);
            break;
        }
        assert_eq!(answer.status(), 200);
        left = header(&answer, "x-ratelimit-remaining");
    }
    let refused = refused.ok_or("no request was refused")?;
    assert_eq!(left, Some(0), "not before they were used up");
    assert!(header(&refused, "retry-after").is_some_and(|seconds| (1..=60).contains(&seconds)));
    assert!(header(&refused, "x-ratelimit-reset").is_some());

    tenant.command("set-plan", &["starter"]).await?;
    let answer = ask().await?;
    assert_eq!(answer.status(), 200, "the larger plan holds at once");
    assert_eq!(header(&answer, "x-ratelimit-limit"), Some(120));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn media_operations_are_the_plan_s() -> Result<(), Failure> {
    let server = Server::start().await?;
    // The smaller plan's whole month, in one request under the larger one. Operations are charged at acceptance.
    let tenant = Tenant::on_plan(&server, "tenant", "business").await?;
    let job = tenant.api.submit(drawings(OPERATIONS_PER_MONTH as usize));
    job.await?;
    assert_eq!(tenant.api.operations_used().await?, OPERATIONS_PER_MONTH);

    tenant.command("set-plan", &["free"]).await?;
    let asked = tenant.api.post_form("/api/convert", drawings(1));
    let rejection = asked.await?.expect(402)?.json()?;
    assert_eq!(rejection["code"], "operations_used_up");
    check_offer(&tenant, &rejection).await?;
    let usage = tenant.usage().await?;
    assert_eq!(
        usage["operations"]["limit"].as_u64(),
        Some(OPERATIONS_PER_MONTH)
    );
    assert_eq!(usage["operations"]["remaining"], 0);
    assert_eq!(usage["upgradeUrl"], rejection["upgradeUrl"]);

    tenant.command("set-plan", &["starter"]).await?;
    let asked = tenant.api.post_form("/api/jobs", drawings(1));
    asked.await?.expect(202)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_are_the_plan_s() -> Result<(), Failure> {
    let server = Server::start().await?;
    let tenant = Tenant::on_plan(&server, "tenant", "free").await?;
    let api = &tenant.api;
    let file = api.upload_id("drawing.svg", DRAWING).await?;
    let key = api.delivery_key().await?;
    let deliver = || api.deliver(&key, &file, "w=8&format=png");
    let delivered = stream::iter(0..DELIVERIES_PER_MONTH)
        .map(|_| async { deliver().await?.expect(200) })
        .buffer_unordered(AT_A_TIME)
        .try_fold(0, async |count, _| Ok::<u64, Failure>(count + 1));
    assert_eq!(delivered.await?, DELIVERIES_PER_MONTH);

    let refused = deliver().await?.expect(429)?;
    let rejection = refused.json()?;
    assert_eq!(rejection["code"], "deliveries_used_up");
    check_offer(&tenant, &rejection).await?;
    let month = |answer: &Fetched, what: &str| -> Result<u64, Failure> {
        Ok(answer
            .header(&format!("x-service-cdn-{what}-month"))
            .parse()?)
    };
    assert_eq!(month(&refused, "limit")?, DELIVERIES_PER_MONTH);
    assert_eq!(month(&refused, "used")?, DELIVERIES_PER_MONTH);
    assert_eq!(month(&refused, "remaining")?, 0);
    assert!(refused.header("retry-after").parse::<u64>()? >= 1);
    let usage = tenant.usage().await?;
    assert_eq!(number(&usage["deliveries"]["used"])?, DELIVERIES_PER_MONTH);

    tenant.command("set-plan", &["starter"]).await?;
    let again = eventually("the larger plan delivers", SOON, async || {
        let answer = deliver().await.ok()?;
        (answer.status == StatusCode::OK).then_some(answer)
    });
    assert_eq!(month(&again.await?, "limit")?, 50_000);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sizes_and_counts_of_uploads_are_the_plan_s() -> Result<(), Failure> {
    // A video of 500 MB would say no more than one of 2 MB.
    let settings = Settings::new().env("SLUICE_PLANS__FREE__VIDEO_UPLOAD", "2 MB");
    let server = settings.start().await?;
    let tenant = Tenant::on_plan(&server, "tenant", "free").await?;
    let api = &tenant.api;

    let many = drawings(FILES_PER_BATCH + 1);
    let rejection = api.post_form("/api/jobs", many).await?.expect(400)?;
    assert!(
        rejection.text().contains("files_per_batch"),
        "{}",
        rejection.text()
    );
    let fitting = drawings(FILES_PER_BATCH);
    api.post_form("/api/jobs", fitting).await?.expect(202)?;

    let padded = |head: &[u8], length: usize| {
        let mut bytes = head.to_vec();
        bytes.resize(length, 0);
        bytes
    };
    let video = b"\0\0\0\x18ftypisom\0\0\x02\0isomiso2";
    for (path, name, bytes) in [
        (
            "/api/convert",
            "large.png",
            padded(b"\x89PNG\r\n\x1a\n", IMAGE_BYTES + 1),
        ),
        (
            "/api/media/thumbnail",
            "large.mp4",
            padded(video, 2_000_001),
        ),
    ] {
        let form = Form::new()
            .field("format", "png")
            .file("file", name, &bytes);
        let rejection = api.post_form(path, form).await?.expect(413)?.json()?;
        assert_eq!(rejection["code"], "too_large", "{name}: {rejection}");
    }
    // One byte less is accepted, and then rejected as no image.
    let form = Form::new().field("format", "png");
    let form = form.file(
        "file",
        "large.png",
        &padded(b"\x89PNG\r\n\x1a\n", IMAGE_BYTES),
    );
    api.post_form("/api/convert", form).await?.expect(415)?;

    let announce = async |size_bytes: u64| {
        let upload = json!({
            "filename": "archive.bin", "sizeBytes": size_bytes, "contentType": "application/octet-stream"
        });
        api.call(Method::POST, "/api/uploads", Some(&upload)).await
    };
    let (status, rejection) = announce(STORAGE_BYTES + 1).await?;
    assert_eq!(
        (status.as_u16(), &rejection["code"]),
        (413, &json!("storage_used_up"))
    );
    check_offer(&tenant, &rejection).await?;
    let (status, taken) = announce(STORAGE_BYTES).await?;
    assert_eq!(status, StatusCode::OK, "{taken}");
    tenant.command("set-plan", &["starter"]).await?;
    let (status, taken) = announce(STORAGE_BYTES + 1).await?;
    assert_eq!(status, StatusCode::OK, "{taken}");
    Ok(())
}
