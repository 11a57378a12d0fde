//! The pool when workers die: one retry, replacement, recycling, and no work without a sandbox.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sluice_actors::compute::{Assignment, ComputeSettings, Error, Lane, Sandbox};
use sluice_media::{
    format::Format,
    task::{FailureCode, Task},
};

use super::{Pool, SOON, file_with, look_at};
use crate::support::{Failure, eventually};

fn one_worker() -> ComputeSettings {
    ComputeSettings {
        workers: 1,
        ..ComputeSettings::default()
    }
}

fn kill(process: u32) -> Result<(), Failure> {
    let process = Pid::from_raw(i32::try_from(process)?).ok_or("no process id")?;
    Ok(kill_process(process, Signal::KILL)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_kills_its_worker_twice_does_not_decode() -> Result<(), Failure> {
    let pool = Pool::with(one_worker())?;
    let assignment = look_at(&pool.compute, "sluice-fault:crash")?;
    let outcome = pool.compute.run(Lane::Interactive, assignment).await;
    let Err(Error::Failed(failure)) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(failure.code, FailureCode::DecodeFailed);
    pool.until("two were replaced", |status| status.replaced == 2)
        .await?;
    let assignment = look_at(&pool.compute, "")?;
    pool.compute.run(Lane::Interactive, assignment).await?;
    assert_eq!(pool.compute.status().refused, None);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_is_a_crash_of_the_decoder_and_its_worker_is_replaced() -> Result<(), Failure> {
    let pool = Pool::with(one_worker())?;
    let assignment = look_at(&pool.compute, "sluice-fault:panic")?;
    let outcome = pool.compute.run(Lane::Interactive, assignment).await;
    let Err(Error::Failed(failure)) = outcome else {
        panic!("{outcome:?}");
    };
    // The file brings it about, so it is no 500; two workers panicked at it.
    assert_eq!(failure.code, FailureCode::DecodeFailed);
    pool.until("it was replaced", |status| status.replaced == 2)
        .await
}

/// A document may spoil a process's fonts for later ones: only a fresh process is believed that one does not decode.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_that_does_not_decode_is_tried_in_a_fresh_worker() -> Result<(), Failure> {
    let pool = Pool::with(one_worker())?;
    let broken = || -> Result<Assignment, Failure> {
        Ok(Assignment {
            task: Task::Inspect {
                format: Format::Svg,
            },
            inputs: vec![file_with(b"<svg xmlns='http://www.w3.org/2000/svg'><rect")?.into()],
            ..look_at(&pool.compute, "")?
        })
    };
    for (replaced, why) in [(1, "it was fresh"), (2, "so was the next")] {
        let outcome = pool.compute.run(Lane::Interactive, broken()?).await;
        assert!(
            matches!(&outcome, Err(Error::Failed(failure)) if failure.code == FailureCode::Undecodable),
            "{outcome:?}"
        );
        pool.until(why, |status| status.replaced == replaced)
            .await?;
    }
    let raster = look_at(&pool.compute, "")?;
    pool.compute.run(Lane::Interactive, raster).await?;
    let outcome = pool.compute.run(Lane::Interactive, broken()?).await;
    assert!(outcome.is_err(), "{outcome:?}");
    pool.until("the used one and the fresh one", |status| {
        status.replaced == 4
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_killed_from_outside_is_replaced_and_its_task_done_again() -> Result<(), Failure> {
    let pool = Pool::with(one_worker())?;
    pool.until("a worker is up", |status| status.workers == 1)
        .await?;
    let [first] = pool.processes()?[..] else {
        panic!("one worker");
    };
    let (compute, assignment) = (
        pool.compute.clone(),
        // Long enough to be seen; it naps twice.
        look_at(&pool.compute, "sluice-fault:nap:4000")?,
    );
    let task = tokio::spawn(async move { compute.run(Lane::Interactive, assignment).await });
    eventually("it naps", SOON, async || {
        let wait = std::fs::read_to_string(format!("/proc/{first}/wchan")).ok()?;
        wait.contains("nanosleep").then_some(())
    })
    .await?;
    kill(first)?;
    let finished = task.await??;
    assert!(finished.done.image.is_some());
    assert_eq!(pool.compute.status().replaced, 1);

    // A worker that dies between two tasks only delays the next one by the start of a new worker.
    let [second] = pool.processes()?[..] else {
        panic!("one worker");
    };
    assert_ne!(first, second);
    kill(second)?;
    let assignment = look_at(&pool.compute, "")?;
    pool.compute.run(Lane::Interactive, assignment).await?;
    assert_eq!(pool.compute.status().replaced, 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_are_recycled_by_tasks_and_by_size() -> Result<(), Failure> {
    for (settings, replaced) in [
        (
            ComputeSettings {
                recycle_after: 3,
                ..one_worker()
            },
            2,
        ),
        (
            ComputeSettings {
                recycle_above: bytesize::ByteSize::kib(1),
                ..one_worker()
            },
            7,
        ),
    ] {
        let pool = Pool::with(settings)?;
        for _ in 0..7 {
            let assignment = look_at(&pool.compute, "")?;
            pool.compute.run(Lane::Interactive, assignment).await?;
        }
        pool.until("they were replaced", |status| {
            status.replaced == replaced && status.workers == 1
        })
        .await?;
        assert_eq!(pool.processes()?.len(), 1);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_layer_decoding_is_refused_unless_best_effort_is_enough() -> Result<(), Failure> {
    let pool = Pool::of("unsandboxed.py", one_worker())?;
    let assignment = look_at(&pool.compute, "")?;
    let outcome = pool.compute.run(Lane::Interactive, assignment).await;
    let Err(Error::Unavailable(reason)) = outcome else {
        panic!("{outcome:?}");
    };
    for words in ["landlock", "image_workers.sandbox", "best-effort"] {
        assert!(reason.contains(words), "{reason}");
    }
    let status = pool.compute.status();
    assert_eq!(status.refused, Some(reason));
    assert_eq!((status.workers, pool.processes()?.len()), (0, 0));

    let settings = ComputeSettings {
        sandbox: Sandbox::BestEffort,
        ..one_worker()
    };
    let pool = Pool::of("unsandboxed.py", settings)?;
    let assignment = look_at(&pool.compute, "")?;
    let outcome = pool.compute.run(Lane::Interactive, assignment).await;
    // The program got the task, and can only answer with this failure.
    let Err(Error::Failed(failure)) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(failure.code, FailureCode::DecodeFailed);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_does_not_start_is_said_so_at_once_and_not_tried_all_the_time()
-> Result<(), Failure> {
    let pool = Pool::of("no-such-file", one_worker())?;
    pool.until("the start failed", |status| status.refused.is_some())
        .await?;
    for _ in 0..20 {
        let assignment = look_at(&pool.compute, "")?;
        let work = pool.compute.run(Lane::Interactive, assignment);
        let outcome = tokio::time::timeout(Duration::from_secs(5), work).await?;
        assert!(matches!(outcome, Err(Error::Unavailable(_))), "{outcome:?}");
    }
    assert_eq!(pool.compute.status().replaced, 0);
    Ok(())
}
