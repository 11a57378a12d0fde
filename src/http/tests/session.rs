//! Dashboard sessions: sign-in, the cookie, forged calls, guessing.

use actix_web::test::TestRequest;
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
async fn a_session_begins_goes_on_and_ends() {
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
    assert!(begun.header("set-cookie").contains("Secure"));
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
        ("nobody", PASSWORD),
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
