//! Access to the API: keys, sessions, rates.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{json_of, status_of, text_of};
use crate::support::{
    Failure, eventually,
    http::client,
    server::{ADMIN_PASSWORD, API_KEY, Api, Server, Settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_have_scopes_and_can_be_revoked() -> Result<(), Failure> {
    let server = Server::start().await?;
    let admin = server.api();
    let (status, made) = admin
        .call(Method::POST, "/api/keys", Some(&json!({"scope": "owner"})))
        .await?;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{made}");
    let mut keys = Vec::new();
    for (scope, read, write, administer) in [
        ("read", 200, 403, 403),
        ("write", 200, 201, 403),
        ("admin", 200, 201, 200),
    ] {
        let (status, made) = admin
            .call(
                Method::POST,
                "/api/keys",
                Some(&json!({"name": scope, "scope": scope})),
            )
            .await?;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        let token = made["token"].as_str().ok_or("no token")?.to_owned();
        assert!(token.starts_with("svc_") && token.len() == 4 + 43);
        let api = api_with(&server, &token);
        let answers = [
            api.call(Method::GET, "/api/live/inputs", None).await?.0,
            api.call(Method::POST, "/api/live/inputs", Some(&json!({})))
                .await?
                .0,
            api.call(Method::GET, "/api/keys", None).await?.0,
        ];
        assert_eq!(answers, [read, write, administer], "{scope}");
        keys.push((made["key"]["id"].as_str().ok_or("no id")?.to_owned(), token));
    }
    let (_, list) = admin.call(Method::GET, "/api/keys", None).await?;
    assert_eq!(list["keys"].as_array().map(Vec::len), Some(4));
    assert!(
        keys.iter()
            .all(|(_, token)| !list.to_string().contains(token)),
        "shown once"
    );

    let (id, token) = &keys[1];
    let path = format!("/api/keys/{id}");
    assert_eq!(
        admin.call(Method::DELETE, &path, None).await?,
        (StatusCode::OK, json!({"success": true}))
    );
    assert_eq!(
        admin.call(Method::DELETE, &path, None).await?.0,
        StatusCode::NOT_FOUND
    );
    let url = format!("{}/api/live/inputs", server.base_url());
    let get = || client().get(&url);
    for (request, status) in [
        (get(), 401),
        (get().bearer_auth(token), 401),
        (get().bearer_auth("svc_nothing"), 401),
        (get().header("x-api-key", API_KEY), 200),
        (get().bearer_auth(token).header("x-api-key", API_KEY), 401),
        (get().bearer_auth(API_KEY).header("x-api-key", token), 200),
        (client().get(format!("{url}?api_key={API_KEY}")), 401),
    ] {
        let answer = request.send().await?;
        assert_eq!(answer.status(), status);
        let challenge = text_of(answer.headers(), "www-authenticate");
        assert_eq!(challenge, if status == 401 { "Bearer" } else { "" });
        assert_eq!(
            text_of(answer.headers(), "access-control-allow-origin"),
            "",
            "/api has no CORS"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_need_a_token_and_passwords_some_patience() -> Result<(), Failure> {
    let server = Server::start().await?;
    let url = |path: &str| format!("{}{path}", server.base_url());
    let right = json!({"username": "admin", "password": ADMIN_PASSWORD});
    let answer = client()
        .post(url("/api/session"))
        .json(&right)
        .send()
        .await?;
    assert_eq!(answer.status(), 201);
    let cookie = text_of(answer.headers(), "set-cookie");
    for attribute in ["HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(
        !cookie.contains("Secure"),
        "over plain HTTP it would not come back: {cookie}"
    );
    let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
    let signed_in: Value = answer.json().await?;
    assert_eq!(
        (&signed_in["user"]["username"], &signed_in["user"]["role"]),
        (&json!("admin"), &json!("admin"))
    );
    assert!(signed_in["user"]["id"].is_string());
    let token = signed_in["csrfToken"].as_str().ok_or("no csrfToken")?;
    let by_session = |method: Method, path: &str| {
        client()
            .request(method, url(path))
            .header("cookie", &cookie)
    };
    assert_eq!(
        json_of(by_session(Method::GET, "/api/session")).await?,
        signed_in
    );
    assert_eq!(
        status_of(by_session(Method::GET, "/api/live/inputs")).await?,
        200
    );
    assert_eq!(status_of(by_session(Method::GET, "/api/keys")).await?, 200);

    let make = || by_session(Method::POST, "/api/live/inputs").json(&json!({}));
    let with_token = || make().header("x-csrf-token", token);
    for (request, status) in [
        (make(), 403),
        (make().header("x-csrf-token", "wrong"), 403),
        (with_token(), 201),
        (with_token().header("origin", server.base_url()), 201),
        (with_token().header("origin", "https://evil.example"), 403),
        (with_token().header("origin", "null"), 403),
    ] {
        assert_eq!(status_of(request).await?, status);
    }
    let out = by_session(Method::DELETE, "/api/session");
    assert_eq!(
        json_of(out.header("x-csrf-token", token)).await?,
        json!({"success": true})
    );
    assert_eq!(
        status_of(by_session(Method::GET, "/api/session")).await?,
        401
    );

    let wrong = json!({"username": "admin", "password": "wrong"});
    for _ in 0..5 {
        assert_eq!(
            status_of(client().post(url("/api/session")).json(&wrong)).await?,
            401
        );
    }
    for body in [&wrong, &right] {
        let answer = client().post(url("/api/session")).json(body).send().await?;
        assert_eq!(answer.status(), 429, "the sixth waits, right or wrong");
        assert!(text_of(answer.headers(), "retry-after").parse::<u64>()? > 0);
    }
    let other = json!({"username": "unknown", "password": "x"});
    assert_eq!(
        status_of(client().post(url("/api/session")).json(&other)).await?,
        401
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_counted_by_the_plan() -> Result<(), Failure> {
    let server = Settings::new()
        .env("SLUICE_PLANS__UNLIMITED__REQUESTS_PER_MINUTE", "40")
        .start()
        .await?;
    let input = server.api().create(json!({})).await?;
    let list = || {
        client()
            .get(format!("{}/api/live/inputs", server.base_url()))
            .bearer_auth(API_KEY)
    };
    let answer = list().send().await?;
    assert_eq!(text_of(answer.headers(), "x-ratelimit-limit"), "40");
    // A minute may have begun between any two requests.
    let remaining: u32 = text_of(answer.headers(), "x-ratelimit-remaining").parse()?;
    assert!(remaining == 38 || remaining == 39, "{remaining}");
    let reset: i64 = text_of(answer.headers(), "x-ratelimit-reset").parse()?;
    assert!(reset > 1_700_000_000, "in Unix seconds");
    let refused = eventually("a rejection", Duration::from_secs(20), async || {
        list()
            .send()
            .await
            .ok()
            .filter(|answer| answer.status() == 429)
    })
    .await?;
    assert!(text_of(refused.headers(), "retry-after").parse::<u64>()? <= 60);
    assert_eq!(text_of(refused.headers(), "x-ratelimit-remaining"), "0");
    assert_eq!(refused.json::<Value>().await?["code"], "rate_limited");
    // Not counted: playback and health.
    for path in [
        input.playback_path("state"),
        "/healthz".into(),
        "/readyz".into(),
    ] {
        let answer = client()
            .get(format!("{}{path}", server.base_url()))
            .send()
            .await?;
        assert_eq!(answer.status(), 200, "{path}");
        assert_eq!(text_of(answer.headers(), "x-ratelimit-limit"), "");
    }
    Ok(())
}

fn api_with(server: &Server, key: &str) -> Api {
    Api::new(server.base_url(), key, server.addresses().rtmp, None)
}
