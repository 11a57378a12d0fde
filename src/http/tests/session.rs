//! Dashboard sessions: sign-in, the cookie, forged calls, guessing.

use actix_web::{http::header::HeaderValue, test::TestRequest};
use serde_json::{Value, json};

use super::{Answer, PASSWORD, Site, request};

async fn sign_in(site: &Site, username: &str, password: &str) -> Answer {
    site.send(
        request("POST", "/api/session")
            .set_json(json!({"username": username, "password": password})),
    )
    .await
}

fn cookie(answer: &Answer) -> String {
    answer
        .header("set-cookie")
        .split(';')
        .next()
        .unwrap()
        .to_owned()
}

#[actix_web::test]
async fn a_session_begins_continues_and_ends() {
    let site = Site::open().await;
    let begun = sign_in(&site, " Admin ", PASSWORD).await;
    assert_eq!(
        (begun.status, &begun.json()["user"]["role"]),
        (201, &json!("admin"))
    );
    let attributes = begun.header("set-cookie").to_owned();
    for attribute in ["HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(attributes.contains(attribute), "{attributes}");
    }
    assert!(attributes.starts_with("sluice_session="), "{attributes}");
    assert!(!attributes.contains("Secure"));

    let with_cookie =
        |method, path| request(method, path).insert_header(("cookie", cookie(&begun)));
    let shown = site.send(with_cookie("GET", "/api/session")).await;
    assert_eq!((shown.status, shown.json()), (200, begun.json()));
    assert_eq!(site.send(with_cookie("GET", "/api/keys")).await.status, 200);

    let csrf = begun.json()["csrfToken"].as_str().unwrap().to_owned();
    let end = with_cookie("DELETE", "/api/session").insert_header(("x-csrf-token", csrf));
    let ended = site.send(end).await;
    assert_eq!(
        (ended.status, ended.json()),
        (200, json!({"success": true}))
    );
    assert!(ended.header("set-cookie").contains("Max-Age=0"));
    assert_eq!(
        site.send(with_cookie("GET", "/api/session")).await.status,
        401
    );
}

#[actix_web::test]
async fn changes_by_cookie_need_own_origin_and_token() {
    let site =
        Site::open_with(|config| config.http.base_url = "https://media.test".to_owned()).await;
    let begun = sign_in(&site, "admin", PASSWORD).await;
    let attributes = begun.header("set-cookie").to_owned();
    assert!(attributes.starts_with("__Host-sluice_session="));
    for attribute in ["HttpOnly", "Path=/;", "Secure"] {
        assert!(attributes.contains(attribute), "{attributes}");
    }
    assert!(!attributes.contains("Domain"), "{attributes}");
    let csrf = begun.json()["csrfToken"].as_str().unwrap().to_owned();
    let cases: [(Option<&str>, Option<&str>, u16); 6] = [
        (Some("https://media.test"), Some(&csrf), 201),
        (None, Some(&csrf), 201),
        (Some("https://media.test"), None, 403),
        (Some("https://media.test"), Some("wrong"), 403),
        (Some("https://evil.test"), Some(&csrf), 403),
        (Some("null"), Some(&csrf), 403),
    ];
    for (origin, token, status) in cases {
        let mut request =
            request("POST", "/api/live/inputs").insert_header(("cookie", cookie(&begun)));
        if let Some(origin) = origin {
            request = request.insert_header(("origin", origin));
        }
        if let Some(token) = token {
            request = request.insert_header(("x-csrf-token", token));
        }
        assert_eq!(
            site.send(request).await.status,
            status,
            "{origin:?} {token:?}"
        );
    }
}

#[actix_web::test]
async fn each_scheme_takes_its_own_cookie_only() {
    for (base_url, own, other) in [
        (
            "https://media.test",
            "__Host-sluice_session",
            "sluice_session",
        ),
        (
            "http://media.test",
            "sluice_session",
            "__Host-sluice_session",
        ),
    ] {
        let site = Site::open_with(|config| config.http.base_url = base_url.to_owned()).await;
        let begun = sign_in(&site, "admin", PASSWORD).await;
        let token = cookie(&begun).split_once('=').unwrap().1.to_owned();
        let csrf = begun.json()["csrfToken"].as_str().unwrap().to_owned();
        let with = |method, cookies: String| {
            request(method, "/api/session").insert_header(("cookie", cookies))
        };
        let status = async |cookies: String| site.send(with("GET", cookies)).await.status;
        assert_eq!(status(format!("{own}={token}")).await, 200, "{base_url}");
        assert_eq!(status(format!("{other}={token}")).await, 401, "{base_url}");
        assert_eq!(
            status(format!("{other}=planted; {own}={token}")).await,
            200,
            "{base_url}"
        );
        assert_eq!(
            status(format!("{own}=planted; {other}={token}")).await,
            401,
            "{base_url}"
        );
        let end = with("DELETE", format!("{own}={token}")).insert_header(("x-csrf-token", csrf));
        let ended = site.send(end).await;
        let removal = ended.header("set-cookie");
        assert!(
            removal.starts_with(&format!("{own}=;")) && removal.contains("Max-Age=0"),
            "{removal}"
        );
    }
}

#[actix_web::test]
async fn guessing_stops_for_a_network_whatever_the_names() {
    let site = Site::open_with(|config| config.sign_in.network_attempts = 6).await;
    for number in 0..6 {
        let refused = sign_in(&site, &format!("user {number}"), "wrong").await;
        assert_eq!(refused.status, 401);
        // An own, right password does not give the others back.
        if number < 5 {
            assert_eq!(sign_in(&site, "admin", PASSWORD).await.status, 201);
        }
    }
    let stopped = sign_in(&site, "admin", PASSWORD).await;
    assert_eq!(stopped.status, 429);
    assert!(!stopped.header("retry-after").is_empty());
    let elsewhere = request("POST", "/api/session")
        .peer_addr("198.51.100.7:1".parse().unwrap())
        .set_json(json!({"username": "admin", "password": PASSWORD}));
    assert_eq!(site.send(elsewhere).await.status, 201);
}

#[actix_web::test]
async fn the_client_behind_proxies_is_read_from_all_lines() {
    let site = Site::open_with(|config| {
        config.http.trusted_proxies = vec!["10.0.0.0/8".parse().unwrap()];
        config.sign_in.attempts = 1;
    })
    .await;
    let from = async |lines: &[&[u8]]| {
        let mut request = request("POST", "/api/session")
            .peer_addr("10.0.0.7:1".parse().unwrap())
            .set_json(json!({"username": "admin", "password": "wrong"}));
        for line in lines {
            let line = HeaderValue::from_bytes(line).unwrap();
            request = request.append_header(("x-forwarded-for", line));
        }
        site.send(request).await.status
    };
    assert_eq!(from(&[b"203.0.113.1"]).await, 401);
    assert_eq!(from(&[b"203.0.113.1"]).await, 429);
    // The first line is what the client sent itself.
    assert_eq!(from(&[b"198.51.100.1", b"203.0.113.1"]).await, 429);
    assert_eq!(from(&[b"\xff", b"203.0.113.1, 10.0.0.8"]).await, 429);
    assert_eq!(from(&[b"203.0.113.1", b"203.0.113.2"]).await, 401);
    assert_eq!(from(&[b"203.0.113.3, 203.0.113.1", b"10.0.0.8"]).await, 429);
}

#[actix_web::test]
async fn guessing_stops_at_five_for_one_user_and_address() {
    let site = Site::open().await;
    for _ in 0..5 {
        let refused = sign_in(&site, "admin", "wrong").await;
        assert_eq!(
            (refused.status, refused.error()),
            (401, "wrong user name or password".to_owned())
        );
    }
    let stopped = sign_in(&site, "admin", PASSWORD).await;
    assert_eq!(stopped.status, 429);
    let wait: u64 = stopped.header("retry-after").parse().unwrap();
    assert!((800..=900).contains(&wait), "{wait}");
    let body = json!({"username": "admin", "password": PASSWORD});
    let elsewhere = request("POST", "/api/session")
        .peer_addr("198.51.100.7:1".parse().unwrap())
        .set_json(body);
    assert_eq!(site.send(elsewhere).await.status, 201);
}

#[actix_web::test]
async fn unknown_users_and_odd_bodies_are_refused_alike() {
    let site = Site::open().await;
    let wrong = sign_in(&site, "admin", "wrong").await.json();
    for (username, password) in [
        ("unknown", PASSWORD),
        ("", ""),
        ("a\u{0}b", "x"),
        ("admin", ""),
    ] {
        let refused = sign_in(&site, username, password).await;
        assert_eq!(
            (refused.status, refused.json()),
            (401, wrong.clone()),
            "{username:?}"
        );
    }
    let send = async |body: Value| {
        let request: TestRequest = request("POST", "/api/session").set_json(body);
        let answer = site.send(request).await;
        (answer.status, answer.error())
    };
    assert_eq!(
        send(json!({"username": "admin"})).await,
        (400, "missing field `password`".to_owned())
    );
    assert_eq!(send(json!({"username": 1, "password": "x"})).await.0, 400);
}
