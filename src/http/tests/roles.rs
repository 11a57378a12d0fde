//! Roles and permissions: every route with every kind of user, against one table.

use serde_json::json;
use sluice_store::users::Role;

use super::{Answer, Browser, Site, forgery::Resources};
use crate::http::ROUTES;

/// Permission that a route needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// None.
    Public,
    /// The address or its token is the permission.
    Address,
    /// A session of any role: it is about the session's own user.
    Session,
    Read,
    Write,
    Admin,
    /// An operator, whatever the role.
    Operator,
    /// An operator; to all others the route is not there.
    Installation,
}

use Needs::{Address, Admin, Installation, Operator, Public, Read, Session, Write};

/// A route that is added gets its line here.
pub(super) const TABLE: &[(&str, &str, Needs)] = &[
    ("GET", "/api/session", Session),
    ("POST", "/api/session", Public),
    ("DELETE", "/api/session", Session),
    ("POST", "/api/session/welcome", Public),
    ("PATCH", "/api/session/password", Session),
    ("GET", "/api/sessions", Session),
    ("DELETE", "/api/sessions/{id}", Session),
    ("GET", "/api/keys", Admin),
    ("POST", "/api/keys", Admin),
    ("DELETE", "/api/keys/{id}", Admin),
    ("GET", "/api/live/inputs", Read),
    ("POST", "/api/live/inputs", Write),
    ("GET", "/api/live/inputs/{id}", Read),
    ("PATCH", "/api/live/inputs/{id}", Write),
    ("DELETE", "/api/live/inputs/{id}", Write),
    ("POST", "/api/live/inputs/{id}/rotate-key", Write),
    ("GET", "/api/live/inputs/{id}/health", Read),
    ("GET", "/api/live/inputs/{id}/broadcasts", Read),
    ("GET", "/api/live/inputs/{id}/recordings", Read),
    ("POST", "/api/live/inputs/{id}/clips", Write),
    ("GET", "/api/live/inputs/{id}/outputs", Read),
    ("POST", "/api/live/inputs/{id}/outputs", Write),
    ("GET", "/api/live/inputs/{id}/outputs/{outputId}", Read),
    ("PATCH", "/api/live/inputs/{id}/outputs/{outputId}", Write),
    ("DELETE", "/api/live/inputs/{id}/outputs/{outputId}", Write),
    ("POST", "/api/live/inputs/{id}/playback-token", Write),
    ("GET", "/api/users", Admin),
    ("PATCH", "/api/users/{id}", Admin),
    ("DELETE", "/api/users/{id}", Admin),
    ("POST", "/api/users/{id}/reset-link", Admin),
    ("GET", "/api/invitations", Admin),
    ("POST", "/api/invitations", Admin),
    ("POST", "/api/invitations/look", Public),
    ("POST", "/api/invitations/redeem", Public),
    ("DELETE", "/api/invitations/{id}", Admin),
    ("GET", "/api/audit", Admin),
    ("POST", "/api/live/inputs/{id}/reveal-key", Write),
    ("POST", "/api/live/inputs/{id}/end", Write),
    ("GET", "/api/live/inputs/{id}/health/history", Read),
    ("GET", "/api/live/inputs/{id}/connections", Read),
    ("POST", "/api/files/bulk", Write),
    ("POST", "/api/files/zip", Read),
    ("GET", "/api/files/{id}/preview", Read),
    ("POST", "/api/folders/path", Write),
    ("GET", "/api/shares", Read),
    ("PATCH", "/api/delivery-keys/{id}", Write),
    ("GET", "/api/usage/history", Read),
    ("GET", "/api/catalogue", Read),
    ("POST", "/api/webhooks/{id}/probe", Write),
    ("GET", "/api/events/{id}", Read),
    ("GET", "/api/changes", Read),
    ("GET", "/api/system", Installation),
    ("GET", "/api/system/log", Installation),
    ("GET", "/api/system/doctor", Installation),
    ("GET", "/api/system/settings", Installation),
    ("GET", "/api/system/accounts", Installation),
    ("POST", "/api/system/accounts", Installation),
    ("PATCH", "/api/system/accounts/{id}", Installation),
    ("GET", "/api/playback-keys", Admin),
    ("POST", "/api/playback-keys", Admin),
    ("DELETE", "/api/playback-keys/{id}", Admin),
    ("GET", "/api/files", Read),
    ("POST", "/api/files", Write),
    ("GET", "/api/files/search", Read),
    ("GET", "/api/files/{id}", Read),
    ("PATCH", "/api/files/{id}", Write),
    ("DELETE", "/api/files/{id}", Write),
    ("GET", "/api/files/{id}/lineage", Read),
    ("GET", "/api/folders", Read),
    ("POST", "/api/folders", Write),
    ("GET", "/api/folders/{id}", Read),
    ("PATCH", "/api/folders/{id}", Write),
    ("DELETE", "/api/folders/{id}", Write),
    ("GET", "/api/folders/{id}/zip", Read),
    ("GET", "/api/folders/{id}/share", Read),
    ("POST", "/api/folders/{id}/share", Write),
    ("DELETE", "/api/folders/{id}/share", Write),
    ("GET", "/api/share/folder/{token}", Address),
    ("POST", "/api/share/folder/{token}/unlock", Address),
    ("GET", "/api/share/folder/{token}/zip", Address),
    ("GET", "/api/share/folder/{token}/files/{fileId}", Address),
    (
        "GET",
        "/api/share/folder/{token}/files/{fileId}/preview",
        Address,
    ),
    ("GET", "/api/uploads", Read),
    ("POST", "/api/uploads", Write),
    ("DELETE", "/api/uploads/{id}", Write),
    ("POST", "/api/uploads/complete", Write),
    ("PUT", "/api/uploads/{id}/content", Address),
    ("OPTIONS", "/api/uploads/{id}/content", Public),
    ("POST", "/api/uploads/tus", Write),
    ("OPTIONS", "/api/uploads/tus", Public),
    ("GET", "/api/uploads/tus/{id}", Read),
    ("PATCH", "/api/uploads/tus/{id}", Write),
    ("DELETE", "/api/uploads/tus/{id}", Write),
    ("POST", "/api/uploads/tus/{id}", Write),
    ("OPTIONS", "/api/uploads/tus/{id}", Public),
    ("GET", "/api/downloads/{token}", Address),
    ("GET", "/api/delivery-keys", Read),
    ("POST", "/api/delivery-keys", Write),
    ("GET", "/api/delivery-keys/alias", Read),
    ("DELETE", "/api/delivery-keys/{id}", Write),
    ("GET", "/api/cdn-presets", Read),
    ("POST", "/api/cdn-presets", Write),
    ("GET", "/api/cdn-presets/{id}", Read),
    ("PATCH", "/api/cdn-presets/{id}", Write),
    ("DELETE", "/api/cdn-presets/{id}", Write),
    ("POST", "/api/cdn-purge", Write),
    ("GET", "/api/cdn/stats", Read),
    ("POST", "/api/convert", Write),
    ("POST", "/api/compress", Write),
    ("POST", "/api/media/{tool}", Write),
    ("POST", "/api/files/{id}/tools", Write),
    ("GET", "/api/jobs", Read),
    ("POST", "/api/jobs", Write),
    ("GET", "/api/jobs/{id}", Read),
    ("DELETE", "/api/jobs/{id}", Write),
    ("GET", "/api/jobs/{id}/events", Read),
    ("GET", "/api/usage", Read),
    ("GET", "/api/workflows", Read),
    ("POST", "/api/workflows", Write),
    ("POST", "/api/workflows/lint", Read),
    ("POST", "/api/workflows/dry-run", Read),
    ("GET", "/api/workflows/runs", Read),
    ("GET", "/api/workflows/runs/{runId}", Read),
    ("POST", "/api/workflows/runs/{runId}/retry", Write),
    ("POST", "/api/workflows/runs/{runId}/cancel", Write),
    ("GET", "/api/workflows/runs/{runId}/events", Read),
    ("GET", "/api/workflows/{id}", Read),
    ("PATCH", "/api/workflows/{id}", Write),
    ("DELETE", "/api/workflows/{id}", Write),
    ("GET", "/api/workflows/{id}/run", Read),
    ("POST", "/api/workflows/{id}/run", Write),
    ("POST", "/api/workflows/{id}/run-file", Write),
    ("POST", "/api/workflows/{id}/runs/{runId}/rerun", Write),
    ("POST", "/api/workflows/{id}/rotate-secret", Write),
    ("GET", "/api/workflows/{id}/statistics", Read),
    ("GET", "/api/workflows/{id}/versions", Read),
    ("GET", "/api/workflows/{id}/versions/{version}", Read),
    ("GET", "/api/video/streams", Read),
    ("POST", "/api/video/streams", Write),
    ("GET", "/api/video/streams/{id}", Read),
    ("PATCH", "/api/video/streams/{id}", Write),
    ("DELETE", "/api/video/streams/{id}", Write),
    ("POST", "/api/video/streams/{id}/captions", Write),
    (
        "DELETE",
        "/api/video/streams/{id}/captions/{language}",
        Write,
    ),
    ("POST", "/api/video/streams/{id}/playback-token", Write),
    ("GET", "/api/video/streams/{id}/events", Read),
    ("GET", "/api/webhooks", Read),
    ("POST", "/api/webhooks", Write),
    ("GET", "/api/webhooks/deliveries", Read),
    ("GET", "/api/webhooks/deliveries/{id}", Read),
    ("POST", "/api/webhooks/deliveries/{deliveryId}/retry", Write),
    ("GET", "/api/webhooks/{id}", Read),
    ("PATCH", "/api/webhooks/{id}", Write),
    ("DELETE", "/api/webhooks/{id}", Write),
    ("POST", "/api/webhooks/{id}/rotate-secret", Write),
    ("POST", "/api/webhooks/{id}/test", Write),
    ("POST", "/api/webhooks/{id}/recover", Write),
    ("GET", "/api/events", Read),
    ("GET", "/api/events/stream", Read),
    ("GET", "/healthz", Public),
    ("GET", "/readyz", Public),
    ("GET", "/metrics", Operator),
    ("GET", "/openapi.json", Public),
    ("GET", "/", Public),
    ("GET", "/app", Public),
    ("GET", "/docs", Public),
    ("GET", "/plans", Public),
    ("GET", "/assets/{file}", Public),
    ("POST", "/live/v1/{playback_id}/whep", Address),
    ("GET", "/live/v1/{playback_id}/whep", Address),
    ("OPTIONS", "/live/v1/{playback_id}/whep", Public),
    ("POST", "/live/whip", Address),
    ("OPTIONS", "/live/whip", Public),
    ("POST", "/live/whip/{stream}", Address),
    ("OPTIONS", "/live/whip/{stream}", Public),
    ("GET", "/live/webrtc/{session}", Address),
    ("PATCH", "/live/webrtc/{session}", Address),
    ("DELETE", "/live/webrtc/{session}", Address),
    ("OPTIONS", "/live/webrtc/{session}", Public),
    ("GET", "/embed/{file}", Public),
    ("GET", "/live/{playbackId}", Public),
    ("GET", "/live/publish/{inputSlug}", Public),
    ("GET", "/video/{playbackId}", Public),
    ("GET", "/share/folder/{token}", Address),
    ("POST", "/share/folder/{token}", Address),
];

/// The users of the table, and what they reach.
const USERS: [(&str, Role, bool, &[Needs]); 4] = [
    ("viewer", Role::Viewer, false, &[Public, Session, Read]),
    (
        "member",
        Role::Member,
        false,
        &[Public, Session, Read, Write],
    ),
    (
        "boss",
        Role::Admin,
        false,
        &[Public, Session, Read, Write, Admin],
    ),
    (
        "operator",
        Role::Viewer,
        true,
        &[Public, Session, Read, Operator, Installation],
    ),
];

fn is_rejected(answer: &Answer) -> bool {
    answer.status == 401 || answer.status == 403
}

#[test]
fn every_route_is_in_the_table_once() {
    let routes = ROUTES.iter().flat_map(|(path, methods)| {
        let methods = methods.iter();
        methods.map(move |method| (*method, *path))
    });
    let mut routes: Vec<_> = routes.collect();
    let mut listed: Vec<_> = TABLE
        .iter()
        .map(|(method, path, _)| (*method, *path))
        .collect();
    routes.sort_unstable();
    listed.sort_unstable();
    let missing: Vec<_> = routes.iter().filter(|it| !listed.contains(it)).collect();
    assert!(missing.is_empty(), "not in the table: {missing:?}");
    assert_eq!(listed, routes, "in the table twice, or no route");
}

#[actix_web::test]
async fn each_role_reaches_what_the_table_says() {
    let site = Site::open().await;
    // Streams end at once.
    site.app.platform.closing.cancel();
    for (name, role, is_operator, reached) in USERS {
        let user = site.user(name, role, is_operator, false).await;
        for (method, path, needs) in TABLE {
            if [Address, Public].contains(needs) {
                continue;
            }
            // Some routes end the session that asks.
            let browser = site.browser(user.id).await;
            let path = Resources::unknown(path);
            let answer = site.send(browser.request(method, &path)).await;
            let expected = !reached.contains(needs);
            if *needs == Installation && expected {
                assert_eq!(answer.status, 404, "{name}: {method} {path}");
                continue;
            }
            assert_eq!(
                is_rejected(&answer),
                expected,
                "{name}: {method} {path}: {answer:?}"
            );
            if expected {
                assert_eq!(answer.status, 403, "{name}: {method} {path}");
                assert_eq!(answer.json()["code"], "insufficient_scope");
            }
        }
    }
}

#[actix_web::test]
async fn another_account_sees_and_changes_nothing() {
    let site = Site::open().await;
    site.app.platform.closing.cancel();
    let resources = Resources::make(&site).await;
    let before = resources.seen(&site).await;
    let user = site.user("stranger", Role::Admin, false, true).await;
    for (method, path, needs) in TABLE {
        if ![Read, Write, Admin, Operator, Installation].contains(needs) {
            continue;
        }
        let browser = site.browser(user.id).await;
        let asked = resources.path(path);
        let request = browser.request(method, &asked);
        let request = match *method {
            "GET" => request,
            _ => request.set_json(json!({})),
        };
        let answer = site.send(request).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        for id in resources.ids() {
            // An answer may repeat what was asked for.
            assert!(
                asked.contains(id) || !text.contains(id),
                "{method} {path}: {text}"
            );
        }
        if asked != *path || [Operator, Installation].contains(needs) {
            let status = answer.status;
            assert!((400..500).contains(&status), "{method} {path}: {answer:?}");
        }
        if asked != *path && *method == "GET" {
            assert_eq!(answer.status, 404, "{method} {path}: {answer:?}");
        }
    }
    assert_eq!(resources.seen(&site).await, before);
}

#[actix_web::test]
async fn another_role_counts_from_the_next_request() {
    let site = Site::open().await;
    let user = site.user("ann", Role::Member, false, false).await;
    let browser: Browser = site.browser(user.id).await;
    let make = async || {
        let request = browser.request("POST", "/api/folders");
        let answer = site.send(request.set_json(json!({"name": "x"}))).await;
        (answer.status, answer.error())
    };
    assert_eq!(make().await.0, 201);
    let store = &site.app.platform.store;
    let set = store.write(move |tx| {
        Box::pin(async move {
            sluice_store::users::set_role(tx, user.id, Role::Viewer, None, sluice_store::now_ms())
                .await
        })
    });
    set.await.unwrap();
    let (status, error) = make().await;
    assert_eq!(status, 403);
    assert!(error.contains("member or admin"), "{error}");
}
