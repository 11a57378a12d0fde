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
        "streamKeyPrefix": &key[..12], "streamKeyRevealable": true,
        "ingest": {
            "rtmpUrl": format!("rtmp://media.test:1935/live/{slug}.{key}"), "srtUrl": null,
            "obsServer": "rtmp://media.test:1935/live", "obsStreamKey": format!("{slug}.{key}"),
            "srtPassphrase": null, "srtServer": null,
            "whipUrl": format!("http://media.test:8080/live/whip/{slug}.{key}"),
        },
        "playback": {
            "hlsUrl": format!("http://media.test:8080/live/v1/{playback_id}/index.m3u8"),
            "webRtcUrl": format!("http://media.test:8080/live/v1/{playback_id}/whep"),
            "posterUrl": format!("http://media.test:8080/live/v1/{playback_id}/poster.jpg"),
            "watchUrl": format!("http://media.test:8080/live/{playback_id}"),
            "playbackId": playback_id,
        },
        "startedAt": null, "reconnectUntil": null,
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
async fn lists_and_records_show_no_secret() {
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
async fn values_that_cannot_be_honoured_are_rejected() {
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
        let started = match status {
            InputStatus::Idle => &Value::Null,
            _ => &input["lastStartedAt"],
        };
        assert_eq!(&input["startedAt"], started, "{name}");
    }
}

#[actix_web::test]
async fn lists_are_newest_first_and_paged() {
    let site = Site::open().await;
    for name in ["1", "2", "3", "4"] {
        create(&site, json!({"name": name})).await;
    }
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
    let below = |name: &str| format!("{path}/{name}");
    let calls = [
        ("GET", &path),
        ("PATCH", &path),
        ("DELETE", &path),
        ("POST", &rotate),
        ("POST", &below("reveal-key")),
        ("POST", &below("end")),
        ("GET", &below("health")),
        ("GET", &below("health/history")),
        ("GET", &below("connections")),
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
        let rejected = site.call("POST", &path, Some(body)).await;
        let message = rejected.json()["error"].as_str().unwrap().to_owned();
        assert!(
            rejected.status == 400 && message.contains(word),
            "{message}"
        );
    }
    let reader = site.key(Scope::Read).await;
    assert_eq!(site.call_as(&reader, "POST", &path, None).await.status, 403);
    let unknown = format!("{PATH}/00000000-0000-0000-0000-000000000000/playback-token");
    let missing = site.call("POST", &unknown, Some(json!({}))).await;
    assert_eq!(missing.status, 404);
}

fn names(list: &Value) -> Vec<String> {
    let inputs = list["liveInputs"].as_array().unwrap();
    inputs
        .iter()
        .map(|input| input["name"].as_str().unwrap().to_owned())
        .collect()
}

#[actix_web::test]
async fn a_list_is_searched_narrowed_sorted_and_counted() {
    let site = Site::open().await;
    for name in ["Studio 2", "main stage", "Hall 50%", "Main entrance"] {
        create(&site, json!({"name": name})).await;
    }
    let hall = site.call("GET", &format!("{PATH}?q=50%25"), None).await;
    let hall = hall.json()["liveInputs"][0].clone();
    let path = format!("{PATH}/{}", hall["id"].as_str().unwrap());
    let off = json!({"enabled": false});
    assert_eq!(site.call("PATCH", &path, Some(off)).await.status, 200);

    let slug = hall["inputSlug"].as_str().unwrap();
    let playback_id = hall["playbackId"].as_str().unwrap();
    let cases: &[(&str, &[&str])] = &[
        ("q=MAIN", &["Main entrance", "main stage"]),
        ("q=MAIN&order=asc", &["main stage", "Main entrance"]),
        ("q=main&sort=name", &["Main entrance", "main stage"]),
        ("q=__", &[]),
        ("q=%25", &["Hall 50%"]),
        (&format!("q={slug}"), &["Hall 50%"]),
        (&format!("q={playback_id}"), &["Hall 50%"]),
        ("enabled=false", &["Hall 50%"]),
        ("enabled=false&q=main", &[]),
        ("status=live", &[]),
        ("status=reconnecting", &[]),
        ("sort=name&limit=2", &["Hall 50%", "Main entrance"]),
        (
            "sort=name&limit=2&offset=3",
            &["My first stream", "Studio 2"],
        ),
        ("sort=name&limit=2&offset=99", &[]),
        ("sort=name&order=desc&limit=1", &["Studio 2"]),
    ];
    for (query, expected) in cases {
        let list = site.call("GET", &format!("{PATH}?{query}"), None).await;
        assert_eq!(names(&list.json()), *expected, "{query}");
    }
    let path = format!("{PATH}?q=a&sort=name&limit=1&enabled=true");
    let list = site.call("GET", &path, None).await.json();
    assert_eq!(
        list["counts"],
        json!({"idle": 4, "live": 0, "reconnecting": 0, "disabled": 1, "total": 4}),
        "of those with an a"
    );
    assert_eq!(
        list["pagination"],
        json!({"limit": 1, "offset": 0, "total": 3, "hasMore": true})
    );
    assert_eq!(list["nextCursor"], Value::Null, "paged by offset");

    for query in [
        "status=on",
        "enabled=maybe",
        "sort=size",
        "order=up",
        "limit=0",
        "offset=x",
        "cursor=x",
        "sort=name&cursor=1-00000000000000000000000000000001",
    ] {
        let rejected = site.call("GET", &format!("{PATH}?{query}"), None).await;
        let name = query.split('=').next().unwrap();
        assert_eq!(rejected.status, 400, "{query}");
        let message = rejected.error();
        assert!(
            message.starts_with(name) || message.starts_with("cursor"),
            "{message}"
        );
    }
}

#[actix_web::test]
async fn a_key_is_shown_again_as_often_as_asked_and_each_time_noted() {
    let site = Site::open().await;
    let made = create(&site, json!({"name": "Stage"})).await;
    let (path, id) = (path_of(&made), made["liveInput"]["id"].clone());
    let reveal = format!("{path}/reveal-key");
    let revealed = site.call("POST", &reveal, None).await;
    assert_eq!(revealed.status, 200, "{revealed:?}");
    assert_eq!(revealed.header("cache-control"), "no-store");
    assert_eq!(
        revealed.json(),
        made,
        "key and addresses as at the beginning"
    );

    let writer = site.key(Scope::Write).await;
    let rotated = site
        .call_as(&writer, "POST", &format!("{path}/rotate-key"), None)
        .await;
    let again = site.call_as(&writer, "POST", &reveal, None).await;
    assert_eq!(again.json()["streamKey"], rotated.json()["streamKey"]);
    assert_ne!(again.json()["streamKey"], made["streamKey"]);

    let reader = site.key(Scope::Read).await;
    assert_eq!(
        site.call_as(&reader, "POST", &reveal, None).await.status,
        403
    );
    for key in [&reader, &writer] {
        assert_eq!(
            site.call_as(key, "GET", "/api/audit", None).await.status,
            403
        );
    }
    let log = site.call("GET", "/api/audit", None).await;
    assert_eq!(log.header("cache-control"), "no-store");
    let entries = log.json()["entries"].clone();
    let actions: Vec<&str> = entries
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    assert_eq!(
        actions,
        [
            "live.input.key_revealed",
            "live.input.key_rotated",
            "live.input.key_revealed",
            "live.input.created"
        ]
    );
    let entry = &entries[1];
    assert_eq!(entry["actor"]["kind"], "key");
    assert_eq!(entry["actor"]["name"], "test");
    assert_eq!(
        entry["target"],
        json!({"kind": "liveInput", "id": id, "name": "Stage"})
    );
    assert_eq!(
        (&entry["network"], &entry["detail"]),
        (&json!("203.0.113.9"), &Value::Null)
    );
    let text = String::from_utf8(log.body).unwrap();
    for key in [&made, &again.json()] {
        assert!(!text.contains(key["streamKey"].as_str().unwrap()));
    }

    let listed = async |query: &str| {
        let list = site
            .call("GET", &format!("/api/audit?{query}"), None)
            .await
            .json();
        list["entries"].as_array().unwrap().len()
    };
    let actor = entry["actor"]["id"].as_str().unwrap();
    assert_eq!(listed(&format!("actor={actor}")).await, 2);
    assert_eq!(listed("action=live.input.key_rotated").await, 1);
    assert_eq!(listed("action=live.").await, 4);
    assert_eq!(listed("action=live").await, 0, "no whole action");
    assert_eq!(listed("since=2100-01-01T00:00:00Z").await, 0);
    assert_eq!(listed("until=2100-01-01T00:00:00Z").await, 4);
    let first = site.call("GET", "/api/audit?limit=2", None).await.json();
    let rest = format!("limit=2&cursor={}", first["nextCursor"].as_str().unwrap());
    assert_eq!(listed(&rest).await, 2);
    for query in [
        "actor=me",
        "action=%27",
        "since=now",
        "until=now",
        "limit=101",
        "cursor=x",
    ] {
        let rejected = site.call("GET", &format!("/api/audit?{query}"), None).await;
        assert_eq!(rejected.status, 400, "{query}");
    }
    let stranger = site.stranger().await;
    let others = site.call_as(&stranger, "GET", "/api/audit", None).await;
    assert_eq!(others.json(), json!({"entries": [], "nextCursor": null}));
}

#[actix_web::test]
async fn only_what_is_on_air_can_be_ended() {
    let site = Site::open().await;
    let made = create(&site, json!({})).await;
    let path = format!("{}/end", path_of(&made));
    let idle = site.call("POST", &path, None).await;
    assert_eq!(
        (idle.status, &idle.json()["code"]),
        (409, &json!("not_live"))
    );
    *site.live.on_air.lock() = Some((InputStatus::Live, Times::default()));
    let reader = site.key(Scope::Read).await;
    assert_eq!(site.call_as(&reader, "POST", &path, None).await.status, 403);
    let ended = site.call("POST", &path, None).await;
    assert_eq!(
        (ended.status, &ended.json()["liveInput"]["status"]),
        (200, &json!("idle"))
    );
}

#[actix_web::test]
async fn an_input_that_was_never_on_air_has_no_history() {
    let site = Site::open().await;
    let path = path_of(&create(&site, json!({})).await);
    let history = site
        .call("GET", &format!("{path}/health/history?seconds=60"), None)
        .await;
    assert_eq!(history.header("cache-control"), "no-store");
    let history = history.json();
    assert_eq!(
        (&history["seconds"], &history["intervalSeconds"]),
        (&json!(60), &json!(1))
    );
    for column in [
        "t",
        "videoKbps",
        "audioKbps",
        "fps",
        "driftMs",
        "viewers",
        "lostPackets",
        "roundTripMs",
    ] {
        assert_eq!(history[column], json!([]), "{column}");
    }
    for seconds in ["0", "901", "x"] {
        let path = format!("{path}/health/history?seconds={seconds}");
        let message = site.call("GET", &path, None).await.error();
        assert_eq!(
            message,
            format!("seconds must be 1 to 900, got `{seconds}`")
        );
    }
    let connections = site.call("GET", &format!("{path}/connections"), None).await;
    assert_eq!(
        connections.json(),
        json!({"connections": [], "nextCursor": null})
    );
    let rejected = site
        .call("GET", &format!("{path}/connections?limit=0"), None)
        .await;
    assert_eq!(rejected.status, 400);
}
