//! Authorization: credentials, scopes, accounts, API keys, the rate limit.

use serde_json::json;
use sluice_store::{accounts, api_keys::Scope, now_ms};

use super::{Site, request};
use crate::http::ROUTES;

/// Routes whose addresses carry their own permission.
const SIGNED: [&str; 2] = ["/api/uploads/{id}/content", "/api/downloads/{token}"];

/// Routes that open a session, or look at the code that would.
const SIGN_IN: [(&str, &str); 4] = [
    ("POST", "/api/session"),
    ("POST", "/api/session/welcome"),
    ("POST", "/api/invitations/look"),
    ("POST", "/api/invitations/redeem"),
];

/// Addresses that hold a link's token.
const SHARES: &str = "/api/share/";

/// Every route of `/api` but OPTIONS, sign-in, [`SIGNED`] and [`SHARES`], with an id where it takes one.
fn guarded() -> impl Iterator<Item = (&'static str, String)> {
    ROUTES
        .iter()
        .filter(|(path, _)| path.starts_with("/api/") && !path.starts_with(SHARES))
        .filter(|(path, _)| !SIGNED.contains(path))
        .flat_map(|(path, methods)| methods.iter().map(move |method| (*method, *path)))
        .filter(|route| !SIGN_IN.contains(route))
        // Browsers ask before they send a credential.
        .filter(|(method, _)| *method != "OPTIONS")
        .map(|(method, path)| {
            (
                method,
                path.replace("{id}", "00000000-0000-0000-0000-000000000000"),
            )
        })
}

#[actix_web::test]
async fn every_route_of_the_api_needs_a_credential() {
    let site = Site::open().await;
    let unknown = format!("svc_{}", "0".repeat(43));
    let delivery = format!("svc_pub_{}", "0".repeat(32));
    for (method, path) in guarded() {
        let none = site.send(request(method, &path).set_payload("{")).await;
        let mut rejected = vec![none];
        for key in [unknown.as_str(), &delivery, "", "nonsense"] {
            rejected.push(site.call_as(key, method, &path, None).await);
            rejected.push(
                site.send(request(method, &path).insert_header(("x-api-key", key)))
                    .await,
            );
        }
        rejected.push(
            site.send(request(method, &path).insert_header(("cookie", "sluice_session=x")))
                .await,
        );
        for answer in rejected {
            assert_eq!(answer.status, 401, "{method} {path}: {answer:?}");
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
    }
}

#[actix_web::test]
async fn scopes_bound_what_a_key_may_do() {
    let site = Site::open().await;
    // Streams end at once.
    site.app.platform.closing.cancel();
    let (reader, writer) = (site.key(Scope::Read).await, site.key(Scope::Write).await);
    for (method, path) in guarded() {
        let changes_nothing = [
            "/api/workflows/lint",
            "/api/workflows/dry-run",
            "/api/files/zip",
        ];
        let is_change = method != "GET" && !changes_nothing.contains(&path.as_str());
        let is_admin_only = [
            "/api/keys",
            "/api/playback-keys",
            "/api/audit",
            "/api/users",
            "/api/invitations",
        ]
        .iter()
        .any(|admins| path.starts_with(admins));
        let is_for_sessions = path.starts_with("/api/session");
        let allowed = |answer: &super::Answer| ![401, 403].contains(&answer.status);
        let by_reader = site.call_as(&reader, method, &path, None).await;
        let by_writer = site.call_as(&writer, method, &path, None).await;
        let by_admin = site.call("HEAD", &path, None).await;
        if path.starts_with("/api/system") {
            // Whatever the scope, only operators learn that it exists.
            assert_eq!((by_reader.status, by_writer.status), (404, 404), "{path}");
            continue;
        }
        assert_eq!(
            allowed(&by_reader),
            !is_change && !is_admin_only && !is_for_sessions,
            "{method} {path}"
        );
        assert_eq!(
            allowed(&by_writer),
            !is_admin_only && !is_for_sessions,
            "{method} {path}"
        );
        assert!(is_for_sessions || allowed(&by_admin), "{method} {path}");
    }
}

#[actix_web::test]
async fn bearer_wins_over_the_other_header() {
    let site = Site::open().await;
    let good = site.first.api_key.expose().to_owned();
    let cases = [
        (Some("Bearer nonsense"), Some(good.as_str()), 401),
        (Some("Basic nonsense"), Some(good.as_str()), 200),
        (None, Some(good.as_str()), 200),
    ];
    for (authorization, key, status) in cases {
        let mut request = request("GET", "/api/keys");
        if let Some(value) = authorization {
            request = request.insert_header(("authorization", value));
        }
        if let Some(value) = key {
            request = request.insert_header(("x-api-key", value));
        }
        assert_eq!(site.send(request).await.status, status, "{authorization:?}");
    }
}

#[actix_web::test]
async fn playback_keys_are_shown_once_and_bounded() {
    const PATH: &str = "/api/playback-keys";
    let site = Site::open().await;
    let made = site.call("POST", PATH, Some(json!({}))).await;
    assert_eq!(made.status, 201, "{made:?}");
    let made = made.json();
    let secret = made["secret"].as_str().unwrap();
    assert_eq!(
        (made["key"]["name"].as_str(), secret.len()),
        (Some("Playback key"), 52)
    );
    assert!(secret.starts_with("svc_play_"), "no API key looks so");
    let list = site.call("GET", PATH, None).await.json();
    assert_eq!(list["keys"], json!([made["key"]]));
    for _ in 1..20 {
        assert_eq!(site.call("POST", PATH, Some(json!({}))).await.status, 201);
    }
    let rejected = site.call("POST", PATH, Some(json!({}))).await;
    assert_eq!(rejected.status, 409, "{rejected:?}");
    let path = format!("{PATH}/{}", made["key"]["id"].as_str().unwrap());
    assert_eq!(site.call("DELETE", &path, None).await.status, 200);
    assert_eq!(site.call("DELETE", &path, None).await.status, 404);
    assert_eq!(site.call("POST", PATH, Some(json!({}))).await.status, 201);
    let long = json!({"name": "x".repeat(121)});
    assert_eq!(site.call("POST", PATH, Some(long)).await.status, 400);
}

#[actix_web::test]
async fn a_key_is_shown_once_and_revoked_at_once() {
    let site = Site::open().await;
    let made = site
        .call("POST", "/api/keys", Some(json!({"name": "CI"})))
        .await;
    assert_eq!(
        (made.status, &made.json()["key"]["scope"]),
        (201, &json!("write"))
    );
    let (id, token) = (
        made.json()["key"]["id"].clone(),
        made.json()["token"].as_str().unwrap().to_owned(),
    );
    assert_eq!(made.json()["key"]["keyPrefix"], token[..12]);
    assert_eq!(
        site.call_as(&token, "GET", "/api/live/inputs", None)
            .await
            .status,
        200
    );

    let list = site.call("GET", "/api/keys", None).await;
    assert_eq!(list.json()["keys"].as_array().unwrap().len(), 2);
    assert_eq!(list.json()["keys"][0]["name"], "CI", "newest first");
    assert!(!String::from_utf8(list.body).unwrap().contains(&token));

    let path = format!("/api/keys/{}", id.as_str().unwrap());
    let stranger = site.stranger().await;
    assert_eq!(
        site.call_as(&stranger, "DELETE", &path, None).await.status,
        404
    );
    assert_eq!(
        site.call("DELETE", &path, None).await.json(),
        json!({"success": true})
    );
    assert_eq!(
        site.call_as(&token, "GET", "/api/live/inputs", None)
            .await
            .status,
        401
    );
    assert_eq!(site.call("DELETE", &path, None).await.status, 404);

    let odd = site
        .call("POST", "/api/keys", Some(json!({"scope": "root"})))
        .await;
    assert_eq!(
        (odd.status, odd.error()),
        (
            400,
            "scope must be read or write or admin, got `root`".to_owned()
        )
    );
}

#[actix_web::test]
async fn requests_count_against_the_plan_of_the_account() {
    let site =
        Site::open_with(|config| config.plans.get_mut("free").unwrap().requests_per_minute = 2)
            .await;
    let unlimited = site.call("GET", "/api/keys", None).await;
    assert_eq!(unlimited.header("x-ratelimit-limit"), "unlimited");

    let account_id = site.first.live_input.account_id;
    site.app
        .platform
        .store
        .write(move |tx| {
            Box::pin(async move { accounts::set_plan(tx, account_id, "free", now_ms()).await })
        })
        .await
        .unwrap();
    let first = site.call("GET", "/api/keys", None).await;
    assert_eq!(
        (
            first.header("x-ratelimit-limit"),
            first.header("x-ratelimit-remaining")
        ),
        ("2", "1")
    );
    let reset: i64 = first.header("x-ratelimit-reset").parse().unwrap();
    assert!((1..=61).contains(&(reset - now_ms() / 1000)), "{reset}");
    assert_eq!(
        site.call("GET", "/api/nowhere", None)
            .await
            .header("x-ratelimit-remaining"),
        "0"
    );
    let rejected = site.call("GET", "/api/keys", None).await;
    assert_eq!(
        (rejected.status, rejected.header("x-ratelimit-remaining")),
        (429, "0")
    );
    assert!((1..=60).contains(&rejected.header("retry-after").parse::<u32>().unwrap()));
    assert_eq!(site.call("GET", "/readyz", None).await.status, 200);
    let stranger = site.stranger().await;
    assert_eq!(
        site.call_as(&stranger, "GET", "/api/keys", None)
            .await
            .status,
        200
    );
}
