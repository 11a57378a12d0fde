//! A stream as clients see it: record, health, state, and the bytes with their headers.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::{json_of, status_of, text_of};
use crate::support::{
    Failure,
    checker::MediaPlaylist,
    encoder::Publish,
    eventually,
    http::client,
    media::Recipe,
    publisher::{Pace, Publisher},
    server::Server,
    viewer::Viewer,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_address_of_webrtc_answers_before_a_broadcast() -> Result<(), Failure> {
    let server = Server::start().await?;
    let input = server.api().create(json!({})).await?;
    let record = server.api().get(&input.id).await?;
    let url = record["playback"]["webRtcUrl"].as_str().ok_or("no URL")?;
    let ask = async |method: Method, content_type: &'static str| {
        let request = client().request(method, url).body("v=0");
        let request = request.header("origin", "https://player.example");
        let answer = request.header("content-type", content_type).send().await?;
        let cors = text_of(answer.headers(), "access-control-allow-origin");
        Ok::<_, Failure>((answer.status().as_u16(), cors))
    };
    let everyone = "*".to_owned();
    for (method, content_type, status) in [
        (Method::GET, "application/sdp", 200),
        (Method::HEAD, "application/sdp", 200),
        (Method::POST, "application/sdp", 404),
        (Method::POST, "text/plain", 415),
    ] {
        let answer = ask(method.clone(), content_type).await?;
        assert_eq!(
            answer,
            (status, everyone.clone()),
            "{method} {content_type}"
        );
    }
    assert_eq!(ask(Method::PATCH, "application/sdp").await?.0, 405);
    let preflight = client().request(Method::OPTIONS, url).send().await?;
    assert_eq!(preflight.status(), 204);
    let allowed = text_of(preflight.headers(), "access-control-allow-methods");
    assert_eq!(allowed, "GET, HEAD, POST, PATCH, DELETE, OPTIONS");
    let unknown = url.replace(&input.playback_id, "pb_00000000000000000000");
    assert_eq!(status_of(client().post(unknown)).await?, 404);
    Ok(())
}

/// With the settings as they are by default.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delta_update_of_a_full_window_skips_segments() -> Result<(), Failure> {
    let server = Server::start().await?;
    let input = server.api().create(json!({})).await?;
    let media = Recipe::numbered(0).lasting(60).make()?;
    let mut encoder = Publisher::open(&input.target(), &media).await?;
    encoder.send_frames(1_500, Pace::Unbounded).await?;
    let playlist = async |query: &str| -> Result<(String, MediaPlaylist), Failure> {
        let url = format!("{}{}", server.base_url(), input.playback_path("media.m3u8"));
        let text = client().get(format!("{url}{query}")).send().await?;
        let text = text.error_for_status()?.text().await?;
        let list = MediaPlaylist::parse(&text)?;
        Ok((text, list))
    };
    // The encoder is silent from now on; the last of its frames may still be on their way.
    let (full, text, delta) = eventually("a full window", Duration::from_secs(60), async || {
        let (_, full) = playlist("").await.ok()?;
        let (text, delta) = playlist("?_HLS_skip=YES").await.ok()?;
        let is_same = delta.next() == full.next() && delta.media_sequence == full.media_sequence;
        (is_same && full.media_sequence > 1).then_some((full, text, delta))
    })
    .await?;
    assert!(delta.skipped > 0, "{text}");
    assert!(text.contains("CAN-SKIP-UNTIL=24.00000"), "{text}");
    let skipped = usize::try_from(delta.skipped)?;
    let wholes = |list: &MediaPlaylist| -> Vec<_> {
        let segments = list.segments.iter();
        segments.map(|segment| segment.whole.clone()).collect()
    };
    assert_eq!(wholes(&delta), wholes(&full)[skipped..]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_shows_in_record_health_and_state() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let idle = api.health(&input.id).await?;
    assert_eq!(
        (&idle["status"], &idle["advice"]),
        (&json!("idle"), &json!([]))
    );
    let state_url = format!("{}{}", server.base_url(), input.playback_path("state"));
    let state = json_of(client().get(&state_url)).await?;
    assert_eq!(
        (&state["state"], &state["latency"]),
        (&json!("idle"), &json!("low"))
    );
    assert_eq!(status_of(client().get(&input.hls_url)).await?, 404);

    // A page that was opened before the stream waits, and gets the change.
    let since = state["version"].as_str().ok_or("no version")?.to_owned();
    let waiting = tokio::spawn(async move { until_live(&state_url, since).await });
    // Server, a slash and the stream key, as pasted into OBS.
    let pasted = format!("{}/{}", input.obs_server, input.obs_stream_key);
    let mut encoder = Publish::new(&clip, &pasted)?.start()?;
    let live = waiting.await??;
    assert!(live["broadcast"].is_string(), "{live}");
    assert_eq!(
        status_of(client().get(&input.hls_url)).await?,
        200,
        "live means that it plays"
    );

    let record = api
        .wait_status(&input.id, "live", Duration::from_secs(5))
        .await?;
    assert!(
        record["lastStartedAt"].is_string() && record["lastEndedAt"].is_null(),
        "{record}"
    );
    let health = api
        .wait_health(
            &input.id,
            "measurements",
            Duration::from_secs(15),
            |health| {
                health["keyFrameIntervalS"].is_number()
                    && health["videoBitrateBps"].as_u64() > Some(0)
            },
        )
        .await?;
    for (field, value) in [
        ("status", json!("live")),
        ("protocol", json!("rtmp")),
        ("videoCodec", json!("h264")),
        ("width", json!(160)),
        ("height", json!(96)),
        ("audioCodec", json!("aac")),
        ("sampleRate", json!(48_000)),
        ("bFrames", json!(true)),
        ("sessions", json!(1)),
        ("damagedUnits", json!(0)),
    ] {
        assert_eq!(health[field], value, "{field}: {health}");
    }
    assert_eq!(
        health
            .as_object()
            .map(|fields| fields.keys().collect::<Vec<_>>()),
        idle.as_object().map(|fields| fields.keys().collect())
    );

    // Disabling ends a publish at once and refuses the next.
    api.patch(&input.id, json!({"enabled": false})).await?;
    encoder.wait(Duration::from_secs(10)).await?;
    let refused = Publisher::expect_rejection(&input.target(), &clip).await?;
    assert_eq!(refused.code, "NetStream.Publish.BadName");
    assert!(refused.description.contains("disabled"), "{refused:?}");
    let record = api
        .wait_status(&input.id, "idle", Duration::from_secs(5))
        .await?;
    assert!(record["lastEndedAt"].is_string(), "{record}");
    Ok(())
}

/// Asks as the player page does, until the state is `live`.
async fn until_live(url: &str, mut since: String) -> Result<Value, Failure> {
    loop {
        let asked = client().get(format!("{url}?wait=20&since={since}"));
        let state = json_of(asked).await?;
        if state["state"] == "live" {
            return Ok(state);
        }
        let version = state["version"].as_str().ok_or("no version")?;
        if version == since {
            return Err(format!("20 s without a change of {state}").into());
        }
        version.clone_into(&mut since);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn playback_is_cacheable_in_ranges_and_by_domain() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let mut publisher = Publisher::open(&input.target(), &clip).await?;
    publisher.send_frames(300, Pace::Unbounded).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let seen = viewing
        .until("a whole segment", Duration::from_secs(15), |seen| {
            seen.pieces.values().any(|piece| piece.whole.is_some())
        })
        .await?;
    drop(viewing);
    let base = format!("{}{}", server.base_url(), input.playback_path(""));
    let playlist = client()
        .get(format!("{base}media.m3u8"))
        .send()
        .await?
        .text()
        .await?;
    let [segment, part, init] = named(&playlist).map(|name| format!("{base}{name}"));

    cache_headers(&base, [&segment, &part, &init]).await?;
    ranges(&segment).await?;
    ranges(&part).await?;
    preflight(&segment).await?;
    assert!(seen.video_frames() > 0);

    api.patch(
        &input.id,
        json!({"allowedDomains": ["example.org", "*.example.com"]}),
    )
    .await?;
    domains(&[
        &input.hls_url,
        &format!("{base}media.m3u8"),
        &format!("{base}state"),
        &segment,
        &init,
    ])
    .await?;
    publisher.end().await?;
    Ok(())
}

/// The last whole segment, the last part, and the init section.
fn named(playlist: &str) -> [&str; 3] {
    let quoted = |line: &'static str| {
        let mut lines = playlist
            .lines()
            .filter(move |known| known.starts_with(line));
        lines.next_back().and_then(|line| line.split('"').nth(1))
    };
    let mut plain = playlist.lines().filter(|line| !line.starts_with('#'));
    [
        plain.next_back(),
        quoted("#EXT-X-PART:"),
        quoted("#EXT-X-MAP"),
    ]
    .map(|name| name.unwrap_or_else(|| panic!("not named in {playlist}")))
}

async fn cache_headers(base: &str, [segment, part, init]: [&str; 3]) -> Result<(), Failure> {
    let playlist = "application/vnd.apple.mpegurl";
    for (url, kind) in [
        (format!("{base}index.m3u8"), playlist),
        (format!("{base}media.m3u8"), playlist),
        (segment.to_owned(), "video/iso.segment"),
        (part.to_owned(), "video/iso.segment"),
        (init.to_owned(), "video/mp4"),
    ] {
        let whole = client()
            .get(&url)
            .header("accept-encoding", "gzip, br")
            .send()
            .await?;
        assert_eq!(whole.status(), 200, "{url}");
        let cache = text_of(whole.headers(), "cache-control");
        match kind == playlist {
            true => assert!(
                seconds_in(&cache) <= Some(2) && !cache.contains("immutable"),
                "{cache}"
            ),
            false => assert!(
                seconds_in(&cache) >= Some(60) && cache.contains("immutable"),
                "{cache}"
            ),
        }
        let shown = |name| text_of(whole.headers(), name);
        assert_eq!(shown("content-type"), kind);
        assert_eq!(shown("access-control-allow-origin"), "*");
        assert_eq!(shown("content-encoding"), "", "byte-exact");
        assert_eq!(shown("vary"), "", "nothing depends on who asks");
        assert_eq!(shown("x-content-type-options"), "nosniff");
        let head = client().head(&url).send().await?;
        assert_eq!(head.status(), 200);
        let same = ["content-type", "cache-control", "accept-ranges"];
        for name in same {
            assert_eq!(
                text_of(head.headers(), name),
                shown(name),
                "{name} of HEAD {url}"
            );
        }
        if kind != playlist {
            assert_eq!(
                text_of(head.headers(), "content-length"),
                shown("content-length")
            );
        }
        assert!(head.bytes().await?.is_empty());
    }
    let unlisted = segment.replace(".m4s", "999999.m4s");
    let unknown = format!(
        "{}/index.m3u8",
        base.trim_end_matches('/')
            .rsplit_once('/')
            .unwrap_or_default()
            .0
    );
    for url in [unlisted, format!("{base}other/0.m4s"), unknown + "x"] {
        let answer = client().get(&url).send().await?;
        assert_eq!(answer.status(), 404, "{url}");
        assert_eq!(text_of(answer.headers(), "cache-control"), "no-store");
    }
    Ok(())
}

async fn ranges(segment: &str) -> Result<(), Failure> {
    let whole = client().get(segment).send().await?;
    assert_eq!(text_of(whole.headers(), "accept-ranges"), "bytes");
    let whole = whole.bytes().await?;
    let total = whole.len();
    let open = format!("bytes={}-", total - 10);
    for (range, from, to) in [
        ("bytes=0-99", 0, 99),
        ("bytes=100-100", 100, 100),
        (open.as_str(), total - 10, total - 1),
        ("bytes=-7", total - 7, total - 1),
        ("bytes=5-99999999999", 5, total - 1),
    ] {
        let answer = client().get(segment).header("range", range).send().await?;
        assert_eq!(answer.status(), 206, "{range}");
        let expected = format!("bytes {from}-{to}/{total}");
        assert_eq!(text_of(answer.headers(), "content-range"), expected);
        assert!(answer.bytes().await? == whole[from..=to], "{range}");
    }
    for range in ["bytes=99999999999-", "bytes=-0"] {
        let answer = client().get(segment).header("range", range).send().await?;
        assert_eq!(answer.status(), 416, "{range}");
        assert_eq!(
            text_of(answer.headers(), "content-range"),
            format!("bytes */{total}")
        );
        assert_eq!(
            text_of(answer.headers(), "access-control-allow-origin"),
            "*"
        );
        assert!(answer.json::<Value>().await?["error"].is_string());
    }
    for range in ["bytes=9-1", "lines=0-1", "bytes=0-1,4-5"] {
        let answer = client().get(segment).header("range", range).send().await?;
        assert_eq!(answer.status(), 200, "{range}");
    }
    Ok(())
}

async fn preflight(url: &str) -> Result<(), Failure> {
    let asked = client()
        .request(Method::OPTIONS, url)
        .header("origin", "https://any.example")
        .header("access-control-request-method", "GET")
        .header("access-control-request-headers", "range");
    let answer = asked.send().await?;
    assert_eq!(answer.status(), 204);
    assert_eq!(
        text_of(answer.headers(), "access-control-allow-origin"),
        "*"
    );
    let allowed = text_of(answer.headers(), "access-control-allow-headers");
    assert!(allowed.to_lowercase().contains("range"), "{allowed}");
    Ok(())
}

/// With `example.org` and `*.example.com` allowed.
async fn domains(urls: &[&str]) -> Result<(), Failure> {
    for url in urls {
        for (header, value, status, named) in [
            ("origin", "https://example.org", 200, "https://example.org"),
            (
                "origin",
                "http://a.b.example.com:8080",
                200,
                "http://a.b.example.com:8080",
            ),
            ("origin", "https://example.com", 403, ""),
            ("origin", "https://evil-example.org", 403, ""),
            ("origin", "null", 403, ""),
            ("referer", "https://example.org/page?x", 200, ""),
            ("referer", "https://example.net/example.org", 403, ""),
            ("x-nothing", "", 403, ""),
        ] {
            let answer = client().get(*url).header(header, value).send().await?;
            let case = format!("{header}: {value} {url}");
            assert_eq!(answer.status(), status, "{case}");
            let headers = answer.headers().clone();
            assert_eq!(
                text_of(&headers, "access-control-allow-origin"),
                named,
                "{case}"
            );
            let vary = text_of(&headers, "vary").to_lowercase();
            assert!(vary.contains("origin"), "{case}: vary is {vary}");
            if status == 403 {
                assert!(answer.json::<Value>().await?["error"].is_string(), "{case}");
            }
        }
        let asked = client()
            .request(Method::OPTIONS, *url)
            .header("origin", "https://example.net");
        let answer = asked.send().await?;
        assert_eq!(
            text_of(answer.headers(), "access-control-allow-origin"),
            "",
            "{url}"
        );
    }
    Ok(())
}

fn seconds_in(cache_control: &str) -> Option<u64> {
    let mut directives = cache_control.split(',').map(str::trim);
    directives.find_map(|one| one.strip_prefix("max-age=")?.parse().ok())
}
