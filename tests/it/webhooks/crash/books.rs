//! Compares the receivers' requests with the service's records.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use serde_json::Value;
use sluice_actors::webhooks::signature;
use tokio::time::Instant;

use super::{AT_A_TIME, Subscriber};
use crate::{
    support::{Failure, receiver::Request, server::Api, skip},
    webhooks::{deliveries, delivery, events, text},
};

/// Time before a kill in which an attempt may have begun whose outcome did not reach the disk, on a machine with other
/// work.
const UNRECORDED: Duration = Duration::from_secs(2);

/// From before a kill until the service was ready again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outage {
    pub(super) began: Instant,
    pub(super) ended: Instant,
}

/// The records of one endpoint.
struct Account {
    secret: String,
    url: String,
    /// By event, in the order of their arrival.
    requests: HashMap<String, Vec<Arc<Request>>>,
    /// By event.
    deliveries: HashMap<String, Value>,
}

/// Everything, after all has settled.
pub(super) struct Books {
    outages: Vec<Outage>,
    /// The feed's `file.uploaded` events: the event's id and the file's, in their order.
    feed: Vec<(String, String)>,
    accounts: Vec<Account>,
    /// Requests that broke off, as those do whose sender is killed.
    broken: usize,
}

impl Books {
    pub(super) async fn read(
        api: &Api,
        subscribers: &[Subscriber],
        outages: Vec<Outage>,
    ) -> Result<Self, Failure> {
        let mut feed = Vec::new();
        for event in events(api).await? {
            if event["type"] == "file.uploaded" {
                feed.push((text(&event["id"])?, text(&event["data"]["fileId"])?));
            }
        }
        let mut accounts = Vec::new();
        for subscriber in subscribers {
            accounts.push(Account::read(api, subscriber).await?);
        }
        let broken = subscribers.iter().map(|it| it.receiver.broken()).sum();
        Ok(Self {
            outages,
            feed,
            accounts,
            broken,
        })
    }

    /// Each acknowledged upload once, and each event once.
    pub(super) fn check_feed(&self, acknowledged: &[String]) {
        let mut by_file: HashMap<&str, usize> = HashMap::new();
        for (_, file) in &self.feed {
            *by_file.entry(file).or_default() += 1;
        }
        for file in acknowledged {
            let times = by_file.get(file.as_str()).copied().unwrap_or_default();
            assert_eq!(times, 1, "events of the acknowledged file {file}");
        }
        let twice = by_file.iter().find(|(_, times)| **times != 1);
        assert_eq!(twice, None, "a file that no one acknowledged, too");
        let ids: HashSet<_> = self.feed.iter().map(|(id, _)| id).collect();
        assert_eq!(ids.len(), self.feed.len(), "ids of events");
        assert!(acknowledged.len() >= 100, "this was no load");
    }

    /// Every endpoint has a delivered delivery and at least one whole request for every event.
    pub(super) fn check_arrivals(&self) {
        for account in &self.accounts {
            for (event, file) in &self.feed {
                let seen = account.requests.get(event).map_or(0, Vec::len);
                assert!(seen >= 1, "{}: {event} of {file} never came", account.url);
                let status = account.deliveries.get(event).map(|it| &it["status"]);
                let status = status.and_then(Value::as_str);
                assert_eq!(status, Some("delivered"), "{}: {event}", account.url);
            }
            let known: HashSet<_> = self.feed.iter().map(|(id, _)| id).collect();
            let stranger = account.requests.keys().find(|event| !known.contains(event));
            assert_eq!(stranger, None, "{}: an event of no change", account.url);
        }
    }

    /// The same id has the same bytes, over attempts, endpoints and starts.
    pub(super) fn check_bodies(&self) {
        let mut bodies: HashMap<&str, &Request> = HashMap::new();
        for request in self.requests() {
            let first = *bodies.entry(request.event_id()).or_insert(request);
            assert!(
                first.body == request.body,
                "{}: {first:?} and {request:?}",
                request.event_id()
            );
        }
        for (id, file) in &self.feed {
            let Some(body) = bodies.get(id.as_str()) else {
                continue;
            };
            let body = body.json().expect("a receiver's body is JSON");
            assert_eq!(body["id"], **id);
            assert_eq!(body["data"]["fileId"], **file);
        }
    }

    pub(super) fn check_signatures(&self) {
        for account in &self.accounts {
            for request in account.requests.values().flatten() {
                let arrived_at = request.arrived_at.duration_since(UNIX_EPOCH);
                let now_s = arrived_at.expect("after 1970").as_secs() as i64;
                let checked = signature::verify(
                    &account.secret,
                    request.header(signature::SIGNATURE_HEADER),
                    &request.body,
                    now_s,
                    signature::DEFAULT_TOLERANCE_S,
                );
                assert_eq!(checked, Ok(()), "{request:?}");
            }
        }
    }

    /// Checks that there are as many attempts as requests; of those that were interrupted, some may not have been sent.
    pub(super) async fn check_attempts(&self, api: &Api) -> Result<(), Failure> {
        let mut interrupted = 0;
        for account in &self.accounts {
            for (event, record) in &account.deliveries {
                let seen = account.requests.get(event).map_or(0, Vec::len);
                // Most of them by far: one attempt that was delivered cannot have been interrupted.
                if record["attemptCount"] == 1 {
                    assert_eq!(seen, 1, "{}: {event} {record}", account.url);
                    continue;
                }
                let (record, attempts) = delivery(api, &text(&record["id"])?).await?;
                let cut = attempts.iter().filter(|it| it["status"] == "interrupted");
                let cut = cut.count();
                assert_eq!(record["attemptCount"], attempts.len(), "{record}");
                assert!(
                    (attempts.len() - cut..=attempts.len()).contains(&seen),
                    "{}: {seen} requests, {record} {attempts:?}",
                    account.url
                );
                interrupted += cut;
            }
        }
        let most = self.accounts.len() * AT_A_TIME * self.outages.len();
        eprintln!("{interrupted} attempts are recorded as interrupted");
        assert!(interrupted <= most, "{interrupted} interrupted");
        Ok(())
    }

    /// Checks the duplicates: requests for an event that an earlier request delivered. They must be few, each caused by
    /// a kill before the first one's outcome was on the disk.
    pub(super) fn check_duplicates(&self, most: f64) {
        let (mut duplicates, mut requests) = (0, 0);
        for account in &self.accounts {
            for (event, arrived) in &account.requests {
                requests += arrived.len();
                for pair in arrived.windows(2) {
                    if pair[0].answered.get() == Some(&500) {
                        continue;
                    }
                    duplicates += 1;
                    let killed = |it: &Outage| it.lies_between(&pair[0], &pair[1]);
                    assert!(
                        self.outages.iter().any(killed),
                        "{}: {event} came again without a kill between",
                        account.url
                    );
                }
            }
        }
        eprintln!("{duplicates} of {requests} requests are duplicates");
        let explained = self.accounts.len() * AT_A_TIME * self.outages.len();
        assert!(duplicates <= explained, "{duplicates} of {requests}");
        if explained as f64 > most * requests as f64 {
            return skip("the share of duplicates", "too few uploads in this time");
        }
        let share = duplicates as f64 / requests as f64;
        assert!(share <= most, "{duplicates} duplicates of {requests}");
    }

    fn requests(&self) -> impl Iterator<Item = &Request> {
        let requests = self.accounts.iter().flat_map(|it| it.requests.values());
        requests.flatten().map(Arc::as_ref)
    }
}

impl Outage {
    /// Returns whether the earlier one was on its way when the kill came, and the later one was sent after it.
    fn lies_between(&self, earlier: &Request, later: &Request) -> bool {
        let from = self.began.checked_sub(UNRECORDED).unwrap_or(self.began);
        (from..=self.ended).contains(&earlier.arrived) && later.arrived >= self.began
    }
}

impl Account {
    async fn read(api: &Api, subscriber: &Subscriber) -> Result<Self, Failure> {
        let mut requests: HashMap<String, Vec<_>> = HashMap::new();
        for request in subscriber.receiver.requests() {
            let event = request.event_id().to_owned();
            requests.entry(event).or_default().push(request);
        }
        let filter = format!("endpointId={}", subscriber.endpoint.id);
        let mut by_event = HashMap::new();
        for record in deliveries(api, &filter).await? {
            let before = by_event.insert(text(&record["eventId"])?, record);
            assert!(before.is_none(), "two deliveries of one event: {before:?}");
        }
        Ok(Self {
            secret: subscriber.endpoint.secret.clone(),
            url: subscriber.receiver.url(""),
            requests,
            deliveries: by_event,
        })
    }
}

impl fmt::Display for Books {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by_url: BTreeMap<_, usize> = self
            .accounts
            .iter()
            .map(|it| (&it.url, it.requests.values().map(Vec::len).sum()))
            .collect();
        write!(
            formatter,
            "{} events, requests {by_url:?}, {} broken off",
            self.feed.len(),
            self.broken
        )
    }
}
