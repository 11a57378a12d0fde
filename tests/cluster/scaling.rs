//! Three nodes at half a core each do at least 2.5 times what one of them does, and each has its share of it.
//!
//! It takes minutes and a machine without other work: `make cluster-soak` runs it, `make test` does not.

use std::time::{Duration, Instant};

use sluice_testkit::process::tree_figures;
use tokio::time::sleep;

use crate::{
    support::{
        FAULTS, Failure, api::Api, cpu_share::CpuShare, dice::Dice, installation::Installation,
        is_soak, json::list,
    },
    takeover::{make_jobs, wait_completed},
};

/// Percent of a core for each node.
const SHARE: u32 = 50;
const JOBS: usize = 100;
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// Least ratio of the times of one node and of three.
const LEAST_RATIO: f64 = 2.5;
/// Share of the processor time that each node has of all.
const FAIR: std::ops::RangeInclusive<f64> = 0.2..=0.5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_do_more_than_one() -> Result<(), Failure> {
    if !is_soak() {
        eprintln!("skipped: {FAULTS} is not set");
        return Ok(());
    }
    let mut installation = Installation::start(&[]).await?;
    for node in &mut installation.nodes {
        node.terminate().await?;
        let share = CpuShare::new(&node.name, SHARE)?;
        node.set_cpu_share(share);
    }
    let mut dice = Dice::new(14);
    installation.nodes[0].start().await?;
    let api = installation.nodes[0].api();
    let alone = time_jobs(&api, &mut dice, JOBS).await?;

    for node in &mut installation.nodes[1..] {
        node.start().await?;
    }
    installation.wait_for_nodes(3).await?;
    let before = times(&installation)?;
    let together = time_jobs(&api, &mut dice, 2 * JOBS).await?;
    let spent: Vec<f64> = times(&installation)?
        .iter()
        .zip(before)
        .map(|(after, before)| (*after - before).as_secs_f64())
        .collect();
    let ratio = alone.as_secs_f64() / together.as_secs_f64();
    eprintln!(
        "{JOBS} jobs: {alone:.1?} by one node, {together:.1?} by three: {ratio:.2}; CPU {spent:.1?} s"
    );
    assert!(ratio >= LEAST_RATIO, "{ratio:.2}");
    let all: f64 = spent.iter().sum();
    assert!(
        spent.iter().all(|spent| FAIR.contains(&(spent / all))),
        "{spent:.1?} s"
    );
    Ok(())
}

/// Makes jobs and waits for their ends; `all` is the number of jobs by then.
async fn time_jobs(api: &Api, dice: &mut Dice, all: usize) -> Result<Duration, Failure> {
    let began = Instant::now();
    let jobs = make_jobs(api, dice, JOBS).await?;
    for status in ["pending", "processing"] {
        // Seldom: the node that is asked has half a core.
        while !list(
            &api.get(&format!("/api/jobs?limit=1&status={status}"))
                .await?["jobs"],
        )?
        .is_empty()
        {
            sleep(LOOK_AGAIN).await;
        }
    }
    wait_completed(api, &jobs, all).await?;
    Ok(began.elapsed())
}

/// Processor time of each node with its workers.
fn times(installation: &Installation) -> Result<Vec<Duration>, Failure> {
    let nodes = installation.nodes.iter();
    nodes
        .map(|node| Ok(tree_figures(node.process_id()?).cpu))
        .collect()
}
