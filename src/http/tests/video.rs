//! Video streams by REST: accepted and rejected requests, records, changes. No worker runs: tests write its rows.

mod captions;
mod playback;
mod signed;

use serde_json::{Value, json};
use sluice_media::hls::vod::names;
use sluice_store::{
    api_keys::Scope,
    now_ms,
    video::{
        self, Failure, Folder, Group, Init, MadeImages, MediaFile, Plan, PlannedRendition,
        RenditionKind, Segment,
    },
    work::{self, Lease, Room},
};
use uuid::Uuid;

use super::{Answer, Site, request};

/// Names and values, of headers or fields.
type Pairs<'a> = &'a [(&'a str, &'a str)];

const PATH: &str = "/api/video/streams";
/// The first bytes of an MP4.
const MP4: &[u8] = b"\0\0\0\x1cftypisom\0\0\x02\0isomiso2mp41\0\0\0\x08free";
const BASE: &str = "http://media.test:8080";
/// Bytes of the init section in the files that [`Site::make`] writes, before the segments.
const INIT_BYTES: u64 = 10;
const SEGMENT_BYTES: u64 = 100;

impl Site {
    /// A stream of a new file; its record.
    async fn stream(&self, mut body: Value) -> Value {
        let file = self.stored("clip.mp4", MP4).await;
        body["sourceFileId"] = file["id"].clone();
        let answer = self.call("POST", PATH, Some(body)).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["stream"].clone()
    }

    async fn shown(&self, stream: &Value) -> Value {
        self.call("GET", &path_of(stream), None).await.json()["stream"].clone()
    }

    /// Does for the one stream that waits what its owner would: two qualities and audio, `segments` of each.
    async fn make(&self, segments: u32) -> Lease {
        let lease = self.begin().await;
        let id = lease.id;
        let (store, of_lease) = (&self.app.platform.store, lease.clone());
        let folder = Folder::of(store, id);
        folder.make().unwrap();
        for name in ["360p", "480p", names::AUDIO] {
            let path = folder.path(&MediaFile::Rendition(name.to_owned()));
            let length = INIT_BYTES + SEGMENT_BYTES * u64::from(segments);
            let bytes: Vec<u8> = (0..length).map(|at| at as u8).collect();
            std::fs::write(path, bytes).unwrap();
        }
        std::fs::write(folder.path(&MediaFile::Poster), b"a poster").unwrap();
        std::fs::write(folder.path(&MediaFile::StoryboardImage), b"a sheet").unwrap();
        std::fs::write(folder.path(&MediaFile::StoryboardMap), b"WEBVTT").unwrap();
        let done = store.write(move |tx| {
            Box::pin(async move {
                video::plan(tx, &of_lease, &plan(), now_ms()).await?;
                let images = MadeImages {
                    poster_bytes: Some(8),
                    storyboard_bytes: Some(13),
                };
                video::images_made(tx, &of_lease, images, now_ms()).await?;
                video::record(tx, &of_lease, &group(segments), now_ms()).await
            })
        });
        done.await.unwrap();
        self.forget(id).await;
        lease
    }

    async fn begin(&self) -> Lease {
        let claimed = self.app.platform.store.write(|tx| {
            Box::pin(async move {
                let (owner, room) = (Uuid::now_v7(), Room::for_any(1));
                let lease = std::time::Duration::from_secs(60);
                let claimed = work::claim(tx, video::KIND, owner, room, lease, now_ms()).await?;
                let lease = claimed.leases.into_iter().next().expect("a stream waits");
                video::begin(tx, lease.id, now_ms()).await?;
                Ok(lease)
            })
        });
        claimed.await.unwrap()
    }

    async fn finish(&self, lease: &Lease) {
        let of_lease = lease.clone();
        let finished =
            self.app.platform.store.write(move |tx| {
                Box::pin(async move { video::finish(tx, &of_lease, now_ms()).await })
            });
        finished.await.unwrap();
        self.forget(lease.id).await;
    }

    /// A change by the API has players look at the rows again.
    async fn forget(&self, id: Uuid) {
        let path = format!("{PATH}/{id}");
        assert_eq!(self.call("PATCH", &path, Some(json!({}))).await.status, 200);
    }

    async fn play(&self, method: &str, address: &str, headers: Pairs<'_>) -> Answer {
        let mut request = request(method, &format!("/video/v1/{address}"));
        for (name, value) in headers {
            request = request.insert_header((*name, *value));
        }
        self.send(request).await
    }
}

fn plan() -> Plan {
    let rendition = |name: &str, kind, size: Option<(u32, u32)>| PlannedRendition {
        name: name.to_owned(),
        kind,
        width: size.map(|(width, _)| width),
        height: size.map(|(_, height)| height),
        bitrate: 800_000,
        max_bitrate: 1_200_000,
        is_copy: false,
    };
    Plan {
        duration_ms: Some(12_000),
        size: Some((854, 480)),
        renditions: vec![
            rendition("360p", RenditionKind::Video, Some((640, 360))),
            rendition("480p", RenditionKind::Video, Some((854, 480))),
            rendition(names::AUDIO, RenditionKind::Audio, None),
        ],
    }
}

fn group(segments: u32) -> Group {
    let of = |rendition: u8| {
        (0..segments).map(move |number| Segment {
            rendition,
            number,
            offset: INIT_BYTES + SEGMENT_BYTES * u64::from(number),
            length: SEGMENT_BYTES,
            start_90k: 540_000 * i64::from(number),
            duration_90k: 540_000,
            key_length: if rendition < 2 { 40 } else { 0 },
        })
    };
    let init = |rendition: u8, codecs: &str| Init {
        rendition,
        length: INIT_BYTES,
        codecs: codecs.to_owned(),
        frame_rate: (rendition < 2).then_some(25.0),
        is_copy: false,
    };
    Group {
        inits: vec![
            init(0, "avc1.64001e"),
            init(1, "avc1.64001f"),
            init(2, "mp4a.40.2"),
        ],
        segments: (0..3).flat_map(of).collect(),
        progress: 50,
    }
}

fn id_of(stream: &Value) -> Uuid {
    stream["id"].as_str().unwrap().parse().unwrap()
}

fn path_of(stream: &Value) -> String {
    format!("{PATH}/{}", id_of(stream))
}

fn playback_id(stream: &Value) -> &str {
    stream["playbackId"].as_str().unwrap()
}

#[actix_web::test]
async fn a_new_stream_has_every_field() {
    let site = Site::open().await;
    let file = site.stored("holiday.mp4", MP4).await;
    let body =
        json!({"source_file_id": file["id"], "segment_duration": 4, "token_ttl_seconds": 60});
    let answer = site.call("POST", PATH, Some(body)).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let stream = &answer.json()["stream"];
    let playback_id = playback_id(stream);
    let expected = json!({
        "id": stream["id"], "sourceFileId": file["id"], "playbackId": playback_id, "title": "holiday.mp4",
        "status": "pending", "progress": 0, "queuePlace": null, "playable": false,
        "profile": "standard", "segmentDuration": 4, "duration": null, "width": null, "height": null,
        "manifestUrl": format!("{BASE}/video/v1/{playback_id}/master.m3u8"), "posterUrl": null, "storyboardUrl": null,
        "renditions": [], "captions": [], "access": "public", "tokenTtlSeconds": 60, "allowedDomains": [],
        "error": null, "errorCode": null, "createdAt": stream["createdAt"], "readyAt": null,
    });
    assert_eq!(*stream, expected);
    assert_eq!(site.shown(stream).await, expected);
    let usage = site.call("GET", "/api/usage", None).await.json();
    assert_eq!(usage["operations"]["used"], 1);
}

#[actix_web::test]
async fn a_request_with_a_key_makes_one_stream() {
    let site = Site::open().await;
    let file = site.stored("clip.mp4", MP4).await;
    let captions = site
        .stored("en.vtt", b"WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n")
        .await;
    let body = |title: &str| {
        json!({"sourceFileId": file["id"], "title": title,
            "captions": [{"language": "en", "fileId": captions["id"]}]})
    };
    let ask = async |key: &str, title: &str| {
        let request = request("POST", PATH)
            .insert_header((
                "authorization",
                format!("Bearer {}", site.first.api_key.expose()),
            ))
            .insert_header(("idempotency-key", key))
            .set_json(body(title));
        site.send(request).await
    };
    let first = ask("order-7", "A clip").await;
    assert_eq!(first.status, 202, "{first:?}");
    let again = ask("order-7", "A clip").await;
    assert_eq!((again.status, again.json()), (202, first.json()));
    assert_eq!(ask("order-7", "Another clip").await.status, 409);
    let other = ask("order-8", "A clip").await;
    assert_ne!(other.json()["stream"]["id"], first.json()["stream"]["id"]);
    assert_eq!(ask("", "A clip").await.status, 400);
    let usage = site.call("GET", "/api/usage", None).await.json();
    assert_eq!(usage["operations"]["used"], 2);
}

#[actix_web::test]
async fn a_missing_file_is_reported_by_the_field_that_names_it() {
    let site = Site::open().await;
    let file = site.stored("clip.mp4", MP4).await;
    let unknown = Uuid::now_v7();
    for (body, field) in [
        (json!({"sourceFileId": unknown}), "sourceFileId"),
        (
            json!({"sourceFileId": file["id"], "captions": [{"language": "en", "fileId": unknown}]}),
            "captions[0].fileId",
        ),
    ] {
        let answer = site.call("POST", PATH, Some(body)).await;
        assert_eq!(answer.status, 404, "{answer:?}");
        let error = &answer.json();
        assert_eq!(error["code"], "not_found");
        let text = error["error"].as_str().unwrap();
        assert!(text.starts_with(&format!("{field} names no")), "{text}");
    }
}

#[actix_web::test]
async fn a_stream_that_grows_shows_its_qualities() {
    let site = Site::open().await;
    let stream = site.stream(json!({})).await;
    let lease = site.make(3).await;
    let grown = site.shown(&stream).await;
    let base = format!("{BASE}/video/v1/{}", playback_id(&stream));
    for (field, expected) in [
        ("status", json!("processing")),
        ("progress", json!(50)),
        ("playable", json!(true)),
        ("duration", json!(12.0)),
        ("width", json!(854)),
        ("posterUrl", json!(format!("{base}/poster.jpg"))),
        ("storyboardUrl", json!(format!("{base}/storyboard.vtt"))),
        ("readyAt", Value::Null),
    ] {
        assert_eq!(grown[field], expected, "{field}");
    }
    let qualities = grown["renditions"].as_array().unwrap();
    assert_eq!(qualities.len(), 2, "audio is a part of each: {qualities:?}");
    assert_eq!(
        qualities[0],
        json!({
            "id": "360p", "width": 640, "height": 360, "bitrate": 800_000, "averageBitrate": 133,
            "codec": "avc1.64001e", "audioCodec": "mp4a.40.2", "segmentCount": 3,
        })
    );
    site.finish(&lease).await;
    let ready = site.shown(&stream).await;
    assert_eq!(
        (&ready["status"], &ready["progress"]),
        (&json!("ready"), &json!(100))
    );
    assert!(ready["readyAt"].as_str().unwrap().ends_with('Z'));
    let events = site
        .call("GET", &format!("{}/events", path_of(&stream)), None)
        .await;
    let text = String::from_utf8(events.body).unwrap();
    let (progress, end) = text.split_once("event: end\ndata: ").unwrap();
    assert!(
        progress.starts_with("event: progress\ndata: {"),
        "{progress}"
    );
    assert_eq!(serde_json::from_str::<Value>(end).unwrap()["stream"], ready);
}

#[actix_web::test]
async fn a_stream_that_failed_says_why_and_costs_nothing() {
    let site = Site::open().await;
    let stream = site.stream(json!({})).await;
    let lease = site.begin().await;
    let failed = site.app.platform.store.write(move |tx| {
        Box::pin(async move {
            let failure = Failure {
                code: "undecodable".into(),
                message: "clip.mp4 does not decode".into(),
            };
            video::fail(tx, &lease, &failure, now_ms()).await
        })
    });
    failed.await.unwrap();
    let shown = site.shown(&stream).await;
    assert_eq!(
        (
            &shown["status"],
            &shown["error"],
            &shown["errorCode"],
            &shown["manifestUrl"]
        ),
        (
            &json!("failed"),
            &json!("clip.mp4 does not decode"),
            &json!("undecodable"),
            &Value::Null
        )
    );
    let usage = site.call("GET", "/api/usage", None).await.json();
    assert_eq!(usage["operations"]["used"], 0);
    let address = format!("{}/master.m3u8", playback_id(&stream));
    let answer = site.play("GET", &address, &[]).await;
    assert_eq!(
        (answer.status, &answer.json()["code"]),
        (404, &json!("not_found"))
    );
}

#[actix_web::test]
async fn sources_that_are_no_media_are_rejected() {
    let site = Site::open().await;
    let stranger = site.stranger().await;
    let clip = site.stored("clip.mp4", MP4).await;
    let text = site.stored("clip.txt", b"no clip").await;
    let renamed = site
        .stored("page.mp4", b"<html><body>no clip</body></html>")
        .await;
    let image = site
        .stored(
            "a.png",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0",
        )
        .await;
    let post = async |key: &str, id: &Value| {
        let body = json!({"sourceFileId": id});
        site.call_as(key, "POST", PATH, Some(body)).await
    };
    let own = site.first.api_key.expose();
    for (key, id, status) in [
        (own, json!(Uuid::now_v7()), 404),
        (&stranger, clip["id"].clone(), 404),
        (own, text["id"].clone(), 415),
        (own, renamed["id"].clone(), 415),
        (own, image["id"].clone(), 415),
        (own, json!("x"), 400),
        (own, Value::Null, 400),
    ] {
        let answer = post(key, &id).await;
        assert_eq!(answer.status, status, "{id}: {answer:?}");
        assert!(!answer.error().is_empty());
    }
    let usage = site.call("GET", "/api/usage", None).await.json();
    assert_eq!(usage["operations"]["used"], 0);
}

#[actix_web::test]
async fn the_month_and_the_plan_bound_streams() {
    let site = Site::open_with(|config| {
        let plan = config.plans.get_mut("unlimited").unwrap();
        plan.operations_per_month = 1;
        plan.video_upload = bytesize::ByteSize::b(64);
    })
    .await;
    site.stream(json!({})).await;
    let file = site.stored("clip.mp4", MP4).await;
    let answer = site
        .call("POST", PATH, Some(json!({"sourceFileId": file["id"]})))
        .await;
    assert_eq!(answer.status, 402, "{answer:?}");
    assert!(answer.json()["upgradeUrl"].is_string());
    let large = site.stored("large.mp4", &[MP4, &[0; 64]].concat()).await;
    let answer = site
        .call("POST", PATH, Some(json!({"sourceFileId": large["id"]})))
        .await;
    assert_eq!(answer.status, 413, "{answer:?}");
    assert!(
        answer.error().contains("video_upload of the plan"),
        "{}",
        answer.error()
    );
}

#[actix_web::test]
async fn streams_are_listed_by_page_state_and_source() {
    let site = Site::open().await;
    let first = site.stream(json!({"title": "one"})).await;
    let lease = site.make(3).await;
    site.finish(&lease).await;
    let second = site.stream(json!({"title": "two"})).await;
    let titles = async |query: &str| -> Vec<String> {
        let list = site.call("GET", &format!("{PATH}{query}"), None).await;
        assert_eq!(list.status, 200, "{list:?}");
        let streams = list.json()["streams"].as_array().unwrap().clone();
        streams
            .iter()
            .map(|stream| stream["title"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(titles("").await, ["two", "one"]);
    assert_eq!(titles("?status=ready").await, ["one"]);
    assert_eq!(titles("?status=pending").await, ["two"]);
    assert_eq!(titles("?status=failed").await, [""; 0]);
    let source = format!(
        "?source_file_id={}",
        second["sourceFileId"].as_str().unwrap()
    );
    assert_eq!(titles(&source).await, ["two"]);
    let page = site
        .call("GET", &format!("{PATH}?limit=1"), None)
        .await
        .json();
    let cursor = page["nextCursor"].as_str().unwrap();
    assert_eq!(titles(&format!("?limit=1&cursor={cursor}")).await, ["one"]);
    for query in [
        "?status=deleted",
        "?limit=0",
        "?sourceFileId=x",
        "?cursor=x",
    ] {
        let answer = site.call("GET", &format!("{PATH}{query}"), None).await;
        assert_eq!(answer.status, 400, "{query}");
    }
    assert_eq!(site.shown(&first).await["status"], "ready");
}

#[actix_web::test]
async fn changes_are_checked_and_only_their_own() {
    let site = Site::open().await;
    let stream = site.stream(json!({})).await;
    let (path, own) = (path_of(&stream), site.first.api_key.expose().to_owned());
    let changed = site
        .call("PATCH", &path, Some(json!({"title": "New", "access": "signed", "allowed_domains": ["a.org"], "tokenTtlSeconds": 90})))
        .await;
    let changed = &changed.json()["stream"];
    assert_eq!(
        (
            &changed["title"],
            &changed["access"],
            &changed["allowedDomains"],
            &changed["tokenTtlSeconds"]
        ),
        (
            &json!("New"),
            &json!("signed"),
            &json!(["a.org"]),
            &json!(90)
        )
    );
    let (reader, stranger) = (site.key(Scope::Read).await, site.stranger().await);
    let events = format!("{path}/events");
    let token = format!("{path}/playback-token");
    let captions = format!("{path}/captions");
    let caption = format!("{path}/captions/en");
    for (key, method, path, body, status) in [
        (&own, "PATCH", &path, json!({"access": "secret"}), 400),
        (&own, "PATCH", &path, json!({"title": ""}), 400),
        (&own, "POST", &token, json!({"expiresIn": 59}), 400),
        (&own, "POST", &token, json!({"expiresIn": 604_801}), 400),
        (&own, "DELETE", &caption, json!({}), 404),
        (&reader, "GET", &path, json!({}), 200),
        (&reader, "PATCH", &path, json!({}), 403),
        (&reader, "DELETE", &path, json!({}), 403),
        (&reader, "POST", &token, json!({}), 403),
        (&reader, "POST", &captions, json!({}), 403),
        (&reader, "POST", &PATH.to_owned(), json!({}), 403),
        (&stranger, "GET", &path, json!({}), 404),
        (&stranger, "PATCH", &path, json!({}), 404),
        (&stranger, "DELETE", &path, json!({}), 404),
        (&stranger, "GET", &events, json!({}), 404),
        (&stranger, "POST", &token, json!({}), 404),
        (&stranger, "POST", &captions, json!({"language": "en"}), 404),
        (&stranger, "DELETE", &caption, json!({}), 404),
    ] {
        let body = (method != "GET").then_some(body);
        let answer = site.call_as(key, method, path, body).await;
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
    }
    let gone = site.call("DELETE", &path, None).await;
    assert_eq!((gone.status, gone.json()), (200, json!({"success": true})));
    assert_eq!(site.call("GET", &path, None).await.status, 404);
    assert_eq!(site.call("DELETE", &path, None).await.status, 404);
}
