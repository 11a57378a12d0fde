//! Playback of a stream while it is made, when it is ready, and when it is gone.

use serde_json::json;

use super::{INIT_BYTES, Pairs, SEGMENT_BYTES, Site, path_of, playback_id};

/// Everything that a stream of two qualities and audio has.
pub(super) const ADDRESSES: [&str; 13] = [
    "master.m3u8",
    "360p/media.m3u8",
    "480p/media.m3u8",
    "audio/media.m3u8",
    "360p/iframes.m3u8",
    "360p/init.mp4",
    "360p/0.m4s",
    "480p/2.m4s",
    "audio/init.mp4",
    "audio/1.m4s",
    "poster.jpg",
    "storyboard.vtt",
    "storyboard.jpg",
];

#[actix_web::test]
async fn nothing_is_there_before_the_stream_is_playable() {
    let site = Site::open().await;
    let stream = site.stream(json!({})).await;
    let id = playback_id(&stream);
    for name in ADDRESSES {
        let answer = site.play("GET", &format!("{id}/{name}"), &[]).await;
        assert_eq!(
            (answer.status, &answer.json()["code"]),
            (404, &json!("not_ready")),
            "{name}"
        );
        assert_eq!(answer.header("retry-after"), "2");
        assert_eq!(answer.header("cache-control"), "no-store");
        assert_eq!(answer.header("access-control-allow-origin"), "*");
        assert!(
            answer.error().contains("still processing"),
            "{}",
            answer.error()
        );
    }
    site.make(2).await;
    for (name, status) in [
        ("master.m3u8", 404),
        ("360p/media.m3u8", 404),
        ("poster.jpg", 200),
    ] {
        let answer = site.play("GET", &format!("{id}/{name}"), &[]).await;
        assert_eq!(answer.status, status, "{name} of two segments");
    }
}

#[actix_web::test]
async fn a_growing_stream_is_an_event_and_a_ready_one_is_whole() {
    let site = Site::open().await;
    let stream = site.stream(json!({})).await;
    let id = playback_id(&stream);
    let lease = site.make(3).await;
    let media = format!("{id}/360p/media.m3u8");
    let growing = site.play("GET", &media, &[]).await;
    let text = String::from_utf8(growing.body.clone()).unwrap();
    assert!(
        text.contains("#EXT-X-PLAYLIST-TYPE:EVENT\n") && !text.contains("ENDLIST"),
        "{text}"
    );
    assert_eq!(growing.header("cache-control"), "public, max-age=1");
    let later = site.play("GET", &format!("{id}/360p/3.m4s"), &[]).await;
    assert_eq!(later.json()["code"], "not_ready");
    // After a crash they may be made again.
    for name in ["init.mp4", "2.m4s"] {
        let address = format!("{id}/360p/{name}");
        let growing = site.play("GET", &address, &[]).await;
        assert_eq!(growing.header("cache-control"), "public, max-age=60");
    }

    site.finish(&lease).await;
    let whole = site.play("GET", &media, &[]).await;
    let text = String::from_utf8(whole.body.clone()).unwrap();
    assert!(
        text.contains("#EXT-X-PLAYLIST-TYPE:VOD\n") && text.ends_with("#EXT-X-ENDLIST\n"),
        "{text}"
    );
    assert_eq!(whole.header("cache-control"), "public, max-age=60");
    assert_eq!(
        whole.header("content-type"),
        "application/vnd.apple.mpegurl"
    );
    let never = site.play("GET", &format!("{id}/360p/3.m4s"), &[]).await;
    assert_eq!(never.json()["code"], "not_found");

    let master = site.play("GET", &format!("{id}/master.m3u8"), &[]).await;
    let text = String::from_utf8(master.body.clone()).unwrap();
    for line in [
        "#EXT-X-STREAM-INF:BANDWIDTH=268,AVERAGE-BANDWIDTH=268,CODECS=\"avc1.64001e,mp4a.40.2\",RESOLUTION=640x360,FRAME-RATE=25.000,AUDIO=\"audio\"",
        "\n480p/media.m3u8\n",
        "URI=\"audio/media.m3u8\"",
        "#EXT-X-I-FRAME-STREAM-INF:",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let tag = master.header("etag");
    let known = site
        .play(
            "GET",
            &format!("{id}/master.m3u8"),
            &[("if-none-match", tag)],
        )
        .await;
    assert_eq!((known.status, known.body.len()), (304, 0));
    let bare = site.play("HEAD", &format!("{id}/master.m3u8"), &[]).await;
    assert_eq!((bare.status, bare.header("etag")), (200, tag));
}

#[actix_web::test]
async fn segments_are_ranges_of_one_file() {
    let site = Site::open().await;
    let stream = site.stream(json!({})).await;
    let lease = site.make(3).await;
    site.finish(&lease).await;
    let id = playback_id(&stream);
    let byte = |at: u64| at as u8;
    let init = site.play("GET", &format!("{id}/480p/init.mp4"), &[]).await;
    assert_eq!(init.body, (0..INIT_BYTES).map(byte).collect::<Vec<_>>());
    let address = format!("{id}/480p/1.m4s");
    let start = INIT_BYTES + SEGMENT_BYTES;
    let segment = site.play("GET", &address, &[]).await;
    assert_eq!(
        segment.body,
        (start..start + SEGMENT_BYTES).map(byte).collect::<Vec<_>>()
    );
    assert_eq!(segment.header("content-type"), "video/mp4");
    assert_eq!(
        segment.header("cache-control"),
        "public, max-age=31536000, immutable"
    );
    assert_eq!(segment.header("accept-ranges"), "bytes");
    let tag = segment.header("etag");
    let cases: [(Pairs<'_>, u16, std::ops::Range<u64>); 6] = [
        (&[("range", "bytes=0-9")], 206, 0..10),
        (&[("range", "bytes=90-200")], 206, 90..100),
        (&[("range", "bytes=-5")], 206, 95..100),
        (
            &[("range", "bytes=0-9"), ("if-range", "\"other\"")],
            200,
            0..100,
        ),
        (&[("range", "bytes=0-9"), ("if-range", tag)], 206, 0..10),
        (&[("if-none-match", tag)], 304, 0..0),
    ];
    for (headers, status, range) in cases {
        let answer = site.play("GET", &address, headers).await;
        assert_eq!(answer.status, status, "{headers:?}");
        let expected: Vec<u8> = range.map(|at| byte(start + at)).collect();
        assert_eq!(answer.body, expected, "{headers:?}");
    }
    let beyond = site.play("GET", &address, &[("range", "bytes=100-")]).await;
    assert_eq!(
        (beyond.status, beyond.header("content-range")),
        (416, "bytes */100")
    );
    let audio = site.play("GET", &format!("{id}/audio/0.m4s"), &[]).await;
    assert_eq!(audio.header("content-type"), "audio/mp4");
    let none = site
        .play("GET", &format!("{id}/audio/iframes.m3u8"), &[])
        .await;
    assert_eq!(none.status, 404);
}

#[actix_web::test]
async fn only_exact_names_are_answered() {
    let site = Site::open().await;
    let stream = site.stream(json!({})).await;
    let lease = site.make(3).await;
    site.finish(&lease).await;
    let id = playback_id(&stream);
    for name in [
        "",
        "Master.m3u8",
        "master.m3u8/",
        "poster.png",
        "360p.mp4",
        "360p/",
        "360p/00.m4s",
        "360p/+1.m4s",
        "360p/4294967296.m4s",
        "360p/-1.m4s",
        "361p/0.m4s",
        "360P/0.m4s",
        "audio/../360p/0.m4s",
        "..%2f360p%2f0.m4s",
        "360p/..%2f480p.mp4",
        "%2e%2e/%2e%2e/sluice.db",
        "360p/%00.m4s",
        "captions/en.vtt",
        "captions/..%2f..%2fposter.jpg",
        "captions/.vtt",
        "360p/0.m4s/x",
    ] {
        let answer = site.play("GET", &format!("{id}/{name}"), &[]).await;
        assert_eq!(answer.status, 404, "{name}");
        assert_eq!(answer.header("cache-control"), "no-store", "{name}");
        assert!(!answer.error().is_empty(), "{name}");
    }
    for other in ["pb_00000000000000000000", "pb_", "x", "sluice"] {
        let answer = site.play("GET", &format!("{other}/master.m3u8"), &[]).await;
        assert_eq!(
            (answer.status, answer.header("cache-control")),
            (404, "no-store"),
            "{other}"
        );
    }
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let answer = site.play(method, &format!("{id}/master.m3u8"), &[]).await;
        assert_eq!(
            (answer.status, answer.header("allow")),
            (405, "GET, HEAD, OPTIONS"),
            "{method}"
        );
    }
}

#[actix_web::test]
async fn a_deleted_stream_is_gone_at_once() {
    let site = Site::open().await;
    let stream = site.stream(json!({})).await;
    let lease = site.make(3).await;
    site.finish(&lease).await;
    let id = playback_id(&stream);
    for name in ADDRESSES {
        let answer = site.play("GET", &format!("{id}/{name}"), &[]).await;
        assert_eq!(answer.status, 200, "{name}: {answer:?}");
    }
    assert_eq!(
        site.call("DELETE", &path_of(&stream), None).await.status,
        200
    );
    for name in ADDRESSES {
        let answer = site.play("GET", &format!("{id}/{name}"), &[]).await;
        assert_eq!(
            (answer.status, &answer.json()["code"]),
            (404, &json!("not_found")),
            "{name}"
        );
    }
}
