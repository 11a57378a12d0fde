//! Saves and versions.

use super::*;
use crate::{Page, webhooks::tests::add_account};

impl Bench {
    async fn save(&self, expected: Option<i64>, keep_versions: usize) -> Result<Replaced, Error> {
        self.save_as(new_workflow("again"), expected, keep_versions)
            .await
    }

    async fn save_as(
        &self,
        new: NewWorkflow,
        expected: Option<i64>,
        keep_versions: usize,
    ) -> Result<Replaced, Error> {
        let (account, id) = (self.account, self.workflow);
        self.write(move |tx| {
            Box::pin(replace(
                tx,
                account,
                id,
                new,
                expected,
                keep_versions,
                NOW + 5,
            ))
        })
        .await
    }

    async fn kept_versions(&self) -> Vec<i64> {
        let kept = versions(
            &mut self.world.read().await,
            self.account,
            self.workflow,
            100,
        )
        .await;
        kept.unwrap().iter().map(|kept| kept.version).collect()
    }
}

#[tokio::test]
async fn a_save_that_names_another_version_changes_nothing() {
    // What the save expects, and whether it is made, at version 2.
    for (expected, is_saved) in [
        (None, true),
        (Some(2), true),
        (Some(1), false),
        (Some(3), false),
        (Some(-1), false),
    ] {
        let bench = Bench::new().await;
        bench.save(Some(1), 100).await.unwrap();
        let outcome = bench.save(expected, 100).await.unwrap();
        match outcome {
            Replaced::Saved(saved) => {
                assert!(is_saved, "{expected:?}");
                assert_eq!((saved.version, saved.name.as_str()), (3, "again"));
                assert_eq!(saved.definition, new_workflow("").definition);
            }
            Replaced::Crossed { version } => {
                assert!(!is_saved, "{expected:?}");
                assert_eq!(version, 2);
                assert_eq!(bench.kept_versions().await, [2, 1]);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_saves_that_cross_one_is_made() {
    let bench = Bench::new().await;
    let saves = [(); 8].map(|()| bench.save(Some(1), 100));
    let mut saved = 0;
    for outcome in futures(saves).await {
        match outcome.unwrap() {
            Replaced::Saved(_) => saved += 1,
            Replaced::Crossed { version } => assert_eq!(version, 2),
        }
    }
    assert_eq!(saved, 1);
    assert_eq!(bench.kept_versions().await, [2, 1]);
}

/// Polls them all in turn.
async fn futures<T, F: Future<Output = T>, const N: usize>(all: [F; N]) -> Vec<T> {
    let mut all = all.map(Box::pin);
    let mut done: [Option<T>; N] = std::array::from_fn(|_| None);
    std::future::poll_fn(|context| {
        for (future, done) in all.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(value) = future.as_mut().poll(context)
            {
                *done = Some(value);
            }
        }
        match done.iter().all(Option::is_some) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[tokio::test]
async fn old_versions_go_but_for_those_that_a_run_names() {
    let bench = Bench::new().await;
    let run = bench.run(0).await;
    for _ in 0..5 {
        bench.save(None, 2).await.unwrap();
    }
    assert_eq!(bench.kept_versions().await, [6, 5, 1]);
    let mut reader = bench.world.read().await;
    assert!(
        definition_of(&mut reader, bench.workflow, run.workflow_version)
            .await
            .is_ok()
    );
    let gone = definition_of(&mut reader, bench.workflow, 2).await;
    assert!(matches!(gone, Err(Error::NotFound("version"))));
    drop(reader);
    bench.world.run("DELETE FROM workflow_runs").await.unwrap();
    bench.save(None, 0).await.unwrap();
    assert_eq!(bench.kept_versions().await, [7], "the current one stays");
}

#[tokio::test]
async fn an_account_has_a_bounded_number() {
    let bench = Bench::new().await;
    let account = bench.account;
    let create = |most| {
        bench.write(move |tx| Box::pin(create(tx, account, new_workflow("more"), most, NOW)))
    };
    assert!(matches!(create(1).await, Err(Error::Conflict(_))));
    assert!(create(2).await.is_ok());
    assert!(matches!(create(2).await, Err(Error::Conflict(_))));
    bench.delete(100).await.unwrap();
    assert!(create(2).await.is_ok(), "a deleted one does not count");
}

#[tokio::test]
async fn a_folder_that_the_account_does_not_have_counts_as_none() {
    let bench = Bench::new().await;
    let other = add_account(&bench.world.store).await;
    let (own, foreign) = (bench.folder(bench.account).await, bench.folder(other).await);
    for (folder, expected) in [
        (Some(own), Some(own)),
        (Some(foreign), None),
        (Some(Uuid::now_v7()), None),
        (None, None),
    ] {
        let new = NewWorkflow {
            trigger_folder_id: folder,
            ..new_workflow("bound")
        };
        let made = create_in(&bench.world, bench.account, new.clone()).await;
        assert_eq!(made.trigger_folder_id, expected);
        let Replaced::Saved(saved) = bench.save_as(new, None, 9).await.unwrap() else {
            panic!("nothing crossed");
        };
        assert_eq!(saved.trigger_folder_id, expected);
    }
}

#[tokio::test]
async fn a_folder_starts_a_bounded_number() {
    let bench = Bench::new().await;
    let new = NewWorkflow {
        trigger_folder_id: Some(bench.folder(bench.account).await),
        ..new_workflow("bound")
    };
    for _ in 0..20 {
        create_in(&bench.world, bench.account, new.clone()).await;
    }
    let (account, another) = (bench.account, new.clone());
    let rejected = bench
        .write(move |tx| Box::pin(create(tx, account, another, 1_000, NOW)))
        .await;
    assert!(matches!(rejected, Err(Error::Conflict(_))), "{rejected:?}");
    let rejected = bench.save_as(new, None, 9).await;
    assert!(matches!(rejected, Err(Error::Conflict(_))), "{rejected:?}");
    assert_eq!(bench.kept_versions().await, [1]);
}

#[tokio::test]
async fn pausing_makes_no_version() {
    let bench = Bench::new().await;
    for is_active in [false, false, true] {
        let workflow = bench.set_active(is_active).await;
        assert_eq!((workflow.is_active, workflow.version), (is_active, 1));
    }
}

#[tokio::test]
async fn what_is_not_the_accounts_is_not_found() {
    let bench = Bench::new().await;
    let other = add_account(&bench.world.store).await;
    let id = bench.workflow;
    let deleted = create_in(&bench.world, bench.account, new_workflow("gone")).await;
    let account = bench.account;
    bench
        .write(move |tx| Box::pin(delete(tx, account, deleted.id, 9, TERMS, NOW)))
        .await
        .unwrap();
    for (account, id) in [
        (other, id),
        (account, Uuid::now_v7()),
        (account, deleted.id),
    ] {
        let mut reader = bench.world.read().await;
        let rejections = [
            get(&mut reader, account, id).await.map(drop),
            versions(&mut reader, account, id, 9).await.map(drop),
            bench
                .write(move |tx| Box::pin(set_active(tx, account, id, false, NOW)))
                .await
                .map(drop),
            bench
                .write(move |tx| Box::pin(rotate_secret(tx, account, id, 0, NOW)))
                .await
                .map(drop),
            bench
                .write(move |tx| Box::pin(delete(tx, account, id, 9, TERMS, NOW)))
                .await
                .map(drop),
            bench
                .write(move |tx| Box::pin(replace(tx, account, id, new_workflow(""), None, 9, NOW)))
                .await
                .map(drop),
        ];
        for (verb, rejected) in rejections.into_iter().enumerate() {
            let is_rejected = matches!(rejected, Err(Error::NotFound("workflow")));
            assert!(is_rejected, "verb {verb}: {rejected:?}");
        }
    }
    let listed = list(&mut bench.world.read().await, account, Page::first(9)).await;
    let listed: Vec<Uuid> = listed.unwrap().iter().map(|one| one.id).collect();
    assert_eq!(listed, [id]);
}
