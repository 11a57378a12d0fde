//! Limits of the whole service hold whichever node is asked: wrong passwords, requests a minute, monthly deliveries.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::Method;
use serde_json::json;

use crate::{
    soak::load::image,
    support::{
        Failure,
        api::{Api, fetch},
        dice::Dice,
        eventually,
        installation::Installation,
        json::{number, text},
    },
};

const SOON: Duration = Duration::from_secs(10);
/// Monthly deliveries of the plan; its requests a minute are those of the plan `free`.
const CAP: usize = 300;

/// The sixth wrong password is rejected, whichever node is asked.
pub async fn reject_sixth_password(installation: &Installation) -> Result<(), Failure> {
    let apis: Vec<Api> = installation.nodes.iter().map(|node| node.api()).collect();
    let wrong = json!({"username": "admin", "password": "not the one"});
    for attempt in 0..6 {
        let api = &apis[attempt % apis.len()];
        let request = api.anonymous(Method::POST, "/api/session").json(&wrong);
        let status = fetch(request).await?.status;
        let expected = if attempt < 5 { 401 } else { 429 };
        assert_eq!(status, expected, "attempt {attempt}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_requests_of_a_minute_are_counted_over_all_nodes() -> Result<(), Failure> {
    const PER_MINUTE: usize = 30;
    let installation = Installation::start(&[("SLUICE_ACCOUNT__PLAN", "free")]).await?;
    let apis: Vec<Api> = installation.nodes.iter().map(|node| node.api()).collect();
    // Each minute has counts of its own: again when the minute ended meanwhile.
    let admitted = loop {
        let minute = begin_minute().await?;
        let mut admitted = 0;
        // Slower than the nodes tell each other, so that the counts meet.
        for attempt in 0..PER_MINUTE * 2 {
            let request = apis[attempt % apis.len()].request(Method::GET, "/api/usage");
            admitted += usize::from(fetch(request).await?.status.is_success());
            tokio::time::sleep(Duration::from_millis(400)).await;
        }
        if since_epoch()?.as_secs() / 60 == minute {
            break admitted;
        }
    };
    // Within a second each node may admit what it has not heard of yet.
    assert!(
        (PER_MINUTE..=2 * PER_MINUTE - 10).contains(&admitted),
        "{admitted} were admitted"
    );
    Ok(())
}

/// Waits until a minute of the clock has most of its time left; returns its number.
async fn begin_minute() -> Result<u64, Failure> {
    let now = since_epoch()?;
    let over = Duration::from_secs(60 - now.as_secs() % 60);
    if over < Duration::from_secs(40) {
        tokio::time::sleep(over).await;
    }
    Ok(since_epoch()?.as_secs() / 60)
}

fn since_epoch() -> Result<Duration, Failure> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_monthly_cap_is_never_passed_over_nodes_and_kills() -> Result<(), Failure> {
    let cap = CAP.to_string();
    let environment = [
        ("SLUICE_PLANS__FREE__DELIVERIES_PER_MONTH", cap.as_str()),
        ("SLUICE_PLANS__FREE__REQUESTS_PER_MINUTE", "0"),
        ("SLUICE_ACCOUNT__PLAN", "free"),
    ];
    let mut installation = Installation::start(&environment).await?;
    let api = installation.nodes[0].api();
    let picture = image(0, &mut Dice::new(9));
    let file = text(&api.upload("picture.svg", &picture).await?["id"])?;
    let cdn = format!(
        "/cdn/v1/{}/{file}?w=20&format=webp",
        api.delivery_key().await?
    );
    let mut delivered = 0;
    for attempt in 0..CAP * 2 {
        if attempt == CAP / 4 || attempt == CAP / 2 {
            let node = &mut installation.nodes[attempt / (CAP / 4)];
            node.kill()?;
            node.start().await?;
        }
        let asked = installation.nodes[attempt % 3].api().look(&cdn).await;
        delivered += usize::from(asked.is_ok_and(|answer| answer.status.is_success()));
    }
    assert!(delivered <= CAP, "{delivered} of {CAP} were delivered");
    // A killed node takes the rest of its block with it, and no more.
    assert!(
        delivered >= CAP * 9 / 10,
        "{delivered} of {CAP} were delivered"
    );
    eventually("the meter says so", SOON, async || {
        let usage = api.get("/api/usage").await.ok()?;
        let used = number(&usage["deliveries"]["used"]).ok()?;
        (used as usize >= delivered).then_some(())
    })
    .await
}
