//! The audit log: each change by a session or an admin's key is one entry on every route, and no secret is in it.

use serde_json::{Value, json};
use sluice_store::{api_keys::Scope, users::Role};
use uuid::Uuid;

use super::{Answer, PASSWORD, Site, forgery::Resources, request};
use crate::{
    application::{
        audit::{Author, PendingEntry},
        caller::{Credential, Identity},
    },
    http::audit::actions::{Noted, TABLE, Target},
};

/// Entries of the log, newest first.
async fn entries(site: &Site) -> Vec<Value> {
    let log = site.call("GET", "/api/audit?limit=100", None).await.json();
    log["entries"].as_array().unwrap().clone()
}

/// Texts of an answer that are secrets by their form or the name of their field.
fn secrets(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let is_secret = ["token", "secret", "streamKey", "csrfToken", "passphrase"]
                    .contains(&name.as_str());
                match value.as_str() {
                    Some(text) if is_secret && text.len() > 8 => found.push(text.to_owned()),
                    _ => secrets(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| secrets(item, found)),
        Value::String(text) => {
            if let Some((_, code)) = text
                .split_once("/app/")
                .and_then(|(_, it)| it.split_once('#'))
            {
                found.push(code.to_owned());
            }
            if text.starts_with("svc_") || text.starts_with("whsec_") {
                found.push(text.clone());
            }
        }
        _ => {}
    }
}

/// A body with which a route does something.
fn body(path: &str, resources: &Resources) -> Value {
    match path {
        "/api/session/password" => {
            json!({"currentPassword": PASSWORD, "newPassword": "another battery"})
        }
        "/api/live/inputs/{id}/outputs" => {
            json!({"url": "rtmp://live.example.com/app/target-key", "enabled": false})
        }
        "/api/live/inputs/{id}/outputs/{outputId}" => {
            json!({"url": "rtmp://live.example.com/app/next-key"})
        }
        "/api/folders" | "/api/workflows" => json!({
            "name": "made by the session",
            "definition": {"nodes": [{"id": "upload", "data": {"kind": "upload"}}], "edges": []},
        }),
        "/api/folders/path" => json!({"path": "a/b"}),
        "/api/cdn-presets" => json!({"name": "tiny", "params": {"w": 10}}),
        "/api/delivery-keys" => json!({"name": "site"}),
        "/api/webhooks" => json!({
            "url": "https://hooks.example.com/path-secret", "eventTypes": ["file.uploaded"],
        }),
        "/api/uploads" => json!({"filename": "a.png", "contentType": "image/png", "size": 10}),
        "/api/files/bulk" => json!({"ids": [resources.ids().next()], "action": "delete"}),
        "/api/cdn-purge" => json!({"all": true}),
        _ => json!({}),
    }
}

#[actix_web::test]
async fn every_change_of_a_session_is_one_entry_without_secrets() {
    let site = Site::open().await;
    site.app.platform.closing.cancel();
    let resources = Resources::make(&site).await;
    let user = site.user("boss", Role::Admin, true, false).await;
    let mut found = vec![
        "target-key".to_owned(),
        "path-secret".into(),
        PASSWORD.into(),
    ];
    let mut seen: Vec<&str> = Vec::new();
    let mut before = entries(&site).await;
    // Deletions last, so that there is something to change.
    let (deleting, others): (Vec<_>, Vec<_>) =
        TABLE.iter().partition(|(method, ..)| *method == "DELETE");
    for (method, pattern, noted) in others.into_iter().chain(deleting) {
        if !pattern.starts_with("/api/") {
            continue;
        }
        // A session for each: some end the session that asks.
        let browser = site.browser(user.id).await;
        let path = resources.path(pattern);
        let asked = browser
            .request(method, &path)
            .set_json(body(pattern, &resources));
        let answer: Answer = site.send(asked).await;
        let is_success = (200..300).contains(&answer.status);
        if is_success && answer.header("content-type") == "application/json" {
            secrets(&answer.json(), &mut found);
        }
        let after = entries(&site).await;
        let known = before.first().map(|entry| entry["id"].clone());
        let newest = after
            .iter()
            .take_while(|entry| Some(&entry["id"]) != known.as_ref());
        let newest: Vec<&Value> = newest.collect();
        match noted {
            // No upload becomes a file here.
            Noted::Entry {
                target: Target::StoredFile,
                ..
            } => assert!(newest.is_empty(), "{method} {path}: {newest:?}"),
            Noted::Entry { action, .. } if is_success => {
                assert_eq!(newest.len(), 1, "{method} {path}: {newest:?}");
                let entry = newest[0];
                assert_eq!(entry["action"], *action, "{method} {path}");
                assert_eq!(
                    entry["actor"],
                    json!({"kind": "user", "id": user.id, "name": "boss"})
                );
                assert_eq!(entry["network"], "203.0.113.9");
                seen.push(action);
            }
            Noted::InTransaction if is_success => {
                assert_eq!(newest.len(), 1, "{method} {path}: {newest:?}");
            }
            _ => assert!(newest.is_empty(), "{method} {path}: {newest:?}"),
        }
        before = after;
    }
    // The check is worth something: most of what needs no worker was done.
    for action in [
        "api_key.created",
        "api_key.revoked",
        "live.input.created",
        "live.input.changed",
        "live.input.deleted",
        "live.output.created",
        "folder.created",
        "folder.deleted",
        "share.created",
        "delivery_key.created",
        "preset.deleted",
        "workflow.saved",
        "workflow.secret_rotated",
        "webhook.created",
        "webhook.deleted",
        "session.ended",
    ] {
        assert!(seen.contains(&action), "{action} was not tried: {seen:?}");
    }
    assert!(found.len() > 8, "{found:?}");
    let log = site.call("GET", "/api/audit?limit=100", None).await;
    let text = String::from_utf8(log.body).unwrap();
    for secret in found {
        assert!(!text.contains(&secret), "{secret} is in {text}");
    }
}

#[actix_web::test]
async fn entries_name_what_was_changed() {
    let site = Site::open().await;
    let made = site
        .call("POST", "/api/folders", Some(json!({"name": "Spring"})))
        .await;
    let folder = made.json()["folder"]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/folders/{folder}");
    assert_eq!(site.call("DELETE", &path, None).await.status, 200);
    let log = entries(&site).await;
    let target = json!({"kind": "folder", "id": folder, "name": "Spring"});
    assert_eq!(
        (&log[0]["action"], &log[0]["target"]),
        (&json!("folder.deleted"), &target),
        "named although it is gone"
    );
    assert_eq!(
        (&log[1]["action"], &log[1]["target"]),
        (&json!("folder.created"), &target)
    );
    assert_eq!(log[0]["actor"]["kind"], "key");
}

#[actix_web::test]
async fn another_spelling_of_a_path_is_noted_too() {
    let site = Site::open().await;
    let made = site.call("POST", "/api/%66olders", Some(json!({"name": "x"})));
    let made = made.await;
    assert_eq!(made.status, 201, "the router takes it");
    let folder = made.json()["folder"]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/folders/{}", folder.replace('-', "%2D"));
    assert_eq!(site.call("DELETE", &path, None).await.status, 200);
    let log = entries(&site).await;
    let actions: Vec<_> = log.iter().map(|entry| &entry["action"]).collect();
    assert_eq!(actions, ["folder.deleted", "folder.created"]);
    assert_eq!(log[0]["target"]["id"], folder);
}

#[actix_web::test]
async fn programs_and_failures_leave_no_entry() {
    let site = Site::open().await;
    let writer = site.key(Scope::Write).await;
    let new = || Some(json!({"name": "x"}));
    let made = site.call_as(&writer, "POST", "/api/folders", new()).await;
    assert_eq!(made.status, 201);
    let failed = site.call("POST", "/api/folders", Some(json!({}))).await;
    assert_eq!(failed.status, 400);
    let viewer = site.user("viewer", Role::Viewer, false, false).await;
    let browser = site.browser(viewer.id).await;
    let rejected = browser.request("POST", "/api/folders").set_json(new());
    assert_eq!(site.send(rejected).await.status, 403);
    assert_eq!(entries(&site).await, [] as [Value; 0]);
    let anonymous = request("POST", "/api/folders").set_json(new());
    assert_eq!(site.send(anonymous).await.status, 401);
    assert_eq!(entries(&site).await, [] as [Value; 0]);
}

#[actix_web::test]
async fn a_client_that_leaves_is_in_the_log_all_the_same() {
    let site = Site::open().await;
    let (store, key) = (&site.app.platform.store, Uuid::now_v7());
    let identity = Identity {
        account_id: site.first.live_input.account_id,
        plan: "free".into(),
        is_suspended: false,
        scope: Scope::Admin,
        credential: Credential::Key(key),
    };
    let author = Author::behind(&identity, "203.0.113.9".parse().ok());
    let begin = |action| PendingEntry::new(store, author.entry_without_target(action));
    begin("folder.failed").forget();
    // The request's future is dropped while its handler runs.
    drop(begin("folder.created"));
    super::eventually("the entry is written", async || {
        !entries(&site).await.is_empty()
    })
    .await;
    let log = entries(&site).await;
    assert_eq!(log.len(), 1);
    assert_eq!(log[0]["action"], "folder.created");
    assert_eq!(log[0]["detail"], "the client left before the answer");
}
