//! `/api/system…`: what operators see and change.

use serde_json::{Value, json};
use sluice_store::{api_keys::Scope, users::Role};
use uuid::Uuid;

use super::{Answer, Browser, Site, request};

async fn operator(site: &Site) -> Browser {
    let user = site.user("operator", Role::Viewer, true, false).await;
    site.browser(user.id).await
}

/// Asks as an operator of its own.
async fn get(site: &Site, path: &str) -> Answer {
    let name = format!("operator-{}", Uuid::now_v7().simple());
    let user = site.user(&name, Role::Viewer, true, false).await;
    let browser = site.browser(user.id).await;
    site.send(browser.request("GET", path)).await
}

#[actix_web::test]
async fn the_installation_is_shown_without_workers_or_backups() {
    let site = Site::open().await;
    let answer = get(&site, "/api/system").await;
    assert_eq!(
        (answer.status, answer.header("cache-control")),
        (200, "no-store")
    );
    let system = answer.json();
    assert_eq!(system["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(system["stage"], "ready");
    assert_eq!(system["workers"][0]["kind"], "image");
    let database = &system["database"];
    assert_eq!(database["schema"], sluice_store::schema_version());
    assert_eq!(database["newerSchemaWaits"], false);
    assert_eq!(database["lastBackupAt"], Value::Null);
    assert!(database["bytes"].as_u64() > Some(0));
    let kinds = system["disk"]["kinds"].as_array().unwrap();
    assert!(
        kinds.iter().any(|kind| kind["kind"] == "database"),
        "{kinds:?}"
    );
    assert!(system["disk"]["free"].as_u64() > Some(0));
    assert_eq!(system["nodes"][0]["you"], true);
    assert_eq!(system["objects"], Value::Null);
    let queues = system["queues"].as_array().unwrap();
    assert!(queues.iter().any(|queue| queue["name"] == "workflow runs"));
}

#[actix_web::test]
async fn the_object_store_is_shown_with_its_failure() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file://{}", folder.path().display());
    let site = Site::open_with(|config| config.store.objects_url = url).await;
    let blobs = site.app.platform.store.blobs();
    let mut spool = blobs.spool().await.unwrap();
    spool.write("bytes".into()).await.unwrap();
    let _sealed = spool.seal().await.unwrap();
    let objects = get(&site, "/api/system").await.json()["objects"].clone();
    assert_eq!(objects["place"], folder.path().display().to_string());
    assert_eq!(objects["failure"], Value::Null);
    let sent = json!({"requests": 1, "failures": 0, "bytes": 5});
    assert_eq!(objects["sent"], sent);
    assert_eq!(objects["fetched"]["requests"], 0);
    assert_eq!(objects["cache"]["bound"], 20_000_000_000_u64);
    assert_eq!(objects["lastSearch"], Value::Null);

    // A file in the place of the folder of blobs.
    let place = folder.path().join("b");
    std::fs::remove_dir_all(&place).unwrap();
    std::fs::write(&place, "").unwrap();
    let mut spool = blobs.spool().await.unwrap();
    spool.write("other bytes".into()).await.unwrap();
    spool.seal().await.unwrap_err();
    let system = get(&site, "/api/system").await.json();
    let objects = &system["objects"];
    let sent = json!({"requests": 2, "failures": 1, "bytes": 5});
    assert_eq!(objects["sent"], sent);
    let failure = objects["failure"].as_str().unwrap();
    assert!(failure.starts_with("the object store"), "{failure}");
    let reasons = system["reasons"].as_array().unwrap();
    let reason = reasons.iter().find(|it| it["name"] == "objects").unwrap();
    assert_eq!(reason["reason"], failure);
}

#[actix_web::test]
async fn a_session_of_an_operator_is_needed_and_no_key_suffices() {
    let site = Site::open().await;
    for scope in [Scope::Write, Scope::Admin] {
        let key = site.key(scope).await;
        let answer = site
            .call_as(&key, "GET", "/api/system/settings", None)
            .await;
        assert_eq!(answer.status, 404, "{scope:?}");
    }
    assert_eq!(get(&site, "/api/system/settings").await.status, 200);
    let boss = site.user("boss", Role::Admin, false, false).await;
    let boss = site.browser(boss.id).await;
    let answer = site.send(boss.request("GET", "/api/system")).await;
    assert_eq!(
        (answer.status, &answer.json()["code"]),
        (404, &json!("not_found"))
    );
    let anonymous = site.send(request("GET", "/api/system")).await;
    assert_eq!(anonymous.status, 401);
}

#[actix_web::test]
async fn lines_of_the_log_are_read_by_number() {
    let site = Site::open().await;
    let ring = site.app.service.log().clone();
    ring.add_for_tests("one");
    ring.add_for_tests("two svc_0123456789");
    let all = get(&site, "/api/system/log").await.json();
    assert_eq!(all["lines"][1]["text"], "two svc_••••");
    assert_eq!((&all["newest"], &all["oldest"]), (&json!(2), &json!(1)));
    let after = get(&site, "/api/system/log?after=1&level=warn")
        .await
        .json();
    assert_eq!(after["lines"], json!([]), "they are of level info");
    let wrong = get(&site, "/api/system/log?level=loud").await;
    assert_eq!(wrong.status, 400);
    assert!(
        wrong.error().contains("error, warn, info"),
        "{}",
        wrong.error()
    );
}

#[actix_web::test]
async fn followers_of_the_log_get_what_they_have_not_seen() {
    let site = Site::open().await;
    // The stream ends at its first wait.
    site.app.platform.closing.cancel();
    let ring = site.app.service.log().clone();
    for text in ["one", "two", "three"] {
        ring.add_for_tests(text);
    }
    let browser = operator(&site).await;
    let follow = browser
        .request("GET", "/api/system/log?limit=1")
        .insert_header(("accept", "text/event-stream"))
        .insert_header(("last-event-id", "1"));
    let answer = site.send(follow).await;
    let text = String::from_utf8(answer.body).unwrap();
    assert!(text.starts_with("id: 2\nevent: line\ndata: {"), "{text}");
    assert!(!text.contains("one"), "{text}");
}

#[actix_web::test]
async fn the_doctor_and_the_settings_are_shown() {
    let site = Site::open().await;
    let report = get(&site, "/api/system/doctor").await.json();
    let expected = json!({"ok": true, "checks": [
        {"check": "disk", "level": "ok", "message": "much", "advice": null},
    ]});
    assert_eq!(report, expected);
    let settings = get(&site, "/api/system/settings").await.json();
    let all = settings["settings"].as_array().unwrap();
    let listen = all.iter().find(|it| it["key"] == "http.listen").unwrap();
    assert_eq!(
        (&listen["value"], &listen["source"]),
        (&json!("0.0.0.0:8080"), &json!("default"))
    );
}

#[actix_web::test]
async fn an_account_is_made_with_its_first_user_and_changes_its_plan() {
    let site = Site::open().await;
    let browser = operator(&site).await;
    let post = async |body: Value| {
        let request = browser.request("POST", "/api/system/accounts");
        site.send(request.set_json(body)).await
    };
    let made = post(json!({"name": " Shop ", "plan": "free", "username": "Ann"})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let made = made.json();
    let (account, url) = (&made["account"], made["welcomeUrl"].as_str().unwrap());
    assert_eq!(
        (&account["name"], &account["plan"]),
        (&json!("Shop"), &json!("free"))
    );
    assert_eq!(
        (&account["users"], &account["own"]),
        (&json!(1), &json!(false))
    );
    assert!(url.contains("/app/welcome#"), "{url}");
    for (body, status, word) in [
        (json!({"name": "shop"}), 409, "shop"),
        (json!({"name": "other", "username": "ann"}), 409, "ann"),
        (
            json!({"name": "other", "plan": "gold"}),
            400,
            "there is no plan `gold`",
        ),
        (json!({}), 400, "name"),
    ] {
        let answer = post(body).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.error().contains(word), "{}", answer.error());
    }
    let id = account["id"].as_str().unwrap();
    let path = format!("/api/system/accounts/{id}");
    let change = async |path: &str, body: Value| {
        site.send(browser.request("PATCH", path).set_json(body))
            .await
    };
    let changed = change(&path, json!({"plan": "pro"})).await;
    assert_eq!(changed.json()["account"]["plan"], "pro", "{changed:?}");
    assert_eq!(change(&path, json!({"plan": "gold"})).await.status, 400);
    let unknown = path.replace(id, "00000000-0000-0000-0000-000000000000");
    assert_eq!(change(&unknown, json!({"plan": "pro"})).await.status, 404);
    let list = get(&site, "/api/system/accounts?limit=1").await.json();
    assert_eq!(list["accounts"][0]["name"], "Shop");
    assert!(list["nextCursor"].is_string() && list["plans"].as_array().unwrap().len() > 1);
    let audit = site.call("GET", "/api/audit?action=account.", None).await;
    let audit = audit.json();
    let entries = audit["entries"].as_array().unwrap();
    let actions: Vec<_> = entries
        .iter()
        .map(|it| it["action"].as_str().unwrap())
        .collect();
    assert_eq!(actions, ["account.plan_changed", "account.created"]);
    assert_eq!(entries[0]["detail"], "from free to pro");
}
