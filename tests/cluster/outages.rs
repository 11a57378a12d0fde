//! PostgreSQL or S3 away: cached images go on, everything else is answered 503 with `Retry-After` or right, and nothing is lost.

use std::time::Duration;

use reqwest::Method;
use tokio::time::{Instant, sleep};

use crate::{
    soak::load::image,
    support::{
        Failure,
        api::{Answer, Api, fetch},
        dice::Dice,
        eventually,
        installation::Installation,
        is_soak,
        json::text,
    },
};

/// Longest time after the end of an outage until everything is as before.
const BACK: Duration = Duration::from_secs(60);

fn length(whole_s: u64) -> Duration {
    Duration::from_secs(if is_soak() { whole_s } else { 12 })
}

/// An installation with a stored picture that each node has in its cache of images, and one that has been delivered by none.
struct Scene {
    installation: Installation,
    apis: Vec<Api>,
    cached: String,
}

impl Scene {
    async fn set() -> Result<Self, Failure> {
        let installation = Installation::start(&[]).await?;
        let apis: Vec<Api> = installation.nodes.iter().map(|node| node.api()).collect();
        let picture = image(0, &mut Dice::new(6));
        let file = text(&apis[0].upload("picture.svg", &picture).await?["id"])?;
        let cached = format!(
            "/cdn/v1/{}/{file}?w=30&format=webp",
            apis[0].delivery_key().await?
        );
        Ok(Self {
            installation,
            apis,
            cached,
        })
    }

    /// Brings the picture into the caches of all nodes.
    async fn fill_caches(&self) -> Result<(), Failure> {
        for api in &self.apis {
            eventually("the image is delivered", BACK, async || {
                let answer = api.look(&self.cached).await.ok()?;
                answer.status.is_success().then_some(())
            })
            .await?;
        }
        Ok(())
    }

    /// Asks for the cached image, the list of files, and an upload, for so long; what was uploaded with success. Bytes of another
    /// seed are stored nowhere yet.
    async fn live_through(&self, outage: Duration, seed: u64) -> Result<Vec<String>, Failure> {
        let (began, mut dice, mut stored) = (Instant::now(), Dice::new(seed), Vec::new());
        let mut number = 1_000;
        while began.elapsed() < outage {
            for api in &self.apis {
                api.look(&self.cached).await?.expect(200)?;
                let listed = fetch(api.request(Method::GET, "/api/files")).await?;
                check_answer(&listed)?;
                number += 1;
                let name = format!("{number}.svg");
                let bytes = image(number, &mut dice);
                let sent = api
                    .send("/api/files", ("file", &name, &bytes), &[], &[])
                    .await?;
                check_answer(&sent)?;
                if sent.status.is_success() {
                    stored.push(text(&sent.json()?["file"]["id"])?);
                }
            }
            sleep(Duration::from_millis(200)).await;
        }
        Ok(stored)
    }

    /// Everything that was acknowledged is there, and more can be stored by each node.
    async fn check_after(&self, stored: &[String], seed: u64) -> Result<(), Failure> {
        for api in &self.apis {
            eventually("a file can be stored again", BACK, async || {
                let bytes = image(2_000, &mut Dice::new(seed + 100));
                api.upload("after.svg", &bytes).await.ok()
            })
            .await?;
            for id in stored {
                let record = api.get(&format!("/api/files/{id}")).await?;
                let url = text(&record["file"]["download_url"])?;
                api.look(&url).await?.expect(200)?;
            }
        }
        Ok(())
    }
}

/// Right, or 503 with the time after which to ask again.
fn check_answer(answer: &Answer) -> Result<(), Failure> {
    let is_right = answer.status.is_success();
    let may_come_again = answer.status == 503 && !answer.header("retry-after").is_empty();
    match is_right || may_come_again {
        true => Ok(()),
        false => Err(format!("{}: {}", answer.status, answer.text()).into()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_an_outage_cached_images_go_on_and_the_api_says_when_to_come_again()
-> Result<(), Failure> {
    let mut scene = Scene::set().await?;
    do_without_postgres(&mut scene).await?;
    do_without_objects(&mut scene).await
}

async fn do_without_postgres(scene: &mut Scene) -> Result<(), Failure> {
    const SEED: u64 = 7;
    scene.fill_caches().await?;
    scene.installation.postgres.stop_at_once()?;
    let stored = scene.live_through(length(30), SEED).await?;
    assert!(
        stored.is_empty(),
        "a row was acknowledged without PostgreSQL"
    );
    scene.installation.postgres.launch().await?;
    scene.check_after(&stored, SEED).await?;
    scene.installation.wait_for_nodes(3).await
}

/// Nothing is acknowledged that the object store has not.
async fn do_without_objects(scene: &mut Scene) -> Result<(), Failure> {
    const SEED: u64 = 8;
    scene.fill_caches().await?;
    scene.installation.objects.kill()?;
    let stored = scene.live_through(length(60), SEED).await?;
    assert!(stored.is_empty(), "bytes were acknowledged without S3");
    scene.installation.objects.launch().await?;
    scene.check_after(&stored, SEED).await
}
