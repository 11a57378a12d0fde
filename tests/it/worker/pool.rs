//! The pool seen by those who give it work: results, lanes, bounds, deadlines, cancelling.

use std::{io::Read, os::unix::fs::FileExt, time::Duration};

use sluice_actors::compute::{Assignment, ComputeSettings, Error, Lane, Output};
use sluice_media::{
    format::Format,
    task::{Encode, Failure as TaskFailure, FailureCode, Render, Task},
};

use super::{PNG, Pool, file_with, look_at, until_gone};
use crate::support::Failure;

fn render(format: Format) -> Task {
    Task::Render(Box::new(Render::new(Format::Png, Encode::new(format, 82))))
}

fn code(outcome: Result<impl Sized, Error>) -> Option<FailureCode> {
    match outcome {
        Err(Error::Failed(TaskFailure { code, .. })) => Some(code),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_come_back_in_memory_and_in_files() -> Result<(), Failure> {
    let pool = Pool::start()?;
    let mut assignment = Assignment {
        task: render(Format::Jpg),
        ..look_at(&pool.compute, "")?
    };
    let finished = pool.compute.run(Lane::Interactive, assignment).await?;
    let [bytes] = &finished.bytes[..] else {
        panic!("one result: {finished:?}");
    };
    assert!(bytes.starts_with(b"\xff\xd8\xff"), "{bytes:?}");
    assert_eq!(finished.done.outputs[0].bytes, bytes.len() as u64);

    // The file's former contents are truncated.
    let file = file_with(&[b'x'; 100_000])?;
    assignment = Assignment {
        task: render(Format::Jpg),
        output: Output::Files([file.try_clone()?].into()),
        ..look_at(&pool.compute, "")?
    };
    let finished = pool.compute.run(Lane::Batch, assignment).await?;
    assert!(finished.bytes.is_empty());
    let mut written = vec![0; 200_000];
    let length = file.read_at(&mut written, 0)?;
    assert_eq!(&written[..length], &bytes[..]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inputs_are_read_from_their_beginning_and_may_be_empty() -> Result<(), Failure> {
    let pool = Pool::start()?;
    let assignment = look_at(&pool.compute, "")?;
    let mut read = Vec::new();
    (&*assignment.inputs[0]).read_to_end(&mut read)?;
    let finished = pool.compute.run(Lane::Interactive, assignment).await?;
    assert_eq!(finished.done.image.map(|image| image.width), Some(1));

    let empty = Assignment {
        inputs: vec![file_with(b"")?.into()],
        ..look_at(&pool.compute, "")?
    };
    let outcome = pool.compute.run(Lane::Interactive, empty).await;
    assert!(
        matches!(
            code(outcome),
            Some(FailureCode::Undecodable | FailureCode::UnsupportedType)
        ),
        "an empty file is no image"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_over_its_deadline_is_timed_out_and_its_worker_gone() -> Result<(), Failure> {
    let pool = Pool::with(ComputeSettings {
        workers: 1,
        timeout: Duration::from_secs(1),
        ..ComputeSettings::default()
    })?;
    pool.until("a worker is up", |status| status.workers == 1)
        .await?;
    for (killed, demand) in [(1, "sluice-fault:hang"), (2, "sluice-fault:spin")] {
        let before = pool.processes()?;
        let assignment = look_at(&pool.compute, demand)?;
        let outcome = pool.compute.run(Lane::Interactive, assignment).await;
        assert_eq!(code(outcome), Some(FailureCode::TimedOut), "{demand}");
        assert_eq!(pool.compute.status().killed, killed);
        for process in before {
            until_gone(process).await?;
        }
    }
    let assignment = look_at(&pool.compute, "")?;
    pool.compute.run(Lane::Interactive, assignment).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_have_a_deadline_of_their_own() -> Result<(), Failure> {
    let pool = Pool::with(ComputeSettings {
        workers: 1,
        document_timeout: Duration::from_secs(1),
        ..ComputeSettings::default()
    })?;
    let drawing = Assignment {
        task: Task::Inspect {
            format: Format::Svg,
        },
        ..look_at(&pool.compute, "sluice-fault:hang")?
    };
    let outcome = pool.compute.run(Lane::Interactive, drawing).await;
    let Err(Error::Failed(failure)) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(failure.code, FailureCode::TimedOut);
    assert!(
        failure.message.contains("image_workers.document_timeout"),
        "{failure}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_takes_too_much_memory_is_reported_and_not_tried_again() -> Result<(), Failure>
{
    let pool = Pool::with(ComputeSettings {
        workers: 1,
        memory: bytesize::ByteSize::gib(1),
        ..ComputeSettings::default()
    })?;
    let assignment = look_at(&pool.compute, "sluice-fault:allocate")?;
    let outcome = pool.compute.run(Lane::Interactive, assignment).await;
    let Err(Error::Failed(failure)) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(failure.code, FailureCode::TooLarge, "{failure}");
    assert!(
        failure.message.contains("image_workers.memory"),
        "{failure}"
    );
    pool.until("one worker was replaced", |status| status.replaced == 1)
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_no_one_waits_for_is_killed_or_never_begun() -> Result<(), Failure> {
    let pool = Pool::with(ComputeSettings {
        workers: 1,
        ..ComputeSettings::default()
    })?;
    pool.until("a worker is up", |status| status.workers == 1)
        .await?;
    let run = |demand: &str| {
        let (compute, assignment) = (pool.compute.clone(), look_at(&pool.compute, demand));
        Ok::<_, Failure>(tokio::spawn({
            let assignment = assignment?;
            async move { compute.run(Lane::Interactive, assignment).await }
        }))
    };
    let running = run("sluice-fault:hang")?;
    pool.until("it runs", |status| status.busy == 1).await?;
    let waiting: Vec<_> = (0..3)
        .map(|_| run("sluice-fault:hang"))
        .collect::<Result<_, _>>()?;
    pool.until("they wait", |status| status.waiting == 3)
        .await?;
    waiting.iter().for_each(|task| task.abort());
    pool.until("no one waits", |status| status.waiting == 0)
        .await?;
    running.abort();
    pool.until("nothing runs", |status| status.busy == 0)
        .await?;
    assert_eq!(pool.compute.status().killed, 1);
    let assignment = look_at(&pool.compute, "")?;
    pool.compute.run(Lane::Interactive, assignment).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_more_than_may_wait_is_asked_to_come_again() -> Result<(), Failure> {
    let pool = Pool::with(ComputeSettings {
        workers: 1,
        queue: 1,
        ..ComputeSettings::default()
    })?;
    let hang = || look_at(&pool.compute, "sluice-fault:hang");
    let (first, second, third) = (hang()?, hang()?, hang()?);
    let wait = |assignment| {
        let compute = pool.compute.clone();
        tokio::spawn(async move { compute.run(Lane::Batch, assignment).await })
    };
    let first = wait(first);
    pool.until("one runs", |status| status.busy == 1).await?;
    let second = wait(second);
    pool.until("one waits", |status| status.waiting == 1)
        .await?;
    let outcome = pool.compute.run(Lane::Interactive, third).await;
    assert!(matches!(outcome, Err(Error::Busy)), "{outcome:?}");
    first.abort();
    second.abort();
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn noise_of_libraries_stops_nothing() -> Result<(), Failure> {
    let pool = Pool::start()?;
    for _ in 0..3 {
        let assignment = look_at(&pool.compute, "sluice-fault:shout")?;
        pool.compute.run(Lane::Interactive, assignment).await?;
    }
    assert_eq!(pool.compute.status().replaced, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_image_of_these_tests_is_one() -> Result<(), Failure> {
    assert_eq!(Format::sniff(PNG), Some(Format::Png));
    Ok(())
}
