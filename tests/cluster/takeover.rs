//! A node that is killed, halted or cut off: others take over what it held within six seconds, and it comes back as it was.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use sluice_testkit::relay::Line;

use crate::{
    soak::load::image,
    support::{
        Failure,
        api::Api,
        dice::Dice,
        eventually,
        installation::{Installation, NOTICED},
        is_soak,
        json::text,
    },
};

/// Several times as many as three nodes do at once.
const JOBS: usize = 40;
/// Enough for all nodes, one of which is killed soon.
const JOBS_OF_KILLED: usize = 24;
/// From a kill to the moment when nothing is leased by the killed node, on a machine that has nothing else to do.
const TAKEN_OVER: Duration = Duration::from_secs(6);
/// Time that a halted node is away.
const HALTED: Duration = Duration::from_secs(60);
/// For jobs in a debug build, on a machine with other work.
const ENDED: Duration = Duration::from_secs(180);

/// Makes jobs that take a while each: a drawing becomes a large AVIF.
pub async fn make_jobs(api: &Api, dice: &mut Dice, count: usize) -> Result<Vec<String>, Failure> {
    let fields = [
        ("jobType", "convert"),
        ("format", "avif"),
        ("resizeWidth", "2400"),
    ];
    let mut jobs = Vec::new();
    for number in 0..count {
        let (name, bytes) = (format!("{number}.svg"), image(number, dice));
        let made = api.send("/api/jobs", ("files", &name, &bytes), &fields, &[]);
        jobs.push(text(&made.await?.expect(202)?.json()?["jobId"])?);
    }
    Ok(jobs)
}

/// Waits until the jobs have completed and that many operations are charged.
pub async fn wait_completed(api: &Api, jobs: &[String], charged: usize) -> Result<(), Failure> {
    for job in jobs {
        let what = format!("job {job} has completed");
        let is_done = |job: &Value| (job["status"] == "completed").then_some(());
        api.wait(&format!("/api/jobs/{job}"), &what, ENDED, is_done)
            .await?;
    }
    let used = api.get("/api/usage").await?["operations"]["used"].clone();
    assert_eq!(used, charged, "charges");
    Ok(())
}

/// Id of the node with that name in the table of nodes.
fn id_of(installation: &Installation, number: usize) -> Result<String, Failure> {
    let name = &installation.nodes[number].name;
    let sql = format!(
        "SELECT id FROM sluice.nodes WHERE name = '{name}' ORDER BY started_at DESC LIMIT 1"
    );
    let mut found = installation.postgres.ask(&sql)?;
    Ok(found.pop().ok_or("the node has no row")?)
}

/// Waits until a node has work.
async fn wait_busy(installation: &Installation, id: &str) -> Result<(), Failure> {
    eventually("the node has work", ENDED, async || {
        let leased = leased(installation, id).ok()?;
        (leased > 0).then_some(())
    })
    .await
}

/// Waits until others have taken over what a node held.
async fn wait_dead(installation: &Installation, id: &str) -> Result<(), Failure> {
    let sql = format!("SELECT state FROM sluice.nodes WHERE id = '{id}'");
    eventually("others take the node for dead", NOTICED, async || {
        let states = installation.postgres.ask(&sql).ok()?;
        (states == ["dead"]).then_some(())
    })
    .await
}

fn leased(installation: &Installation, id: &str) -> Result<usize, Failure> {
    let sql = format!("SELECT count(*) FROM sluice.work WHERE lease_owner = '{id}'");
    Ok(installation
        .postgres
        .ask(&sql)?
        .pop()
        .ok_or("no count")?
        .parse()?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_work_of_a_lost_node_is_taken_over_and_the_node_comes_back() -> Result<(), Failure> {
    let mut installation = Installation::start(&[]).await?;
    kill(&mut installation).await?;
    halt_and_cut_off(&mut installation).await
}

/// The work of a killed node is taken over within six seconds.
async fn kill(installation: &mut Installation) -> Result<(), Failure> {
    let api = installation.nodes[0].api();
    let killed = id_of(installation, 1)?;
    let jobs = make_jobs(&api, &mut Dice::new(4), JOBS_OF_KILLED).await?;
    wait_busy(installation, &killed).await?;
    installation.nodes[1].kill()?;
    let since = Instant::now();
    eventually("its work is taken over", NOTICED, async || {
        (leased(installation, &killed).ok()? == 0).then_some(())
    })
    .await?;
    let took = since.elapsed();
    eprintln!("taken over after {took:?}");
    assert!(took < TAKEN_OVER || !is_soak(), "{took:?}");
    wait_completed(&api, &jobs, JOBS_OF_KILLED).await?;
    installation.nodes[1].start().await?;
    installation.wait_for_nodes(3).await
}

/// A halted node and one that was cut off continue without what they held: others have that now.
async fn halt_and_cut_off(installation: &mut Installation) -> Result<(), Failure> {
    let api = installation.nodes[0].api();
    let (halted, cut_off) = (id_of(installation, 1)?, id_of(installation, 2)?);
    let jobs = make_jobs(&api, &mut Dice::new(5), JOBS).await?;
    wait_busy(installation, &halted).await?;
    installation.nodes[1].signal(Signal::STOP)?;
    wait_dead(installation, &halted).await?;
    if is_soak() {
        tokio::time::sleep(HALTED).await;
    }
    installation.nodes[1].signal(Signal::CONT)?;
    installation.wait_for_nodes(3).await?;
    assert_eq!(id_of(installation, 1)?, halted, "it is the same node");

    installation.nodes[2].set_lines(Line::IsSilent);
    wait_dead(installation, &cut_off).await?;
    installation.nodes[2].set_lines(Line::Passes);
    installation.wait_for_nodes(3).await?;
    assert_eq!(id_of(installation, 2)?, cut_off, "it is the same node");
    wait_completed(&api, &jobs, JOBS_OF_KILLED + JOBS).await
}
