//! Receivers that misbehave, and a database that is locked: the others get everything, and nothing is lost or done
//! twice.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde_json::Value;
use tokio::time::sleep;

use super::{SOON, deliveries, delivery, settings, subscribe, text, upload, wait_settled};
use crate::support::{
    Failure,
    database_lock::DatabaseLock,
    eventually,
    receiver::{Behaviour, Receiver},
    server::{Api, Server},
    skip,
};

const DRIP: Duration = Duration::from_millis(100);
const FILES: usize = 20;
/// Memory that a dozen hostile receivers may add: buffers of attempts that are bounded each.
const MAX_GROWTH_KIB: u64 = 64 * 1024;

/// A receiver's behaviour, the answer's status as it is recorded, and words of the error.
type Hostility = (&'static str, Behaviour, Option<u16>, &'static str);

fn hostilities(trap: &Receiver) -> Vec<Hostility> {
    let long = "é".repeat(5_000);
    vec![
        ("hang", Behaviour::Hang, None, "longer than"),
        ("drip-head", Behaviour::DripHead(DRIP), None, "longer than"),
        (
            "drip-body",
            Behaviour::DripBody(500, DRIP),
            Some(500),
            "500",
        ),
        ("endless", Behaviour::EndlessBody(500), Some(500), "500"),
        ("bomb", Behaviour::GzipBomb(500), Some(500), "500"),
        ("head", Behaviour::HugeHead(200), None, "larger than"),
        ("reset", Behaviour::Reset, None, "closed"),
        ("cut", Behaviour::CutShort(500), Some(500), "500"),
        ("garbage", Behaviour::Garbage, None, "HTTP"),
        ("long", Behaviour::with_body(503, long), Some(503), "503"),
        (
            "redirect",
            Behaviour::redirect(&trap.url("/trap")),
            Some(302),
            "302",
        ),
        ("refuse", Behaviour::status(404), Some(404), "404"),
    ]
}

/// A delivery to the endpoint of which one attempt has ended.
async fn tried(api: &Api, endpoint: &str) -> Result<Value, Failure> {
    let filter = format!("endpointId={endpoint}");
    eventually("an attempt has failed", SOON, async || {
        let all = deliveries(api, &filter).await.ok()?;
        all.into_iter().find(|it| it["error"].is_string())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_receivers_are_no_business_of_a_healthy_one() -> Result<(), Failure> {
    let mut server = settings()
        .env("SLUICE_WEBHOOKS__TIMEOUT", "2s")
        .env("SLUICE_WEBHOOKS__RETRY_AFTER_S", "1")
        .start()
        .await?;
    let api = server.api();
    let healthy = Receiver::start(Behaviour::status(200)).await?;
    let trap = Receiver::start(Behaviour::status(200)).await?;
    subscribe(&api, &healthy.url("/healthy"), &["*"]).await?;
    // The memory for a first request is not counted.
    upload(&api, 0).await?;
    healthy.wait_for(1, SOON).await?;
    let before = server.resident_kib()?;

    let mut hostile = Vec::new();
    for (name, behaviour, status, words) in hostilities(&trap) {
        let receiver = Receiver::start(behaviour).await?;
        let url = receiver.url(&format!("/{name}"));
        let endpoint = subscribe(&api, &url, &["file.uploaded"]).await?;
        hostile.push((name, receiver, endpoint, status, words));
    }
    // 200 and then an endless body: it may count as delivered or not, and must not affect other endpoints.
    let endless = Receiver::start(Behaviour::EndlessBody(200)).await?;
    subscribe(&api, &endless.url("/endless"), &["file.uploaded"]).await?;
    for number in 1..FILES {
        upload(&api, number).await?;
    }
    healthy.wait_for(FILES, SOON).await?;

    for (name, receiver, endpoint, status, words) in &hostile {
        let record = tried(&api, &endpoint.id).await?;
        assert_eq!(
            record["httpStatus"].as_u64(),
            status.map(u64::from),
            "{name}: {record}"
        );
        let error = text(&record["error"])?;
        assert!(error.contains(words), "{name}: {record}");
        assert!(error.len() <= 1000, "{name}: {record}");
        let preview = record["responseBodyPreview"].as_str().unwrap_or_default();
        assert!(preview.chars().count() <= 1000, "{name}: {record}");
        assert!(receiver.count() >= 1, "{name} was asked");
    }
    assert_eq!(trap.connections(), 0, "no one follows redirects");
    assert!(endless.count() >= 1);

    assert!(server.is_running());
    server.wait_ready(SOON).await?;
    let growth = server.peak_resident_kib()?.saturating_sub(before);
    eprintln!("{growth} KiB more at most");
    assert!(growth < MAX_GROWTH_KIB, "{growth} KiB more than {before}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retry_after_is_honoured_inside_bounds() -> Result<(), Failure> {
    let server = settings()
        .env("SLUICE_WEBHOOKS__RETRY_AFTER_S", "10,10")
        .env("SLUICE_WEBHOOKS__MAX_RETRY_AFTER", "10m")
        .start()
        .await?;
    let api = server.api();
    let in_five_minutes = Timestamp::try_from(SystemTime::now() + Duration::from_secs(300))?;
    let date = in_five_minutes.strftime("%a, %d %b %Y %H:%M:%S GMT");
    // Seconds until the second attempt; the ladder's own pause is ±20 %, and a date is as old as this test.
    let ladder = 7.9..=12.1;
    let cases = [
        ("-1".to_owned(), ladder.clone()),
        ("2".to_owned(), ladder.clone()),
        ("soon".to_owned(), ladder),
        ("120".to_owned(), 119.9..=120.1),
        ("99999999".to_owned(), 599.9..=600.1),
        ("99999999999999999999999".to_owned(), 599.9..=600.1),
        (date.to_string(), 240.0..=301.0),
    ];
    let mut receivers = Vec::new();
    for (value, _) in &cases {
        let receiver = Receiver::start(Behaviour::retry_after(429, value)).await?;
        let endpoint = subscribe(&api, &receiver.url("/later"), &["file.uploaded"]).await?;
        receivers.push((receiver, endpoint));
    }
    upload(&api, 0).await?;
    for ((value, expected), (_receiver, endpoint)) in cases.iter().zip(&receivers) {
        let record = tried(&api, &endpoint.id).await?;
        let (_, attempts) = delivery(&api, &text(&record["id"])?).await?;
        let time = |value: &Value| text(value)?.parse::<Timestamp>().map_err(Failure::from);
        let ended = time(&attempts[0]["endedAt"])?;
        let pause = time(&record["nextAttemptAt"])?.duration_since(ended);
        assert!(
            expected.contains(&pause.as_secs_f64()),
            "{value}: {pause:?}"
        );
    }
    Ok(())
}

/// Returns the time for which the database is locked: 30 s with `SLUICE_TEST_LOCK_S=30`, less where everything else
/// waits too.
fn lock_lasts() -> Duration {
    let seconds = std::env::var("SLUICE_TEST_LOCK_S").ok();
    Duration::from_secs(seconds.and_then(|it| it.parse().ok()).unwrap_or(4))
}

/// Receivers that answer while the lock lasts, so that outcomes have to wait for it, and so slowly that some files wait
/// when a busy machine has taken the lock.
async fn slow_receivers(api: &Api) -> Result<Vec<Receiver>, Failure> {
    let mut receivers = Vec::new();
    for name in ["one", "two", "three"] {
        let slow = Behaviour::after(Duration::from_millis(1_500), Behaviour::status(200));
        let receiver = Receiver::start(slow).await?;
        subscribe(api, &receiver.url(&format!("/{name}")), &["file.uploaded"]).await?;
        receivers.push(receiver);
    }
    Ok(receivers)
}

async fn take_lock(server: &Server) -> Result<Option<DatabaseLock>, Failure> {
    DatabaseLock::take(&server.data_dir().join("sluice.db")).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_locked_for_longer_than_anybody_waits_costs_nothing() -> Result<(), Failure> {
    let server = settings()
        .env("SLUICE_STORE__BUSY_TIMEOUT", "1s")
        .start()
        .await?;
    let api = server.api();
    let receivers = slow_receivers(&api).await?;
    let mut files = 0;
    while files < 12 {
        upload(&api, files).await?;
        files += 1;
    }
    for receiver in &receivers {
        receiver.wait_for(1, SOON).await?;
    }
    let Some(lock) = take_lock(&server).await? else {
        skip("webhooks and a locked database", "no python3");
        return Ok(());
    };
    let refused = upload(&api, 1_000).await;
    assert!(refused.is_err(), "nothing is promised that is not stored");
    // The lock's length is what is tried here.
    sleep(lock_lasts()).await;
    let claimed: usize = receivers.iter().map(Receiver::count).sum();
    assert!(
        claimed < files * receivers.len(),
        "some wait for the lock's end"
    );
    lock.release().await?;

    let again = async || upload(&api, files).await.ok();
    eventually("the database takes changes again", SOON, again).await?;
    files += 1;
    wait_settled(&api, Duration::from_secs(30)).await?;
    for receiver in &receivers {
        assert_eq!(receiver.count(), files, "each of them once");
    }
    let all = deliveries(&api, "").await?;
    assert_eq!(all.len(), files * receivers.len());
    for record in all {
        assert_eq!(record["status"], "delivered", "{record}");
        assert_eq!(record["attemptCount"], 1, "{record}");
    }
    Ok(())
}
