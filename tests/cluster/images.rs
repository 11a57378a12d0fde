//! Delivered images: one render for equal misses on all nodes, and none of a deleted file soon after the answer.

use std::time::Duration;

use reqwest::Method;
use tokio::task::JoinSet;

use crate::{
    soak::load::image,
    support::{
        Failure,
        api::{Api, client, fetch},
        dice::Dice,
        eventually,
        installation::Installation,
        json::text,
    },
};

/// Equal misses at once.
const MISSES: usize = 1_000;
/// For a first render in a debug build, on a machine with other work.
const SOON: Duration = Duration::from_secs(10);
/// Longest time until no node serves a deleted file's image.
const EVERYWHERE: Duration = Duration::from_secs(2);

/// A thousand equal misses are one render, and a purge is everywhere.
pub async fn render_once_and_purge(installation: &Installation) -> Result<(), Failure> {
    let apis: Vec<Api> = installation.nodes.iter().map(|node| node.api()).collect();
    let picture = image(0, &mut Dice::new(3));
    let file = text(&apis[0].upload("picture.svg", &picture).await?["id"])?;
    let key = apis[0].delivery_key().await?;
    let path = |width: usize| format!("/cdn/v1/{key}/{file}?w={width}&format=webp");
    for api in &apis {
        eventually("the key is known", SOON, async || {
            let answer = api.look(&path(16)).await.ok()?;
            answer.status.is_success().then_some(())
        })
        .await?;
    }

    let before = renders(installation).await?;
    let mut misses = JoinSet::new();
    for number in 0..MISSES {
        let (api, path) = (apis[number % apis.len()].clone(), path(500));
        misses.spawn(async move { api.look(&path).await?.expect(200) });
    }
    let mut bytes = None;
    while let Some(answer) = misses.join_next().await {
        let answer = answer??.bytes;
        assert!(
            *bytes.get_or_insert(answer.clone()) == answer,
            "two renders differ"
        );
    }
    assert_eq!(renders(installation).await? - before, 1, "renders");

    let deleted = apis[1].delete(&format!("/api/files/{file}")).await?;
    assert!(deleted.status.is_success(), "{}", deleted.text());
    for api in &apis {
        for width in [16, 500] {
            eventually("the image is gone", EVERYWHERE, async || {
                let answer = api.look(&path(width)).await.ok()?;
                (answer.status == 404).then_some(())
            })
            .await?;
        }
    }
    Ok(())
}

/// Images rendered since the starts of all nodes.
async fn renders(installation: &Installation) -> Result<u64, Failure> {
    let mut sum = 0;
    for node in &installation.nodes {
        let metrics = client().request(Method::GET, format!("http://{}/metrics", node.http));
        let metrics = fetch(metrics).await?.expect(200)?;
        let metrics = String::from_utf8(metrics.bytes.into())?;
        let mut lines = metrics.lines();
        let made =
            lines.find_map(|line| line.strip_prefix(r#"sluice_cdn_variants{made="rendered"} "#));
        sum += made.ok_or("no sluice_cdn_variants")?.parse::<u64>()?;
    }
    Ok(sum)
}
