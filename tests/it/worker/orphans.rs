//! A service that is killed leaves no worker behind, and one that starts and idles counts them apart.

use super::{OF_CLIPS, SOON, until_gone, workers};
use crate::support::{
    Failure, eventually,
    images::{available, photographs},
    server::{Server, Settings},
};

/// Memory of an idle service, its workers not counted; the code of a debug build is 68 MB larger.
const IDLE_KIB: u64 = if cfg!(debug_assertions) { 128 } else { 60 } * 1024;

async fn children(server: &Server, number: usize) -> Result<Vec<u32>, Failure> {
    let parent = format!(
        "--parent {} ",
        server.process_id().ok_or("the service does not run")?
    );
    eventually("the workers are up", SOON, async || {
        let is_image_worker =
            |command: &str| command.contains(&parent) && !command.contains(OF_CLIPS);
        let workers = workers(is_image_worker).ok()?;
        (workers.len() == number).then_some(workers)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_worker_outlives_its_service() -> Result<(), Failure> {
    let mut server = Settings::new()
        .env("SLUICE_IMAGE_WORKERS__WORKERS", "3")
        .start()
        .await?;
    for round in 0..2 {
        let workers = children(&server, 3).await?;
        match round {
            0 => server.kill().await?,
            _ => assert!(server.terminate().await?.success()),
        }
        for worker in workers {
            until_gone(worker).await?;
        }
        if round == 0 {
            server.restart().await?;
        }
    }
    Ok(())
}

/// A worker that is in the middle of something does not look whether its service is still there: the kernel does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_does_one_that_is_at_work() -> Result<(), Failure> {
    if !available("nor_does_one_that_is_at_work")? {
        return Ok(());
    }
    let photograph = std::fs::read(photographs(1)?.first().ok_or("no photograph")?)?;
    let mut server = Settings::new()
        .env("SLUICE_IMAGE_WORKERS__WORKERS", "1")
        .start()
        .await?;
    let workers = children(&server, 1).await?;
    let api = server.api();
    let converting = tokio::spawn(async move {
        api.convert("photograph.jpg", &photograph, &[("format", "heif")])
            .await
    });
    eventually("it works", SOON, async || {
        let (_, metrics) = server.get("/metrics").await.ok()?;
        let busy = br#"sluice_image_workers{state="busy"} 1"#;
        metrics
            .windows(busy.len())
            .any(|line| line == busy)
            .then_some(())
    })
    .await?;
    server.kill().await?;
    assert!(converting.await?.is_err(), "its service was killed");
    for worker in workers {
        until_gone(worker).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_service_is_small_and_its_workers_step_back() -> Result<(), Failure> {
    let server = Settings::new()
        .env("SLUICE_IMAGE_WORKERS__WORKERS", "1")
        .start()
        .await?;
    let [worker] = children(&server, 1).await?[..] else {
        unreachable!("one was waited for");
    };
    eventually("its sandbox is on", SOON, async || {
        let status = std::fs::read_to_string(format!("/proc/{worker}/status")).ok()?;
        let has = |line: &str| status.lines().any(|it| it == line);
        (has("NoNewPrivs:\t1") && has("Seccomp:\t2") && has("CapEff:\t0000000000000000"))
            .then_some(())
    })
    .await?;
    let of_worker = |name: &str| std::fs::read_to_string(format!("/proc/{worker}/{name}"));
    assert_eq!(of_worker("oom_score_adj")?.trim(), "1000");
    let nice_of = |process: &str| -> Result<i32, Failure> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
        let after_name = stat.rsplit_once(')').ok_or("no name")?.1;
        // proc_pid_stat(5): the nice value is field 19, the first after the name is 3.
        let nice = after_name
            .split_whitespace()
            .nth(16)
            .ok_or("no nice value")?;
        Ok(nice.parse()?)
    };
    let of_tests = nice_of("self")?;
    assert_eq!(nice_of(&worker.to_string())?, (of_tests + 10).min(19));
    let resident_kib = server.resident_kib()?;
    assert!(resident_kib <= IDLE_KIB, "{resident_kib} KiB");
    Ok(())
}
