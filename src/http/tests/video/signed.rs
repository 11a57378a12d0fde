//! Playback authorization: tokens of signed streams, and the pages of allowed domains.

use serde_json::{Value, json};

use super::{Pairs, Site, path_of, playback::ADDRESSES, playback_id};
use crate::application::playback_token::{PlaybackGrant, TokenKeys};

async fn token(site: &Site, stream: &Value, body: Value) -> Value {
    let path = format!("{}/playback-token", path_of(stream));
    let answer = site.call("POST", &path, Some(body)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

async fn ready(site: &Site, body: Value) -> Value {
    let stream = site.stream(body).await;
    let lease = site.make(3).await;
    site.finish(&lease).await;
    stream
}

#[actix_web::test]
async fn a_signed_stream_plays_with_its_token_alone() {
    let site = Site::open().await;
    let stream = ready(&site, json!({"access": "signed"})).await;
    let id = playback_id(&stream);
    let made = token(&site, &stream, json!({"expires_in": 60})).await;
    let token = made["token"].as_str().unwrap();
    assert_eq!(
        made["manifestUrl"],
        json!(format!(
            "http://media.test:8080/video/v1/{token}/master.m3u8"
        ))
    );
    assert_eq!(
        made["posterUrl"],
        json!(format!(
            "http://media.test:8080/video/v1/{token}/poster.jpg"
        ))
    );
    let expires_at: jiff::Timestamp = made["expiresAt"].as_str().unwrap().parse().unwrap();
    let left_s = expires_at.as_second() - jiff::Timestamp::now().as_second();
    assert!((55..=60).contains(&left_s), "{left_s}");
    let (head, signature) = token.rsplit_once('.').unwrap();
    let bent = format!("{head}.{}", signature.chars().rev().collect::<String>());
    let grant = PlaybackGrant {
        sub: id.to_owned(),
        exp: jiff::Timestamp::now().as_second(),
        dom: Vec::new(),
    };
    let key = TokenKeys::of(&site.app.playback_tokens).await.unwrap();
    let expired = key.issue(&grant).unwrap();
    let unsigned = format!(
        "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.{}.",
        head.split('.').nth(1).unwrap()
    );
    for name in ADDRESSES {
        for (playback_id, status, code) in [
            (id, 403, "playback_token_required"),
            (token, 200, ""),
            (&expired, 403, "playback_token_expired"),
            (&bent, 403, "playback_token_invalid"),
            (&unsigned, 403, "playback_token_invalid"),
            (head, 403, "playback_token_invalid"),
            (&token[..20], 403, "playback_token_invalid"),
        ] {
            let answer = site
                .play("GET", &format!("{playback_id}/{name}"), &[])
                .await;
            assert_eq!(answer.status, status, "{playback_id}/{name}");
            if status == 403 {
                assert_eq!(answer.json()["code"], code, "{playback_id}/{name}");
                assert_eq!(answer.header("cache-control"), "no-store");
                assert_eq!(answer.header("access-control-allow-origin"), "*");
            } else {
                let kept = answer.header("cache-control");
                assert!(kept.starts_with("private, max-age="), "{name}: {kept}");
            }
        }
    }
}

#[actix_web::test]
async fn a_token_is_for_one_stream_and_one_installation() {
    let site = Site::open().await;
    let signed = ready(&site, json!({"access": "signed"})).await;
    let other = site.stream(json!({"access": "signed"})).await;
    let others = token(&site, &other, json!({})).await;
    let address = format!("{}/360p/0.m4s", others["token"].as_str().unwrap());
    let answer = site.play("GET", &address, &[]).await;
    assert_eq!(
        (answer.status, &answer.json()["code"]),
        (404, &json!("not_ready")),
        "the other one's"
    );

    let elsewhere = Site::open().await;
    let foreign = token(&elsewhere, &ready(&elsewhere, json!({})).await, json!({})).await;
    let address = format!("{}/master.m3u8", foreign["token"].as_str().unwrap());
    assert_eq!(
        elsewhere.play("GET", &address, &[]).await.status,
        200,
        "of a public stream"
    );
    assert_eq!(site.play("GET", &address, &[]).await.status, 403);

    let own = token(&site, &signed, json!({})).await;
    let address = format!("{}/master.m3u8", own["token"].as_str().unwrap());
    assert_eq!(site.play("GET", &address, &[]).await.status, 200);
    assert_eq!(
        site.call("DELETE", &path_of(&signed), None).await.status,
        200
    );
    assert_eq!(site.play("GET", &address, &[]).await.status, 404);
}

#[actix_web::test]
async fn access_changes_at_once() {
    let site = Site::open().await;
    let stream = ready(&site, json!({})).await;
    let address = format!("{}/master.m3u8", playback_id(&stream));
    for (access, status) in [("signed", 403), ("public", 200)] {
        let changed = site
            .call("PATCH", &path_of(&stream), Some(json!({"access": access})))
            .await;
        assert_eq!(changed.status, 200);
        assert_eq!(
            site.play("GET", &address, &[]).await.status,
            status,
            "{access}"
        );
    }
}

#[actix_web::test]
async fn the_lifetime_of_a_token_is_its_own_the_streams_or_the_usual() {
    let site = Site::open().await;
    let plain = site.stream(json!({})).await;
    let short = site.stream(json!({"tokenTtlSeconds": 120})).await;
    for (stream, body, expected_s) in [
        (&plain, json!({}), 3_600),
        (&short, json!({}), 120),
        (&short, json!({"expiresIn": 604_800}), 604_800),
    ] {
        let made = token(&site, stream, body).await;
        let expires_at: jiff::Timestamp = made["expiresAt"].as_str().unwrap().parse().unwrap();
        let left_s = expires_at.as_second() - jiff::Timestamp::now().as_second();
        assert!(
            (expected_s - 5..=expected_s).contains(&left_s),
            "{left_s} of {expected_s}"
        );
    }
}

#[actix_web::test]
async fn domains_are_those_of_the_stream_and_of_the_token() {
    let site = Site::open().await;
    let stream = ready(
        &site,
        json!({"allowedDomains": ["example.org", "*.example.com"]}),
    )
    .await;
    let open = ready(&site, json!({})).await;
    let narrow = token(
        &site,
        &stream,
        json!({"allowed_domains": ["a.example.com"]}),
    )
    .await;
    let alone = token(&site, &open, json!({"allowedDomains": ["example.net"]})).await;
    let (id, narrow, alone) = (
        playback_id(&stream),
        narrow["token"].as_str().unwrap(),
        alone["token"].as_str().unwrap(),
    );
    let origin = |host: &'static str| [("origin", host)];
    let cases: [(&str, Pairs<'_>, u16, &str); 11] = [
        (id, &[], 403, ""),
        (
            id,
            &origin("https://example.org"),
            200,
            "https://example.org",
        ),
        (
            id,
            &origin("https://b.example.com"),
            200,
            "https://b.example.com",
        ),
        (id, &origin("https://example.com"), 403, ""),
        (id, &origin("https://example.org.evil.net"), 403, ""),
        (id, &[("referer", "https://example.org/page")], 200, ""),
        (
            id,
            &[("origin", "null"), ("referer", "https://example.org/")],
            403,
            "",
        ),
        (
            narrow,
            &origin("https://a.example.com"),
            200,
            "https://a.example.com",
        ),
        (narrow, &origin("https://b.example.com"), 403, ""),
        (
            alone,
            &origin("https://example.net"),
            200,
            "https://example.net",
        ),
        (alone, &[], 403, ""),
    ];
    for name in ["master.m3u8", "480p/1.m4s", "poster.jpg"] {
        for (playback_id, headers, status, cors) in cases {
            let address = format!("{playback_id}/{name}");
            let answer = site.play("GET", &address, headers).await;
            assert_eq!(answer.status, status, "{name} {headers:?}");
            assert_eq!(
                answer.header("access-control-allow-origin"),
                cors,
                "{name} {headers:?}"
            );
            assert_eq!(
                answer.header("vary"),
                "Origin, Referer",
                "{name} {headers:?}"
            );
            let preflight = site.play("OPTIONS", &address, headers).await;
            assert_eq!(preflight.status, 204);
            assert_eq!(
                preflight.header("access-control-allow-origin"),
                cors,
                "{name} {headers:?}"
            );
        }
    }
}
