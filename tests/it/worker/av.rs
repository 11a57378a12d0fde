//! Video and audio workers: two queues, memory, silence, deaths, cancelled tasks. Their processes misbehave on demand.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytesize::ByteSize;
use sluice_actors::compute::{Assignment, Error, Finished, Follow, Lane, Output, VideoSettings};
use sluice_media::{
    av::{AvTask, Report, Sheet},
    format::Format,
    task::{Encode, FailureCode, Task},
};
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::{Pool, SOON, file_with, until_gone, workers};
use crate::support::{
    Failure, eventually,
    media::Recipe,
    server::{Server, Settings},
};

type Outcome = Result<Finished, Error>;

/// Settings for one long task and one short one at a time.
fn one_of_each() -> VideoSettings {
    VideoSettings {
        jobs: 1,
        ..VideoSettings::default()
    }
}

fn long() -> AvTask {
    AvTask::Sheet(Sheet {
        frames: 40,
        columns: 8,
        width: 160,
        output: Encode::new(Format::Jpg, 80),
        image_name: "storyboard.jpg".to_owned(),
    })
}

/// Makes a task whose process obeys a demand.
fn asked(pool: &Pool, task: AvTask, demand: &str) -> Result<Assignment, Failure> {
    Ok(Assignment {
        account_id: Uuid::nil(),
        task: Task::Av(Box::new(task)),
        inputs: vec![Arc::new(file_with(demand.as_bytes())?)],
        output: Output::Memory,
        limits: pool.compute.limits(),
        follow: Follow::none(),
        pixels: None,
    })
}

fn begin(pool: &Pool, assignment: Assignment) -> JoinHandle<Outcome> {
    let compute = pool.compute.clone();
    tokio::spawn(async move { compute.run(Lane::Batch, assignment).await })
}

fn failure(outcome: Outcome) -> (FailureCode, String) {
    match outcome {
        Err(Error::Failed(failure)) => (failure.code, failure.message),
        other => panic!("{other:?}"),
    }
}

async fn until_running(pool: &Pool, running: usize) -> Result<(), Failure> {
    pool.until(&format!("{running} long ones run"), |status| {
        status.video.long.running == running
    })
    .await
}

async fn until_processes(pool: &Pool, number: usize) -> Result<Vec<u32>, Failure> {
    eventually("as many processes", SOON, async || {
        let processes = pool.clip_processes().ok()?;
        (processes.len() == number).then_some(processes)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_task_is_ended_and_says_how_far_it_was() -> Result<(), Failure> {
    // Those that are to report something have the time for it on a busy machine, too.
    let (soon, later, never) = (
        Duration::from_millis(500),
        Duration::from_secs(5),
        Duration::from_secs(60),
    );
    let cases = [
        (
            later,
            never,
            "av_workers.stall",
            "sluice-fault:halfway",
            "50 %",
        ),
        (soon, never, "av_workers.stall", "sluice-fault:hang", "0 %"),
        (
            never,
            soon,
            "av_workers.timeout",
            "sluice-fault:spin",
            "0 %",
        ),
        (
            never,
            later,
            "av_workers.timeout",
            "sluice-fault:chatter",
            "50 %",
        ),
    ];
    for (stall, timeout, setting, demand, share) in cases {
        let pool = Pool::of_video(VideoSettings {
            stall,
            timeout,
            ..one_of_each()
        })?;
        let outcome = begin(&pool, asked(&pool, long(), demand)?).await?;
        let (code, message) = failure(outcome);
        assert_eq!(code, FailureCode::TimedOut, "{message}");
        assert!(
            message.contains(setting) && message.contains(share),
            "{message}"
        );
        assert_eq!(pool.compute.status().video.killed, 1);
        until_processes(&pool, 0).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clip_that_kills_its_process_twice_does_not_decode() -> Result<(), Failure> {
    let pool = Pool::of_video(one_of_each())?;
    let outcome = begin(&pool, asked(&pool, long(), "sluice-fault:crash")?).await?;
    assert_eq!(failure(outcome).0, FailureCode::DecodeFailed);
    let status = pool.compute.status().video;
    assert_eq!((status.retried, status.ended, status.refused), (1, 1, None));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_takes_too_much_memory_is_reported_and_not_tried_again() -> Result<(), Failure>
{
    let pool = Pool::of_video(VideoSettings {
        memory: ByteSize::gib(2),
        ..one_of_each()
    })?;
    let outcome = begin(&pool, asked(&pool, long(), "sluice-fault:allocate")?).await?;
    let (code, message) = failure(outcome);
    assert_eq!(code, FailureCode::TooLarge, "{message}");
    assert!(message.contains("av_workers.memory"), "{message}");
    assert_eq!(pool.compute.status().video.retried, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn anyone_leaves_takes_the_process_along_even_while_it_starts() -> Result<(), Failure> {
    let pool = Pool::of_video(one_of_each())?;
    let running = begin(&pool, asked(&pool, long(), "sluice-fault:hang")?);
    let [process] = until_processes(&pool, 1).await?[..] else {
        unreachable!("one was waited for");
    };
    // The process has just been started: its codecs are not loaded yet.
    running.abort();
    until_gone(process).await?;
    until_running(&pool, 0).await?;
    // On a busy machine it may have been ready before this test looked.
    let killed_before = pool.compute.status().video.killed;

    for demand in ["sluice-fault:halfway", "sluice-fault:chatter"] {
        let follow = Arc::new(Mutex::new(Vec::new()));
        let assignment = Assignment {
            follow: heard_by(&follow),
            ..asked(&pool, long(), demand)?
        };
        let running = begin(&pool, assignment);
        eventually("it works", SOON, async || {
            (!follow.lock().ok()?.is_empty()).then_some(())
        })
        .await?;
        running.abort();
        until_processes(&pool, 0).await?;
        // Its slot is given back a moment later; the next task would wait for it, and report that.
        until_running(&pool, 0).await?;
    }
    pool.until("they are counted", |status| {
        status.video.killed == killed_before + 2 && status.video.ended == 3
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn short_work_passes_long_work() -> Result<(), Failure> {
    let pool = Pool::of_video(one_of_each())?;
    let hanging = begin(&pool, asked(&pool, long(), "sluice-fault:hang")?);
    until_running(&pool, 1).await?;
    let waiting = begin(&pool, asked(&pool, long(), "sluice-fault:hang")?);
    pool.until("one waits", |status| status.video.long.waiting == 1)
        .await?;
    let outcome = begin(&pool, asked(&pool, AvTask::Probe, "no clip at all")?).await?;
    let (code, message) = failure(outcome);
    assert!(
        matches!(
            code,
            FailureCode::UnsupportedType | FailureCode::Undecodable
        ),
        "{message}"
    );
    assert_eq!(pool.compute.status().video.long.waiting, 1);
    hanging.abort();
    waiting.abort();
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_wait_hear_their_place_and_are_counted() -> Result<(), Failure> {
    let pool = Pool::of_video(VideoSettings {
        queue: 2,
        ..one_of_each()
    })?;
    let running = begin(&pool, asked(&pool, long(), "sluice-fault:hang")?);
    until_running(&pool, 1).await?;
    let next = begin(&pool, asked(&pool, long(), "sluice-fault:hang")?);
    pool.until("one waits", |status| status.video.long.waiting == 1)
        .await?;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let assignment = Assignment {
        follow: heard_by(&heard),
        ..asked(&pool, long(), "sluice-fault:halfway")?
    };
    let last = begin(&pool, assignment);
    let hears = async |expected: &[Report]| {
        eventually("it hears", SOON, async || {
            (*heard.lock().ok()? == expected).then_some(())
        })
        .await
    };
    let (second, first) = (Report::Waiting { place: 2 }, Report::Waiting { place: 1 });
    hears(std::slice::from_ref(&second)).await?;
    let refused = begin(&pool, asked(&pool, long(), "sluice-fault:hang")?).await?;
    assert!(matches!(refused, Err(Error::Busy)), "{refused:?}");
    next.abort();
    hears(&[second.clone(), first.clone()]).await?;
    running.abort();
    hears(&[second, first, Report::Working { share: 0.5 }]).await?;
    last.abort();
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_work_waits_for_memory_that_is_expected_to_be_taken() -> Result<(), Failure> {
    let pool = Pool::of_video(VideoSettings {
        jobs: 3,
        memory_total: ByteSize::gib(1),
        ..VideoSettings::default()
    })?;
    let of = |pixels: u64| -> Result<_, Failure> {
        let assignment = asked(&pool, long(), "sluice-fault:hang")?;
        Ok(begin(
            &pool,
            Assignment {
                pixels: Some(pixels),
                ..assignment
            },
        ))
    };
    let (full_hd, huge) = (1_920 * 1_080, 8_192 * 8_192);
    let running = [of(full_hd)?, of(full_hd)?];
    until_running(&pool, 2).await?;
    let large = of(huge)?;
    pool.until("it waits", |status| status.video.long.waiting == 1)
        .await?;
    for task in running {
        assert_eq!(pool.compute.status().video.long.waiting, 1);
        task.abort();
    }
    pool.until("it runs alone", |status| {
        (status.video.long.running, status.video.long.waiting) == (1, 0)
    })
    .await?;
    large.abort();
    Ok(())
}

/// Work in the middle of a clip does not look whether its service is still there: the kernel does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_process_outlives_its_service() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).lasting(20).make()?;
    let bytes = std::fs::read(&clip.mp4)?;
    let mut server: Server = Settings::new().start().await?;
    let parent = format!(
        "--parent {} ",
        server.process_id().ok_or("the service does not run")?
    );
    let api = server.api();
    let converting = tokio::spawn(async move {
        let fields = [("format", "webm"), ("compression", "10")];
        api.convert("clip.mp4", &bytes, &fields).await
    });
    eventually("it works", SOON, async || {
        let (_, metrics) = server.get("/metrics").await.ok()?;
        let running = br#"sluice_video_tasks{queue="long",state="running"} 1"#;
        metrics
            .windows(running.len())
            .any(|line| line == running)
            .then_some(())
    })
    .await?;
    let processes = eventually("its process is up", SOON, async || {
        let is_meant =
            |command: &str| command.contains(&parent) && command.contains(super::OF_CLIPS);
        workers(is_meant).ok().filter(|found| !found.is_empty())
    })
    .await?;
    server.kill().await?;
    assert!(converting.await?.is_err(), "its service was killed");
    for process in processes {
        until_gone(process).await?;
    }
    Ok(())
}

fn heard_by(list: &Arc<Mutex<Vec<Report>>>) -> Follow {
    let list = list.clone();
    Follow::new(move |report| list.lock().expect("no panic under this lock").push(report))
}
