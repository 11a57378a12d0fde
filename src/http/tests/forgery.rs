//! Forged calls (CSRF): a request that another site makes a signed-in browser send changes nothing, on any route.

use actix_web::test::TestRequest;
use serde_json::{Value, json};
use sluice_store::users::Role;

use super::{
    Browser, ORIGIN, PASSWORD, Site, request,
    roles::{Needs, TABLE},
};

const NO_ID: &str = "00000000-0000-0000-0000-000000000000";
/// Lists of an account by an admin's key.
const LISTS: [&str; 10] = [
    "/api/live/inputs",
    "/api/files",
    "/api/folders",
    "/api/keys",
    "/api/playback-keys",
    "/api/delivery-keys",
    "/api/cdn-presets",
    "/api/workflows",
    "/api/webhooks",
    "/api/jobs",
];

/// One of each resource that can be made without workers, by the placeholders of its routes.
pub(super) struct Resources {
    /// Beginning of a path, and the id that follows it.
    ids: Vec<(&'static str, String)>,
    output: String,
}

impl Resources {
    pub(super) async fn make(site: &Site) -> Self {
        let make = async |path: &str, body: Value, pointer: &str| {
            let answer = site.call("POST", path, Some(body)).await;
            let json = answer.json();
            let id = json.pointer(pointer).and_then(Value::as_str);
            id.unwrap_or_else(|| panic!("{path}: {json}")).to_owned()
        };
        let input = site.first.live_input.id.to_string();
        let outputs = format!("/api/live/inputs/{input}/outputs");
        let target = json!({"url": "rtmp://live.example.com/app/key", "enabled": false});
        let output = make(&outputs, target, "/output/id").await;
        let folder = make("/api/folders", json!({"name": "f"}), "/folder/id").await;
        let share = format!("/api/folders/{folder}/share");
        make(&share, json!({}), "/share/token").await;
        let definition =
            json!({"nodes": [{"id": "upload", "data": {"kind": "upload"}}], "edges": []});
        let workflow = json!({"name": "w", "definition": definition});
        let webhook =
            json!({"url": "https://hooks.example.com/x", "eventTypes": ["file.uploaded"]});
        let preset = json!({"name": "small", "params": {"w": 100}});
        let ids = vec![
            ("/api/live/inputs/", input),
            ("/api/folders/", folder),
            ("/api/keys/", make("/api/keys", json!({}), "/key/id").await),
            (
                "/api/playback-keys/",
                make("/api/playback-keys", json!({}), "/key/id").await,
            ),
            (
                "/api/delivery-keys/",
                make("/api/delivery-keys", json!({"name": "d"}), "/key/id").await,
            ),
            (
                "/api/cdn-presets/",
                make("/api/cdn-presets", preset, "/preset/id").await,
            ),
            (
                "/api/workflows/",
                make("/api/workflows", workflow, "/workflow/id").await,
            ),
            (
                "/api/webhooks/",
                make("/api/webhooks", webhook, "/webhook/id").await,
            ),
        ];
        Self { ids, output }
    }

    /// The path with ids of these resources; unchanged when there is no id in it, and with an unknown one for other resources.
    pub(super) fn path(&self, pattern: &str) -> String {
        let id = self.ids.iter().find(|(begin, _)| {
            let rest = pattern.strip_prefix(begin);
            rest.is_some_and(|rest| rest.starts_with("{id}"))
        });
        let path = match id {
            Some((_, id)) => pattern.replace("{id}", id),
            None => pattern.to_owned(),
        };
        Self::unknown(&path.replace("{outputId}", &self.output))
    }

    /// The path with well-formed ids of nothing.
    pub(super) fn unknown(pattern: &str) -> String {
        let mut path = pattern.to_owned();
        for placeholder in ["{id}", "{outputId}", "{runId}", "{deliveryId}"] {
            path = path.replace(placeholder, NO_ID);
        }
        path.replace("{tool}", "resize")
            .replace("{version}", "1")
            .replace("{language}", "en")
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        let ids = self.ids.iter().map(|(_, id)| id.as_str());
        ids.chain([self.output.as_str()])
    }

    /// Contents of the account, as its owner sees them.
    pub(super) async fn seen(&self, site: &Site) -> Vec<Value> {
        let mut seen = Vec::new();
        let of_these = ["/api/live/inputs/{id}/outputs", "/api/folders/{id}/share"];
        let of_these = of_these.map(|path| self.path(path));
        for path in LISTS.into_iter().chain(of_these.iter().map(String::as_str)) {
            let mut answer = site.call("GET", path, None).await.json();
            forget_uses(&mut answer);
            seen.push(answer);
        }
        seen
    }
}

/// Keys note their use a moment later.
fn forget_uses(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("lastUsedAt");
            fields.remove("last_used_at");
            fields.values_mut().for_each(forget_uses);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_uses),
        _ => {}
    }
}

type Forge = fn(&Browser, TestRequest) -> TestRequest;

/// Requests that another site can make a browser send, with the cookie. Those with the token are what a stolen token would need besides.
const FORGERIES: [(&str, Forge); 9] = [
    ("the cookie alone", |_, request| request),
    ("another token", |_, request| {
        request.insert_header(("x-csrf-token", "0".repeat(64)))
    }),
    ("a form", |_, request| {
        request
            .insert_header(("content-type", "application/x-www-form-urlencoded"))
            .set_payload("a=b")
    }),
    ("text that is JSON", |_, request| {
        request
            .insert_header(("content-type", "text/plain"))
            .set_payload("{}")
    }),
    ("another origin", |browser, request| {
        with_token(browser, request).insert_header(("origin", "https://evil.test"))
    }),
    ("an opaque origin", |browser, request| {
        with_token(browser, request).insert_header(("origin", "null"))
    }),
    ("another port of the host", |browser, request| {
        with_token(browser, request).insert_header(("origin", "http://media.test:9090"))
    }),
    ("another site without Origin", |browser, request| {
        with_token(browser, request).insert_header(("sec-fetch-site", "cross-site"))
    }),
    ("a neighbour without Origin", |browser, request| {
        with_token(browser, request).insert_header(("sec-fetch-site", "same-site"))
    }),
];

fn with_token(browser: &Browser, request: TestRequest) -> TestRequest {
    request.insert_header(("x-csrf-token", browser.csrf_token.clone()))
}

fn is_change(method: &str) -> bool {
    !["GET", "OPTIONS"].contains(&method)
}

#[actix_web::test]
async fn no_forged_call_changes_anything_on_any_route() {
    let site = Site::open().await;
    let resources = Resources::make(&site).await;
    let before = resources.seen(&site).await;
    let user = site.user("boss", Role::Admin, true, false).await;
    let browser = site.browser(user.id).await;
    let by_session = TABLE.iter().filter(|(method, _, needs)| {
        is_change(method) && ![Needs::Public, Needs::Address].contains(needs)
    });
    // A session for each, because a session has so many requests a minute.
    for (what, forge) in FORGERIES {
        let browser = site.browser(user.id).await;
        for (method, pattern, _) in by_session.clone() {
            let path = resources.path(pattern);
            let answer = site
                .send(forge(&browser, browser.bare(method, &path)))
                .await;
            assert_eq!(answer.status, 403, "{what}: {method} {path}: {answer:?}");
        }
    }
    assert_eq!(resources.seen(&site).await, before);
    let still = site.send(browser.bare("GET", "/api/session")).await;
    assert_eq!(still.status, 200, "no session ended");
    // The same calls by a page of the service are admitted.
    for (method, pattern, _) in by_session {
        let browser = site.browser(user.id).await;
        let path = resources.path(pattern);
        let answer = site.send(browser.request(method, &path)).await;
        assert!(
            ![401, 403].contains(&answer.status),
            "{method} {path}: {answer:?}"
        );
    }
    assert_ne!(
        resources.seen(&site).await,
        before,
        "the check sees changes"
    );
}

#[actix_web::test]
async fn no_get_changes_anything() {
    let site = Site::open().await;
    site.app.platform.closing.cancel();
    let resources = Resources::make(&site).await;
    let before = resources.seen(&site).await;
    let browser = site.browser(site.user("boss", Role::Admin, true, false).await.id);
    let browser = browser.await;
    for (_, pattern, _) in TABLE.iter().filter(|(method, ..)| *method == "GET") {
        for query in ["", "?_method=DELETE", "?enabled=false&name=x"] {
            let path = format!("{}{query}", resources.path(pattern));
            let get = browser.bare("GET", &path);
            site.send(get.insert_header(("sec-fetch-site", "cross-site")))
                .await;
        }
    }
    assert_eq!(resources.seen(&site).await, before);
}

/// A browser that another site could sign in would work in an account of that site's.
#[actix_web::test]
async fn another_site_cannot_sign_a_browser_in() {
    let site = Site::open().await;
    let sign_in = json!({"username": "admin", "password": PASSWORD});
    let welcome = json!({"code": "2222-2222-2222-2222-2222", "newPassword": "12345678"});
    let code = "2222-2222-2222-2222-2222";
    let look = json!({"code": code});
    let join = json!({"code": code, "name": "eve", "password": "12345678"});
    for (path, body, own_status) in [
        ("/api/session", &sign_in, 201),
        ("/api/session/welcome", &welcome, 410),
        ("/api/invitations/look", &look, 410),
        ("/api/invitations/redeem", &join, 410),
    ] {
        for (name, value) in [
            ("origin", "https://evil.test"),
            ("origin", "null"),
            ("origin", "http://media.test:9090"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            let forged = request("POST", path).insert_header((name, value));
            let answer = site.send(forged.set_json(body)).await;
            assert_eq!(answer.status, 403, "{path} {name} {value}");
            assert_eq!(answer.header("set-cookie"), "");
        }
        for kind in ["application/x-www-form-urlencoded", "text/plain"] {
            let form = request("POST", path)
                .insert_header(("content-type", kind))
                .set_payload(body.to_string());
            assert_eq!(site.send(form).await.status, 415, "{path} {kind}");
        }
        let own = request("POST", path)
            .insert_header(("origin", ORIGIN))
            .insert_header(("sec-fetch-site", "same-origin"));
        assert_eq!(site.send(own.set_json(body)).await.status, own_status);
    }
}
