//! Tests on a real database: an account, its endpoints, and its events.

mod claims;
mod endpoints;
mod lists;
mod measure;
mod outcomes;
mod releases;
mod replays;
mod requests;

use std::{path::Path, time::Duration};

use serde_json::{Map, Value};
use tempfile::TempDir;
use uuid::Uuid;

use super::*;
use crate::{
    Error, Secret, Store, StoreSettings, Tx, Work, accounts,
    events::{self, Audience, Event, EventPosition, NewEvent},
};

/// 21 November 2026.
pub(crate) const NOW: i64 = 1_795_219_200_000;
/// Beyond every due time of these tests.
const HORIZON: i64 = NOW + 7_200_000;
const LEASE: Duration = Duration::from_secs(30);

/// A store with one account.
pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) account: Uuid,
    _folder: TempDir,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::open(StoreSettings::without_reserve).await
    }

    /// For query plans and what else is SQLite's own.
    pub(crate) async fn on_sqlite() -> Self {
        Self::open(StoreSettings::on_sqlite).await
    }

    pub(crate) async fn open(settings: fn(&Path) -> StoreSettings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&settings(folder.path())).await.unwrap();
        let account = add_account(&store).await;
        Self {
            store,
            account,
            _folder: folder,
        }
    }

    /// Runs verbs in one unit of work.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl for<'t> FnOnce(&'t mut Tx<'_>) -> Work<'t, T> + Send + 'static,
    ) -> Result<T, Error> {
        self.store.write(work).await
    }

    /// Runs statements of SQL in one unit of work: for states that no verb makes.
    pub(crate) async fn run(&self, statements: impl Into<String>) -> Result<(), Error> {
        let statements = statements.into();
        self.write(move |tx| {
            Box::pin(async move { Ok(crate::statement::script(tx, statements).await?) })
        })
        .await
    }

    pub(crate) async fn read(&self) -> crate::Reader {
        self.store.read().await.unwrap()
    }

    /// An active endpoint of that account for these types.
    pub(crate) async fn endpoint_of(&self, account: Uuid, types: &[&str]) -> Uuid {
        let new = new_endpoint(types);
        let created = self.write(move |tx| Box::pin(create(tx, account, new, 10_000, NOW)));
        created.await.unwrap().0.id
    }

    pub(crate) async fn endpoint(&self, types: &[&str]) -> Uuid {
        self.endpoint_of(self.account, types).await
    }

    pub(crate) async fn append(&self, new: NewEvent, now_ms: i64) -> Result<Event, Error> {
        self.write(move |tx| Box::pin(events::append(tx, new, now_ms)))
            .await
    }

    /// Appends an event for all subscribers.
    pub(crate) async fn event(&self, now_ms: i64) -> Event {
        self.append(file_uploaded(self.account), now_ms)
            .await
            .unwrap()
    }

    async fn patch(&self, id: Uuid, patch: EndpointPatch) -> Endpoint {
        let account = self.account;
        self.write(move |tx| Box::pin(super::patch(tx, account, id, patch, NOW)))
            .await
            .unwrap()
    }

    async fn switch(&self, id: Uuid, is_active: bool) -> Endpoint {
        let patch = EndpointPatch {
            is_active: Some(is_active),
            ..EndpointPatch::default()
        };
        self.patch(id, patch).await
    }

    async fn suspend(&self, id: Uuid) -> Endpoint {
        let mut health = self.get(id).await.health();
        health.status = EndpointStatus::Suspended;
        health.consecutive_failures = 10;
        self.set_health(id, health).await
    }

    async fn set_health(&self, id: Uuid, health: EndpointHealth) -> Endpoint {
        self.write(move |tx| Box::pin(async move { set_healths(tx, &[(id, health)]).await }))
            .await
            .unwrap();
        self.get(id).await
    }

    async fn get(&self, id: Uuid) -> Endpoint {
        get(&mut self.read().await, self.account, id).await.unwrap()
    }

    async fn delete(&self, id: Uuid) {
        let account = self.account;
        self.write(move |tx| Box::pin(delete(tx, account, id, NOW)))
            .await
            .unwrap();
    }

    async fn claim_as(&self, owner: Uuid, wanted: Vec<ClaimRequest>, now_ms: i64) -> Vec<Claimed> {
        self.write(move |tx| {
            Box::pin(async move { claim(tx, owner, &wanted, LEASE, HORIZON, now_ms).await })
        })
        .await
        .unwrap()
    }

    async fn claim(&self, what: What, endpoint_id: Uuid, rows: u32, now_ms: i64) -> Vec<Claimed> {
        let wanted = ClaimRequest {
            endpoint_id,
            rows,
            what,
        };
        self.claim_as(Uuid::now_v7(), vec![wanted], now_ms).await
    }

    /// Claims one that is due.
    async fn claim_one(&self, endpoint_id: Uuid, now_ms: i64) -> Claimed {
        let mut claimed = self.claim(What::Due, endpoint_id, 1, now_ms).await;
        claimed.pop().expect("something is due")
    }

    async fn record(&self, attempted: Vec<Attempted>) -> u64 {
        self.write(move |tx| Box::pin(async move { record(tx, &attempted).await }))
            .await
            .unwrap()
    }

    async fn delivery(&self, id: Uuid) -> Delivery {
        delivery(&mut self.read().await, self.account, id)
            .await
            .unwrap()
    }

    async fn attempts(&self, id: Uuid) -> Vec<Attempt> {
        attempts(&mut self.read().await, id).await.unwrap()
    }

    /// The account's deliveries, oldest first.
    async fn deliveries(&self) -> Vec<Delivery> {
        let filter = DeliveryFilter::default();
        let page = crate::Page::first(1_000);
        let mut all = deliveries(&mut self.read().await, self.account, &filter, page)
            .await
            .unwrap();
        all.reverse();
        all
    }
}

pub(crate) async fn add_account(store: &Store) -> Uuid {
    store
        .write(|tx| Box::pin(async move { Ok(accounts::create(tx, "someone", NOW).await?.id) }))
        .await
        .unwrap()
}

fn new_endpoint(types: &[&str]) -> NewEndpoint {
    NewEndpoint {
        url: "https://example.org/hook".into(),
        event_types: types.iter().map(|name| (*name).to_owned()).collect(),
        description: None,
        is_active: true,
    }
}

pub(crate) fn file_uploaded(account_id: Uuid) -> NewEvent {
    NewEvent {
        account_id,
        event_type: "file.uploaded",
        audience: Audience::Everyone,
        also: Vec::new(),
        resource: "file:1".into(),
        place: EventPosition::Only,
        data: Map::from_iter([("filename".to_owned(), Value::from("a.png"))]),
    }
}

/// Returns the outcome of a claim's attempt.
fn ended(claimed: &Claimed, next: Next) -> Attempted {
    let is_success = next == Next::Delivered;
    Attempted {
        delivery_id: claimed.delivery_id,
        fence: claimed.fence,
        number: claimed.number,
        signed_at: Some(NOW + 40),
        ended_at: NOW + 50,
        http_status: Some(if is_success { 200 } else { 503 }),
        response_preview: Some("an answer".into()),
        error: (!is_success).then(|| "the receiver answered 503".into()),
        next,
    }
}
