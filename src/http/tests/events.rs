//! The feed of events and its stream, without a deliverer of webhooks.

use std::{future::poll_fn, pin::Pin, time::Duration};

use actix_web::{
    body::{BoxBody, MessageBody as _},
    dev::Service as _,
    test::init_service,
};
use serde_json::{Map, Value, json};
use sluice_store::{
    Page, accounts,
    api_keys::{self, Scope},
    events::{self, Audience, Event, EventPosition, NewEvent},
    now_ms,
    webhooks::Retention,
};
use tokio::time::timeout;
use uuid::Uuid;

use super::{Answer, SOON, Site, application, request};

impl Site {
    pub(super) fn account(&self) -> Uuid {
        self.first.live_input.account_id
    }

    /// Writes an event of this type down.
    pub(super) async fn emit(&self, event_type: &'static str) -> Event {
        self.emit_for(self.account(), event_type).await
    }

    async fn emit_for(&self, account_id: Uuid, event_type: &'static str) -> Event {
        let written = self.emit_many(account_id, event_type, 1).await;
        written.into_iter().next().unwrap()
    }

    /// In one commit.
    pub(super) async fn emit_many(
        &self,
        account_id: Uuid,
        event_type: &'static str,
        count: usize,
    ) -> Vec<Event> {
        let new = NewEvent {
            account_id,
            event_type,
            audience: Audience::Everyone,
            also: Vec::new(),
            resource: "thing".to_owned(),
            place: EventPosition::Only,
            data: Map::from_iter([("name".to_owned(), json!("zwei\nZeilen"))]),
        };
        let written = self.app.platform.store.write(move |tx| {
            Box::pin(async move {
                let mut written = Vec::new();
                for _ in 0..count {
                    written.push(events::append(tx, new.clone(), now_ms()).await?);
                }
                Ok(written)
            })
        });
        written.await.unwrap()
    }

    async fn revoke_keys(&self) {
        let account_id = self.account();
        let revoked = self.app.platform.store.write(move |tx| {
            Box::pin(async move {
                let keys = api_keys::list(tx, account_id, Page::first(100)).await?;
                for key in keys {
                    api_keys::revoke(tx, account_id, key.id, now_ms()).await?;
                }
                Ok(())
            })
        });
        revoked.await.unwrap();
    }

    async fn feed(&self, query: &str) -> Answer {
        self.call("GET", &format!("/api/events{query}"), None).await
    }
}

fn ids(page: &Value) -> Vec<&str> {
    let events = page["events"].as_array().unwrap();
    events
        .iter()
        .map(|event| event["id"].as_str().unwrap())
        .collect()
}

fn cursor(page: &Value) -> String {
    page["nextCursor"].as_str().unwrap().to_owned()
}

#[actix_web::test]
async fn the_feed_is_read_once_and_whole_in_the_order_of_commits() {
    let site = Site::open().await;
    let empty = site.feed("").await;
    assert_eq!(empty.header("content-type"), "application/json");
    let start = cursor(&empty.json());
    assert_eq!(empty.json()["events"], json!([]));
    let mut written = Vec::new();
    for number in 0..5 {
        let event_type = ["file.uploaded", "live.input.connected"][number % 2];
        written.push(site.emit(event_type).await);
    }
    let names: Vec<String> = written.iter().map(Event::name).collect();

    let mut after = format!("?limit=2&after={start}");
    let mut seen = Vec::new();
    loop {
        let page = site.feed(&after).await.json();
        if ids(&page).is_empty() {
            assert!(after.ends_with(&cursor(&page)), "nothing new moves nothing");
            break;
        }
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        after = format!("?limit=2&after={}", cursor(&page));
    }
    assert_eq!(seen, names);

    let whole = site.feed("").await;
    let text = String::from_utf8(whole.body.clone()).unwrap();
    assert!(
        text.contains(&written[0].body),
        "an envelope is not as it was sent: {text}"
    );
    let first = &whole.json()["events"][0];
    assert_eq!(first["type"], "file.uploaded");
    assert_eq!(first["created"], written[0].created_at / 1000);

    let page = site
        .feed("?types=live.input.connected,%20file.uploaded")
        .await
        .json();
    assert_eq!(ids(&page).len(), 5);
    let page = site.feed("?types=live.input.connected").await.json();
    assert_eq!(ids(&page), [names[1].as_str(), names[3].as_str()]);
    // What is passed over is behind the cursor, too.
    assert_eq!(cursor(&page), cursor(&whole.json()));
}

#[actix_web::test]
async fn the_feed_is_read_from_its_end_to_its_beginning() {
    let site = Site::open().await;
    assert_eq!(
        site.feed("?order=desc").await.json()["nextCursor"],
        json!(null)
    );
    let written = site.emit_many(site.account(), "file.uploaded", 5).await;
    let names: Vec<String> = written.iter().rev().map(Event::name).collect();
    let mut query = "?order=desc&limit=2".to_owned();
    let mut seen = Vec::new();
    loop {
        let page = site.feed(&query).await.json();
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        let Some(cursor) = page["nextCursor"].as_str() else {
            break;
        };
        query = format!("?order=desc&limit=2&before={cursor}");
    }
    assert_eq!(seen, names);
}

#[actix_web::test]
async fn others_do_not_see_them_and_readers_do() {
    let site = Site::open().await;
    let event = site.emit("file.uploaded").await;
    let (reader, stranger) = (site.key(Scope::Read).await, site.stranger().await);
    for (key, expected) in [(&reader, vec![event.name()]), (&stranger, vec![])] {
        let page = site.call_as(key, "GET", "/api/events", None).await.json();
        assert_eq!(ids(&page), expected);
    }
    let cases = [
        ("GET", "?limit=0", 400, "limit must be 1 to 100, got `0`"),
        ("GET", "?limit=101", 400, "limit must be 1 to 100"),
        ("GET", "?after=evt_1", 400, "after must be the nextCursor"),
        (
            "GET",
            "?types=file.gone",
            400,
            "`file.gone`; known are conversion.started",
        ),
        ("GET", "?after=ffff", 410, "begin again without a cursor"),
        (
            "GET",
            "/stream?after=ffff",
            410,
            "begin again without a cursor",
        ),
        ("GET", "/stream?after=-", 400, "after must be"),
        ("POST", "", 405, "allowed: GET, HEAD"),
        ("POST", "/stream", 405, "allowed: GET, HEAD"),
    ];
    for (method, rest, status, error) in cases {
        let answer = site.call(method, &format!("/api/events{rest}"), None).await;
        assert_eq!(answer.status, status, "{rest}: {answer:?}");
        assert!(answer.error().contains(error), "{rest}: {}", answer.error());
        assert_eq!(status == 410, answer.json()["code"] == "cursor_expired");
    }
    let unknown = site
        .call_as("svc_x", "GET", "/api/events/stream", None)
        .await;
    assert_eq!(unknown.status, 401);
}

#[actix_web::test]
async fn a_cursor_expires_when_what_follows_it_is_dropped() {
    let site = Site::open().await;
    let [seen, dropped] = [
        site.emit("file.uploaded").await,
        site.emit("file.uploaded").await,
    ];
    let retention = Retention {
        keep: Duration::from_secs(1),
        keep_bytes: u64::MAX,
    };
    let swept = site
        .app
        .platform
        .store
        .sweep_events(&retention, now_ms() + 60_000);
    swept.await.unwrap();
    let kept = site.emit("file.uploaded").await;

    for path in ["", "/stream"] {
        let answer = site.feed(&format!("{path}?after={:x}", seen.seq)).await;
        assert_eq!(answer.status, 410, "{path}: {answer:?}");
        assert_eq!(answer.json()["code"], "cursor_expired");
    }
    // Anyone with seen all that is gone has missed nothing, and who begins again gets what there is.
    for query in [format!("?after={:x}", dropped.seq), String::new()] {
        let page = site.feed(&query).await.json();
        assert_eq!(ids(&page), [kept.name()], "{query}");
    }
}

/// A stream that the test reads piece by piece.
struct Stream {
    body: Pin<Box<BoxBody>>,
    status: u16,
}

impl Stream {
    async fn open(site: &Site, query: &str, last_event_id: Option<&str>) -> Self {
        Self::of(site, &format!("/api/events/stream{query}"), last_event_id).await
    }

    async fn of(site: &Site, path: &str, last_event_id: Option<&str>) -> Self {
        let key = site.first.api_key.expose();
        let mut asked =
            request("GET", path).insert_header(("authorization", format!("Bearer {key}")));
        if let Some(id) = last_event_id {
            asked = asked.insert_header(("last-event-id", id));
        }
        let app = init_service(application(site.app.clone())).await;
        let Ok(response) = app.call(asked.to_request()).await else {
            panic!("the application makes answers of errors");
        };
        Self {
            status: response.status().as_u16(),
            body: Box::pin(response.into_body().boxed()),
        }
    }

    /// The next piece; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        let piece = poll_fn(|context| self.body.as_mut().poll_next(context));
        let piece = timeout(SOON, piece).await.expect("a piece in time")?;
        let piece = piece.unwrap_or_else(|error| panic!("{error}"));
        Some(String::from_utf8(piece.to_vec()).unwrap())
    }
}

fn frame(event: &Event) -> String {
    format!(
        "id: {:x}\nevent: {}\ndata: {}\n\n",
        event.seq, event.event_type, event.body
    )
}

#[actix_web::test]
async fn the_stream_continues_from_now_or_from_a_cursor() {
    let site = Site::open().await;
    let [first, second] = [
        site.emit("file.uploaded").await,
        site.emit("conversion.failed").await,
    ];
    let id = format!("{:x}", first.seq);
    let mut from_now = Stream::open(&site, "", None).await;
    let greeting = format!("id: {:x}\n: still here\n\n", second.seq);
    assert_eq!(from_now.next().await, Some(greeting));
    let mut from_start = Stream::open(&site, "?after=0", None).await;
    let mut failures = Stream::open(&site, "?after=0&types=conversion.failed", None).await;
    // Browsers send both when they connect again; the header is the newer one.
    let mut again = Stream::open(&site, "?after=0", Some(&id)).await;
    for stream in [&mut from_start, &mut failures, &mut again] {
        assert!(stream.next().await.unwrap().starts_with("id: "));
    }
    assert_eq!(from_start.next().await, Some(frame(&first)));
    assert_eq!(from_start.next().await, Some(frame(&second)));
    assert_eq!(failures.next().await, Some(frame(&second)));
    assert_eq!(again.next().await, Some(frame(&second)));

    // Many more than a follower holds, some of them of another account.
    let stranger = account_of_another(&site).await;
    let mut written = Vec::new();
    for _ in 0..30 {
        site.emit_for(stranger, "file.uploaded").await;
        written.push(site.emit("file.uploaded").await);
    }
    for stream in [&mut from_now, &mut from_start, &mut again] {
        for event in &written {
            assert_eq!(stream.next().await, Some(frame(event)));
        }
    }
    let late = site.emit("conversion.failed").await;
    assert_eq!(failures.next().await, Some(frame(&late)));

    site.app.platform.closing.cancel();
    assert_eq!(from_start.next().await, Some(frame(&late)));
    assert_eq!(from_start.next().await, None);
    assert_eq!(failures.next().await, None);
}

async fn account_of_another(site: &Site) -> Uuid {
    let made = site
        .app
        .platform
        .store
        .write(|tx| Box::pin(async move { accounts::create(tx, "Stranger", now_ms()).await }));
    made.await.unwrap().id
}

#[actix_web::test]
async fn an_event_wakes_a_stream_that_waits() {
    let site = Site::open().await;
    let mut stream = Stream::open(&site, "", None).await;
    stream.next().await;
    let (piece, event) = futures_util::join!(stream.next(), async {
        // The stream is polled first, and waits.
        tokio::task::yield_now().await;
        site.emit("file.uploaded").await
    });
    assert_eq!(piece, Some(frame(&event)));
}

#[actix_web::test]
async fn a_stream_ends_with_the_key_that_opened_it() {
    let site = Site::open().await;
    let mut stream = Stream::open(&site, "", None).await;
    stream.next().await;
    let event = site.emit("file.uploaded").await;
    assert_eq!(stream.next().await, Some(frame(&event)));
    site.revoke_keys().await;
    site.emit("file.uploaded").await;
    assert_eq!(stream.next().await, None);
}

#[actix_web::test]
async fn the_stream_of_a_job_does_so_too() {
    let site = Site::with_slow_workers(|_| {}).await;
    let path = format!("/api/jobs/{}", site.pending_job().await);
    let mut stream = Stream::of(&site, &format!("{path}/events"), None).await;
    let first = stream.next().await.unwrap();
    assert!(first.starts_with("event: progress"), "{first}");
    site.revoke_keys().await;
    let other = site.key(Scope::Write).await;
    let cancelled = site.call_as(&other, "DELETE", &path, None).await;
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    assert_eq!(stream.next().await, None);
}

#[actix_web::test]
async fn followers_are_bounded_and_leave_their_places() {
    let site = Site::open_with(|config| config.webhooks.max_followers = 1).await;
    let first = Stream::open(&site, "", None).await;
    assert_eq!(first.status, 200);
    let rejected = site.call("GET", "/api/events/stream", None).await;
    assert_eq!(
        (rejected.status, rejected.header("retry-after")),
        (503, "5")
    );
    assert!(
        rejected.error().contains("webhooks.max_followers"),
        "{}",
        rejected.error()
    );
    drop(first);
    assert_eq!(Stream::open(&site, "", None).await.status, 200);
    let head = site.call("HEAD", "/api/events/stream", None).await;
    assert_eq!(
        (head.status, head.header("content-type")),
        (200, "text/event-stream")
    );
}
