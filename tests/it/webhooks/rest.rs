//! The life of an endpoint by its API: created, tested, failing, replayed, rotated, paused and recovered; and the event
//! feed.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::time::timeout;

use super::{
    SOON, deliveries, delivery, endpoint, events, get, settings, subscribe, text, upload,
    wait_endpoint_status,
};
use crate::support::{
    Failure, eventually, http,
    receiver::{Behaviour, Receiver, Request},
    server::{API_KEY, Api, Server},
};

/// The pauses of the ladder in these scenarios, ±20 %.
const LADDER: &str = "1,1";

async fn start() -> Result<Server, Failure> {
    let settings = settings().env("SLUICE_WEBHOOKS__RETRY_AFTER_S", LADDER);
    settings.start().await
}

/// HMAC-SHA256 with the whole secret over `{t}.{raw body}`, in hexadecimal (docs/guide/webhooks.md).
fn expected(secret: &str, timestamp: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any length is a key");
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    let bytes = mac.finalize().into_bytes();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The `v1=` of a request, whose `t=` must equal its `service-timestamp`.
fn signatures(request: &Request) -> Result<Vec<String>, Failure> {
    let header = request.header("service-signature");
    let time = format!("t={}", request.header("service-timestamp"));
    let mut parts = header.split(',');
    if parts.next() != Some(time.as_str()) {
        return Err(format!("{header} does not begin with {time}").into());
    }
    let v1 = parts.map(|part| part.strip_prefix("v1=").map(str::to_owned));
    v1.collect::<Option<_>>()
        .ok_or_else(|| format!("{header} holds more than v1=").into())
}

async fn wait_status(api: &Api, id: &str, status: &str) -> Result<(Value, Vec<Value>), Failure> {
    eventually(&format!("delivery {id} is {status}"), SOON, async || {
        let (record, attempts) = delivery(api, id).await.ok()?;
        (record["status"] == status).then_some((record, attempts))
    })
    .await
}

/// The newest delivery that the filters leave, once there is one.
async fn newest(api: &Api, filters: &str) -> Result<Value, Failure> {
    eventually(&format!("a delivery with {filters}"), SOON, async || {
        deliveries(api, filters).await.ok()?.into_iter().next()
    })
    .await
}

async fn retry(api: &Api, id: &str) -> Result<Value, Failure> {
    let path = format!("/api/webhooks/deliveries/{id}/retry");
    api.expect(StatusCode::ACCEPTED, Method::POST, &path, None)
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_arrives_signed_and_is_listed_as_delivered() -> Result<(), Failure> {
    let server = start().await?;
    let api = server.api();
    let receiver = Receiver::start(Behaviour::with_body(200, "thank you")).await?;
    let hook = subscribe(&api, &receiver.url("/hook?a=b"), &["file.uploaded"]).await?;
    let file = upload(&api, 1).await?;

    let requests = receiver.wait_for(1, SOON).await?;
    let request = &requests[0];
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("POST", "/hook?a=b")
    );
    assert_eq!(request.header("service-event"), "file.uploaded");
    let own = expected(
        &hook.secret,
        request.header("service-timestamp"),
        &request.body,
    );
    assert_eq!(signatures(request)?, [own]);
    let envelope = request.json()?;
    assert_eq!(
        (
            &envelope["type"],
            &envelope["data"]["fileId"],
            &envelope["data"]["sequence"]
        ),
        (&json!("file.uploaded"), &json!(file), &json!(1))
    );

    let filters = format!("endpointId={}&eventType=file.uploaded", hook.id);
    let id = text(&newest(&api, &filters).await?["id"])?;
    let (record, attempts) = wait_status(&api, &id, "delivered").await?;
    assert_eq!(
        (
            &record["eventId"],
            &record["httpStatus"],
            &record["attemptCount"]
        ),
        (&envelope["id"], &json!(200), &json!(1)),
        "{record}"
    );
    assert_eq!(record["responseBodyPreview"], "thank you");
    assert_eq!(
        (&record["error"], &record["nextAttemptAt"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0]["status"], "delivered");
    // The feed has the very bytes that were sent.
    assert_eq!(events(&api).await?, [envelope]);
    let record = endpoint(&api, &hook.id).await?;
    assert!(record["lastSuccessAt"].is_string(), "{record}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_receiver_shows_the_ladder_and_retry_replays_it() -> Result<(), Failure> {
    let server = start().await?;
    let api = server.api();
    let receiver = Receiver::start(Behaviour::with_body(500, "ö".repeat(3_000))).await?;
    let hook = subscribe(&api, &receiver.url("/"), &["*"]).await?;
    upload(&api, 1).await?;

    let waiting = newest(&api, &format!("status=retrying&endpointId={}", hook.id)).await?;
    assert_eq!(waiting["httpStatus"], 500, "{waiting}");
    assert!(waiting["nextAttemptAt"].is_string(), "{waiting}");
    let id = text(&waiting["id"])?;
    let (failed, attempts) = wait_status(&api, &id, "failed").await?;
    assert_eq!(
        (
            &failed["attemptCount"],
            &failed["nextAttemptAt"],
            &failed["deliveredAt"]
        ),
        (&json!(3), &Value::Null, &Value::Null)
    );
    let preview = text(&failed["responseBodyPreview"])?;
    assert_eq!(preview.chars().count(), 1_000);
    let ladder: Vec<_> = attempts
        .iter()
        .map(|attempt| (attempt["number"].as_u64(), attempt["httpStatus"].as_u64()))
        .collect();
    assert_eq!(ladder, [1, 2, 3].map(|number| (Some(number), Some(500))));
    assert_eq!(receiver.count(), 3);

    receiver.behave(Behaviour::status(204));
    let answer = retry(&api, &id).await?;
    assert_eq!(answer["delivery"]["id"], id);
    let (delivered, attempts) = wait_status(&api, &id, "delivered").await?;
    assert_eq!((attempts.len(), &delivered["httpStatus"]), (4, &json!(204)));
    // A delivered one, too: exactly once more, with the same id and bytes.
    retry(&api, &id).await?;
    let requests = receiver.wait_for(5, SOON).await?;
    let first = &requests[0];
    for request in &requests {
        assert_eq!(
            (request.event_id(), &request.body),
            (first.event_id(), &first.body)
        );
    }
    let (_, attempts) = wait_status(&api, &id, "delivered").await?;
    assert_eq!(attempts.len(), 5);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_rotation_both_secrets_sign() -> Result<(), Failure> {
    let server = start().await?;
    let api = server.api();
    let receiver = Receiver::start(Behaviour::status(200)).await?;
    let hook = subscribe(&api, &receiver.url("/"), &["file.uploaded"]).await?;
    let path = format!("/api/webhooks/{}/rotate-secret", hook.id);
    let rotated = api
        .expect(StatusCode::OK, Method::POST, &path, None)
        .await?;
    let new = text(&rotated["secret"])?;
    assert_ne!(new, hook.secret);
    assert_eq!(rotated["webhook"]["secretPrefix"], new[..12]);

    let path = format!("/api/webhooks/{}/test", hook.id);
    let sent = api
        .expect(StatusCode::ACCEPTED, Method::POST, &path, None)
        .await?;
    assert_eq!(sent["delivery"]["eventType"], "webhook.test");
    let requests = receiver.wait_for(1, SOON).await?;
    let request = &requests[0];
    assert_eq!(request.header("service-event"), "webhook.test");
    let time = request.header("service-timestamp");
    let both = [&new, &hook.secret].map(|secret| expected(secret, time, &request.body));
    assert_eq!(signatures(request)?, both);
    // Events sent to one endpoint alone are not in the feed.
    assert_eq!(events(&api).await?, [] as [Value; 0]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gone_pauses_and_recover_sends_what_failed() -> Result<(), Failure> {
    let server = start().await?;
    let api = server.api();
    let began = Timestamp::now().to_string();
    let receiver = Receiver::start(Behaviour::status(410)).await?;
    let hook = subscribe(&api, &receiver.url("/"), &["file.uploaded"]).await?;
    upload(&api, 1).await?;
    let paused = wait_endpoint_status(&api, &hook.id, "paused").await?;
    assert_eq!(paused["isActive"], false);
    assert!(text(&paused["statusReason"])?.contains("410"), "{paused}");
    let missed = upload(&api, 2).await?;
    let failed = newest(&api, "status=failed").await?;
    assert_eq!(failed["attemptCount"], 1, "{failed}");

    let path = format!("/api/webhooks/{}", hook.id);
    let resume = json!({"isActive": true});
    let answer = api
        .expect(StatusCode::OK, Method::PATCH, &path, Some(&resume))
        .await?;
    assert_eq!(
        (
            &answer["webhook"]["status"],
            &answer["webhook"]["statusReason"]
        ),
        (&json!("active"), &Value::Null)
    );
    receiver.behave(Behaviour::status(200));
    let path = format!("{path}/recover");
    let since = json!({"since": began});
    let recover = || api.expect(StatusCode::ACCEPTED, Method::POST, &path, Some(&since));
    let answer = recover().await?;
    assert_eq!(answer, json!({"recovered": 1}));
    wait_status(&api, &text(&failed["id"])?, "delivered").await?;
    let answer = recover().await?;
    assert_eq!(answer, json!({"recovered": 0}));

    // No deliveries were kept while the endpoint was paused; now it gets new events.
    let third = upload(&api, 3).await?;
    let requests = receiver.wait_for(3, SOON).await?;
    let bodies: Vec<Value> = requests
        .iter()
        .filter_map(|request| Some(request.json().ok()?["data"]["fileId"].clone()))
        .collect();
    assert_eq!(bodies[2], third);
    assert!(!bodies.contains(&json!(missed)), "{bodies:?}");
    Ok(())
}

/// An address inside a private network, without the operator's leave.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rejection_names_the_address_and_the_setting() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let receiver = Receiver::start(Behaviour::status(200)).await?;
    let bodies = [
        json!({"url": receiver.url("/"), "eventTypes": ["*"]}),
        json!({"url": format!("http://localhost:{}/", receiver.address().port()), "eventTypes": ["*"]}),
    ];
    for body in bodies {
        let (path, status) = ("/api/webhooks", StatusCode::BAD_REQUEST);
        let answer = api.expect(status, Method::POST, path, Some(&body)).await?;
        let error = text(&answer["error"])?;
        for part in ["url: ", "outbound.allow = [\"", "loopback"] {
            assert!(error.contains(part), "{error}");
        }
    }
    assert_eq!(receiver.connections(), 0);
    Ok(())
}

/// Events that a client of the stream has so far.
struct Followed {
    chunks: futures_util::stream::BoxStream<'static, reqwest::Result<Bytes>>,
    text: String,
}

impl Followed {
    /// Follows after `cursor`, or from now on.
    async fn open(server: &Server, cursor: Option<&str>) -> Result<Self, Failure> {
        let url = format!("{}/api/events/stream", server.base_url());
        let mut request = http::client().get(url).bearer_auth(API_KEY);
        if let Some(cursor) = cursor {
            request = request.header("last-event-id", cursor);
        }
        let answer = request.send().await?;
        assert_eq!(answer.status(), StatusCode::OK);
        Ok(Self {
            chunks: answer.bytes_stream().boxed(),
            text: String::new(),
        })
    }

    /// Reads until there are so many whole events; `(id, event, data)` of each.
    async fn events(&mut self, count: usize) -> Result<Vec<[String; 3]>, Failure> {
        loop {
            let events = whole_events(&self.text);
            if events.len() >= count {
                return Ok(events);
            }
            let chunk = timeout(SOON, self.chunks.next()).await;
            let chunk = chunk.map_err(|_| format!("silence after {:?}", self.text))?;
            let chunk = chunk.ok_or_else(|| format!("an end after {:?}", self.text))??;
            self.text.push_str(std::str::from_utf8(&chunk)?);
        }
    }

    /// Returns whether the stream ends within the time.
    async fn ends(&mut self, deadline: Duration) -> bool {
        let rest = async { while let Some(Ok(_)) = self.chunks.next().await {} };
        timeout(deadline, rest).await.is_ok()
    }
}

fn whole_events(text: &str) -> Vec<[String; 3]> {
    let field = |block: &str, name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().to_owned()
    };
    text.split_inclusive("\n\n")
        .filter(|block| block.ends_with("\n\n") && block.contains("data: "))
        .map(|block| ["id: ", "event: ", "data: "].map(|name| field(block, name)))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stream_continues_where_it_was_and_ends_with_the_service() -> Result<(), Failure> {
    let mut server = start().await?;
    let api = server.api();
    upload(&api, 0).await?;
    let mut followed = Followed::open(&server, None).await?;
    // The greeting shows that the place in the feed is taken.
    eventually("the greeting", SOON, async || {
        let chunk = followed.chunks.next().await?.ok()?;
        Some(chunk.starts_with(b"id: "))
    })
    .await?;
    let first = upload(&api, 1).await?;
    let seen = followed.events(1).await?;
    let [id, event, data] = &seen[0];
    assert_eq!(event, "file.uploaded");
    let feed = events(&api).await?;
    assert_eq!(serde_json::from_str::<Value>(data)?, feed[1]);
    assert_eq!(feed[1]["data"]["fileId"], first);
    let id = id.clone();

    server.signal(rustix::process::Signal::TERM)?;
    assert!(followed.ends(SOON).await, "the stream holds the service up");
    server.wait(Duration::from_secs(40)).await?;
    server.restart().await?;

    let api = server.api();
    let second = upload(&api, 2).await?;
    let mut followed = Followed::open(&server, Some(&id)).await?;
    let seen = followed.events(1).await?;
    let data: Value = serde_json::from_str(&seen[0][2])?;
    assert_eq!(data["data"]["fileId"], second);
    let page = get(&api, &format!("/api/events?after={id}")).await?;
    assert_eq!(page["events"], json!([data]));
    assert_eq!(page["nextCursor"], seen[0][0]);
    Ok(())
}
