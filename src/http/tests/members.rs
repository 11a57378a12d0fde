//! Users, invitations and links for a new password.

use serde_json::{Value, json};
use sluice_store::{Secret, invitations, now_ms, users::Role};
use uuid::Uuid;

use super::{Answer, Browser, ORIGIN, PASSWORD, Site, request};

const INVITATIONS: &str = "/api/invitations";

/// A request of a page of the service, without a session.
async fn ask(site: &Site, path: &str, body: Value) -> Answer {
    let asked = request("POST", path)
        .insert_header(("origin", ORIGIN))
        .set_json(body);
    site.send(asked).await
}

async fn look(site: &Site, code: &str) -> Answer {
    ask(site, "/api/invitations/look", json!({"code": code})).await
}

async fn redeem(site: &Site, code: &str, name: &str) -> Answer {
    let body = json!({"code": code, "name": name, "password": "another battery"});
    ask(site, "/api/invitations/redeem", body).await
}

/// Makes an invitation; returns its record and its code.
async fn invite(site: &Site, body: Value) -> (Value, String) {
    let made = site.call("POST", INVITATIONS, Some(body)).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.header("cache-control"), "no-store");
    let mut invitation = made.json()["invitation"].take();
    let url = invitation.as_object_mut().unwrap().remove("url").unwrap();
    let (page, code) = url.as_str().unwrap().split_once('#').unwrap();
    assert_eq!(page, format!("{ORIGIN}/app/join"));
    (invitation, code.to_owned())
}

async fn users(site: &Site) -> Vec<Value> {
    let list = site.call("GET", "/api/users", None).await.json();
    list["users"].as_array().unwrap().clone()
}

async fn actions(site: &Site) -> Vec<String> {
    let log = site.call("GET", "/api/audit", None).await.json();
    let entries = log["entries"].as_array().unwrap().iter();
    entries
        .map(|entry| entry["action"].as_str().unwrap().to_owned())
        .collect()
}

async fn is_signed_in(site: &Site, browser: &Browser) -> bool {
    let answer = site.send(browser.bare("GET", "/api/session")).await;
    answer.status == 200
}

#[actix_web::test]
async fn an_invitation_makes_one_user_once() {
    let site = Site::open().await;
    let (made, code) = invite(
        &site,
        json!({"role": "viewer", "note": " Ann, accounts ", "expiresInHours": 1}),
    )
    .await;
    assert_eq!(
        (&made["role"], &made["note"], &made["usedAt"]),
        (&json!("viewer"), &json!("Ann, accounts"), &Value::Null)
    );
    let list = site.call("GET", INVITATIONS, None).await;
    assert!(!String::from_utf8_lossy(&list.body).contains(&code));
    assert_eq!(list.json()["invitations"], json!([made]));

    let offer = look(&site, &code.to_lowercase().replace('-', " ")).await;
    assert_eq!(offer.status, 200, "{offer:?}");
    assert_eq!(
        (&offer.json()["role"], &offer.json()["accountName"]),
        (&json!("viewer"), &json!("Default"))
    );

    for (name, password, field) in [
        ("a b", "another battery", "name"),
        ("ann", "short", "password"),
    ] {
        let body = json!({"code": code, "name": name, "password": password});
        let wrong = ask(&site, "/api/invitations/redeem", body).await;
        assert_eq!(wrong.status, 400);
        assert!(wrong.error().starts_with(field), "{}", wrong.error());
    }
    let taken = redeem(&site, &code, "Admin").await;
    assert_eq!(taken.status, 409, "{taken:?}");

    let joined = redeem(&site, &code, "Ann").await;
    assert_eq!(joined.status, 201, "{joined:?}");
    assert_eq!(joined.json()["user"]["username"], "ann");
    assert_eq!(joined.json()["user"]["role"], "viewer");
    assert_eq!(joined.json()["user"]["operator"], false);
    let cookie = joined.header("set-cookie");
    assert!(cookie.contains("HttpOnly"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let session = request("GET", "/api/session").insert_header(("cookie", cookie));
    assert_eq!(site.send(session).await.status, 200);

    for answer in [redeem(&site, &code, "bob").await, look(&site, &code).await] {
        assert_eq!(
            (answer.status, &answer.json()["code"]),
            (410, &json!("gone"))
        );
    }
    let list = site.call("GET", INVITATIONS, None).await.json();
    assert_eq!(list["invitations"][0]["usedBy"], "ann");
    let id = made["id"].as_str().unwrap();
    let used = site
        .call("DELETE", &format!("{INVITATIONS}/{id}"), None)
        .await;
    assert_eq!(used.status, 404, "a used one cannot be revoked");
    assert_eq!(
        actions(&site).await,
        ["invitation.used", "invitation.created"]
    );
    let ann = users(&site)
        .await
        .into_iter()
        .find(|it| it["name"] == "ann");
    assert!(ann.unwrap()["lastSeenAt"].is_string());
}

#[actix_web::test]
async fn two_people_with_one_code_make_one_user() {
    let site = Site::open().await;
    let (_, code) = invite(&site, json!({})).await;
    let (first, second) = futures_util::join!(
        redeem(&site, &code, "first"),
        redeem(&site, &code, "second")
    );
    let mut statuses = [first.status, second.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 410]);
    assert_eq!(users(&site).await.len(), 2);
}

#[actix_web::test]
async fn revoked_and_expired_invitations_are_gone() {
    let site = Site::open().await;
    let (made, code) = invite(&site, json!({})).await;
    let path = format!("{INVITATIONS}/{}", made["id"].as_str().unwrap());
    let stranger = site.stranger().await;
    let others = site.call_as(&stranger, "DELETE", &path, None).await;
    assert_eq!(others.status, 404);
    assert_eq!(site.call("DELETE", &path, None).await.status, 200);
    assert_eq!(redeem(&site, &code, "ann").await.status, 410);

    let account_id = site.first.live_input.account_id;
    let made = site.app.platform.store.write(move |tx| {
        Box::pin(async move {
            let new = invitations::NewInvitation {
                account_id,
                role: Role::Member,
                note: None,
                created_by: "test".into(),
                created_by_user: None,
                lifetime_ms: 1,
            };
            invitations::create(tx, new, 10, now_ms() - 1_000).await
        })
    });
    let (_, code): (_, Secret) = made.await.unwrap();
    assert_eq!(redeem(&site, code.expose(), "ann").await.status, 410);
    assert_eq!(users(&site).await.len(), 1);
}

#[actix_web::test]
async fn guesses_are_counted_and_right_codes_are_not() {
    let site = Site::open_with(|config| config.sign_in.attempts = 3).await;
    let (_, code) = invite(&site, json!({})).await;
    for _ in 0..6 {
        assert_eq!(look(&site, &code).await.status, 200);
    }
    for wrong in ["2222-2222-2222-2222-2222", "nonsense", ""] {
        assert_eq!(look(&site, wrong).await.status, 410);
    }
    let locked = redeem(&site, &code, "ann").await;
    assert_eq!(
        (locked.status, &locked.json()["code"]),
        (429, &json!("rate_limited"))
    );
    assert!(!locked.header("retry-after").is_empty());
}

#[actix_web::test]
async fn invitations_and_users_are_bounded() {
    let site = Site::open_with(|config| {
        config.account.max_invitations = 2;
        config.account.max_users = 1;
    })
    .await;
    let (_, code) = invite(&site, json!({})).await;
    invite(&site, json!({})).await;
    let third = site.call("POST", INVITATIONS, Some(json!({}))).await;
    assert_eq!(third.status, 409);
    assert!(third.error().contains("account.max_invitations"));
    let full = redeem(&site, &code, "ann").await;
    assert_eq!(full.status, 409);
    assert!(
        full.error().contains("account.max_users"),
        "{}",
        full.error()
    );
    for (body, field) in [
        (json!({"role": "owner"}), "role"),
        (json!({"expiresInHours": 721}), "expiresInHours"),
        (json!({"note": "x".repeat(201)}), "note"),
    ] {
        let wrong = site.call("POST", INVITATIONS, Some(body)).await;
        assert_eq!(wrong.status, 400);
        assert!(wrong.error().starts_with(field), "{}", wrong.error());
    }
}

#[actix_web::test]
async fn the_last_admin_and_the_last_operator_stay() {
    let site = Site::open().await;
    let admin = users(&site).await.remove(0);
    let admin_id: Uuid = admin["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(
        (&admin["role"], &admin["operator"], &admin["you"]),
        (&json!("admin"), &json!(true), &json!(false))
    );
    let browser = site.browser(admin_id).await;
    let path = format!("/api/users/{admin_id}");
    let as_admin = async |method: &str, path: &str, body: Value| {
        let asked = browser.request(method, path).set_json(body);
        site.send(asked).await
    };
    let lose_role = json!({"role": "member"});
    for (method, body, word) in [
        ("DELETE", json!({}), "last admin"),
        ("PATCH", lose_role.clone(), "last admin"),
        ("PATCH", json!({"operator": false}), "last operator"),
    ] {
        let rejected = as_admin(method, &path, body).await;
        assert_eq!(rejected.status, 409, "{rejected:?}");
        assert!(rejected.error().contains(word), "{}", rejected.error());
    }
    assert!(actions(&site).await.is_empty());

    let ann = site.user("ann", Role::Member, false, false).await;
    let ann_path = format!("/api/users/{}", ann.id);
    let promoted = as_admin(
        "PATCH",
        &ann_path,
        json!({"role": "admin", "operator": true}),
    )
    .await;
    assert_eq!(promoted.status, 200, "{promoted:?}");
    assert_eq!(promoted.json()["user"]["role"], "admin");
    let demoted = as_admin("PATCH", &path, lose_role).await;
    assert_eq!(demoted.status, 200, "another admin is there");
    let now = as_admin("PATCH", &ann_path, json!({"role": "viewer"})).await;
    assert_eq!(now.status, 403, "no admin any longer");
    let log = site.call("GET", "/api/audit", None).await.json();
    assert_eq!(
        log["entries"][0]["detail"],
        "member, operator, before: admin, operator"
    );
}

#[actix_web::test]
async fn admins_do_not_reach_for_the_whole_service() {
    let site = Site::open().await;
    let operator = users(&site).await.remove(0);
    let operator = format!("/api/users/{}", operator["id"].as_str().unwrap());
    let ann = site.user("ann", Role::Admin, false, false).await;
    let browser = site.browser(ann.id).await;
    let own = format!("/api/users/{}", ann.id);
    let reset = format!("{operator}/reset-link");
    for (method, path, body) in [
        ("PATCH", &own, json!({"operator": true})),
        ("PATCH", &operator, json!({"role": "viewer"})),
        ("DELETE", &operator, json!({})),
        ("POST", &reset, json!({})),
    ] {
        let by_admin = site.send(browser.request(method, path).set_json(&body));
        let by_key = site.call(method, path, Some(body.clone()));
        for answer in [by_admin.await, by_key.await] {
            assert_eq!(answer.status, 403, "{method} {path}");
            assert_eq!(answer.json()["code"], "insufficient_scope");
        }
    }
    assert!(actions(&site).await.is_empty());
}

#[actix_web::test]
async fn a_removed_user_is_signed_out_at_once() {
    let site = Site::open().await;
    let ann = site.user("ann", Role::Admin, false, false).await;
    let (first, second) = (site.browser(ann.id).await, site.browser(ann.id).await);
    let stranger = site.stranger().await;
    let path = format!("/api/users/{}", ann.id);
    for method in ["PATCH", "DELETE"] {
        let others = site
            .call_as(&stranger, method, &path, Some(json!({})))
            .await;
        assert_eq!(others.status, 404);
    }
    assert!(is_signed_in(&site, &first).await);
    assert_eq!(site.call("DELETE", &path, None).await.status, 200);
    for browser in [&first, &second] {
        assert!(!is_signed_in(&site, browser).await);
    }
    assert_eq!(site.call("DELETE", &path, None).await.status, 404);
    // A user may remove themselves, and is named in the log.
    let bob = site.user("bob", Role::Admin, false, false).await;
    let own = site.browser(bob.id).await;
    let asked = own.request("DELETE", &format!("/api/users/{}", bob.id));
    assert_eq!(site.send(asked).await.status, 200);
    let log = site.call("GET", "/api/audit", None).await.json();
    assert_eq!(log["entries"][0]["actor"]["name"], "bob");
    assert_eq!(log["entries"][1]["target"]["name"], "ann");
}

#[actix_web::test]
async fn invitations_of_an_admin_end_with_the_role() {
    let site = Site::open().await;
    let boss = site.user("boss", Role::Admin, false, false).await;
    let browser = site.browser(boss.id).await;
    for change in [Some(json!({"role": "member"})), None] {
        let asked = browser
            .request("POST", INVITATIONS)
            .set_json(json!({"role": "admin"}));
        let made = site.send(asked).await;
        assert_eq!(made.status, 201, "{made:?}");
        let url = made.json()["invitation"]["url"]
            .as_str()
            .unwrap()
            .to_owned();
        let (_, code) = url.split_once('#').unwrap();
        let path = format!("/api/users/{}", boss.id);
        let method = if change.is_some() { "PATCH" } else { "DELETE" };
        let changed = site.call(method, &path, change).await;
        assert_eq!(changed.status, 200, "{changed:?}");
        let redeemed = redeem(&site, code, "friend").await;
        assert!(
            (400..500).contains(&redeemed.status),
            "{method}: {redeemed:?}"
        );
        let again = site
            .call("PATCH", &path, Some(json!({"role": "admin"})))
            .await;
        assert!([200, 404].contains(&again.status), "{again:?}");
    }
}

/// The admin of an account who made it would be operator by it.
#[actix_web::test]
async fn a_reset_link_of_a_user_who_becomes_operator_is_no_longer_valid() {
    let site = Site::open().await;
    let ann = site.user("ann", Role::Member, false, false).await;
    let path = format!("/api/users/{}", ann.id);
    let made = site.call("POST", &format!("{path}/reset-link"), None).await;
    let url = made.json()["url"].as_str().unwrap().to_owned();
    let operator = site.user("operator", Role::Admin, true, false).await;
    let operator = site.browser(operator.id).await;
    let promote = operator
        .request("PATCH", &path)
        .set_json(json!({"operator": true}));
    assert_eq!(site.send(promote).await.status, 200);
    let (_, code) = url.split_once('#').unwrap();
    let used = json!({"code": code, "newPassword": "another battery"});
    let rejected = ask(&site, "/api/session/welcome", used).await;
    assert!(
        (400..500).contains(&rejected.status),
        "it is used up: {rejected:?}"
    );
}

#[actix_web::test]
async fn a_reset_link_ends_password_and_sessions_when_it_is_used() {
    let site = Site::open().await;
    let ann = site.user("ann", Role::Member, false, false).await;
    let before = site.browser(ann.id).await;
    let path = format!("/api/users/{}/reset-link", ann.id);
    let made = site.call("POST", &path, None).await;
    assert_eq!(
        (made.status, made.header("cache-control")),
        (201, "no-store")
    );
    let url = made.json()["url"].as_str().unwrap().to_owned();
    let (page, code) = url.split_once('#').unwrap();
    assert_eq!(page, format!("{ORIGIN}/app/welcome"));
    assert!(is_signed_in(&site, &before).await, "until it is used");
    let used = json!({"code": code, "newPassword": "another battery"});
    let welcomed = ask(&site, "/api/session/welcome", used).await;
    assert_eq!(welcomed.status, 201, "{welcomed:?}");
    assert!(!is_signed_in(&site, &before).await);
    let old = json!({"username": "ann", "password": PASSWORD});
    assert_eq!(ask(&site, "/api/session", old).await.status, 401);
    assert_eq!(
        actions(&site).await,
        ["user.password_set", "user.reset_link_made"]
    );
}
