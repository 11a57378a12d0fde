//! The actor over a real store: attempts that fail, hang and panic, an actor and a process that die, and the end of the
//! service.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use futures_util::future::{BoxFuture, FutureExt as _};
use kameo::actor::ActorRef;
use parking_lot::Mutex;
use serde_json::{Map, json};
use sluice_store::{
    Page, Store,
    events::{self, Audience, EventPosition, NewEvent},
    now_ms,
    webhooks::{
        self as rows, Attempt, AttemptStatus, Delivery, DeliveryFilter, DeliveryStatus, Endpoint,
        EndpointPatch, EndpointStatus, NewEndpoint,
    },
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::Semaphore,
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use uuid::Uuid;

use super::{Webhooks, attempt::Carrier, sender::Panic, settings::WebhookSettings, signature};
use crate::{
    component::ComponentStatuses,
    fixtures::{PATIENCE, account, open_store, until},
    outbound::{Answer, Error, HeaderMap, Outbound, OutboundSettings, Post},
    subsystem::Subsystem as _,
    tree::{self, Root},
};

/// Carries posts to receivers that do what the last part of their URL says.
struct Fake {
    /// Bodies in the order in which they came.
    seen: Mutex<Vec<String>>,
    in_flight: AtomicUsize,
    most_in_flight: AtomicUsize,
    /// Posts to `wait` and `going` take a permit.
    permits: Semaphore,
    /// State of `moody`.
    is_down: AtomicBool,
}

impl Default for Fake {
    fn default() -> Self {
        Self {
            seen: Mutex::default(),
            in_flight: AtomicUsize::new(0),
            most_in_flight: AtomicUsize::new(0),
            permits: Semaphore::new(0),
            is_down: AtomicBool::new(false),
        }
    }
}

struct Flight<'a>(&'a AtomicUsize);

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl Fake {
    async fn answer(&self, url: &str, body: &[u8]) -> Result<Answer, Error> {
        let now = self.in_flight.fetch_add(1, SeqCst) + 1;
        self.most_in_flight.fetch_max(now, SeqCst);
        let _flight = Flight(&self.in_flight);
        let body = String::from_utf8(body.to_vec()).unwrap();
        self.seen.lock().push(body);
        let status = match url.rsplit('/').next().unwrap() {
            "wait" => {
                self.permits.acquire().await.unwrap().forget();
                200
            }
            "going" => {
                self.permits.acquire().await.unwrap().forget();
                410
            }
            "moody" if self.is_down.load(SeqCst) => 503,
            "moody" => 200,
            "panic" => panic!("a test asked for this panic"),
            status => status.parse().unwrap(),
        };
        Ok(Answer {
            status,
            headers: HeaderMap::new(),
            body: b"so it is".to_vec(),
        })
    }
}

impl Carrier for Fake {
    fn post<'a>(&'a self, post: Post<'a>) -> BoxFuture<'a, Result<Answer, Error>> {
        async move { self.answer(post.url, &post.body).await }.boxed()
    }
}

/// A process with a data folder: it can be killed and started again.
struct Site {
    folder: tempfile::TempDir,
    settings: WebhookSettings,
    store: Store,
    fake: Arc<Fake>,
    webhooks: Webhooks,
    root: ActorRef<Root>,
    account: Uuid,
}

impl Site {
    async fn open(adjust: impl FnOnce(&mut WebhookSettings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = open_store(&folder).await;
        let account = account(&store).await;
        let mut settings = WebhookSettings::default();
        adjust(&mut settings);
        let fake = Arc::new(Fake::default());
        let webhooks = Webhooks::over(settings.clone(), store.clone(), fake.clone());
        Self {
            root: start(&webhooks),
            folder,
            settings,
            store,
            fake,
            webhooks,
            account,
        }
    }

    /// Ends everything without a word, and starts again on the same folder.
    async fn kill_and_start(&mut self) {
        self.root.kill();
        self.root.wait_for_shutdown().await;
        self.until_in_flight(0).await;
        self.store.close().await;
        self.store = open_store(&self.folder).await;
        let (settings, store) = (self.settings.clone(), self.store.clone());
        self.webhooks = Webhooks::over(settings, store, self.fake.clone());
        self.root = start(&self.webhooks);
    }

    async fn endpoint(&self, behaviour: &str) -> Endpoint {
        let url = format!("http://receiver.test/{behaviour}");
        self.endpoint_at(url).await
    }

    async fn endpoint_at(&self, url: String) -> Endpoint {
        let account = self.account;
        let new = NewEndpoint {
            url,
            event_types: vec!["*".into()],
            description: None,
            is_active: true,
        };
        let made = self
            .store
            .write(move |tx| Box::pin(rows::create(tx, account, new, 100, now_ms())))
            .await;
        made.unwrap().0
    }

    /// Commits an event; its body.
    async fn event(&self, number: usize) -> String {
        let account_id = self.account;
        let new = NewEvent {
            account_id,
            event_type: "file.uploaded",
            audience: Audience::Everyone,
            also: Vec::new(),
            resource: format!("file:{number}"),
            place: EventPosition::Only,
            data: Map::from_iter([("number".to_owned(), json!(number))]),
        };
        let event = self
            .store
            .write(move |tx| Box::pin(events::append(tx, new, now_ms())))
            .await;
        event.unwrap().body
    }

    /// All deliveries to an endpoint, oldest first.
    async fn deliveries(&self, endpoint: &Endpoint) -> Vec<Delivery> {
        let filter = DeliveryFilter {
            endpoint_id: Some(endpoint.id),
            ..DeliveryFilter::default()
        };
        let mut db = self.store.read().await.unwrap();
        let page = Page {
            after: None,
            limit: 100,
        };
        let listed = rows::deliveries(&mut db, self.account, &filter, page).await;
        let mut deliveries = listed.unwrap();
        deliveries.reverse();
        deliveries
    }

    async fn attempts(&self, delivery: &Delivery) -> Vec<Attempt> {
        let mut db = self.store.read().await.unwrap();
        rows::attempts(&mut db, delivery.id).await.unwrap()
    }

    /// The only delivery to an endpoint, once it has this status.
    async fn delivery(&self, endpoint: &Endpoint, status: DeliveryStatus) -> Delivery {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let deliveries = self.deliveries(endpoint).await;
            if let [delivery] = &deliveries[..]
                && delivery.status == status
            {
                return delivery.clone();
            }
            assert!(
                Instant::now() < deadline,
                "waited in vain for {status:?}: {deliveries:?}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn endpoint_is(&self, endpoint: &Endpoint, status: EndpointStatus) -> Endpoint {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut db = self.store.read().await.unwrap();
            let now = rows::get(&mut db, self.account, endpoint.id).await.unwrap();
            drop(db);
            if now.status == status {
                return now;
            }
            assert!(
                Instant::now() < deadline,
                "waited in vain for {status:?}: {now:?}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        until(what, async || holds(self)).await;
    }

    async fn until_in_flight(&self, attempts: usize) {
        let what = format!("{attempts} are in flight");
        self.until(&what, |site| site.fake.in_flight.load(SeqCst) == attempts)
            .await;
    }

    fn seen(&self) -> Vec<String> {
        self.fake.seen.lock().clone()
    }
}

fn start(webhooks: &Webhooks) -> ActorRef<Root> {
    Root::start(tree::Args {
        components: webhooks.components(),
        component_statuses: ComponentStatuses::default(),
        lost: CancellationToken::new(),
    })
}

fn statuses(attempts: &[Attempt]) -> Vec<AttemptStatus> {
    attempts.iter().map(|attempt| attempt.status).collect()
}

/// Takes one request, answers it, and gives its head and body.
async fn one_request(listener: TcpListener) -> (String, String) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut read = Vec::new();
    loop {
        stream.read_buf(&mut read).await.unwrap();
        let text = String::from_utf8(read.clone()).unwrap();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && body.ends_with('}')
        {
            let answer = "HTTP/1.1 202 Accepted\r\ncontent-type: text/plain\r\n\
                content-length: 6\r\n\r\nthanks";
            stream.write_all(answer.as_bytes()).await.unwrap();
            return (head.to_owned(), body.to_owned());
        }
    }
}

#[tokio::test]
async fn an_event_arrives_signed_at_a_real_receiver() {
    let mut site = Site::open(|_| {}).await;
    site.root.kill();
    site.root.wait_for_shutdown().await;
    let outbound = Outbound::new(&OutboundSettings {
        allow: vec!["127.0.0.0/8".parse().unwrap()],
        ..OutboundSettings::default()
    })
    .unwrap();
    site.webhooks = Webhooks::new(site.settings.clone(), site.store.clone(), outbound);
    site.root = start(&site.webhooks);

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook?token=1", listener.local_addr().unwrap());
    let request = AbortOnDropHandle::new(tokio::spawn(one_request(listener)));
    let endpoint = site.endpoint_at(url).await;
    let sent = site.event(1).await;
    let (head, body) = tokio::time::timeout(PATIENCE, request)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(body, sent);

    let delivery = site.delivery(&endpoint, DeliveryStatus::Delivered).await;
    assert_eq!(delivery.http_status, Some(202));
    assert_eq!(delivery.response_preview.as_deref(), Some("thanks"));
    assert_eq!(delivery.error, None);
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        let line = lines.find(|(found, _)| found.eq_ignore_ascii_case(name));
        line.unwrap_or_else(|| panic!("{name} is not in {head}"))
            .1
            .to_owned()
    };
    assert!(
        head.starts_with("POST /hook?token=1 HTTP/1.1\r\n"),
        "{head}"
    );
    assert_eq!(header("user-agent"), "Service-Webhooks/1.0");
    assert_eq!(header("content-type"), "application/json");
    assert_eq!(header("service-event"), "file.uploaded");
    assert_eq!(header("webhook-id"), format!("evt_{}", delivery.event_id));
    let (secret, signed) = (endpoint.secret.expose(), header("service-signature"));
    signature::verify(secret, &signed, body.as_bytes(), now_ms() / 1_000, 60).unwrap();
    let statistics = site.webhooks.statistics();
    assert_eq!((statistics.delivered, statistics.waits.count), (1, 1));
}

#[tokio::test]
async fn a_failing_delivery_climbs_the_ladder_and_a_replay_is_one_attempt() {
    let site = Site::open(|settings| settings.retry_after_s = vec![1]).await;
    site.fake.is_down.store(true, SeqCst);
    let endpoint = site.endpoint("moody").await;
    let body = site.event(1).await;
    let failed = site.delivery(&endpoint, DeliveryStatus::Failed).await;
    assert_eq!(failed.http_status, Some(503));
    assert_eq!(failed.error.as_deref(), Some("the receiver answered 503"));
    assert_eq!(failed.response_preview.as_deref(), Some("so it is"));
    let attempts = site.attempts(&failed).await;
    let pause_ms = attempts[1].started_at - attempts[0].ended_at.unwrap();
    assert!(pause_ms >= 800, "{pause_ms}");

    let replay = async || {
        let (account, id) = (site.account, failed.id);
        let replayed = site
            .store
            .write(move |tx| Box::pin(rows::replay(tx, account, id, now_ms())))
            .await;
        assert_eq!(replayed.unwrap().status, DeliveryStatus::Retrying);
        site.webhooks.nudge();
    };
    replay().await;
    site.delivery(&endpoint, DeliveryStatus::Failed).await;
    site.fake.is_down.store(false, SeqCst);
    replay().await;
    let delivered = site.delivery(&endpoint, DeliveryStatus::Delivered).await;
    use AttemptStatus::{Delivered, Failed};
    let attempts = site.attempts(&delivered).await;
    assert_eq!(statuses(&attempts), [Failed, Failed, Failed, Delivered]);
    assert_eq!(
        site.seen(),
        vec![body; 4],
        "the same bytes at every attempt"
    );
}

#[tokio::test]
async fn what_a_killed_process_had_in_flight_is_interrupted_and_made_again() {
    let mut site = Site::open(|_| {}).await;
    let endpoint = site.endpoint("wait").await;
    site.event(1).await;
    site.until_in_flight(1).await;
    site.delivery(&endpoint, DeliveryStatus::Delivering).await;
    site.kill_and_start().await;
    site.fake.permits.add_permits(1);
    let delivered = site.delivery(&endpoint, DeliveryStatus::Delivered).await;
    use AttemptStatus::{Delivered, Interrupted};
    let attempts = site.attempts(&delivered).await;
    assert_eq!(statuses(&attempts), [Interrupted, Delivered]);
    assert_eq!(site.webhooks.statistics().interrupted, 1);
}

#[tokio::test]
async fn an_actor_that_panics_interrupts_its_own_attempts_and_continues() {
    let site = Site::open(|_| {}).await;
    let endpoint = site.endpoint("wait").await;
    site.event(1).await;
    site.until_in_flight(1).await;
    let sender = site.webhooks.handle.get().unwrap();
    sender.tell(Panic).await.unwrap();
    site.until("its attempts are ended", |site| {
        site.webhooks.statistics().interrupted == 1
    })
    .await;
    site.fake.permits.add_permits(1);
    let delivered = site.delivery(&endpoint, DeliveryStatus::Delivered).await;
    use AttemptStatus::{Delivered, Interrupted};
    let attempts = site.attempts(&delivered).await;
    assert_eq!(statuses(&attempts), [Interrupted, Delivered]);
}

/// The mailbox outlives the actor, and a turn of the fallen one may have left its message there.
#[tokio::test]
async fn an_actor_does_not_continue_with_its_predecessors_turn() {
    let site = Site::open(|settings| {
        settings.max_in_flight = 1;
        settings.max_per_endpoint = 1;
    })
    .await;
    let endpoint = site.endpoint("wait").await;
    site.event(1).await;
    site.until_in_flight(1).await;
    site.event(2).await;
    let sender = site.webhooks.handle.get().unwrap();
    sender.tell(Panic).await.unwrap();
    site.until("its attempt is made again", |site| site.seen().len() == 2)
        .await;
    site.fake.permits.add_permits(5);
    site.until("the other one is made", |site| site.seen().len() == 3)
        .await;
    site.until("nothing is in flight", |site| {
        let statistics = site.webhooks.statistics();
        statistics.delivered == 2 && statistics.in_flight == 0
    })
    .await;
    use AttemptStatus::{Delivered, Interrupted};
    let deliveries = site.deliveries(&endpoint).await;
    let first = site.attempts(&deliveries[0]).await;
    assert_eq!(statuses(&first), [Interrupted, Delivered]);
    let second = site.attempts(&deliveries[1]).await;
    assert_eq!(statuses(&second), [Delivered], "it was not in flight");
}

#[tokio::test]
async fn a_panic_in_an_attempt_is_a_failed_attempt() {
    let site = Site::open(|_| {}).await;
    let (broken, healthy) = (site.endpoint("panic").await, site.endpoint("200").await);
    site.event(1).await;
    site.delivery(&healthy, DeliveryStatus::Delivered).await;
    let retrying = site.delivery(&broken, DeliveryStatus::Retrying).await;
    assert_eq!(
        retrying.error.as_deref(),
        Some("the service failed at this attempt")
    );
    assert_eq!(
        statuses(&site.attempts(&retrying).await),
        [AttemptStatus::Failed]
    );
}

#[tokio::test]
async fn a_receiver_that_is_gone_pauses_its_endpoint() {
    let site = Site::open(|_| {}).await;
    let endpoint = site.endpoint("410").await;
    site.event(1).await;
    site.delivery(&endpoint, DeliveryStatus::Failed).await;
    let paused = site.endpoint_is(&endpoint, EndpointStatus::Paused).await;
    assert!(!paused.is_active);
    assert_eq!(
        paused.status_reason.as_deref(),
        Some("the receiver answered 410 Gone")
    );
}

/// Attempts that were in flight when its owner resumed or moved an endpoint know nothing of that.
#[tokio::test]
async fn what_was_begun_before_the_owner_decided_does_not_undo_it() {
    let site = Site::open(|_| {}).await;
    let endpoint = site.endpoint("going").await;
    for number in 0..4 {
        site.event(number).await;
    }
    site.until_in_flight(4).await;
    let failed = async |count| {
        site.until("it has failed", |site| {
            site.webhooks.statistics().failed == count
        })
        .await;
        let is_failed = |delivery: &&Delivery| delivery.status == DeliveryStatus::Failed;
        until("the record says so", async || {
            let deliveries = site.deliveries(&endpoint).await;
            deliveries.iter().filter(is_failed).count() >= count as usize
        })
        .await;
    };
    let patch = async |patch: EndpointPatch| {
        let (account, id) = (site.account, endpoint.id);
        let changed = site
            .store
            .write(move |tx| Box::pin(rows::patch(tx, account, id, patch, now_ms())))
            .await;
        changed.unwrap();
    };
    site.fake.permits.add_permits(1);
    failed(1).await;
    site.endpoint_is(&endpoint, EndpointStatus::Paused).await;
    patch(EndpointPatch {
        is_active: Some(true),
        ..EndpointPatch::default()
    })
    .await;
    site.fake.permits.add_permits(1);
    failed(2).await;
    site.endpoint_is(&endpoint, EndpointStatus::Active).await;
    patch(EndpointPatch {
        url: Some("http://receiver.test/200".into()),
        ..EndpointPatch::default()
    })
    .await;
    site.fake.permits.add_permits(1);
    failed(3).await;
    // The health follows the record by a turn at most; an event that arrives has seen it.
    site.event(4).await;
    site.until("the new receiver is reached", |site| {
        site.webhooks.statistics().delivered == 1
    })
    .await;
    let now = site.endpoint_is(&endpoint, EndpointStatus::Active).await;
    assert_eq!(now.consecutive_failures, 0);
    assert!(now.last_failure_at.is_some());
}

/// On one worker of the runtime that the service has, which prefers what was spawned last.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_suspended_endpoint_gets_everything_in_order_once_it_answers() {
    let site = Site::open(|settings| {
        settings.suspend_after = 2;
        settings.suspend_over = Duration::ZERO;
        settings.probe_every = Duration::from_secs(1);
        settings.max_rest = Duration::from_millis(1);
    })
    .await;
    site.fake.is_down.store(true, SeqCst);
    let endpoint = site.endpoint("moody").await;
    let mut bodies = vec![site.event(0).await, site.event(1).await];
    let suspended = site.endpoint_is(&endpoint, EndpointStatus::Suspended).await;
    assert!(suspended.status_reason.is_some());
    for number in 2..12 {
        bodies.push(site.event(number).await);
    }
    let sent_while_down = site.seen().len();
    site.fake.is_down.store(false, SeqCst);
    site.endpoint_is(&endpoint, EndpointStatus::Active).await;
    site.until("everything has come", |site| {
        site.seen().len() >= sent_while_down + bodies.len()
    })
    .await;
    let came = site.seen();
    assert_eq!(
        came[came.len() - bodies.len()..],
        bodies,
        "in the order of the events"
    );
}

#[tokio::test]
async fn places_are_bounded_and_a_hanging_endpoint_leaves_some() {
    let site = Site::open(|settings| {
        settings.max_in_flight = 4;
        settings.max_per_endpoint = 2;
        settings.slow_after = Duration::from_millis(50);
    })
    .await;
    let hanging = site.endpoint("wait").await;
    for number in 0..8 {
        site.event(number).await;
    }
    site.until_in_flight(2).await;
    let healthy = site.endpoint("200").await;
    site.event(8).await;
    site.delivery(&healthy, DeliveryStatus::Delivered).await;
    assert_eq!(site.fake.in_flight.load(SeqCst), 2, "the hanging one's");
    assert!(site.fake.most_in_flight.load(SeqCst) <= 4);
    site.fake.permits.add_permits(100);
    let deadline = Instant::now() + PATIENCE;
    let is_left = |delivery: &Delivery| delivery.status != DeliveryStatus::Delivered;
    while site.deliveries(&hanging).await.iter().any(is_left) {
        assert!(Instant::now() < deadline, "waited in vain for the rest");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(site.fake.most_in_flight.load(SeqCst) <= 4);
}

#[tokio::test]
async fn at_the_end_what_is_in_flight_is_recorded_and_nothing_more_is_claimed() {
    let site = Site::open(|_| {}).await;
    let endpoint = site.endpoint("wait").await;
    site.event(1).await;
    site.until_in_flight(1).await;
    site.webhooks.drain().await;
    site.event(2).await;
    let webhooks = site.webhooks.clone();
    let closing = AbortOnDropHandle::new(tokio::spawn(async move { webhooks.close().await }));
    site.fake.permits.add_permits(5);
    tokio::time::timeout(PATIENCE, closing)
        .await
        .unwrap()
        .unwrap();
    let deliveries = site.deliveries(&endpoint).await;
    let found: Vec<_> = deliveries.iter().map(|delivery| delivery.status).collect();
    assert_eq!(found, [DeliveryStatus::Delivered, DeliveryStatus::Pending]);
    assert_eq!(site.seen().len(), 1);
    assert_eq!(site.webhooks.statistics().in_flight, 0);
}
