//! Addresses of a workflow's own.

use serde_json::Map;

use super::*;
use crate::{
    Page,
    events::{self, Audience, EventPosition as Sequence, NewEvent},
    statement::query_scalar,
    webhooks::{self, Delivery, DeliveryFilter, DeliveryStatus},
};

const A: &str = "https://a.example/hook";
const B: &str = "https://b.example/hook";

impl Bench {
    async fn posting(&self, urls: &[&str]) -> Workflow {
        create_in(&self.world, self.account, posting_to(urls)).await
    }

    async fn save_posting(&self, id: Uuid, urls: &[&str]) {
        let (account, new) = (self.account, posting_to(urls));
        self.write(move |tx| Box::pin(replace(tx, account, id, new, None, 9, NOW)))
            .await
            .unwrap();
    }

    async fn ensure(&self, workflow_id: Uuid, urls: &[&str]) -> Vec<Uuid> {
        let new = NewRun {
            workflow_id,
            ..self.new_run()
        };
        let urls: Vec<String> = urls.iter().map(|url| (*url).to_owned()).collect();
        self.write(move |tx| {
            Box::pin(async move {
                let Submitted::New(run) = submit(tx, &new, LIMITS, None, NOW).await? else {
                    panic!("there is room");
                };
                ensure_addresses(tx, &run, &urls, NOW).await
            })
        })
        .await
        .unwrap()
    }

    async fn event(&self, also: Vec<Uuid>) {
        let new = NewEvent {
            account_id: self.account,
            event_type: "workflow.completed",
            audience: Audience::Everyone,
            also,
            resource: "run:1".into(),
            place: Sequence::Last,
            data: Map::new(),
        };
        self.write(move |tx| Box::pin(events::append(tx, new, NOW)))
            .await
            .unwrap();
    }

    async fn deliveries(&self) -> Vec<Delivery> {
        let (filter, page) = (DeliveryFilter::default(), Page::first(100));
        webhooks::deliveries(&mut self.world.read().await, self.account, &filter, page)
            .await
            .unwrap()
    }

    /// Returns the existing addresses, as `url status`.
    async fn there(&self) -> Vec<String> {
        query_scalar(
            "SELECT url || ' ' || status FROM webhook_endpoints WHERE deleted_at IS NULL AND workflow_id IS NOT NULL ORDER BY url",
        )
        .fetch_all(&mut self.world.read().await)
        .await
        .unwrap()
    }
}

fn posting_to(urls: &[&str]) -> NewWorkflow {
    NewWorkflow {
        webhook_urls: urls.iter().map(|url| (*url).to_owned()).collect(),
        ..new_workflow("posting")
    }
}

#[tokio::test]
async fn they_are_not_among_the_accounts_webhooks() {
    let bench = Bench::new().await;
    let workflow = bench.posting(&[A, B, A]).await;
    assert_eq!(bench.there().await.len(), 2, "one for each address");
    let id = bench.ensure(workflow.id, &[A]).await[0];
    let account = bench.account;
    let mut reader = bench.world.read().await;
    let listed = webhooks::list(&mut reader, account, Page::first(9)).await;
    assert_eq!(listed.unwrap(), []);
    let mut rejections = vec![webhooks::get(&mut reader, account, id).await.map(drop)];
    drop(reader);
    rejections.push(
        bench
            .write(move |tx| Box::pin(webhooks::delete(tx, account, id, NOW)))
            .await
            .map(drop),
    );
    rejections.push(
        bench
            .write(move |tx| Box::pin(webhooks::rotate_secret(tx, account, id, 0, NOW)))
            .await
            .map(drop),
    );
    rejections.push(
        bench
            .write(move |tx| Box::pin(webhooks::test(tx, account, id, NOW)))
            .await
            .map(drop),
    );
    rejections.push(
        bench
            .write(move |tx| Box::pin(webhooks::recover(tx, account, id, 0, 9, NOW)))
            .await
            .map(drop),
    );
    for (verb, rejected) in rejections.into_iter().enumerate() {
        let is_rejected = matches!(rejected, Err(Error::NotFound("webhook")));
        assert!(is_rejected, "verb {verb}: {rejected:?}");
    }
    let new = webhooks::NewEndpoint {
        url: A.into(),
        event_types: vec!["*".into()],
        description: None,
        is_active: true,
    };
    bench
        .write(move |tx| Box::pin(webhooks::create(tx, account, new, 1, NOW)))
        .await
        .expect("they do not count");
}

#[tokio::test]
async fn an_event_goes_to_its_audience_and_also_to_them() {
    let bench = Bench::new().await;
    let subscriber = bench.world.endpoint(&["*"]).await;
    let workflow = bench.posting(&[A, B]).await;
    let own = bench.ensure(workflow.id, &[A]).await;
    bench.event(Vec::new()).await;
    let audience = |deliveries: Vec<Delivery>| {
        let mut ids: Vec<Uuid> = deliveries.iter().map(|one| one.endpoint_id).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(
        audience(bench.deliveries().await),
        [subscriber],
        "no subscription reaches them"
    );
    let stranger = {
        let other = webhooks::tests::add_account(&bench.world.store).await;
        bench.world.endpoint_of(other, &["*"]).await
    };
    bench
        .event(vec![own[0], own[0], subscriber, stranger, Uuid::now_v7()])
        .await;
    let mut expected = vec![subscriber, subscriber, own[0]];
    expected.sort_unstable();
    assert_eq!(audience(bench.deliveries().await), expected);
}

#[tokio::test]
async fn a_delivery_to_them_can_be_sent_again() {
    let bench = Bench::new().await;
    let workflow = bench.posting(&[A]).await;
    let own = bench.ensure(workflow.id, &[A]).await;
    bench.event(own).await;
    bench
        .world
        .run("UPDATE webhook_deliveries SET status = 'delivered', ended_at = 1")
        .await
        .unwrap();
    let (account, id) = (bench.account, bench.deliveries().await[0].id);
    let again = bench
        .write(move |tx| Box::pin(webhooks::replay(tx, account, id, NOW)))
        .await
        .unwrap();
    assert_eq!(again.status, DeliveryStatus::Retrying);
    assert_eq!(again.endpoint_url, A);
    bench.save_posting(workflow.id, &[]).await;
    let ended = &bench.deliveries().await[0];
    assert_eq!(ended.status, DeliveryStatus::Failed);
    let deleted = bench
        .write(move |tx| Box::pin(webhooks::replay(tx, account, id, NOW)))
        .await;
    assert!(matches!(deleted, Err(Error::Conflict(_))));
}

#[tokio::test]
async fn a_save_makes_them_those_of_the_definition() {
    let bench = Bench::new().await;
    let workflow = bench.posting(&[A]).await;
    for status in ["suspended", "paused"] {
        let statement = format!("UPDATE webhook_endpoints SET status = '{status}'");
        bench.world.run(statement).await.unwrap();
        let there = bench.there().await;
        assert!(there.iter().all(|one| one.ends_with(status)), "{there:?}");
        bench.save_posting(workflow.id, &[A, B]).await;
        assert_eq!(
            bench.there().await,
            [format!("{A} active"), format!("{B} active")]
        );
    }
    let before = bench.ensure(workflow.id, &[B, A]).await;
    bench.save_posting(workflow.id, &[B]).await;
    assert_eq!(bench.there().await, [format!("{B} active")]);
    // A run of the version before still has the other one.
    let after = bench.ensure(workflow.id, &[B, A]).await;
    assert_eq!(after[0], before[0]);
    assert_ne!(after[1], before[1]);
    assert_eq!(bench.there().await.len(), 2);
}

#[tokio::test]
async fn they_go_with_the_workflow() {
    let bench = Bench::new().await;
    let workflow = bench.posting(&[A, B]).await;
    let (account, id) = (bench.account, workflow.id);
    let urls = vec![A.to_owned()];
    let new = NewRun {
        workflow_id: id,
        ..bench.new_run()
    };
    let remade = bench
        .write(move |tx| {
            Box::pin(async move {
                let Submitted::New(run) = submit(tx, &new, LIMITS, None, NOW).await? else {
                    panic!("there is room");
                };
                delete(tx, account, id, 9, TERMS, NOW).await?;
                ensure_addresses(tx, &run, &urls, NOW).await
            })
        })
        .await;
    assert!(remade.unwrap().is_empty());
    assert_eq!(bench.there().await, [""; 0]);
}

#[tokio::test]
async fn a_new_secret_signs_beside_the_old_one() {
    let bench = Bench::new().await;
    let workflow = bench.posting(&[A]).await;
    let (account, id) = (bench.account, workflow.id);
    let rotated = bench
        .write(move |tx| Box::pin(rotate_secret(tx, account, id, 60_000, NOW)))
        .await
        .unwrap();
    assert_ne!(rotated.webhook_secret, workflow.webhook_secret);
    let own = bench.ensure(id, &[A]).await;
    bench.event(own).await;
    let lanes = webhooks::lanes(&mut bench.world.read().await, &[]).await;
    let endpoint = &lanes.unwrap()[0].endpoint;
    let both = [&rotated.webhook_secret, &workflow.webhook_secret];
    assert_eq!(endpoint.secrets(NOW + 59_999), both);
    assert_eq!(endpoint.secrets(NOW + 60_000), both[..1]);
}
