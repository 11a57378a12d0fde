//! Dashboard sessions: sign-in, cookie, forged calls, guessed passwords.

use actix_web::{http::header::HeaderValue, test::TestRequest};
use serde_json::{Value, json};
use sluice_store::users::Role;

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
        let rejected = sign_in(&site, &format!("user {number}"), "wrong").await;
        assert_eq!(rejected.status, 401);
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
        let rejected = sign_in(&site, "admin", "wrong").await;
        assert_eq!(
            (rejected.status, rejected.error()),
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
async fn the_cookie_is_out_of_reach_of_scripts_and_of_other_sites() {
    for (base_url, name, is_secure) in [
        ("http://media.test:8080", "sluice_session", false),
        ("https://media.test:8080", "__Host-sluice_session", true),
    ] {
        let site = Site::open_with(|config| config.http.base_url = base_url.to_owned()).await;
        let code = site.welcome_code().await;
        let signed_in = sign_in(&site, "admin", PASSWORD).await;
        let welcomed = welcome(&site, code.expose(), "another password").await;
        let own = |method, path: &str, by: &Answer| {
            request(method, path)
                .insert_header(("cookie", cookie(by)))
                .insert_header((
                    "x-csrf-token",
                    by.json()["csrfToken"].as_str().unwrap().to_owned(),
                ))
        };
        let change = json!({"currentPassword": "another password", "newPassword": PASSWORD});
        let changed = own("PATCH", "/api/session/password", &welcomed).set_json(change);
        let changed = site.send(changed).await;
        let ended = site.send(own("DELETE", "/api/session", &changed)).await;
        let mut tokens = std::collections::HashSet::new();
        for (what, answer, is_removal) in [
            ("sign-in", &signed_in, false),
            ("welcome link", &welcomed, false),
            ("another password", &changed, false),
            ("sign-out", &ended, true),
        ] {
            let header = answer.header("set-cookie");
            let attributes: Vec<&str> = header.split("; ").collect();
            let (named, value) = attributes[0].split_once('=').unwrap();
            assert_eq!(named, name, "{what}");
            assert_eq!(value.is_empty(), is_removal, "{what}");
            assert!(tokens.insert(value.to_owned()), "{what}: a token again");
            for attribute in ["HttpOnly", "SameSite=Lax", "Path=/"] {
                assert!(attributes.contains(&attribute), "{what}: {header}");
            }
            assert_eq!(
                attributes.contains(&"Secure"),
                is_secure,
                "{what}: {header}"
            );
            assert_eq!(attributes.contains(&"Max-Age=0"), is_removal, "{what}");
            assert!(!header.contains("Domain"), "{what}: {header}");
            assert_eq!(answer.header("cache-control"), "no-store", "{what}");
        }
        assert_eq!(ended.header("clear-site-data"), "\"cache\"");
    }
}

async fn welcome(site: &Site, code: &str, new_password: &str) -> Answer {
    let body = json!({"code": code, "newPassword": new_password});
    site.send(request("POST", "/api/session/welcome").set_json(body))
        .await
}

#[actix_web::test]
async fn a_welcome_link_sets_the_password_once() {
    let site = Site::open_with(|config| config.sign_in.attempts = 4).await;
    let before = sign_in(&site, "admin", PASSWORD).await;
    let code = site.welcome_code().await;
    for short in ["", "1234567"] {
        let rejected = welcome(&site, code.expose(), short).await;
        assert_eq!(rejected.status, 400, "{rejected:?}");
        assert!(rejected.error().contains("at least 8 characters"));
    }
    let typed = code.expose().to_lowercase().replace('-', " ");
    let welcomed = welcome(&site, &typed, "a new password").await;
    assert_eq!(welcomed.status, 201, "{welcomed:?}");
    assert_eq!(
        welcomed.json()["user"],
        json!({
            "id": before.json()["user"]["id"], "username": "admin", "role": "admin", "operator": true,
        })
    );
    assert_eq!(welcomed.json()["account"]["name"], "Default");
    let show = async |answer: &Answer| {
        let shown = request("GET", "/api/session").insert_header(("cookie", cookie(answer)));
        site.send(shown).await.status
    };
    assert_eq!(show(&welcomed).await, 200);
    assert_eq!(show(&before).await, 401, "earlier sessions end");
    assert_eq!(sign_in(&site, "admin", PASSWORD).await.status, 401);
    assert_eq!(sign_in(&site, "admin", "a new password").await.status, 201);

    // Used, unknown and malformed ones are answered alike, and counted as guesses.
    let mut answers = Vec::new();
    for odd in [code.expose(), "2222-2222-2222-2222-2222", "x", ""] {
        let rejected = welcome(&site, odd, "yet another one").await;
        assert_eq!(rejected.status, 410, "{odd}");
        answers.push(rejected.json());
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0]["code"], "gone");
    assert!(answers[0].to_string().contains("sluice users welcome"));
    let next = site.welcome_code().await;
    let stopped = welcome(&site, next.expose(), "yet another one").await;
    assert_eq!(stopped.status, 429, "{stopped:?}");
    assert_eq!(sign_in(&site, "admin", "a new password").await.status, 201);
}

#[actix_web::test]
async fn a_suspended_account_keeps_its_welcome_link() {
    let site = Site::open().await;
    let code = site.welcome_code().await;
    let account_id = site.first.live_input.account_id;
    let suspend = async |is_suspended| {
        let store = &site.app.platform.store;
        let set = store.write(move |tx| {
            Box::pin(sluice_store::accounts::set_suspended(
                tx,
                account_id,
                is_suspended,
                sluice_store::now_ms(),
            ))
        });
        set.await.unwrap();
    };
    suspend(true).await;
    let rejected = welcome(&site, code.expose(), "a new password").await;
    assert_eq!(rejected.json()["code"], "account_suspended");
    suspend(false).await;
    assert_eq!(
        welcome(&site, code.expose(), "a new password").await.status,
        201
    );
}

#[actix_web::test]
async fn one_link_that_is_used_twice_at_once_serves_one() {
    let site = Site::open().await;
    let code = site.welcome_code().await;
    let (first, second) = tokio::join!(
        welcome(&site, code.expose(), "the first password"),
        welcome(&site, code.expose(), "the second password")
    );
    let mut statuses = [first.status, second.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 410]);
}

#[actix_web::test]
async fn another_password_needs_the_present_one_and_ends_every_session() {
    let site = Site::open().await;
    let user = site.user("ann", Role::Viewer, false, false).await;
    let (browser, other) = (site.browser(user.id).await, site.browser(user.id).await);
    let change = async |current: &str, new: &str| {
        let body = json!({"currentPassword": current, "newPassword": new});
        let request = browser.request("PATCH", "/api/session/password");
        site.send(request.set_json(body)).await
    };
    let rejected = change("wrong", "a new password").await;
    assert_eq!(
        (rejected.status, &rejected.json()["code"]),
        (403, &json!("wrong_password"))
    );
    for (new, words) in [("short", "at least 8"), (&"x".repeat(1_025), "1024 bytes")] {
        let rejected = change(PASSWORD, new).await;
        assert_eq!(rejected.status, 400);
        assert!(rejected.error().contains(words), "{}", rejected.error());
    }
    let changed = change(PASSWORD, "a new password").await;
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_ne!(changed.json()["csrfToken"], browser.csrf_token);
    for ended in [&browser, &other] {
        let shown = site.send(ended.bare("GET", "/api/session")).await;
        assert_eq!(shown.status, 401);
    }
    let shown = request("GET", "/api/session").insert_header(("cookie", cookie(&changed)));
    assert_eq!(site.send(shown).await.json(), changed.json());
    assert_eq!(sign_in(&site, "ann", PASSWORD).await.status, 401);
    assert_eq!(sign_in(&site, "ann", "a new password").await.status, 201);
}

#[actix_web::test]
async fn guessing_the_present_password_stops_as_at_the_sign_in() {
    let site = Site::open().await;
    let user = site.user("ann", Role::Admin, false, false).await;
    let browser = site.browser(user.id).await;
    let change = async |current: &str| {
        let body = json!({"currentPassword": current, "newPassword": "a new password"});
        let request = browser.request("PATCH", "/api/session/password");
        site.send(request.set_json(body)).await.status
    };
    for _ in 0..5 {
        assert_eq!(change("wrong").await, 403);
    }
    assert_eq!(change(PASSWORD).await, 429);
    assert_eq!(sign_in(&site, "ann", PASSWORD).await.status, 429);
}

#[actix_web::test]
async fn a_user_lists_their_sessions_and_ends_them() {
    let site = Site::open_with(|config| config.sign_in.max_sessions = 3).await;
    let user = site.user("ann", Role::Viewer, false, false).await;
    let stranger = site.user("eve", Role::Admin, true, false).await;
    let foreign = site.browser(stranger.id).await;
    let agent = format!("<script>{}", "x".repeat(500));
    let mut signed_in = Vec::new();
    for (address, agent) in [
        ("203.0.113.7:1", "Firefox"),
        ("[2001:db8::1:2:3:4]:1", &agent),
    ] {
        let begun = request("POST", "/api/session")
            .peer_addr(address.parse().unwrap())
            .insert_header(("user-agent", agent))
            .set_json(json!({"username": "ann", "password": PASSWORD}));
        signed_in.push(cookie(&site.send(begun).await));
    }
    let list = async |cookie: &str| {
        let list = request("GET", "/api/sessions").insert_header(("cookie", cookie.to_owned()));
        let answer = site.send(list).await;
        assert_eq!(answer.header("cache-control"), "no-store");
        let token = cookie.split_once('=').unwrap().1;
        assert!(!String::from_utf8_lossy(&answer.body).contains(token));
        answer.json()["sessions"].as_array().unwrap().clone()
    };
    let listed = list(&signed_in[1]).await;
    let field = |name: &str| listed.iter().map(|it| it[name].clone()).collect::<Vec<_>>();
    assert_eq!(field("current"), [json!(true), json!(false)]);
    assert_eq!(field("network"), ["2001:db8::/64", "203.0.113.7"]);
    assert_eq!(listed[1]["userAgent"], "Firefox");
    assert_eq!(listed[0]["userAgent"].as_str().unwrap().len(), 200);
    assert!(listed[0]["createdAt"].is_string() && listed[0]["expiresAt"].is_string());

    let browser = site.browser(user.id).await;
    let end = async |browser: &super::Browser, id: &str| {
        let path = format!("/api/sessions/{id}");
        site.send(browser.request("DELETE", &path)).await
    };
    let id = listed[1]["id"].as_str().unwrap();
    assert_eq!(end(&foreign, id).await.status, 404, "another user's");
    assert_eq!(end(&browser, "not-an-id").await.status, 404);
    assert_eq!(end(&browser, id).await.status, 200);
    assert_eq!(end(&browser, id).await.status, 404, "ended");
    let shown = request("GET", "/api/session").insert_header(("cookie", signed_in[0].clone()));
    assert_eq!(site.send(shown).await.status, 401);
    let own = list(&browser.cookie).await;
    let own = own.iter().find(|it| it["current"] == true).unwrap();
    let ended = end(&browser, own["id"].as_str().unwrap()).await;
    assert!(ended.header("set-cookie").contains("Max-Age=0"));
    assert_eq!(list(&signed_in[1]).await.len(), 1);
    for _ in 0..5 {
        assert_eq!(sign_in(&site, "ann", PASSWORD).await.status, 201);
    }
    let newest = cookie(&sign_in(&site, "ann", PASSWORD).await);
    assert_eq!(list(&newest).await.len(), 3, "bounded");
    let by_key = site.call("GET", "/api/sessions", None).await;
    assert_eq!(by_key.status, 403, "a key is no session");
}

#[actix_web::test]
async fn each_session_has_a_bound_of_its_own() {
    let site = Site::open_with(|config| {
        config
            .plans
            .get_mut("unlimited")
            .unwrap()
            .requests_per_minute = 1;
        config.sign_in.requests_per_minute = 2;
        config.sign_in.upload_requests_per_minute = 3;
    })
    .await;
    let user = site.user("ann", Role::Viewer, false, false).await;
    let (one, other) = (site.browser(user.id).await, site.browser(user.id).await);
    let get = async |browser: &super::Browser| {
        let answer = site.send(browser.bare("GET", "/api/files")).await;
        let left = answer.header("x-ratelimit-remaining").to_owned();
        (answer.status, left, answer)
    };
    // A minute may end between any two requests.
    let rejected = loop {
        let (status, left, answer) = get(&one).await;
        assert_eq!(answer.header("x-ratelimit-limit"), "2");
        match status {
            200 => assert!(["0", "1"].contains(&left.as_str()), "{left}"),
            _ => break answer,
        }
    };
    assert_eq!(rejected.status, 429);
    assert!(rejected.error().contains("sign_in.requests_per_minute"));
    assert!(!rejected.header("retry-after").is_empty());
    assert_eq!(get(&other).await.0, 200);
    // Resumable uploads are counted apart.
    let path = "/api/uploads/tus/00000000-0000-4000-8000-000000000000";
    let refused = loop {
        let answer = site.send(one.bare("GET", path)).await;
        assert_eq!(answer.header("x-ratelimit-limit"), "3");
        if answer.status != 404 {
            break answer;
        }
    };
    assert_eq!(refused.status, 429);
    assert!(
        refused
            .error()
            .contains("sign_in.upload_requests_per_minute"),
        "{}",
        refused.error()
    );
    let by_key = site.call("GET", "/api/files", None).await;
    assert_eq!(
        (by_key.status, by_key.header("x-ratelimit-limit")),
        (200, "1")
    );
}

#[actix_web::test]
async fn nothing_that_a_session_sees_is_stored_by_the_browser() {
    let site = Site::open().await;
    let user = site.user("ann", Role::Admin, true, false).await;
    let browser = site.browser(user.id).await;
    for path in [
        "/api/session",
        "/api/sessions",
        "/api/live/inputs",
        "/api/files",
        "/api/keys",
        "/api/usage",
        "/api/nowhere",
        "/metrics",
    ] {
        let answer = site.send(browser.bare("GET", path)).await;
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
    }
    let by_key = site.call("GET", "/api/live/inputs", None).await;
    assert_eq!(by_key.header("cache-control"), "", "keys are as before");
}

#[actix_web::test]
async fn unknown_users_and_odd_bodies_are_rejected_alike() {
    let site = Site::open().await;
    let wrong = sign_in(&site, "admin", "wrong").await.json();
    for (username, password) in [
        ("unknown", PASSWORD),
        ("", ""),
        ("a\u{0}b", "x"),
        ("admin", ""),
    ] {
        let rejected = sign_in(&site, username, password).await;
        assert_eq!(
            (rejected.status, rejected.json()),
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
