//! Nodes that are stopped and started one after the other, also with another program: no client sees it, and no job is lost.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use reqwest::Method;
use serde_json::Value;
use tokio::{task::JoinSet, time::sleep};

use crate::{
    soak::load::image,
    support::{
        Failure,
        api::{Api, fetch},
        dice::Dice,
        eventually,
        installation::Installation,
        json::{number, text},
        node::program,
        objects::Objects,
    },
};

/// Path of an older program (`scripts/older-program.sh COMMIT`), which the nodes begin with.
const OLDER: &str = "SLUICE_OLDER_PROGRAM";
const SOON: Duration = Duration::from_secs(10);
/// For jobs in a debug build, on a machine with other work.
const ENDED: Duration = Duration::from_secs(180);

/// Clients that ask through the balancer all the time, and fail at the first answer that is not right.
struct Clients {
    tasks: JoinSet<Result<Vec<String>, Failure>>,
    stop: Arc<AtomicBool>,
}

impl Clients {
    async fn start(api: &Api) -> Result<Self, Failure> {
        let picture = image(0, &mut Dice::new(10));
        let file = text(&api.upload("picture.svg", &picture).await?["id"])?;
        let cdn = format!(
            "/cdn/v1/{}/{file}?w=25&format=webp",
            api.delivery_key().await?
        );
        for _ in 0..10 {
            // Each node knows the key soon.
            eventually("the image is delivered", SOON, async || {
                let answer = api.look(&cdn).await.ok()?;
                answer.status.is_success().then_some(())
            })
            .await?;
        }
        let (mut tasks, stop) = (JoinSet::new(), Arc::<AtomicBool>::default());
        let number = Arc::<AtomicUsize>::default();
        for _ in 0..2 {
            tasks.spawn(ask(api.clone(), cdn.clone(), number.clone(), stop.clone()));
        }
        Ok(Self { tasks, stop })
    }

    /// Ids of the jobs that they made.
    async fn finish(mut self) -> Result<Vec<String>, Failure> {
        self.stop.store(true, Relaxed);
        let mut jobs = Vec::new();
        while let Some(ended) = self.tasks.join_next().await {
            jobs.extend(ended??);
        }
        Ok(jobs)
    }
}

async fn ask(
    api: Api,
    cdn: String,
    number: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
) -> Result<Vec<String>, Failure> {
    let (mut dice, mut jobs) = (Dice::new(11), Vec::new());
    while !stop.load(Relaxed) {
        let number = number.fetch_add(1, Relaxed);
        fetch(api.request(Method::GET, "/api/files"))
            .await?
            .expect(200)?;
        api.look(&cdn).await?.expect(200)?;
        jobs.push(
            api.convert(&format!("{number}.svg"), &image(number, &mut dice))
                .await?,
        );
        sleep(Duration::from_millis(100)).await;
    }
    Ok(jobs)
}

/// Operations that are charged.
async fn charged(api: &Api) -> Result<usize, Failure> {
    let usage = api.get("/api/usage").await?;
    Ok(usize::try_from(number(&usage["operations"]["used"])?)?)
}

/// All jobs complete, and each is charged once.
async fn check_jobs(api: &Api, jobs: &[String], charged_before: usize) -> Result<(), Failure> {
    for job in jobs {
        let is_done = |job: &Value| (job["status"] == "completed").then_some(());
        let what = format!("job {job} has completed");
        api.wait(&format!("/api/jobs/{job}"), &what, ENDED, is_done)
            .await?;
    }
    let since = charged(api).await? - charged_before;
    assert_eq!(since, jobs.len(), "charges");
    Ok(())
}

/// Nodes are restarted one after the other, and no client sees it.
pub async fn restart_one_by_one(installation: &mut Installation) -> Result<(), Failure> {
    let api = installation.api();
    let before = charged(&api).await?;
    let clients = Clients::start(&api).await?;
    for number in 0..installation.nodes.len() {
        installation.nodes[number].terminate().await?;
        installation.nodes[number].start().await?;
        installation.wait_for_nodes(3).await?;
    }
    let jobs = clients.finish().await?;
    eprintln!("{} jobs", jobs.len());
    check_jobs(&api, &jobs, before).await
}

/// Left out without an older program.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_program_is_replaced_node_by_node_and_no_client_sees_it() -> Result<(), Failure> {
    let older = std::env::var_os(OLDER).filter(|path| !path.is_empty());
    let Some(older) = older.map(PathBuf::from) else {
        eprintln!("skipped: {OLDER} names no older program");
        return Ok(());
    };
    let mut installation = Installation::start(&[]).await?;
    for node in &mut installation.nodes {
        node.terminate().await?;
    }
    installation.postgres.ask("DROP SCHEMA sluice CASCADE")?;
    for node in &mut installation.nodes {
        std::fs::remove_dir_all(node.data_dir())?;
        // The bucket belongs to the installation whose rows are gone.
        let bucket = Objects::url_at(node.to_objects.address()).replace('?', "/older?");
        node.set_environment(&[("SLUICE_STORE__OBJECTS_URL", &bucket)]);
        node.set_program(&older);
        node.start().await?;
    }
    let api = installation.api();
    let clients = Clients::start(&api).await?;
    for number in 0..installation.nodes.len() {
        let node = &mut installation.nodes[number];
        node.terminate().await?;
        node.set_program(&program());
        node.start().await?;
    }
    let jobs = clients.finish().await?;
    check_jobs(&api, &jobs, 0).await
}
