//! Webhooks (`/api/webhooks`) without a deliverer: deliveries stay pending until a test plays one.

use std::time::Duration;

use serde_json::{Value, json};
use sluice_actors::webhooks::signature;
use sluice_store::{
    api_keys::Scope,
    now_ms,
    webhooks::{
        self, Attempted, ClaimRequest, Claimed, EndpointHealth, EndpointStatus, Next, What,
    },
};
use uuid::Uuid;

use super::{Answer, Site};

/// A public address: needs no lookup, and no one is called here.
const URL: &str = "https://93.184.215.14/hook";
const UNKNOWN_ID: &str = "00000000-0000-0000-0000-000000000000";

impl Site {
    async fn send_json(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path, Some(body)).await
    }

    /// The answer to the making of an endpoint for these events.
    async fn hook(&self, event_types: Value) -> Value {
        let body = json!({"url": URL, "eventTypes": event_types});
        let answer = self.send_json("/api/webhooks", body).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()
    }

    async fn deliveries(&self, query: &str) -> Value {
        let path = format!("/api/webhooks/deliveries{query}");
        let answer = self.call("GET", &path, None).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    /// Begins an attempt of everything that the endpoint is due.
    async fn claim(&self, endpoint_id: Uuid) -> Vec<Claimed> {
        let wanted = [What::Replay, What::Due].map(|what| ClaimRequest {
            endpoint_id,
            rows: 1_000,
            what,
        });
        let claimed = self.app.platform.store.write(move |tx| {
            Box::pin(async move {
                let (owner, lease) = (Uuid::now_v7(), Duration::from_secs(60));
                webhooks::claim(tx, owner, &wanted, lease, i64::MAX / 2, now_ms()).await
            })
        });
        claimed.await.unwrap()
    }

    async fn record(&self, claimed: Vec<Claimed>, http_status: Option<u16>, next: fn() -> Next) {
        let attempted: Vec<Attempted> = claimed
            .into_iter()
            .map(|claimed| Attempted {
                delivery_id: claimed.delivery_id,
                fence: claimed.fence,
                number: claimed.number,
                signed_at: Some(now_ms()),
                ended_at: now_ms(),
                http_status,
                response_preview: Some("ü".repeat(1_100)),
                error: http_status
                    .is_none_or(|status| status >= 300)
                    .then(|| "no answer".to_owned()),
                next: next(),
            })
            .collect();
        let recorded = self
            .app
            .platform
            .store
            .write(move |tx| Box::pin(async move { webhooks::record(tx, &attempted).await }));
        recorded.await.unwrap();
    }
}

fn id(record: &Value) -> String {
    record["id"].as_str().unwrap().to_owned()
}

fn uuid(record: &Value) -> Uuid {
    id(record).parse().unwrap()
}

fn fields(record: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = record
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names
}

#[actix_web::test]
async fn a_rejection_says_what_to_change() {
    let site = Site::open().await;
    let made = site.hook(json!(["*"])).await;
    let one = format!("/api/webhooks/{}", id(&made["webhook"]));
    let cases = [
        (json!({"url": "ftp://example.org/"}), "http"),
        (json!({"url": "example.org"}), "url"),
        (json!({"url": "https://user:word@93.184.215.14/"}), "user"),
        (
            json!({"url": "http://127.0.0.1:9/"}),
            "outbound.allow = [\"127.0.0.",
        ),
        (json!({"url": "http://[::1]/"}), "outbound.allow = [\"::1"),
        (json!({"url": "http://10.1.2.3/"}), "10.1.2.3"),
        (json!({"url": "http://0x7f.1/"}), "outbound.allow"),
        (json!({"url": 7}), "url: invalid type"),
        (
            json!({"eventTypes": "file.uploaded"}),
            "eventTypes: invalid type: string \"file.uploaded\", expected an array",
        ),
        (json!({"eventTypes": []}), "eventTypes must not be empty"),
        (
            json!({"event_types": ["webhook.test"]}),
            "eventTypes has unknown names: `webhook.test`; known are conversion.started, ",
        ),
        (
            json!({"description": "x".repeat(501)}),
            "description must have at most 500 characters, got 501",
        ),
        (
            json!({"isActive": "yes"}),
            "isActive: invalid type: string \"yes\", expected true or false",
        ),
    ];
    for (change, error) in cases {
        let mut new = json!({"url": URL, "eventTypes": ["*"]});
        if change.get("event_types").is_some() {
            new.as_object_mut().unwrap().remove("eventTypes");
        }
        for (name, value) in change.as_object().unwrap() {
            new[name] = value.clone();
        }
        for (method, path, body) in [("POST", "/api/webhooks", new), ("PATCH", &one, change)] {
            let answer = site.call(method, path, Some(body.clone())).await;
            assert_eq!(answer.status, 400, "{method} {body}: {answer:?}");
            assert!(answer.error().contains(error), "{body}: {}", answer.error());
        }
    }
    for body in [json!({"eventTypes": ["*"]}), json!({"url": URL})] {
        let answer = site.send_json("/api/webhooks", body).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(
            answer.error().contains(" is missing: "),
            "{}",
            answer.error()
        );
    }
    let now = site.call("GET", &one, None).await.json();
    assert_eq!(
        now["webhook"], made["webhook"],
        "a rejected change changes nothing"
    );
}

#[actix_web::test]
async fn every_call_has_its_status() {
    let site = Site::open().await;
    let made = site.hook(json!(["file.uploaded"])).await;
    site.emit("file.uploaded").await;
    let delivery = id(&site.deliveries("").await["deliveries"][0]);
    let (reader, stranger) = (site.key(Scope::Read).await, site.stranger().await);
    let owner = site.first.api_key.expose().to_owned();
    let one = format!("/api/webhooks/{}", id(&made["webhook"]));
    let sent = format!("/api/webhooks/deliveries/{delivery}");
    let new = json!({"url": URL, "event_types": ["file.uploaded"]});
    let since = json!({"since": 0});
    // Method, path, body; the status for the owner, for a key that may only read, and for another account.
    let calls = [
        ("GET", "/api/webhooks".to_owned(), None, [200, 200, 200]),
        ("HEAD", "/api/webhooks".to_owned(), None, [200, 200, 200]),
        (
            "POST",
            "/api/webhooks".to_owned(),
            Some(&new),
            [201, 403, 201],
        ),
        ("PUT", "/api/webhooks".to_owned(), None, [405; 3]),
        ("GET", one.clone(), None, [200, 200, 404]),
        ("HEAD", one.clone(), None, [200, 200, 404]),
        ("PATCH", one.clone(), Some(&new), [200, 403, 404]),
        ("POST", one.clone(), None, [405; 3]),
        (
            "POST",
            format!("{one}/rotate-secret"),
            None,
            [200, 403, 404],
        ),
        ("GET", format!("{one}/rotate-secret"), None, [405; 3]),
        ("POST", format!("{one}/test"), None, [202, 403, 404]),
        ("GET", format!("{one}/test"), None, [405; 3]),
        ("POST", format!("{one}/probe"), None, [409, 403, 404]),
        ("GET", format!("{one}/probe"), None, [405; 3]),
        (
            "POST",
            format!("{one}/recover"),
            Some(&since),
            [202, 403, 404],
        ),
        ("POST", format!("{one}/recover"), None, [400, 403, 400]),
        ("GET", "/api/webhooks/deliveries".to_owned(), None, [200; 3]),
        (
            "HEAD",
            "/api/webhooks/deliveries".to_owned(),
            None,
            [200; 3],
        ),
        (
            "DELETE",
            "/api/webhooks/deliveries".to_owned(),
            None,
            [405; 3],
        ),
        ("GET", sent.clone(), None, [200, 200, 404]),
        ("DELETE", sent.clone(), None, [405; 3]),
        ("POST", format!("{sent}/retry"), None, [202, 403, 404]),
        ("GET", format!("{sent}/retry"), None, [405; 3]),
        ("GET", "/api/webhooks/none".to_owned(), None, [404; 3]),
        ("GET", format!("/api/webhooks/{UNKNOWN_ID}"), None, [404; 3]),
        (
            "GET",
            format!("/api/webhooks/deliveries/{UNKNOWN_ID}"),
            None,
            [404; 3],
        ),
        (
            "POST",
            format!("/api/webhooks/deliveries/{UNKNOWN_ID}/retry"),
            None,
            [404, 403, 404],
        ),
        ("DELETE", one.clone(), None, [200, 403, 404]),
        ("GET", one.clone(), None, [404; 3]),
        ("DELETE", one.clone(), None, [404, 403, 404]),
        ("POST", format!("{sent}/retry"), None, [409, 403, 404]),
    ];
    for (method, path, body, statuses) in calls {
        // The owner comes last: what is deleted is not there for the others.
        for (key, status) in [&stranger, &reader, &owner]
            .into_iter()
            .zip(statuses.iter().rev())
        {
            let answer = site.call_as(key, method, &path, body.cloned()).await;
            assert_eq!(answer.status, *status, "{method} {path}: {answer:?}");
            if *status >= 400 && method != "HEAD" {
                assert!(!answer.error().is_empty(), "{method} {path}");
            }
        }
    }
    let unknown = site
        .call_as("svc_x", "GET", "/api/webhooks/deliveries", None)
        .await;
    assert_eq!(unknown.status, 401);
}

#[actix_web::test]
async fn the_secret_is_shown_when_it_is_made_only() {
    let site = Site::open().await;
    let body = json!({"url": URL, "event_types": ["*", "live.input.connected", "*"], "description": "shop"});
    let answer = site.send_json("/api/webhooks", body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let made = answer.json();
    let record = &made["webhook"];
    assert_eq!(
        fields(record),
        [
            "consecutiveFailures",
            "createdAt",
            "description",
            "eventTypes",
            "firstFailureAt",
            "id",
            "isActive",
            "lastFailureAt",
            "lastSuccessAt",
            "nextProbeAt",
            "secretPrefix",
            "status",
            "statusReason",
            "statusSince",
            "updatedAt",
            "url",
            "waiting"
        ]
    );
    assert_eq!(record["eventTypes"], json!(["*", "live.input.connected"]));
    assert_eq!(
        (&record["status"], &record["isActive"]),
        (&json!("active"), &json!(true))
    );
    assert_eq!(record["description"], "shop");
    let secret = made["secret"].as_str().unwrap();
    assert!(
        secret.starts_with("whsec_") && secret.len() == 38,
        "{secret}"
    );
    assert_eq!(record["secretPrefix"], secret[..12]);

    let one = format!("/api/webhooks/{}", id(record));
    let rotated = site
        .call("POST", &format!("{one}/rotate-secret"), None)
        .await
        .json();
    let new = rotated["secret"].as_str().unwrap();
    assert_ne!(new, secret);
    assert_eq!(rotated["webhook"]["secretPrefix"], new[..12]);
    let pause = json!({"isActive": false, "description": null});
    let shown = [
        site.call("GET", &one, None).await,
        site.call("PATCH", &one, Some(pause)).await,
        site.call("GET", "/api/webhooks", None).await,
    ];
    for answer in &shown {
        let text = String::from_utf8_lossy(&answer.body);
        assert!(!text.contains(secret) && !text.contains(new), "{text}");
    }
    let paused = &shown[1].json()["webhook"];
    assert_eq!(
        (
            &paused["status"],
            &paused["isActive"],
            &paused["description"]
        ),
        (&json!("paused"), &json!(false), &Value::Null)
    );
    let resumed = site
        .call("PATCH", &one, Some(json!({"isActive": true})))
        .await
        .json();
    assert_eq!(resumed["webhook"]["status"], "active");
}

#[actix_web::test]
async fn endpoints_are_bounded_and_paged() {
    let site = Site::open_with(|config| config.webhooks.max_endpoints = 3).await;
    let mut made = Vec::new();
    for _ in 0..3 {
        made.insert(0, id(&site.hook(json!(["*"])).await["webhook"]));
    }
    let body = json!({"url": URL, "eventTypes": ["*"]});
    let rejected = site.send_json("/api/webhooks", body.clone()).await;
    assert_eq!(rejected.status, 409);
    assert!(
        rejected.error().contains("webhooks.max_endpoints"),
        "{}",
        rejected.error()
    );
    let first = site.call("GET", "/api/webhooks?limit=2", None).await.json();
    let path = format!(
        "/api/webhooks?limit=2&cursor={}",
        first["nextCursor"].as_str().unwrap()
    );
    let rest = site.call("GET", &path, None).await.json();
    let pages = [&first, &rest].map(|page| page["webhooks"].as_array().unwrap().iter().map(id));
    assert_eq!(pages.into_iter().flatten().collect::<Vec<_>>(), made);
    assert_eq!(rest["nextCursor"], Value::Null);

    site.call("DELETE", &format!("/api/webhooks/{}", made[0]), None)
        .await;
    assert_eq!(site.send_json("/api/webhooks", body).await.status, 201);
}

#[actix_web::test]
async fn deliveries_are_listed_by_page_and_filter() {
    let site = Site::open().await;
    let all = site.hook(json!(["*", "live.input.connected"])).await["webhook"].clone();
    let some = site.hook(json!(["file.uploaded"])).await["webhook"].clone();
    for _ in 0..12 {
        site.emit("file.uploaded").await;
    }
    let event = site.emit("file.uploaded").await.name();
    site.emit("live.input.connected").await;
    let whole = site.deliveries("?limit=100").await;
    assert_eq!(whole["deliveries"].as_array().unwrap().len(), 27);
    assert_eq!(whole["nextCursor"], Value::Null);
    let first = site.deliveries("").await;
    assert_eq!(first["deliveries"].as_array().unwrap().len(), 25);
    let next = first["nextCursor"].as_str().unwrap();
    let rest = site.deliveries(&format!("?cursor={next}")).await;
    let pages = [&first, &rest].map(|page| page["deliveries"].as_array().unwrap().clone());
    assert_eq!(json!(pages.concat()), whole["deliveries"]);

    let counts = [
        (format!("endpointId={}", id(&all)), 14),
        (format!("endpoint_id={}&status=pending", id(&some)), 13),
        (format!("endpointId={UNKNOWN_ID}"), 0),
        (format!("eventId={event}"), 2),
        (
            format!("event_id={}&endpointId={}", &event[4..], id(&some)),
            1,
        ),
        (format!("eventId=evt_{UNKNOWN_ID}"), 0),
        ("httpStatus=5xx".to_owned(), 0),
        ("http_status=500".to_owned(), 0),
        ("since=2020-01-01T00:00:00Z&until=4000000000".to_owned(), 27),
        ("since=4000000000".to_owned(), 0),
        ("until=2020-01-01T00:00:00Z".to_owned(), 0),
        ("eventType=live.input.connected".to_owned(), 1),
        ("event_type=webhook.test".to_owned(), 0),
        ("status=failed".to_owned(), 0),
        ("status=&eventType=&endpointId=&other=1".to_owned(), 27),
    ];
    for (query, count) in counts {
        let page = site.deliveries(&format!("?limit=100&{query}")).await;
        assert_eq!(
            page["deliveries"].as_array().unwrap().len(),
            count,
            "{query}"
        );
    }
    let rejections = [
        ("limit=0", "limit must be 1 to 100, got `0`"),
        ("limit=101", "limit must be 1 to 100, got `101`"),
        ("limit=ten", "limit must be 1 to 100, got `ten`"),
        ("cursor=x", "cursor must be the nextCursor"),
        (
            "status=lost",
            "status must be pending or delivering or retrying or delivered or failed, got `lost`",
        ),
        (
            "eventType=file.gone",
            "eventType has unknown names: `file.gone`",
        ),
        (
            "endpointId=7",
            "endpointId must be the id of a webhook, got `7`",
        ),
        ("eventId=7", "eventId must be the id of an event"),
        ("httpStatus=6xx", "httpStatus must be a status such as 500"),
        ("since=yesterday", "since must be ISO 8601"),
        ("until=-1", "until must be ISO 8601"),
    ];
    for (query, error) in rejections {
        let path = format!("/api/webhooks/deliveries?{query}");
        let answer = site.call("GET", &path, None).await;
        assert_eq!(answer.status, 400, "{query}: {answer:?}");
        assert!(
            answer.error().contains(error),
            "{query}: {}",
            answer.error()
        );
    }
}

#[actix_web::test]
async fn a_delivery_is_shown_with_its_attempts_and_sent_again() {
    let site = Site::open().await;
    let hook = site.hook(json!(["file.uploaded"])).await["webhook"].clone();
    let event = site.emit("file.uploaded").await;
    let pending = site.deliveries("").await["deliveries"][0].clone();
    assert_eq!(
        fields(&pending),
        [
            "attemptCount",
            "createdAt",
            "deliveredAt",
            "endpointId",
            "endpointUrl",
            "error",
            "eventId",
            "eventType",
            "httpStatus",
            "id",
            "lastAttemptAt",
            "nextAttemptAt",
            "responseBodyPreview",
            "status"
        ]
    );
    assert_eq!(
        (
            &pending["status"],
            &pending["eventId"],
            &pending["endpointUrl"]
        ),
        (&json!("pending"), &json!(event.name()), &json!(URL))
    );
    assert_eq!(pending["nextAttemptAt"], pending["createdAt"]);
    let shown = site
        .call("GET", &format!("/api/events/{}", event.name()), None)
        .await;
    assert_eq!(
        String::from_utf8_lossy(&shown.body),
        format!(r#"{{"event":{}}}"#, event.body)
    );
    let path = format!("/api/webhooks/deliveries/{}", id(&pending));
    let retry = format!("{path}/retry");

    let claimed = site.claim(uuid(&hook)).await;
    assert_eq!(claimed.len(), 1);
    let shown = site.call("GET", &path, None).await.json();
    assert_eq!(shown["delivery"]["status"], "delivering");
    assert_eq!(
        fields(&shown["attempts"][0]),
        [
            "endedAt",
            "error",
            "httpStatus",
            "isProbe",
            "number",
            "startedAt",
            "status"
        ]
    );
    assert_eq!(shown["attempts"][0]["status"], "running");
    let busy = site.call("POST", &retry, None).await;
    assert_eq!(busy.status, 409, "{busy:?}");

    site.record(claimed, Some(500), || Next::Failed).await;
    let shown = site.call("GET", &path, None).await.json();
    let failed = &shown["delivery"];
    assert_eq!(
        (
            &failed["status"],
            &failed["httpStatus"],
            &failed["attemptCount"]
        ),
        (&json!("failed"), &json!(500), &json!(1))
    );
    assert_eq!(
        (&failed["error"], &failed["nextAttemptAt"]),
        (&json!("no answer"), &Value::Null)
    );
    let preview = failed["responseBodyPreview"].as_str().unwrap();
    assert_eq!(preview.chars().count(), 1_000);
    assert_eq!(
        (
            &shown["attempts"][0]["status"],
            &shown["attempts"][0]["httpStatus"]
        ),
        (&json!("failed"), &json!(500))
    );

    for attempt in 2..=3 {
        let again = site.call("POST", &retry, None).await;
        assert_eq!(again.status, 202, "{again:?}");
        assert!(again.json()["delivery"]["nextAttemptAt"].is_string());
        let claimed = site.claim(uuid(&hook)).await;
        assert_eq!((claimed.len(), claimed[0].number), (1, attempt));
        assert_eq!(claimed[0].body[..], *event.body);
        site.record(claimed, Some(200), || Next::Delivered).await;
        let shown = site.call("GET", &path, None).await.json();
        assert_eq!(shown["delivery"]["status"], "delivered");
        assert!(shown["delivery"]["deliveredAt"].is_string());
        assert_eq!(
            shown["attempts"].as_array().unwrap().len(),
            attempt as usize
        );
    }
}

/// The value of a header of a shown request.
fn header<'a>(request: &'a Value, name: &str) -> Option<&'a str> {
    let headers = request["headers"].as_array().unwrap();
    let header = headers.iter().find(|header| header["name"] == name)?;
    header["value"].as_str()
}

#[actix_web::test]
async fn the_request_verifies_and_never_holds_the_secret() {
    let site = Site::open().await;
    let made = site.hook(json!(["file.uploaded"])).await;
    let (hook, secret) = (
        &made["webhook"],
        made["secret"].as_str().unwrap().to_owned(),
    );
    let event = site.emit("file.uploaded").await;
    let path = format!(
        "/api/webhooks/deliveries/{}",
        id(&site.deliveries("").await["deliveries"][0])
    );
    let request = async || site.call("GET", &path, None).await.json()["request"].clone();
    let verified = |request: &Value, secret: &str| {
        let signature = header(request, "service-signature").unwrap();
        let body = request["body"].as_str().unwrap().as_bytes();
        signature::verify(secret, signature, body, now_ms() / 1_000, 60)
    };

    let before = request().await;
    assert_eq!(
        (&before["method"], &before["url"]),
        (&json!("POST"), &json!(URL))
    );
    assert_eq!(
        (&before["sentAt"], &before["isAsSent"]),
        (&Value::Null, &json!(false))
    );
    assert_eq!(before["body"], event.body);
    assert_eq!(header(&before, "webhook-id"), Some(event.name().as_str()));
    for signed in [
        "service-signature",
        "service-timestamp",
        "webhook-signature",
    ] {
        assert_eq!(header(&before, signed), None, "{signed}");
    }

    let claimed = site.claim(uuid(hook)).await;
    assert_eq!(
        request().await["isAsSent"],
        false,
        "its time is not known before its end"
    );
    site.record(claimed, Some(500), || Next::Failed).await;
    let sent = request().await;
    assert_eq!(verified(&sent, &secret), Ok(()));
    assert_eq!(
        (&sent["isAsSent"], sent["sentAt"].is_string()),
        (&json!(true), true)
    );
    assert_eq!(header(&sent, "content-type"), Some("application/json"));

    let one = format!("/api/webhooks/{}", id(hook));
    let rotated = site
        .call("POST", &format!("{one}/rotate-secret"), None)
        .await;
    let new = rotated.json()["secret"].as_str().unwrap().to_owned();
    let changed = request().await;
    assert_eq!(changed["isAsSent"], false);
    assert_eq!(verified(&changed, &new), Ok(()), "by the present secret");
    for request in [before, sent, changed] {
        let text = request.to_string();
        assert!(!text.contains(&secret) && !text.contains(&new), "{text}");
    }

    site.call("DELETE", &one, None).await;
    let deleted = request().await;
    assert_eq!(
        (header(&deleted, "service-signature"), &deleted["isAsSent"]),
        (None, &json!(false))
    );
}

#[actix_web::test]
async fn a_suspended_webhook_says_since_when_and_is_tried_at_once() {
    let site = Site::open().await;
    let hook = site.hook(json!(["file.uploaded"])).await["webhook"].clone();
    assert_eq!(
        (&hook["statusSince"], &hook["waiting"]),
        (&hook["createdAt"], &json!(0))
    );
    for _ in 0..3 {
        site.emit("file.uploaded").await;
    }
    let endpoint_id = uuid(&hook);
    let now = now_ms();
    let suspended = site.app.platform.store.write(move |tx| {
        Box::pin(async move {
            let health = EndpointHealth {
                revision: 0,
                status: EndpointStatus::Suspended,
                status_reason: Some("12 attempts in a row failed".into()),
                consecutive_failures: 12,
                first_failure_at: Some(now),
                last_success_at: None,
                last_failure_at: Some(now + 60_000),
                next_probe_at: Some(now + 120_000),
                is_releasing: false,
            };
            webhooks::set_healths(tx, &[(endpoint_id, health)]).await
        })
    });
    suspended.await.unwrap();
    let one = format!("/api/webhooks/{}", id(&hook));
    let shown = site.call("GET", &one, None).await.json()["webhook"].clone();
    assert_eq!(
        (&shown["status"], &shown["waiting"]),
        (&json!("suspended"), &json!(3))
    );
    assert_eq!(shown["statusSince"], shown["lastFailureAt"]);
    let listed = site.call("GET", "/api/webhooks", None).await.json();
    assert_eq!(listed["webhooks"][0], shown);

    let probe = site.call("POST", &format!("{one}/probe"), None).await;
    assert_eq!(probe.status, 202, "{probe:?}");
    let probe = probe.json();
    assert!(probe["webhook"]["nextProbeAt"].as_str() < shown["nextProbeAt"].as_str());
    let all = site.deliveries("").await;
    assert_eq!(probe["delivery"], all["deliveries"][2], "the oldest");
    site.call("PATCH", &one, Some(json!({"isActive": false})))
        .await;
    let rejected = site.call("POST", &format!("{one}/probe"), None).await;
    assert_eq!(rejected.status, 409);
    assert!(
        rejected.error().contains("isActive"),
        "{}",
        rejected.error()
    );
}

#[actix_web::test]
async fn a_test_goes_to_one_endpoint_even_while_it_is_paused() {
    let site = Site::open().await;
    let hook = site.hook(json!(["file.uploaded"])).await["webhook"].clone();
    site.hook(json!(["*"])).await;
    let one = format!("/api/webhooks/{}", id(&hook));
    site.call("PATCH", &one, Some(json!({"isActive": false})))
        .await;
    let sent = site.call("POST", &format!("{one}/test"), None).await;
    assert_eq!(sent.status, 202, "{sent:?}");
    let delivery = sent.json()["delivery"].clone();
    assert_eq!(
        (&delivery["eventType"], &delivery["endpointId"]),
        (&json!("webhook.test"), &hook["id"])
    );
    assert_eq!(site.deliveries("").await["deliveries"], json!([delivery]));
    let feed = site.call("GET", "/api/events", None).await.json();
    assert_eq!(feed["events"], json!([]));
    let claimed = site.claim(uuid(&hook)).await;
    let envelope: Value = serde_json::from_str(&claimed[0].body).unwrap();
    assert_eq!(envelope["type"], "webhook.test");
}

/// More than one batch, and none twice although they fail again meanwhile.
#[actix_web::test]
async fn recover_takes_up_what_failed_since_then() {
    let site = Site::open().await;
    let hook = site.hook(json!(["file.uploaded"])).await["webhook"].clone();
    site.hook(json!(["file.uploaded"])).await;
    site.emit_many(site.account(), "file.uploaded", 501).await;
    let claimed = site.claim(uuid(&hook)).await;
    site.record(claimed, None, || Next::Failed).await;
    let path = format!("/api/webhooks/{}/recover", id(&hook));
    let late = json!({"since": now_ms() / 1000 + 3600});
    let rejected = site.send_json(&path, late).await;
    assert_eq!(rejected.status, 400, "{rejected:?}");
    assert!(
        rejected.error().contains("lies in the future"),
        "{}",
        rejected.error()
    );
    let answer = site
        .send_json(&path, json!({"since": "2020-01-01T00:00:00Z"}))
        .await;
    assert_eq!(
        (answer.status, answer.json()),
        (202, json!({"recovered": 501}))
    );
    let again = site.send_json(&path, json!({"since": 0})).await;
    assert_eq!((again.status, again.json()), (202, json!({"recovered": 0})));
    assert_eq!(site.claim(uuid(&hook)).await.len(), 501);
}

#[actix_web::test]
async fn the_description_lists_the_event_types() {
    let site = Site::open().await;
    let document = site.call("GET", "/openapi.json", None).await.json();
    let description = document["paths"]["/api/webhooks"]["post"]["description"]
        .as_str()
        .unwrap();
    for line in [
        "- `conversion.completed`: ",
        "- `live.input.connected`: an encoder begins to publish to a live input; only to webhooks that name it",
    ] {
        assert!(description.contains(line), "{description}");
    }
}
