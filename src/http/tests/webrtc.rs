//! WHEP and WHIP over HTTP against a faked gateway: admission, media types, errors of offers, headers, sessions.

use std::net::IpAddr;

use actix_web::test::TestRequest;
use futures_util::{FutureExt as _, future::BoxFuture};
use parking_lot::Mutex;
use serde_json::json;
use sluice_actors::live::{
    Directory,
    webrtc::{Answer as Accepted, PublisherOffer, ViewerOffer, WebRtcError, WebRtcPort},
};
use sluice_ingest::publish::Rejection;

use super::{Answer, Site, request};

const OFFER: &str = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\n";
/// Session of every answer of the fake.
const SESSION: &str = "00112233445566778899aabbccddeeff";

/// A gateway that answers as the test says, and keeps the offers.
#[derive(Default)]
pub(super) struct FakeWebRtc {
    error: Mutex<Option<WebRtcError>>,
    viewers: Mutex<Vec<ViewerOffer>>,
    publishers: Mutex<Vec<PublisherOffer>>,
    ended: Mutex<bool>,
}

impl FakeWebRtc {
    fn answer(&self) -> BoxFuture<'static, Result<Accepted, WebRtcError>> {
        let error = self.error.lock().take();
        let accepted = Accepted {
            sdp: "v=0\r\na=ice-lite\r\n".to_owned(),
            session: SESSION.to_owned(),
        };
        async move { error.map_or(Ok(accepted), Err) }.boxed()
    }
}

impl WebRtcPort for FakeWebRtc {
    fn play(&self, viewer: ViewerOffer) -> BoxFuture<'_, Result<Accepted, WebRtcError>> {
        self.viewers.lock().push(viewer);
        self.answer()
    }

    fn publish(&self, publisher: PublisherOffer) -> BoxFuture<'_, Result<Accepted, WebRtcError>> {
        self.publishers.lock().push(publisher);
        self.answer()
    }

    fn is_known(&self, session: &str) -> bool {
        session == SESSION
    }

    fn end(&self, session: &str) -> bool {
        let is_known = self.is_known(session);
        *self.ended.lock() |= is_known;
        is_known
    }
}

impl Site {
    /// The first live input, changed as the test says, can be watched; returns its WHEP address.
    fn watched(&self, change: impl FnOnce(&mut sluice_store::live_inputs::LiveInput)) -> String {
        let mut input = self.first.live_input.clone();
        change(&mut input);
        let path = whep(&input.playback_id);
        *self.live.watched.lock() = Directory::of([input]);
        path
    }
}

fn whep(leave: &str) -> String {
    format!("/live/v1/{leave}/whep")
}

fn offer(path: &str) -> TestRequest {
    request("POST", path)
        .insert_header(("content-type", "application/sdp"))
        .set_payload(OFFER)
}

fn assert_error(answer: &Answer, status: u16, code: Option<&str>, case: &str) {
    assert_eq!(answer.status, status, "{case}: {answer:?}");
    assert_eq!(answer.header("content-type"), "application/json", "{case}");
    assert_eq!(answer.header("cache-control"), "no-store", "{case}");
    let body = answer.json();
    assert_eq!(body["code"].as_str(), code, "{case}: {body}");
}

#[actix_web::test]
async fn an_offer_is_answered_with_the_address_of_its_session() {
    let site = Site::open_with(|config| {
        config.webrtc.ice_servers = vec![
            "stun:stun.example.org:3478".parse().unwrap(),
            "turn:ann:secret@turn.example.org".parse().unwrap(),
        ];
    })
    .await;
    let path = site.watched(|_| ());
    let player = offer(&path)
        .insert_header(("origin", "https://player.example"))
        .peer_addr("198.51.100.9:4711".parse().unwrap());
    let answer = site.send(player).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let location = format!("http://media.test:8080/live/webrtc/{SESSION}");
    for (name, value) in [
        ("content-type", "application/sdp"),
        ("location", &location),
        ("etag", "\"1\""),
        ("cache-control", "no-store"),
        ("access-control-allow-origin", "*"),
        (
            "access-control-expose-headers",
            "Location, ETag, Link, Retry-After, Accept-Post",
        ),
    ] {
        assert_eq!(answer.header(name), value, "{name}");
    }
    let links: Vec<_> = answer.headers.get_all("link").collect();
    assert_eq!(
        links,
        [
            "<stun:stun.example.org:3478>; rel=\"ice-server\"",
            "<turn:turn.example.org>; rel=\"ice-server\"; username=\"ann\"; credential=\"secret\"; credential-type=\"password\"",
        ]
    );
    assert_eq!(answer.body, b"v=0\r\na=ice-lite\r\n");
    let viewer = site.webrtc.viewers.lock().remove(0);
    assert_eq!(viewer.offer.sdp, OFFER);
    assert_eq!(viewer.offer.remote, "198.51.100.9:4711".parse().unwrap());
    assert_eq!(viewer.playback.input_id, site.first.live_input.id);
    assert_eq!((viewer.until_ms, viewer.has_permission), (None, false));
}

#[actix_web::test]
async fn the_address_of_the_request_is_the_first_that_is_answered() {
    let site = Site::open().await;
    let path = site.watched(|_| ());
    let by_address = offer(&path).insert_header(("host", "192.0.2.7:8080"));
    assert_eq!(site.send(by_address).await.status, 201);
    let viewer = site.webrtc.viewers.lock().remove(0);
    let first = viewer.offer.reached_at.first().copied();
    assert_eq!(first, "192.0.2.7".parse::<IpAddr>().ok());
}

#[actix_web::test]
async fn a_token_is_a_permission_until_it_expires() {
    let site = Site::open().await;
    let open = site.watched(|input| input.require_signed_playback = true);
    let answer = site.send(offer(&open)).await;
    assert_error(&answer, 403, Some("playback_token_required"), "no token");
    let id = site.first.live_input.id;
    let minted = site
        .call(
            "POST",
            &format!("/api/live/inputs/{id}/playback-token"),
            Some(json!({"expiresIn": 60})),
        )
        .await
        .json();
    let url = minted["webRtcUrl"].as_str().unwrap();
    let path = url.strip_prefix("http://media.test:8080").unwrap();
    assert_eq!(site.send(offer(path)).await.status, 201);
    let viewer = site.webrtc.viewers.lock().remove(0);
    assert!(viewer.has_permission);
    let expires_at: jiff::Timestamp = minted["expiresAt"].as_str().unwrap().parse().unwrap();
    assert_eq!(viewer.until_ms, Some(expires_at.as_second() * 1_000));
    assert!(site.webrtc.viewers.lock().is_empty());
}

#[actix_web::test]
async fn only_allowed_sites_play() {
    let site = Site::open().await;
    let path = site.watched(|input| input.allowed_domains = vec!["example.org".into()]);
    let from = |origin: &'static str| offer(&path).insert_header(("origin", origin));
    let answer = site.send(from("https://example.net")).await;
    assert_error(&answer, 403, Some("site_not_allowed"), "another site");
    assert_eq!(answer.header("access-control-allow-origin"), "");
    assert_eq!(answer.header("access-control-expose-headers"), "");
    let answer = site.send(from("https://example.org")).await;
    assert_eq!(answer.status, 201);
    let allowed = answer.header("access-control-allow-origin");
    assert_eq!(allowed, "https://example.org");
    assert_eq!(answer.header("vary"), "Origin, Referer");
}

#[actix_web::test]
async fn the_endpoint_answers_questions_before_an_offer() {
    let site = Site::open().await;
    let path = site.watched(|_| ());
    for method in ["GET", "HEAD"] {
        let answer = site.send(request(method, &path)).await;
        assert_eq!(answer.status, 200, "{method}");
        assert_eq!(answer.header("content-type"), "application/sdp");
        assert_eq!(answer.header("cache-control"), "no-store");
        assert!(answer.body.is_empty());
    }
    let session = format!("/live/webrtc/{SESSION}");
    for path in [&path, "/live/whip", "/live/whip/slug.key", &session] {
        let asked = request("OPTIONS", path).insert_header(("origin", "https://player.example"));
        let answer = site.send(asked).await;
        assert_eq!(answer.status, 204, "{path}");
        assert_eq!(answer.header("accept-post"), "application/sdp");
        assert_eq!(answer.header("access-control-allow-origin"), "*");
        let methods = answer.header("access-control-allow-methods");
        assert!(methods.contains("PATCH, DELETE"), "{methods}");
        let headers = answer.header("access-control-allow-headers");
        assert_eq!(headers, "Content-Type, Authorization, If-Match");
    }
    let unknown = site.send(offer(&whep("pb_00000000000000000000"))).await;
    assert_error(&unknown, 404, Some("not_found"), "unknown");
    assert!(site.webrtc.viewers.lock().is_empty());
}

#[actix_web::test]
async fn a_body_that_is_no_offer_is_named() {
    let site = Site::open().await;
    let path = site.watched(|_| ());
    let large = vec![b'a'; (64 << 10) + 1];
    type Case<'a> = (Option<&'a str>, &'a [u8], u16, &'a str, &'a str);
    let cases: [Case<'_>; 8] = [
        (None, b"v=0", 415, "unsupported_type", "application/sdp"),
        (
            Some("application/json"),
            b"{}",
            415,
            "unsupported_type",
            "application/sdp",
        ),
        (
            Some("text/plain"),
            b"v=0",
            415,
            "unsupported_type",
            "application/sdp",
        ),
        (
            Some("application/trickle-ice-sdpfrag"),
            b"v=0",
            415,
            "unsupported_type",
            "application/sdp",
        ),
        (
            Some("application/sdp"),
            b"",
            400,
            "sdp_invalid",
            "createOffer",
        ),
        (
            Some("application/sdp"),
            b" \r\n",
            400,
            "sdp_invalid",
            "createOffer",
        ),
        (
            Some("Application/SDP; charset=utf-8"),
            b"v=0\xff",
            400,
            "sdp_invalid",
            "UTF-8",
        ),
        (
            Some("application/sdp"),
            &large,
            413,
            "too_large",
            "65536 bytes",
        ),
    ];
    let key = "/live/whip/slug.key".to_owned();
    for path in [&path, &key] {
        for (kind, body, status, code, text) in cases {
            let mut posted = request("POST", path).set_payload(body.to_vec());
            if let Some(kind) = kind {
                posted = posted.insert_header(("content-type", kind));
            }
            let answer = site.send(posted).await;
            let case = format!("{path} {kind:?} {:.9}", String::from_utf8_lossy(body));
            assert_error(&answer, status, Some(code), &case);
            assert!(answer.error().contains(text), "{case}: {}", answer.error());
            assert_eq!(answer.header("access-control-allow-origin"), "*", "{case}");
        }
    }
    assert!(site.webrtc.viewers.lock().is_empty());
    assert!(site.webrtc.publishers.lock().is_empty());
}

#[actix_web::test]
async fn wrong_methods_are_named() {
    let site = Site::open().await;
    let path = site.watched(|_| ());
    let session = format!("/live/webrtc/{SESSION}");
    for (method, path, allow) in [
        ("PUT", path.as_str(), "POST, GET, OPTIONS, HEAD"),
        ("PATCH", &path, "POST, GET, OPTIONS, HEAD"),
        ("DELETE", &path, "POST, GET, OPTIONS, HEAD"),
        ("GET", "/live/whip", "POST, OPTIONS"),
        ("DELETE", "/live/whip/slug.key", "POST, OPTIONS"),
        ("POST", &session, "GET, PATCH, DELETE, OPTIONS, HEAD"),
    ] {
        let answer = site.send(request(method, path)).await;
        assert_error(&answer, 405, None, &format!("{method} {path}"));
        assert_eq!(answer.header("allow"), allow, "{method} {path}");
    }
}

#[actix_web::test]
async fn errors_of_the_gateway_have_their_status() {
    let site = Site::open().await;
    let path = site.watched(|_| ());
    let cases = [
        (WebRtcError::Off, 404, "webrtc_off"),
        (
            WebRtcError::InvalidOffer("no fingerprint".into()),
            400,
            "sdp_invalid",
        ),
        (
            WebRtcError::NoCommonCodec("VP8".into()),
            422,
            "no_common_codec",
        ),
        (WebRtcError::NotOnAir, 404, "not_found"),
        (WebRtcError::Busy, 503, "webrtc_busy"),
        (WebRtcError::Full, 503, "webrtc_full"),
        (WebRtcError::TooManyPending, 429, "rate_limited"),
        (WebRtcError::Unavailable, 503, ""),
        (WebRtcError::Rejected(Rejection::Unauthorized), 401, ""),
        (WebRtcError::Rejected(Rejection::Disabled), 403, ""),
        (
            WebRtcError::Rejected(Rejection::Conflict),
            409,
            "another_encoder",
        ),
        (WebRtcError::Rejected(Rejection::Busy), 503, "ingest_busy"),
    ];
    for (error, status, code) in cases {
        for path in [&path, "/live/whip/slug.key"] {
            *site.webrtc.error.lock() = Some(error.clone());
            let answer = site.send(offer(path)).await;
            let case = format!("{error:?}");
            assert_error(
                &answer,
                status,
                Some(code).filter(|it| !it.is_empty()),
                &case,
            );
            let has_retry = !answer.header("retry-after").is_empty();
            assert_eq!(has_retry, [429, 503].contains(&status), "{case}");
            assert_eq!(answer.header("access-control-allow-origin"), "*", "{case}");
        }
    }
    *site.webrtc.error.lock() = Some(WebRtcError::NoCommonCodec("VP8".into()));
    assert!(site.send(offer(&path)).await.error().contains("VP8"));
}

#[actix_web::test]
async fn a_publisher_shows_its_key_in_the_path_or_as_token() {
    let site = Site::open().await;
    let stream = "slug.svc_live_0123";
    let by_path = offer(&format!("/live/whip/{stream}")).insert_header(("user-agent", "OBS/32"));
    let by_token = offer("/live/whip").insert_header(("authorization", format!("bearer {stream}")));
    for posted in [by_path, by_token] {
        let answer = site.send(posted).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        assert!(answer.header("location").ends_with(SESSION));
        assert_eq!(answer.header("access-control-allow-origin"), "*");
        let publisher = site.webrtc.publishers.lock().remove(0);
        assert_eq!(&*publisher.stream, stream);
        assert_eq!(publisher.offer.sdp, OFFER);
    }
    let named = offer(&format!("/live/whip/{stream}")).insert_header(("user-agent", "OBS/32"));
    site.send(named).await;
    let publisher = site.webrtc.publishers.lock().remove(0);
    assert_eq!(publisher.encoder.as_deref(), Some("OBS/32"));
}

/// A dashboard's session is no permission, and its cookie needs no token: the key alone counts.
#[actix_web::test]
async fn wrong_keys_have_one_answer() {
    let site = Site::open().await;
    let wrong = [
        offer("/live/whip"),
        offer("/live/whip").insert_header(("authorization", "Bearer ")),
        offer("/live/whip").insert_header(("authorization", "Basic c2x1ZzprZXk=")),
        offer("/live/whip").insert_header(("authorization", vec![0xff_u8; 9])),
        offer(&format!("/live/whip/{}", "x".repeat(257))),
    ];
    let mut texts = Vec::new();
    for posted in wrong {
        let answer = site.send(posted).await;
        assert_error(&answer, 401, None, "wrong key");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
        texts.push(answer.error());
    }
    assert!(site.webrtc.publishers.lock().is_empty());
    *site.webrtc.error.lock() = Some(WebRtcError::Rejected(Rejection::Unauthorized));
    texts.push(site.send(offer("/live/whip/slug.key")).await.error());
    texts.dedup();
    assert_eq!(texts.len(), 1, "{texts:?}");
}

#[actix_web::test]
async fn a_session_is_ended_by_its_address() {
    let site = Site::open().await;
    let known = format!("/live/webrtc/{SESSION}");
    let unknown = format!("/live/webrtc/{}", "0".repeat(32));
    let fragment = |path: &str, if_match: &'static str| {
        request("PATCH", path)
            .insert_header(("content-type", "application/trickle-ice-sdpfrag"))
            .insert_header(("if-match", if_match))
            .set_payload("a=ice-ufrag:x\r\na=candidate:1 1 udp 1 192.0.2.1 9 typ host\r\n")
    };
    for method in ["GET", "HEAD"] {
        assert_eq!(site.send(request(method, &known)).await.status, 204);
    }
    assert_eq!(site.send(fragment(&known, "\"1\"")).await.status, 204);
    let answer = site.send(fragment(&known, "*")).await;
    assert_error(&answer, 422, Some("ice_restart_unsupported"), "a restart");
    let typed = request("PATCH", &known).insert_header(("content-type", "application/sdp"));
    let answer = site.send(typed.set_payload("x")).await;
    assert_error(&answer, 415, Some("unsupported_type"), "another type");
    let large = fragment(&known, "\"1\"").set_payload(vec![b'a'; (64 << 10) + 1]);
    assert_error(
        &site.send(large).await,
        413,
        Some("too_large"),
        "a large body",
    );
    for missing in [
        fragment(&unknown, "\"1\""),
        request("GET", &unknown),
        request("DELETE", &unknown),
    ] {
        let answer = site.send(missing).await;
        assert_error(&answer, 404, Some("not_found"), "unknown");
        assert_eq!(answer.header("access-control-allow-origin"), "*");
    }
    assert!(!*site.webrtc.ended.lock());
    let answer = site.send(request("DELETE", &known)).await;
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    assert!(*site.webrtc.ended.lock());
}

#[actix_web::test]
async fn what_is_turned_off_says_so() {
    let site = Site::open_with(|config| config.webrtc.enabled = false).await;
    let path = site.watched(|_| ());
    for path in [&path, "/live/whip/slug.key"] {
        let answer = site.send(offer(path)).await;
        assert_error(&answer, 404, Some("webrtc_off"), path);
        assert!(answer.error().contains("hlsUrl"), "{}", answer.error());
    }
    let record = site.call("GET", "/api/live/inputs", None).await.json();
    let input = &record["liveInputs"][0];
    assert_eq!(input["ingest"]["whipUrl"], json!(null));
    assert!(input["playback"]["webRtcUrl"].is_string());
    assert!(site.webrtc.viewers.lock().is_empty());
}
