//! Live inputs by REST.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use sluice_actors::live::{InputStatus, Times};
use sluice_store::api_keys::Scope;

use super::{Site, eventually, request};

const PATH: &str = "/api/live/inputs";

async fn create(site: &Site, body: Value) -> Value {
    let answer = site.call("POST", PATH, Some(body)).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()
}

fn path_of(made: &Value) -> String {
    format!("{PATH}/{}", made["liveInput"]["id"].as_str().unwrap())
}

#[actix_web::test]
async fn a_new_input_has_every_field_and_addresses_to_paste() {
    let site = Site::open().await;
    let made = create(
        &site,
        json!({"reconnect_window_seconds": 30, "allowedDomains": ["Example.org"]}),
    )
    .await;
    let (input, key) = (&made["liveInput"], made["streamKey"].as_str().unwrap());
    let (slug, playback_id) = (
        input["inputSlug"].as_str().unwrap(),
        input["playbackId"].as_str().unwrap(),
    );
    let expected = json!({
        "id": input["id"], "name": "Live input", "status": "idle", "viewers": 0, "inputSlug": slug, "playbackId": playback_id,
        "enabled": true, "reconnectWindowSeconds": 30, "requireSignedPlayback": false,
        "allowedDomains": ["example.org"], "recordMode": "off", "latency": "low", "pullUrl": null,
        "streamKeyPrefix": &key[..12],
        "ingest": {
            "rtmpUrl": format!("rtmp://media.test:1935/live/{slug}.{key}"), "srtUrl": null,
            "obsServer": "rtmp://media.test:1935/live", "obsStreamKey": format!("{slug}.{key}"),
            "srtPassphrase": null, "whipUrl": null,
        },
        "playback": {
            "hlsUrl": format!("http://media.test:8080/live/v1/{playback_id}/index.m3u8"),
            "webRtcUrl": format!("http://media.test:8080/live/v1/{playback_id}/whep"),
            "posterUrl": format!("http://media.test:8080/live/v1/{playback_id}/poster.jpg"),
            "playbackId": playback_id,
        },
        "lastStartedAt": null, "lastEndedAt": null,
        "createdAt": input["createdAt"], "updatedAt": input["createdAt"],
    });
    assert_eq!(*input, expected);
    assert!(input["createdAt"].as_str().unwrap().ends_with('Z'));
    assert_eq!(
        site.live.changes(),
        [format!(
            "changed {} enabled=true",
            input["id"].as_str().unwrap()
        )]
    );
}

#[actix_web::test]
async fn secrets_are_shown_at_create_and_rotate_only() {
    let site = Site::open().await;
    let made = create(&site, json!({"name": "Stage"})).await;
    let old_key = made["streamKey"].as_str().unwrap().to_owned();
    let path = path_of(&made);
    let shown = site.call("GET", &path, None).await;
    let changed = site
        .call(
            "PATCH",
            &path,
            Some(json!({"name": "Hall", "latency": "standard"})),
        )
        .await;
    let list = site.call("GET", PATH, None).await;
    for record in [
        &shown.json()["liveInput"],
        &changed.json()["liveInput"],
        &list.json()["liveInputs"][0],
    ] {
        for field in ["rtmpUrl", "obsStreamKey"] {
            assert_eq!(record["ingest"][field], "••••");
        }
        assert_eq!(record["ingest"]["obsServer"], "rtmp://media.test:1935/live");
    }
    assert_eq!(changed.json()["liveInput"]["name"], "Hall");
    assert_eq!(changed.json()["liveInput"]["latency"], "standard");

    let rotated = site.call("POST", &format!("{path}/rotate-key"), None).await;
    let new_key = rotated.json()["streamKey"].as_str().unwrap().to_owned();
    assert_eq!(rotated.status, 200);
    assert_ne!(new_key, old_key);
    assert_eq!(
        rotated.json()["liveInput"]["streamKeyPrefix"],
        new_key[..12]
    );
    for answer in [shown, changed, list] {
        let text = String::from_utf8(answer.body).unwrap();
        assert!(!text.contains(&old_key) && !text.contains(&new_key));
    }
}

#[actix_web::test]
async fn values_that_cannot_be_honoured_are_refused() {
    let site = Site::open().await;
    let made = create(&site, json!({})).await;
    let cases = [
        (
            json!({"reconnectWindowSeconds": 1801}),
            None,
            "reconnectWindowSeconds must be 0 to 1800, got 1801",
        ),
        (
            json!({"reconnectWindowSeconds": "60"}),
            None,
            "reconnectWindowSeconds: invalid type: string \"60\"",
        ),
        (
            json!({"name": "x".repeat(121)}),
            None,
            "name must have 1 to 120 characters, got 121",
        ),
        (
            json!({"allowedDomains": vec!["a.org"; 26]}),
            None,
            "allowedDomains must have at most 25 entries, got 26",
        ),
        (
            json!({"allowed_domains": ["http://a.org"]}),
            None,
            "allowedDomains[0] must be a host",
        ),
        (
            json!({"latency": "none"}),
            None,
            "latency must be standard or low, got `none`",
        ),
        (
            json!({"pullUrl": "http://camera.test/1"}),
            None,
            "pullUrl: it must begin with rtsp:// or rtsps://",
        ),
        (
            json!({"pullUrl": "rtsp://127.0.0.1/1"}),
            None,
            "outbound.allow",
        ),
    ];
    for (body, code, message) in cases {
        for (method, path) in [("POST", PATH.to_owned()), ("PATCH", path_of(&made))] {
            let answer = site.call(method, &path, Some(body.clone())).await;
            assert_eq!(answer.status, 400, "{method} {body}");
            assert!(answer.error().contains(message), "{}", answer.error());
            assert_eq!(
                answer.json().get("code").and_then(Value::as_str),
                code,
                "{body}"
            );
        }
    }
}

#[actix_web::test]
async fn a_record_may_be_sent_back_whole() {
    let site = Site::open().await;
    let made = create(&site, json!({})).await;
    let answer = site
        .call("PATCH", &path_of(&made), Some(made["liveInput"].clone()))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[actix_web::test]
async fn the_record_follows_what_is_on_air() {
    let site = Site::open().await;
    let made = create(&site, json!({})).await;
    let at = |status, last_ended_ms| {
        let times = Times {
            last_started_ms: Some(1_795_000_000_000),
            last_ended_ms,
        };
        *site.live.on_air.lock() = Some((status, times));
    };
    let cases = [
        (InputStatus::Live, None, "live", Value::Null),
        (
            InputStatus::Reconnecting,
            Some(1_795_000_001_000),
            "reconnecting",
            Value::Null,
        ),
        (
            InputStatus::Idle,
            Some(1_795_000_001_000),
            "idle",
            json!("2026-11-18T11:06:41.000Z"),
        ),
    ];
    for (status, ended_ms, name, ended) in cases {
        at(status, ended_ms);
        let input = site.call("GET", &path_of(&made), None).await.json()["liveInput"].clone();
        assert_eq!(
            (&input["status"], &input["lastEndedAt"]),
            (&json!(name), &ended)
        );
        assert_eq!(input["lastStartedAt"], "2026-11-18T11:06:40.000Z");
    }
}

#[actix_web::test]
async fn lists_are_newest_first_and_paged() {
    let site = Site::open().await;
    for name in ["1", "2", "3", "4"] {
        create(&site, json!({"name": name})).await;
    }
    let names = |list: &Value| -> Vec<String> {
        let inputs = list["liveInputs"].as_array().unwrap();
        inputs
            .iter()
            .map(|input| input["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let whole = site.call("GET", PATH, None).await.json();
    assert_eq!(names(&whole), ["4", "3", "2", "1", "My first stream"]);
    assert_eq!(whole["nextCursor"], Value::Null);
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = site
            .call("GET", &format!("{PATH}?limit=2&cursor={cursor}"), None)
            .await
            .json();
        seen.extend(names(&page));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, names(&whole));
}

#[actix_web::test]
async fn a_foreign_input_is_not_there() {
    let site = Site::open().await;
    let made = create(&site, json!({})).await;
    let (stranger, path) = (site.stranger().await, path_of(&made));
    let rotate = format!("{path}/rotate-key");
    let health = format!("{path}/health");
    let calls = [
        ("GET", &path),
        ("PATCH", &path),
        ("DELETE", &path),
        ("POST", &rotate),
        ("GET", &health),
    ];
    for (method, path) in calls {
        let answer = site.call_as(&stranger, method, path, None).await;
        assert_eq!(
            (answer.status, answer.error()),
            (404, "live input not found".to_owned()),
            "{method} {path}"
        );
    }
    assert_eq!(
        site.call_as(&stranger, "GET", PATH, None).await.json()["liveInputs"],
        json!([])
    );
}

#[actix_web::test]
async fn changes_reach_live_inputs_even_when_they_are_busy() {
    let site = Site::open().await;
    let made = create(&site, json!({})).await;
    let id = made["liveInput"]["id"].as_str().unwrap();
    site.live.changes.lock().clear();
    site.live.busy.store(true, Ordering::Relaxed);
    let writer = site.key(Scope::Write).await;
    let answer = site
        .call_as(
            &writer,
            "PATCH",
            &path_of(&made),
            Some(json!({"enabled": false})),
        )
        .await;
    assert_eq!(
        (answer.status, &answer.json()["liveInput"]["enabled"]),
        (200, &json!(false))
    );
    let are_notified = async || !site.live.changes().is_empty();
    eventually("live inputs were never notified", are_notified).await;
    assert_eq!(site.live.changes(), [format!("changed {id} enabled=false")]);
    assert_eq!(
        site.call("DELETE", &path_of(&made), None).await.json(),
        json!({"success": true})
    );
    assert_eq!(
        site.live.changes().last().unwrap(),
        &format!("deleted {id}")
    );
    assert_eq!(site.call("GET", &path_of(&made), None).await.status, 404);
}

#[actix_web::test]
async fn addresses_follow_the_settings_and_trusted_proxies() {
    let site = Site::open_with(|config| {
        config.http.trusted_proxies = vec!["203.0.113.0/24".parse().unwrap()];
        config.rtmp.public_url = "rtmp://ingest.test".to_owned();
    })
    .await;
    let request = request("POST", PATH)
        .insert_header((
            "authorization",
            format!("Bearer {}", site.first.api_key.expose()),
        ))
        .insert_header(("x-forwarded-proto", "https"))
        .insert_header(("x-forwarded-host", "live.test"));
    let input = site.send(request).await.json()["liveInput"].clone();
    assert!(
        input["playback"]["hlsUrl"]
            .as_str()
            .unwrap()
            .starts_with("https://live.test/live/v1/")
    );
    assert_eq!(input["ingest"]["obsServer"], "rtmp://ingest.test/live");
}

#[actix_web::test]
async fn an_idle_input_has_health_without_measurements() {
    let site = Site::open().await;
    let made = create(&site, json!({})).await;
    let health = site
        .call("GET", &format!("{}/health", path_of(&made)), None)
        .await
        .json();
    assert_eq!(
        (&health["status"], &health["advice"]),
        (&json!("idle"), &json!([]))
    );
    assert_eq!(health["videoCodec"], Value::Null);
}

#[actix_web::test]
async fn a_playback_token_is_in_addresses_and_has_an_end() {
    let site = Site::open().await;
    let made = create(&site, json!({"requireSignedPlayback": true})).await;
    assert_eq!(made["liveInput"]["requireSignedPlayback"], true);
    let path = format!("{}/playback-token", path_of(&made));
    let answer = site
        .call("POST", &path, Some(json!({"expires_in": 60})))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = answer.json();
    let token = answer["token"].as_str().unwrap();
    let below = format!("http://media.test:8080/live/v1/{token}");
    assert_eq!(answer["hlsUrl"], json!(format!("{below}/index.m3u8")));
    assert_eq!(answer["posterUrl"], json!(format!("{below}/poster.jpg")));
    assert_eq!(answer["webRtcUrl"], json!(format!("{below}/whep")));
    let expires_at: jiff::Timestamp = answer["expiresAt"].as_str().unwrap().parse().unwrap();
    let left_s = expires_at.as_second() - jiff::Timestamp::now().as_second();
    assert!((55..=60).contains(&left_s), "{left_s}");
    for (body, word) in [
        (json!({"expiresIn": 59}), "60 to 604800"),
        (json!({"expiresIn": 604_801}), "60 to 604800"),
        (json!({"allowedDomains": ["a b"]}), "allowedDomains[0]"),
    ] {
        let refused = site.call("POST", &path, Some(body)).await;
        let message = refused.json()["error"].as_str().unwrap().to_owned();
        assert!(refused.status == 400 && message.contains(word), "{message}");
    }
    let reader = site.key(Scope::Read).await;
    assert_eq!(site.call_as(&reader, "POST", &path, None).await.status, 403);
    let unknown = format!("{PATH}/00000000-0000-0000-0000-000000000000/playback-token");
    let missing = site.call("POST", &unknown, Some(json!({}))).await;
    assert_eq!(missing.status, 404);
}
