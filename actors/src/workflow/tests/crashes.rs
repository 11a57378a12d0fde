//! Processes that die at any moment: the next one continues, and nothing is doubled.

use std::{collections::HashSet, sync::atomic::Ordering::Relaxed};

use sluice_store::lineage::{self, Derived};

use super::*;

/// Five operations with a storage step between them and at the end.
fn long() -> Value {
    flow(
        &[
            ("in", "upload", json!({})),
            ("one", "resize", json!({"resizeWidth": 1})),
            ("two", "resize", json!({"resizeWidth": 2})),
            ("keep", "storage", json!({})),
            ("three", "resize", json!({"resizeWidth": 3})),
            ("four", "convert", json!({"format": "webp"})),
            ("name", "rename", json!({"pattern": "{original} {n}"})),
            ("again", "storage", json!({})),
            ("five", "resize", json!({"resizeWidth": 5})),
            ("tell", "webhook", json!({})),
        ],
        "in>one one>two two>keep keep>three three>four four>name name>again again>five five>tell",
    )
}

const LABELS: [&str; 5] = ["png1", "png2", "png3", "webp", "webp5"];

impl Site {
    /// Checks that the run is as if nothing had happened.
    async fn check_whole(&self, run: &Run, runs: u64) {
        assert_eq!(run.status, RunStatus::Completed, "{run:?}");
        let stored = self.stored(run).await;
        let names: Vec<_> = stored
            .iter()
            .map(|(name, text)| (name.as_str(), without_numbers(text)))
            .collect();
        assert_eq!(
            names,
            [
                ("a.png", "a>png1>png2".to_owned()),
                (
                    format!("a {}.webp", run.number).as_str(),
                    "a>png1>png2>png3>webp".to_owned()
                ),
            ]
        );
        let steps = self.steps(run).await;
        let done: Vec<_> = steps.iter().map(|step| step.node_id.as_str()).collect();
        assert_eq!(
            done,
            [
                "in", "one", "two", "keep", "three", "four", "name", "again", "five", "tell"
            ]
        );
        assert_eq!(self.all_files().await, 2 * runs);
        assert_eq!(self.used().await, runs);
        assert_eq!(self.events("file.uploaded").await.len() as u64, 2 * runs);
        assert_eq!(self.events("workflow.completed").await.len() as u64, runs);
        let mut reader = self.store.read().await.unwrap();
        for step in steps.iter().filter_map(|step| step.stored_file_id) {
            let made = lineage::of(&mut reader, &Derived::file(step))
                .await
                .unwrap();
            assert_eq!(made.len(), 1);
        }
    }
}

/// Removes the numbers that a fickle worker adds.
fn without_numbers(text: &str) -> String {
    text.split('>')
        .map(|part| part.split('#').next().unwrap())
        .collect::<Vec<_>>()
        .join(">")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_in_a_step_continues_with_that_step() {
    let mut site = Site::open().await;
    let workflow = site.save(long()).await;
    for (number, label) in LABELS.iter().enumerate() {
        let done: Vec<_> = LABELS
            .iter()
            .map(|label| site.workers.times(label))
            .collect();
        site.workers.hold(label);
        let run = site.submit(&workflow, "a.png", "a").await;
        site.until("it is in the step, and those before are done", |site| {
            LABELS[..number]
                .iter()
                .zip(&done)
                .all(|(label, before)| site.workers.times(label) == before + 1)
                && site.workers.running.load(SeqCst) == 1
        })
        .await;
        site.kill_and_start().await;
        site.workers.release();
        let run = site.end_of(&run).await;
        site.check_whole(&run, number as u64 + 1).await;
        for (label, before) in LABELS.iter().zip(done) {
            assert_eq!(
                site.workers.times(label),
                before + 1,
                "{label} was done twice"
            );
        }
        // The gate is empty again for the next round.
        let left = site.workers.gate.available_permits();
        site.workers.gate.forget_permits(left);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_after_any_commit_or_between_doubles_nothing() {
    let mut site = Site::open().await;
    site.workers.is_fickle.store(true, Relaxed);
    let workflow = site.save(long()).await;
    for round in 0..24_u64 {
        let run = site.submit(&workflow, "a.png", "a").await;
        match round % 2 {
            // As soon as so many steps are journalled: the process is just after a commit.
            0 => site.until_journalled(&run, round as usize * 10 / 24).await,
            // Anywhere: the disk decides.
            _ => tokio::time::sleep(Duration::from_millis(round * 2)).await,
        }
        site.kill_and_start().await;
        let run = site.end_of(&run).await;
        site.check_whole(&run, round + 1).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn buffers_that_are_gone_or_differ_are_made_again() {
    let mut site = Site::open().await;
    let workflow = site.save(long()).await;
    // Which files of the scratch folder are spoilt, how, and what is done again for it.
    type Spoil = fn(&std::path::Path);
    let cases: [(&[u32], Spoil, &[&str]); 4] = [
        (&[], |_| {}, &[]),
        (&[4], |path| std::fs::remove_file(path).unwrap(), &["png3"]),
        (&[4], |path| std::fs::write(path, "").unwrap(), &["png3"]),
        (
            &[1, 4],
            |path| {
                let mut bytes = std::fs::read(path).unwrap();
                *bytes.last_mut().unwrap() ^= 1;
                std::fs::write(path, bytes).unwrap();
            },
            &["png3"],
        ),
    ];
    for (round, (positions, spoil, again)) in cases.into_iter().enumerate() {
        let before: Vec<_> = LABELS
            .iter()
            .map(|label| site.workers.times(label))
            .collect();
        site.workers.hold("webp");
        let run = site.submit(&workflow, "a.png", "a").await;
        site.until_journalled(&run, 5).await;
        site.until("it is in the step", |site| {
            site.workers.running.load(SeqCst) == 1
        })
        .await;
        let scratch = site.scratch_of(&run);
        for position in positions {
            spoil(&scratch.join(position.to_string()));
        }
        site.kill_and_start().await;
        site.workers.release();
        let run = site.end_of(&run).await;
        site.check_whole(&run, round as u64 + 1).await;
        for (label, before) in LABELS.iter().zip(before) {
            let times = 1 + usize::from(again.contains(label));
            assert_eq!(
                site.workers.times(label) - before,
                times,
                "{label} in round {round}"
            );
        }
        let left = site.workers.gate.available_permits();
        site.workers.gate.forget_permits(left);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_kills_its_owner_is_given_up_and_harms_no_other() {
    let site = Site::open().await;
    let workflow = site.save(photos()).await;
    site.workers.die_at("png200");
    let poison = site.submit(&workflow, "a.png", "a").await;
    let audio = site
        .save(flow(
            &[
                ("in", "upload", json!({})),
                ("webp", "convert", json!({"format": "webp"})),
            ],
            "in>webp",
        ))
        .await;
    site.completed(&audio, "b.png", "b").await;
    let poison = site.end_of(&poison).await;
    assert_eq!(
        (poison.status, poison.error_code.as_deref()),
        (RunStatus::Failed, Some("crashed"))
    );
    assert_eq!(site.used().await, 1, "what was given up is given back");
    assert_eq!(site.events("workflow.failed").await.len(), 1);
    assert_eq!(site.workflows.counts().failed["crashed"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_run_has_an_actor_of_its_own_and_a_panic_ends_only_that_one() {
    let site = Site::open().await;
    let resize = |width: u32| {
        let nodes = [
            ("in", "upload", json!({})),
            ("resize", "resize", json!({"resizeWidth": width})),
        ];
        flow(&nodes, "in>resize")
    };
    let (steady, faulty) = (site.save(resize(1)).await, site.save(resize(2)).await);
    site.workers.hold("png1");
    let first = site.submit(&steady, "a.png", "a").await;
    let second = site.submit(&steady, "b.png", "b").await;
    site.until("both are in their step", |site| {
        site.workers.running.load(SeqCst) == 2
    })
    .await;
    let owners = site.workflows.services.registry.owners().await;
    let rows: HashSet<_> = owners.values().copied().collect();
    assert_eq!(owners.len(), 2, "one actor for each run");
    assert_eq!(rows, HashSet::from([first.id, second.id]));

    site.workers.die_at("png2");
    let faulty = site.submit(&faulty, "c.png", "c").await;
    let faulty = site.end_of(&faulty).await;
    assert_eq!(faulty.error_code.as_deref(), Some("crashed"));
    until("the faulty run has no actor any more", async || {
        site.workflows.services.registry.owners().await == owners
    })
    .await;
    assert_eq!(site.workers.running.load(SeqCst), 2);

    site.workers.release();
    for run in [first, second] {
        let run = site.end_of(&run).await;
        assert_eq!(run.status, RunStatus::Completed, "{run:?}");
    }
    assert_eq!(site.workers.times("png1"), 2, "each was done once");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_lost_its_lease_changes_nothing() {
    let site = Site::open().await;
    let workflow = site.save(long()).await;
    site.workers.hold("png2");
    let run = site.submit(&workflow, "a.png", "a").await;
    site.until_journalled(&run, 2).await;
    site.until("it is in the step", |site| {
        site.workers.running.load(SeqCst) == 1
    })
    .await;
    // Another process takes the run over while this one is in the middle of a step.
    let (others, _root) = start(&site.settings, &site.store, &site.workers);
    let id = run.id;
    let take_over = async || {
        let taken = site.store.write(move |tx| {
            Box::pin(async move {
                let room = sluice_store::work::Room::for_any(10);
                let (owner, lease) = (Uuid::now_v7(), Duration::from_secs(15));
                let later = now_ms() + 60_000;
                let claimed =
                    sluice_store::work::claim(tx, workflows::KIND, owner, room, lease, later);
                let Some(lease) = claimed.await?.leases.pop() else {
                    return Ok(false);
                };
                assert_eq!(lease.id, id);
                sluice_store::work::retry(tx, &lease, now_ms()).await?;
                Ok(true)
            })
        });
        taken.await.unwrap()
    };
    // A row that a heartbeat changes at the moment is passed over.
    while !take_over().await {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    site.workers.release();
    others.announce();
    let run = site.end_of(&run).await;
    site.check_whole(&run, 1).await;
}
