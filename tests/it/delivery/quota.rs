//! The month's cap on the real service: exact without a crash, never exceeded with one.

use futures_util::future::join_all;

use super::Gallery;
use crate::support::{
    Failure,
    server::{Server, Settings},
};

/// Deliveries a month in these scenarios.
const CAP: u64 = 250;

/// All accounts are on the plan `unlimited`; here it has a cap.
async fn capped() -> Result<Gallery, Failure> {
    let settings = Settings::new().env(
        "SLUICE_PLANS__UNLIMITED__DELIVERIES_PER_MONTH",
        &CAP.to_string(),
    );
    Gallery::on(settings.start().await?).await
}

/// Sends `times` requests at once; returns how many were delivered, and how many rejected.
async fn ask(gallery: &Gallery, times: usize) -> Result<(u64, u64), Failure> {
    let asking = (0..times).map(|_| {
        let (api, path) = (gallery.api.clone(), gallery.path("w=64&format=jpeg"));
        tokio::spawn(async move { api.fetch(&path).await })
    });
    let (mut delivered, mut refused) = (0, 0);
    for answer in join_all(asking).await {
        let answer = answer??;
        match answer.status.as_u16() {
            200 => delivered += 1,
            429 => {
                refused += 1;
                assert_eq!(answer.header("x-service-cdn-remaining-month"), "0");
                assert!(answer.json()?["upgradeUrl"].is_string());
            }
            status => return Err(format!("{status}").into()),
        }
    }
    Ok((delivered, refused))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cap_is_exact_over_a_clean_restart() -> Result<(), Failure> {
    let mut gallery = capped().await?;
    assert_eq!(ask(&gallery, 101).await?, (101, 0));
    gallery.server.terminate().await?;
    gallery.server.restart().await?;
    assert_eq!(ask(&gallery, 200).await?, (CAP - 101, 51));
    let head = gallery.api.fetch(&gallery.path("w=64&format=jpeg")).await?;
    assert_eq!(head.header("x-service-cdn-used-month"), "250");
    assert_eq!(head.header("x-service-cdn-limit-month"), "250");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cap_is_never_passed_over_kills() -> Result<(), Failure> {
    let mut gallery = capped().await?;
    let mut delivered = 0;
    for _ in 0..3 {
        delivered += ask(&gallery, 30).await?.0;
        gallery.server.kill().await?;
        gallery.server.restart().await?;
    }
    let (last, refused) = ask(&gallery, 300).await?;
    delivered += last;
    // Each kill loses at most one block: 1 % of the rest, that is two.
    assert!((CAP - 6..=CAP).contains(&delivered), "{delivered}");
    assert_eq!(refused, 300 - last);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_cap_the_month_is_counted() -> Result<(), Failure> {
    let gallery = Gallery::on(Server::start().await?).await?;
    assert_eq!(ask(&gallery, 20).await?, (20, 0));
    let answer = gallery
        .api
        .fetch(&gallery.path("w=64&format=jpeg"))
        .await?
        .expect(200)?;
    assert_eq!(answer.header("x-service-cdn-limit-month"), "unlimited");
    assert_eq!(answer.header("x-service-cdn-used-month"), "21");
    Ok(())
}
