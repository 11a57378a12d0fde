//! Live inputs over REST: records, limits, pages.

use std::collections::BTreeSet;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{
    Failure,
    server::{Input, Server},
};

const MASK: &str = "••••";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_input_is_made_changed_and_deleted() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let record = &input.record["liveInput"];
    check_fields(record);
    check_defaults(record);
    check_secrets_in_plain(&server, &input)?;
    check_masks(&api.get(&input.id).await?);

    let changes = json!({
        "name": "  Studio A ", "enabled": false, "reconnectWindowSeconds": 0, "allowed_domains": ["Example.org", "*.example.com"],
        "latency": "standard", "recordMode": "off", "requireSignedPlayback": false, "unknown": {"is": "ignored"}, "pullUrl": null,
    });
    let changed = api.patch(&input.id, changes).await?;
    check_fields(&changed);
    check_masks(&changed);
    for (field, value) in [
        ("name", json!("Studio A")),
        ("enabled", json!(false)),
        ("reconnectWindowSeconds", json!(0)),
        ("allowedDomains", json!(["example.org", "*.example.com"])),
        ("latency", json!("standard")),
    ] {
        assert_eq!(changed[field], value, "{field}");
    }
    assert_ne!(changed["updatedAt"], record["updatedAt"]);
    assert_eq!(changed["createdAt"], record["createdAt"]);
    let snake = json!({"reconnect_window_seconds": 7, "enabled": true});
    let changed = api.patch(&input.id, snake).await?;
    assert_eq!(changed["reconnectWindowSeconds"], 7);
    assert_eq!(changed["name"], "Studio A", "what is not given stays");

    let rotated = api.rotate(&input.id).await?;
    assert_eq!(rotated.id, input.id);
    assert_ne!(rotated.obs_stream_key, input.obs_stream_key);
    check_secrets_in_plain(&server, &rotated)?;

    api.delete(&input.id).await?;
    for (method, path) in [
        (Method::GET, ""),
        (Method::DELETE, ""),
        (Method::POST, "/rotate-key"),
        (Method::GET, "/health"),
    ] {
        let path = format!("/api/live/inputs/{}{path}", input.id);
        let (status, error) = api.call(method, &path, None).await?;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(error["error"], "live input not found");
    }
    Ok(())
}

/// All fields of the interface, and no other.
fn check_fields(record: &Value) {
    let names = |value: &Value| -> BTreeSet<String> {
        value
            .as_object()
            .into_iter()
            .flat_map(|object| object.keys().cloned())
            .collect()
    };
    let expected =
        |names: &str| -> BTreeSet<String> { names.split_whitespace().map(str::to_owned).collect() };
    assert_eq!(
        names(record),
        expected(
            "id name status viewers inputSlug playbackId enabled reconnectWindowSeconds requireSignedPlayback allowedDomains \
             recordMode latency pullUrl streamKeyPrefix streamKeyRevealable ingest playback startedAt reconnectUntil lastStartedAt \
             lastEndedAt createdAt updatedAt"
        )
    );
    let ingest = "rtmpUrl srtUrl obsServer obsStreamKey srtPassphrase srtServer whipUrl";
    assert_eq!(names(&record["ingest"]), expected(ingest));
    assert_eq!(
        names(&record["playback"]),
        expected("hlsUrl webRtcUrl posterUrl watchUrl playbackId")
    );
    let playback_id = record["playbackId"].as_str().unwrap_or_default();
    let web_rtc_url = record["playback"]["webRtcUrl"].as_str();
    let whep = format!("/live/v1/{playback_id}/whep");
    assert!(
        web_rtc_url.is_some_and(|url| url.ends_with(&whep)),
        "{record}"
    );
    assert_eq!(record["pullUrl"], Value::Null);
}

fn check_defaults(record: &Value) {
    for (field, value) in [
        ("name", json!("Live input")),
        ("status", json!("idle")),
        ("enabled", json!(true)),
        ("reconnectWindowSeconds", json!(60)),
        ("requireSignedPlayback", json!(false)),
        ("allowedDomains", json!([])),
        ("recordMode", json!("off")),
        ("latency", json!("low")),
        ("lastStartedAt", Value::Null),
        ("lastEndedAt", Value::Null),
    ] {
        assert_eq!(record[field], value, "{field}");
    }
    let created = record["createdAt"].as_str().unwrap_or_default();
    assert!(
        created.len() == 24 && created.ends_with('Z') && created.contains('T'),
        "{created}"
    );
    assert_eq!(record["playback"]["playbackId"], record["playbackId"]);
}

/// At create and rotation: addresses that can be pasted.
fn check_secrets_in_plain(server: &Server, input: &Input) -> Result<(), Failure> {
    let (record, key) = (&input.record["liveInput"], &input.record["streamKey"]);
    let key = key.as_str().ok_or("no streamKey")?;
    assert!(key.starts_with("svc_live_") && key.len() == 9 + 32, "{key}");
    let prefix = record["streamKeyPrefix"].as_str().unwrap_or_default();
    assert!(prefix.len() == 12 && key.starts_with(prefix), "{prefix}");
    let slug = record["inputSlug"].as_str().unwrap_or_default();
    assert_eq!(input.obs_stream_key, format!("{slug}.{key}"));
    let port = server.addresses().rtmp.port();
    assert_eq!(input.obs_server, format!("rtmp://127.0.0.1:{port}/live"));
    assert_eq!(record["ingest"]["rtmpUrl"], input.rtmp_url());
    let passphrase = record["ingest"]["srtPassphrase"].as_str();
    let whip = format!("{}/live/whip/{}", server.base_url(), input.obs_stream_key);
    assert_eq!(record["ingest"]["whipUrl"], whip);
    let (passphrase, stream) = (
        passphrase.ok_or("no passphrase")?,
        input.obs_stream_key.replace('.', ":"),
    );
    let srt = server.addresses().srt.ok_or("no SRT listener")?;
    assert_eq!(
        input.srt_url()?,
        format!("srt://{srt}?streamid=publish:{stream}&passphrase={passphrase}")
    );
    assert!(input.playback_id.starts_with("pb_") && input.playback_id.len() == 23);
    let base = server.base_url();
    assert_eq!(
        input.hls_url,
        format!("{base}/live/v1/{}/index.m3u8", input.playback_id)
    );
    Ok(())
}

/// Everywhere else.
fn check_masks(record: &Value) {
    check_fields(record);
    assert_eq!(record["ingest"]["rtmpUrl"], MASK);
    for field in ["obsStreamKey", "srtUrl", "srtPassphrase", "whipUrl"] {
        assert_eq!(record["ingest"][field], MASK);
    }
    let keys = record.to_string().matches("svc_live_").count();
    assert_eq!(keys, 1, "the prefix alone: {record}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_are_kept_and_named() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let many: Vec<String> = (0..26)
        .map(|number| format!("{number}.example.org"))
        .collect();
    for (body, field, words) in [
        (json!({"name": "x".repeat(121)}), "name", "1 to 120"),
        (json!({"name": ""}), "name", "1 to 120"),
        (json!({"name": "a\u{0}b"}), "name", "control characters"),
        (json!({"name": ["a"]}), "name", "string"),
        (
            json!({"reconnectWindowSeconds": 1801}),
            "reconnectWindowSeconds",
            "0 to 1800, got 1801",
        ),
        (
            json!({"reconnect_window_seconds": -1}),
            "reconnectWindowSeconds",
            "0 to 1800, got -1",
        ),
        (
            json!({"reconnectWindowSeconds": 1.5}),
            "reconnectWindowSeconds",
            "whole number",
        ),
        (
            json!({"reconnectWindowSeconds": u64::MAX}),
            "reconnectWindowSeconds",
            "18446744073709551615",
        ),
        (
            json!({"latency": "ultra"}),
            "latency",
            "standard or low, got `ultra`",
        ),
        (
            json!({"recordMode": "always"}),
            "recordMode",
            "off or automatic",
        ),
        (
            json!({"pullUrl": "rtsp://10.0.0.1/camera"}),
            "pullUrl",
            "outbound.allow",
        ),
        (
            json!({"allowedDomains": many}),
            "allowedDomains",
            "at most 25",
        ),
        (
            json!({"allowedDomains": ["https://example.org/"]}),
            "allowedDomains[0]",
            "host",
        ),
        (
            json!({"allowedDomains": ["a.org", "*"]}),
            "allowedDomains[1]",
            "host",
        ),
        (
            json!({"allowedDomains": "example.org"}),
            "allowedDomains",
            "array",
        ),
        (json!({"enabled": "yes"}), "enabled", "true or false"),
        (
            json!({"name": "a", "latency": "low", "recordMode": 5}),
            "recordMode",
            "string",
        ),
        (json!([]), "", "object"),
    ] {
        let one = format!("/api/live/inputs/{}", input.id);
        for (method, path) in [(Method::POST, "/api/live/inputs"), (Method::PATCH, &one)] {
            // A field that a new input cannot have is an unknown field there.
            if method == Method::POST && field == "enabled" {
                continue;
            }
            let (status, error) = api.call(method.clone(), path, Some(&body)).await?;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{method} {body}");
            let text = error["error"].as_str().unwrap_or_default();
            assert!(
                text.contains(field) && text.contains(words),
                "{body}: {text}"
            );
        }
    }
    let both = json!({"reconnect_window_seconds": 5, "reconnectWindowSeconds": 6});
    let (status, _) = api
        .call(Method::POST, "/api/live/inputs", Some(&both))
        .await?;
    assert_eq!(status, StatusCode::BAD_REQUEST, "in two spellings at once");
    let widest = json!({"name": "ö".repeat(120), "reconnectWindowSeconds": 1800, "allowedDomains": many[..25]});
    api.create(widest).await?;
    let unchanged = api.get(&input.id).await?;
    assert_eq!(
        unchanged["updatedAt"],
        input.record["liveInput"]["updatedAt"]
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_come_newest_first_and_in_pages() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    for number in 0..6 {
        api.create(json!({"name": number.to_string()})).await?;
    }
    let names = |list: &Value| -> Vec<String> {
        let inputs = list["liveInputs"].as_array().cloned().unwrap_or_default();
        inputs
            .iter()
            .map(|input| input["name"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    let all = ["5", "4", "3", "2", "1", "0", "My first stream"];
    let (_, whole) = api.call(Method::GET, "/api/live/inputs", None).await?;
    assert_eq!(names(&whole), all);
    whole["liveInputs"]
        .as_array()
        .into_iter()
        .flatten()
        .for_each(check_masks);

    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/live/inputs?limit=3&cursor={cursor}");
        let (status, page) = api.call(Method::GET, &path, None).await?;
        assert_eq!(status, StatusCode::OK);
        assert!(page.get("nextCursor").is_some(), "null, never left out");
        seen.extend(names(&page));
        match page["nextCursor"].as_str() {
            // An input created between two pages does not shift the next page.
            Some(next) => {
                api.create(json!({"name": "late"})).await?;
                next.clone_into(&mut cursor);
            }
            None => break,
        }
    }
    assert_eq!(seen, all);
    for (query, word) in [
        ("limit=0", "limit"),
        ("limit=101", "1 to 100"),
        ("limit=x", "limit"),
        ("cursor=x", "cursor"),
    ] {
        let path = format!("/api/live/inputs?{query}");
        let (status, error) = api.call(Method::GET, &path, None).await?;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}");
        assert!(
            error["error"]
                .as_str()
                .is_some_and(|text| text.contains(word)),
            "{error}"
        );
    }
    Ok(())
}
