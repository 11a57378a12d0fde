//! Rules of every path: errors as JSON, methods, bodies, request ids, operations.

use std::{
    collections::HashSet,
    io::Write,
    sync::{Arc, atomic::Ordering},
};

use parking_lot::Mutex;
use serde_json::json;
use sluice_store::api_keys::Scope;

use super::{Site, request};
use crate::{
    application::context::Stage,
    config::Plan,
    http::{ROUTES, openapi},
};

#[actix_web::test]
async fn errors_are_json_on_every_path() {
    let site = Site::open().await;
    let key = site.first.api_key.expose();
    let cases = [
        ("GET", "/nowhere", 404, "path not found"),
        ("GET", "/api/nowhere", 404, "path not found"),
        ("POST", "/live/v1/pb_x/y/z/too/deep", 404, "path not found"),
        ("GET", "/assets/nothing.js", 404, "asset not found"),
        ("GET", "/assets/../player.html", 404, "not found"),
        ("GET", "/assets/..%2Fplayer.html", 404, "not found"),
        ("GET", "/api/live/inputs/not-a-uuid", 404, "id not found"),
        (
            "GET",
            "/api/live/inputs/00000000-0000-0000-0000-000000000000",
            404,
            "live input not found",
        ),
        (
            "PUT",
            "/api/live/inputs",
            405,
            "PUT is not allowed here; allowed: GET, POST, HEAD",
        ),
        (
            "DELETE",
            "/healthz",
            405,
            "DELETE is not allowed here; allowed: GET, HEAD",
        ),
        (
            "GET",
            "/api/live/inputs?limit=0",
            400,
            "limit must be 1 to 100, got `0`",
        ),
    ];
    for (method, path, status, error) in cases {
        let answer = site.call_as(key, method, path, None).await;
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        assert_eq!(
            answer.header("content-type"),
            "application/json",
            "{method} {path}"
        );
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert!(
            answer.error().contains(error),
            "{method} {path}: {}",
            answer.error()
        );
        if status == 405 {
            assert!(
                error.ends_with(answer.header("allow")),
                "{path}: {}",
                answer.header("allow")
            );
        }
    }
}

#[actix_web::test]
async fn bodies_are_bounded_and_typed() {
    let site = Site::open_with(|config| config.http.max_json = bytesize::ByteSize::kib(2)).await;
    let bearer = (
        "authorization",
        format!("Bearer {}", site.first.api_key.expose()),
    );
    let large = format!(r#"{{"name":"{}"}}"#, "x".repeat(4000));
    type Headers = &'static [(&'static str, &'static str)];
    let cases: [(&str, Headers, u16, &str); 8] = [
        (
            "{",
            &[("content-type", "application/json")],
            400,
            "malformed JSON",
        ),
        (
            "[]",
            &[("content-type", "application/json")],
            400,
            "must be a JSON object",
        ),
        (
            r#"{"name":5}"#,
            &[("content-type", "application/json; charset=utf-8")],
            400,
            "name: invalid type",
        ),
        (
            "a=b",
            &[("content-type", "application/x-www-form-urlencoded")],
            415,
            "application/json",
        ),
        ("{}", &[], 415, "application/json"),
        (
            &large,
            &[("content-type", "application/json")],
            413,
            "http.max_json",
        ),
        (
            "{}",
            &[
                ("content-type", "application/json"),
                ("content-encoding", "br"),
            ],
            415,
            "Content-Encoding",
        ),
        (
            "{}",
            &[
                ("content-type", "application/json"),
                ("content-encoding", "gzip, identity"),
            ],
            415,
            "Content-Encoding",
        ),
    ];
    for (body, headers, status, error) in cases {
        let mut request = request("POST", "/api/live/inputs")
            .insert_header(bearer.clone())
            .set_payload(body.to_owned());
        for header in headers {
            request = request.append_header(*header);
        }
        let answer = site.send(request).await;
        assert_eq!(answer.status, status, "{body:.20} {headers:?}");
        assert!(answer.error().contains(error), "{}", answer.error());
    }
    let plain = request("POST", "/api/live/inputs")
        .insert_header(bearer)
        .insert_header(("content-encoding", "identity"));
    assert_eq!(site.send(plain).await.status, 201);
}

#[actix_web::test]
async fn a_panic_is_an_answer_without_detail() {
    let site = Site::open().await;
    site.live.panics.store(true, Ordering::Relaxed);
    let answer = site.call("GET", "/api/live/inputs", None).await;
    assert_eq!(
        (answer.status, answer.json()),
        (500, json!({"error": "internal error"}))
    );
    assert!(!answer.header("x-request-id").is_empty());
    site.live.panics.store(false, Ordering::Relaxed);
    assert_eq!(site.call("GET", "/api/live/inputs", None).await.status, 200);
}

#[actix_web::test]
async fn get_routes_answer_head() {
    let site = Site::open().await;
    // Streams end at once.
    site.app.platform.closing.cancel();
    let paths = ROUTES
        .iter()
        .filter(|(path, methods)| methods.contains(&"GET") && !path.contains('{'));
    for (path, _) in paths {
        let get = site.call("GET", path, None).await.status;
        let head = site.call("HEAD", path, None).await.status;
        assert_eq!(get, head, "{path}");
    }
}

#[actix_web::test]
async fn request_ids_are_kept_or_made() {
    let site = Site::open().await;
    let given = request("GET", "/healthz").insert_header(("x-request-id", "job-7"));
    assert_eq!(site.send(given).await.header("x-request-id"), "job-7");
    let odd = request("GET", "/healthz").insert_header(("x-request-id", "a b"));
    assert_eq!(site.send(odd).await.header("x-request-id").len(), 32);
    assert_eq!(
        site.send(request("GET", "/nowhere"))
            .await
            .header("x-request-id")
            .len(),
        32
    );
}

#[test]
fn every_route_is_described() {
    let document = serde_json::to_value(openapi()).unwrap();
    assert_eq!(
        (&document["openapi"], &document["info"]["version"]),
        (&json!("3.1.0"), &json!("1.0.0"))
    );
    let mut names = HashSet::new();
    for (path, methods) in ROUTES {
        for method in *methods {
            let operation = &document["paths"][path][method.to_ascii_lowercase()];
            assert!(operation.is_object(), "{method} {path} is not described");
            let name = operation["operationId"].as_str().unwrap().to_owned();
            assert!(
                names.insert(name),
                "{method} {path}: its operationId is taken"
            );
            let responses = operation["responses"].as_object().unwrap();
            assert!(
                responses
                    .values()
                    .all(|response| response["description"].is_string()),
                "{method} {path}"
            );
        }
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            let default = property.get("default");
            assert_ne!(default, Some(&json!(null)), "{name}.{field}");
        }
    }
    let described: usize = document["paths"]
        .as_object()
        .unwrap()
        .values()
        .map(|item| item.as_object().unwrap().len())
        .sum();
    let in_table: usize = ROUTES.iter().map(|(_, methods)| methods.len()).sum();
    let by_themselves = document["paths"]
        .as_object()
        .unwrap()
        .keys()
        .filter(|path| {
            let beside_the_table = ["/live/v1/", "/video/v1/", "/cdn/v1/", "/mcp", "/app/"];
            let in_table = ROUTES.iter().any(|(it, _)| it == path);
            !in_table && beside_the_table.iter().any(|it| path.starts_with(it))
        })
        .count();
    assert_eq!(
        described,
        in_table + by_themselves,
        "something is described that is no route"
    );
    assert!(by_themselves >= 8);
    let text = document.to_string();
    for reference in text.split("\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(
            document["components"]["schemas"][name].is_object(),
            "{name} is not described"
        );
    }
}

/// Checks the parts of the document that generated clients and people read.
#[test]
fn the_document_names_schemes_tags_bodies_and_errors() {
    let document = serde_json::to_value(openapi()).unwrap();
    let schemes = document["components"]["securitySchemes"]
        .as_object()
        .unwrap();
    let names: HashSet<&str> = schemes.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        HashSet::from(["bearerAuth", "apiKeyAuth", "session"])
    );

    let tags: Vec<&str> = document["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| tag["name"].as_str().unwrap())
        .collect();
    let place = |name: &str| tags.iter().position(|tag| *tag == name).unwrap();
    assert!(place("keys") < place("live") && place("live") < place("playback"));
    assert!(place("files") < place("delivery") && place("delivery") < place("workflows"));
    assert_eq!(tags.last(), Some(&"operations"));
    let mut used = HashSet::new();

    let operations = document["paths"].as_object().unwrap().iter();
    let operations = operations.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (path, method, operation))
    });
    for (path, method, operation) in operations {
        let tag = operation["tags"][0].as_str().unwrap();
        assert!(tags.contains(&tag), "{method} {path}: {tag} is not listed");
        used.insert(tag);
        let parameters = operation["parameters"].as_array().cloned();
        let parameters = parameters.unwrap_or_default();
        let security = operation["security"].as_array().unwrap();
        for scheme in security
            .iter()
            .flat_map(|one| one.as_object().unwrap().keys())
        {
            assert!(names.contains(scheme.as_str()), "{method} {path}: {scheme}");
        }
        let takes_session = security.iter().any(|one| one.get("session").is_some());
        let has_csrf = parameters
            .iter()
            .any(|one| one["name"] == "X-CSRF-Token" && one["in"] == "header");
        assert_eq!(
            has_csrf,
            takes_session && method != "get",
            "{method} {path}"
        );
        let has_query = parameters.iter().any(|one| one["in"] == "query");
        if path.starts_with("/api/") || has_query || operation.get("requestBody").is_some() {
            let rejection = &operation["responses"]["400"];
            assert!(
                rejection.is_object(),
                "{method} {path} does not describe 400"
            );
        }
    }
    assert_eq!(used.len(), tags.len(), "a listed tag has no operation");

    let shown = &document["paths"]["/api/files/{id}"]["get"]["responses"]["200"]["content"];
    let reference = shown["application/octet-stream"]["schema"]["$ref"]
        .as_str()
        .unwrap();
    let schema = document.pointer(reference.trim_start_matches('#')).unwrap();
    assert_eq!(
        (&schema["type"], &schema["format"]),
        (&json!("string"), &json!("binary"))
    );
    assert!(shown["application/json"]["schema"].is_object());
    let search = &document["paths"]["/api/files/search"]["get"]["parameters"][0];
    assert_eq!(
        (&search["name"], &search["required"]),
        (&json!("q"), &json!(true))
    );
    let whep = &document["paths"]["/live/v1/{playback_id}/whep"]["post"];
    assert!(whep["responses"]["201"]["content"]["application/sdp"].is_object());
    let quality =
        document["paths"]["/cdn/v1/{deliveryKey}/{fileId}"]["get"]["parameters"].to_string();
    assert!(quality.contains("auto:best"), "{quality}");
    let tools = document["paths"]["/api/media/{tool}"]["post"]["description"].to_string();
    assert!(tools.contains("bottom-right"), "{tools}");
    let captions = &document["components"]["schemas"]["CaptionRequest"]["properties"];
    assert!(captions["content"].is_object());
}

#[actix_web::test]
async fn pages_have_a_policy_and_a_tag() {
    let site = Site::open().await;
    let player = format!("/live/{}", site.first.live_input.playback_id);
    for path in ["/docs", &player] {
        let page = site.send(request("GET", path)).await;
        assert_eq!(
            (page.status, page.header("content-type")),
            (200, "text/html; charset=utf-8")
        );
        assert!(
            page.header("content-security-policy")
                .contains("script-src 'self';"),
            "{path}"
        );
        let again =
            request("GET", path).insert_header(("if-none-match", page.header("etag").to_owned()));
        assert_eq!(site.send(again).await.status, 304);
    }
    let document = site.send(request("GET", "/openapi.json")).await;
    assert_eq!(document.json()["info"]["title"], "Sluice");
}

#[actix_web::test]
async fn the_page_of_plans_has_the_numbers_of_the_settings() {
    let site = Site::open_with(|config| {
        let plan = config.plans.get_mut("free").unwrap();
        plan.operations_per_month = 1_234;
        config.plans.insert("house".to_owned(), Plan::default());
    })
    .await;
    let page = site.send(request("GET", "/plans")).await;
    assert_eq!(
        (page.status, page.header("content-type")),
        (200, "text/html; charset=utf-8")
    );
    assert!(
        page.header("content-security-policy")
            .contains("default-src 'none'")
    );
    let html = String::from_utf8(page.body).unwrap();
    let place = |words: &str| {
        html.find(words)
            .unwrap_or_else(|| panic!("{words} in {html}"))
    };
    let order = ["Free", "Starter", "Pro", "Business", "House", "Unlimited"];
    let places = order.map(|name| place(&format!("<h2>{name}</h2>")));
    assert!(places.is_sorted(), "smaller plans come first: {places:?}");
    assert!(place("<dd>1\u{202f}234</dd>") < places[1]);
}

#[actix_web::test]
async fn readiness_follows_the_stage() {
    let site = Site::open().await;
    assert_eq!(site.send(request("GET", "/healthz")).await.status, 200);
    assert_eq!(site.send(request("GET", "/readyz")).await.status, 200);
    for stage in [Stage::Starting, Stage::Draining] {
        site.app.service.set_stage(stage);
        let answer = site.send(request("GET", "/readyz")).await;
        assert_eq!(
            (answer.status, &answer.json()["status"]),
            (503, &json!("unready"))
        );
        assert_eq!(answer.json()["reasons"][0]["name"], "service");
    }
}

#[actix_web::test]
async fn metrics_are_for_this_machine_and_for_admins() {
    let site = Site::open().await;
    let local = || request("GET", "/metrics").peer_addr("127.0.0.1:1".parse().unwrap());
    let forwarded = local().insert_header(("x-forwarded-for", "127.0.0.1"));
    assert_eq!(site.send(local()).await.status, 200);
    assert_eq!(
        site.send(local().peer_addr("[::1]:1".parse().unwrap()))
            .await
            .status,
        200
    );
    assert_eq!(site.send(forwarded).await.status, 401);
    assert_eq!(site.send(request("GET", "/metrics")).await.status, 401);
    let writer = site.key(Scope::Write).await;
    assert_eq!(
        site.call_as(&writer, "GET", "/metrics", None).await.status,
        403
    );
    let answer = site.call("GET", "/metrics", None).await;
    let text = String::from_utf8(answer.body).unwrap();
    assert!(
        text.contains(r#"sluice_live_inputs{status="live"} 1"#),
        "{text}"
    );
    assert!(
        text.contains(
            r#"sluice_http_requests_total{route="/metrics",method="GET",status="4xx"} 3"#
        ),
        "{text}"
    );
}

/// Collects what would go to the log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[actix_web::test]
async fn the_log_names_routes_and_no_secret() {
    let site = Site::open().await;
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    // With one subscriber alone, tracing asks the thread that first meets a log line, which may be another test's.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::new());
    let guard = tracing::subscriber::set_default(subscriber);
    let made = site
        .call("POST", "/api/live/inputs?token=swordfish", Some(json!({})))
        .await
        .json();
    let sign_in = request("POST", "/api/session")
        .set_json(json!({"username": "admin", "password": super::PASSWORD}));
    assert_eq!(site.send(sign_in).await.status, 201);
    site.send(request("GET", "/api/swordfish")).await;
    drop(guard);
    let text = String::from_utf8(log.0.lock().clone()).unwrap();
    assert!(
        text.contains("route=\"/api/live/inputs\"") && text.contains("status=201"),
        "{text}"
    );
    for secret in [
        "swordfish",
        site.first.api_key.expose(),
        super::PASSWORD,
        made["streamKey"].as_str().unwrap(),
    ] {
        assert!(!text.contains(secret), "{text}");
    }
}
