//! Tests of the journal: rows are read as they were written, and only a run's owner writes.

use serde_json::json;

use super::*;

fn odd() -> Vec<Step> {
    let output = StepOutput {
        place: BufferLocation::Scratch,
        sha256: std::array::from_fn(|n| n as u8),
        length: i64::MAX,
        filename: "Ünï \"quoted\" \\ 画像.png".into(),
        mime: "image/png".into(),
        width: Some(u32::MAX),
        height: None,
    };
    vec![
        step(0, StepStatus::Completed),
        Step {
            branch: Some(true),
            message: "line\nbreak \u{1F600} ' ; --".into(),
            ..step(1, StepStatus::Completed)
        },
        Step {
            branch: Some(false),
            facts: Some(json!({"width": 3, "text": "é\"", "deep": [[null]]})),
            started_at: Some(0),
            finished_at: Some(i64::MAX),
            bytes_in: Some(1 << 60),
            bytes_out: Some(0),
            output: Some(output.clone()),
            ..step(2, StepStatus::Completed)
        },
        Step {
            output: Some(StepOutput {
                place: BufferLocation::Blob,
                width: None,
                height: Some(1),
                ..output
            }),
            ..step(u32::MAX, StepStatus::Completed)
        },
    ]
}

#[tokio::test]
async fn a_journal_is_read_as_it_was_written() {
    let bench = Bench::new().await;
    let (run, lease) = bench.begun().await;
    bench.record_steps(&lease, Vec::new()).await.unwrap();
    assert_eq!(bench.steps(run.id).await, []);
    bench.record_steps(&lease, odd()).await.unwrap();
    assert_eq!(bench.steps(run.id).await, odd());
    let others = [Uuid::now_v7(), run.id, Uuid::nil()];
    let logs = logs(&mut bench.world.read().await, &others).await.unwrap();
    let without_facts = odd().into_iter().map(|step| Step {
        facts: None,
        ..step
    });
    let expected = (run.id, without_facts.collect::<Vec<_>>());
    assert_eq!(logs.into_iter().collect::<Vec<_>>(), [expected]);
}

#[tokio::test]
async fn a_nul_is_replaced() {
    let bench = Bench::new().await;
    let (run, lease) = bench.begun().await;
    let nul = Step {
        node_id: "a\0b".into(),
        title: "\0".into(),
        message: "x\0".into(),
        ..step(0, StepStatus::Completed)
    };
    bench.record_steps(&lease, vec![nul]).await.unwrap();
    let read = &bench.steps(run.id).await[0];
    let texts = (&*read.node_id, &*read.title, &*read.message);
    assert_eq!(texts, ("a\u{FFFD}b", "\u{FFFD}", "x\u{FFFD}"));
}

#[tokio::test]
async fn a_step_is_journalled_once() {
    let bench = Bench::new().await;
    let (run, lease) = bench.begun().await;
    let first = vec![step(0, StepStatus::Completed)];
    bench.record_steps(&lease, first.clone()).await.unwrap();
    let both = vec![step(1, StepStatus::Completed), step(0, StepStatus::Failed)];
    assert!(bench.record_steps(&lease, both).await.is_err());
    assert_eq!(bench.steps(run.id).await, first);
}

#[tokio::test]
async fn progress_is_not_given_up() {
    let bench = Bench::new().await;
    bench.run(0).await;
    for position in 0..10 {
        // A crash, and a new owner.
        bench
            .world
            .run("UPDATE work SET lease_expires_at = 0")
            .await
            .unwrap();
        let claimed = bench.claim().await;
        let [lease] = claimed.leases.as_slice() else {
            panic!("{claimed:?}");
        };
        let done = vec![step(position, StepStatus::Completed)];
        bench.record_steps(lease, done).await.unwrap();
    }
}

#[tokio::test]
async fn an_owner_that_was_replaced_writes_nothing() {
    let bench = Bench::new().await;
    let (run, old) = bench.begun().await;
    bench
        .world
        .run("UPDATE work SET lease_expires_at = 0")
        .await
        .unwrap();
    let new = bench.claim().await.leases.remove(0);
    assert!(new.fence > old.fence);
    let steps = || vec![step(0, StepStatus::Completed)];
    let rejections = [
        bench.record_steps(&old, steps()).await,
        bench
            .complete(
                &old,
                Completion {
                    steps: steps(),
                    ..Completion::default()
                },
            )
            .await
            .map(drop),
        bench.fail(&old, steps()).await.map(drop),
    ];
    for rejected in rejections {
        assert!(matches!(rejected, Err(Error::Conflict(_))), "{rejected:?}");
    }
    assert_eq!(bench.steps(run.id).await, []);
    assert_eq!(bench.get(run.id).await.status, RunStatus::Processing);
    assert_eq!(bench.used().await, 1);
    bench.record_steps(&new, steps()).await.unwrap();
}

#[tokio::test]
async fn stored_files_are_found_in_the_order_of_the_steps() {
    let bench = Bench::new().await;
    let (run, lease) = bench.begun().await;
    let files = [
        bench.file(None, 1).await,
        bench.file(None, 1).await,
        bench.file(None, 1).await,
    ];
    let steps = [1, 0, 2].map(|n: u32| Step {
        stored_file_id: Some(files[n as usize].id),
        ..step(n, StepStatus::Completed)
    });
    bench.record_steps(&lease, steps.to_vec()).await.unwrap();
    let (account, gone) = (bench.account, files[1].id);
    bench
        .write(move |tx| Box::pin(files::delete(tx, account, gone)))
        .await
        .unwrap();
    let stored = stored_files(&mut bench.world.read().await, &[run.id]).await;
    let stored: Vec<Uuid> = stored.unwrap()[&run.id]
        .iter()
        .map(|file| file.id)
        .collect();
    assert_eq!(stored, [files[0].id, files[2].id]);
    assert_eq!(bench.steps(run.id).await[1].stored_file_id, None);
}
