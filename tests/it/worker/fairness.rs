//! Ten drawings that ask for endless work: what they leave of the image workers to others, and to their own account.

use std::{sync::Arc, time::Duration};

use sluice_actors::compute::{Assignment, ComputeSettings, Error, Finished, Follow, Lane, Output};
use sluice_media::{
    format::Format,
    task::{Encode, Render, Task},
};
use tokio::{task::JoinSet, time::Instant};
use uuid::Uuid;

use super::{PNG, Pool, file_with};
use crate::support::{
    Failure,
    images::{available, photographs},
};

const ATTACKER: Uuid = Uuid::from_u128(1);
const ACCOMPLICE: Uuid = Uuid::from_u128(2);
const NEIGHBOUR: Uuid = Uuid::from_u128(3);

const DRAWING: &str = r#"<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64"><circle cx="32" cy="32" r="30"/></svg>"#;
const HOSTILE_TASKS: usize = 10;
/// Requests of a measurement.
const ROUNDS: usize = 60;

/// A few kilobytes that ask for half an hour: noise of 20 octaves, two hundred times over 4 million pixels.
fn hostile() -> String {
    let noise: String = (0..200)
        .map(|number| {
            let frequency = number % 9 + 1;
            format!(r#"<feTurbulence baseFrequency="0.{frequency}" numOctaves="20"/>"#)
        })
        .collect();
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="2000" height="2000"><filter id="f" x="0" y="0" width="1" height="1">{noise}</filter><rect width="2000" height="2000" filter="url(#f)"/></svg>"##
    )
}

async fn render(
    pool: &Pool,
    account_id: Uuid,
    source: Format,
    bytes: &[u8],
) -> Result<Finished, Failure> {
    let mut render = Render::new(source, Encode::new(Format::Jpg, 82));
    render.vector_long_edge = 2_000;
    let assignment = Assignment {
        account_id,
        task: Task::Render(Box::new(render)),
        inputs: vec![Arc::new(file_with(bytes)?)],
        output: Output::Memory,
        limits: pool.compute.limits(),
        follow: Follow::default(),
        pixels: None,
    };
    let finished: Result<_, Error> = pool.compute.run(Lane::Interactive, assignment).await;
    Ok(finished?)
}

/// Hostile drawings that run and wait until this is dropped.
fn attack(pool: &Arc<Pool>, account_id: Uuid, tasks: usize) -> JoinSet<()> {
    let mut attack = JoinSet::new();
    for _ in 0..tasks {
        let pool = pool.clone();
        attack.spawn(async move {
            let _ = render(&pool, account_id, Format::Svg, hostile().as_bytes()).await;
        });
    }
    attack
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_drawings_leave_workers_to_others_and_to_small_work() -> Result<(), Failure> {
    // Long enough that no drawing ends by its deadline before the other tasks have run, also on a slow machine.
    let long = Duration::from_secs(120);
    let pool = Arc::new(Pool::of_program(ComputeSettings {
        workers: 3,
        timeout: long,
        document_timeout: long,
        ..ComputeSettings::default()
    })?);
    pool.until("three workers are up", |status| status.workers == 3)
        .await?;
    let mut attack = attack(&pool, ATTACKER, HOSTILE_TASKS);
    pool.until("one runs, the others wait", |status| {
        (status.busy, status.waiting) == (1, HOSTILE_TASKS - 1)
    })
    .await?;
    for _ in 0..3 {
        render(&pool, NEIGHBOUR, Format::Svg, DRAWING.as_bytes()).await?;
        render(&pool, NEIGHBOUR, Format::Png, PNG).await?;
        render(&pool, ATTACKER, Format::Png, PNG).await?;
    }
    // Two accounts that attack still leave a worker to short work of all.
    let mut second = self::attack(&pool, ACCOMPLICE, HOSTILE_TASKS);
    pool.until("one of each runs", |status| {
        (status.busy, status.waiting) == (2, 2 * HOSTILE_TASKS - 2)
    })
    .await?;
    for account_id in [NEIGHBOUR, ATTACKER, ACCOMPLICE] {
        render(&pool, account_id, Format::Png, PNG).await?;
    }
    assert!(attack.try_join_next().is_none(), "a hostile drawing ended");
    assert!(second.try_join_next().is_none(), "a hostile drawing ended");
    drop((attack, second));
    pool.until(
        "those that ran are killed, those that waited forgotten",
        |status| (status.busy, status.waiting) == (0, 0),
    )
    .await
}

/// `cargo test --release --test it worker::fairness -- --ignored --nocapture`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it measures and asserts nothing"]
async fn small_work_beside_ten_hostile_drawings() -> Result<(), Failure> {
    if !available("small_work_beside_ten_hostile_drawings")? {
        return Ok(());
    }
    let photograph = std::fs::read(photographs(1)?.first().ok_or("no photograph")?)?;
    let pool = Arc::new(Pool::of_program(ComputeSettings::default())?);
    let workers = ComputeSettings::default().worker_count();
    pool.until("the workers are up", |status| status.workers == workers)
        .await?;
    let cases = [
        (
            "photograph of another account",
            NEIGHBOUR,
            Format::Jpg,
            &photograph[..],
        ),
        (
            "drawing of another account",
            NEIGHBOUR,
            Format::Svg,
            DRAWING.as_bytes(),
        ),
        (
            "photograph of the same account",
            ATTACKER,
            Format::Jpg,
            &photograph[..],
        ),
    ];
    for (name, account_id, format, bytes) in cases {
        let alone = p95(&pool, account_id, format, bytes).await?;
        let attack = attack(&pool, ATTACKER, HOSTILE_TASKS);
        pool.until("the attack runs", |status| {
            status.busy > 0 && status.waiting > 0
        })
        .await?;
        let beside = p95(&pool, account_id, format, bytes).await?;
        drop(attack);
        pool.until("it is over", |status| status.busy == 0).await?;
        eprintln!(
            "{name}: p95 {alone:.1?} alone, {beside:.1?} beside {HOSTILE_TASKS} hostile drawings: × {:.2}",
            beside.as_secs_f64() / alone.as_secs_f64()
        );
    }
    Ok(())
}

async fn p95(
    pool: &Pool,
    account_id: Uuid,
    format: Format,
    bytes: &[u8],
) -> Result<Duration, Failure> {
    let mut taken = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        render(pool, account_id, format, bytes).await?;
        taken.push(begun.elapsed());
    }
    taken.sort();
    Ok(taken[ROUNDS * 95 / 100])
}
