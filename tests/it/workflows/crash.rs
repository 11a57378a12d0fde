//! `kill -9` at every step of a run, and at any moment under a load of many; every other kill simulates a power loss,
//! after which unflushed files are short, changed or missing. Acknowledged runs end once: no file, charge or event is
//! doubled.
//!
//! All of it follows a printed seed: `SLUICE_TEST_SEED=7 cargo test --test it -- workflows::crash`. The lists of what
//! was acknowledged and of what the receivers saw are in this process and in `target/tmp`, outside the data folder.

mod books;
mod power;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{task::JoinSet, time::sleep};

use self::{books::Books, power::fail};
use super::{
    Workflow, begin, chain, create, download, edge, entry, has_ended, impatient, labelled, node,
    nodes, rule, run, wait_ended,
};
use crate::{
    support::{
        Failure,
        dice::{Dice, seed},
        eventually,
        images::{drawn, photographs, svg},
        json::{list, text},
        media::target_folder,
        receiver::{Behaviour, Receiver},
        server::{Api, Server},
    },
    webhooks::{subscribe, wait_settled},
};

/// Steps of a large photograph: some whose output is between two steps, two whose output is stored, and a webhook.
const WAY: [&str; 10] = [
    "upload",
    "smaller",
    "sharper",
    "large",
    "webp",
    "turned",
    "keep",
    "avif",
    "keep-avif",
    "tell",
];
/// Kills under load.
const KILLS: usize = 8;
const CLIENTS: usize = 3;
/// Pause of one client before its next upload.
const PAUSE: Duration = Duration::from_millis(40);
/// All runs and deliveries end within so long after the last kill.
const SETTLED_WITHIN: Duration = Duration::from_secs(120);
/// A kill between a run's end and the removal of its scratch leaves that to the next sweep.
const SWEPT_WITHIN: Duration = Duration::from_secs(90);

fn definition(own_url: &str) -> Value {
    let mut definition = chain(vec![
        node("smaller", "resize", json!({"resizeWidth": 1600})),
        node("sharper", "adjust", json!({"sharpen": 1})),
        node("large", "branch", json!({})),
        node("webp", "convert", json!({"format": "webp"})),
        node("turned", "transform", json!({"rotate": 90})),
        node("keep", "storage", json!({})),
        node(
            "avif",
            "thumbnail",
            json!({"width": 800, "height": 800, "fit": "inside", "format": "avif"}),
        ),
        node("keep-avif", "storage", json!({})),
        node("tell", "webhook", json!({"url": own_url})),
    ]);
    for edge in definition["edges"].as_array_mut().into_iter().flatten() {
        if edge["source"] == "large" {
            edge["kind"] = json!("true");
        }
    }
    definition["branchConditions"] = json!({"large": rule("width", "gte", 1_000)});
    definition
}

/// A service, its receivers, and one photograph that has been through undisturbed.
struct Scene {
    server: Server,
    workflow: Workflow,
    own: Receiver,
    subscribed: Receiver,
    photograph: Vec<u8>,
    /// The bytes of each output of an undisturbed run.
    expected: Vec<Vec<u8>>,
    /// Acknowledged runs so far.
    acknowledged: Vec<String>,
}

impl Scene {
    async fn set() -> Result<Self, Failure> {
        let server = impatient()
            .env("SLUICE_WEBHOOKS__RETRY_AFTER_S", "1,1,1,1,1")
            .start()
            .await?;
        let api = server.api();
        let (own, subscribed) = (
            Receiver::start(Behaviour::status(200)).await?,
            Receiver::start(Behaviour::status(200)).await?,
        );
        subscribe(&api, &subscribed.url("/"), &["*"]).await?;
        let workflow = create(&api, "photos", &definition(&own.url("/own"))).await?;
        let path = photographs(1)?.pop().ok_or("no photograph")?;
        let mut scene = Self {
            server,
            workflow,
            own,
            subscribed,
            photograph: std::fs::read(path)?,
            expected: Vec::new(),
            acknowledged: Vec::new(),
        };
        let id = scene.begin().await?;
        let undisturbed = wait_ended(&api, &id).await?;
        assert_eq!(undisturbed["status"], "completed", "{undisturbed}");
        scene.expected = outputs(&api, &undisturbed).await?;
        Ok(scene)
    }

    async fn begin(&mut self) -> Result<String, Failure> {
        let api = self.server.api();
        let id = begin(&api, &self.workflow, "photo.jpg", &self.photograph).await?;
        self.acknowledged.push(id.clone());
        Ok(id)
    }

    /// Kills the service when that many steps are journalled, lets `then` happen, and starts it again; the run as it
    /// was seen last.
    async fn kill_after(
        &mut self,
        id: &str,
        steps: usize,
        then: impl FnOnce(&Path) -> Result<(), Failure>,
    ) -> Result<Value, Failure> {
        let api = self.server.api();
        let mut seen = run(&api, id).await?;
        // No pause between two looks: the point in time is what this is about.
        while nodes(&seen, "completed").len() < steps && !has_ended(&seen) {
            seen = run(&api, id).await?;
        }
        self.server.kill().await?;
        then(&self.server.data_dir().join("scratch"))?;
        self.server.restart().await?;
        Ok(seen)
    }

    /// The run is whole, and what it had done for good was not done again.
    async fn check(&self, id: &str, seen: &Value) -> Result<(), Failure> {
        let api = self.server.api();
        let done = wait_ended(&api, id).await?;
        assert_eq!(
            (&done["status"], &done["error"]),
            (&json!("completed"), &Value::Null),
            "{done}"
        );
        assert_eq!(nodes(&done, "completed"), WAY, "{done}");
        for step in ["keep", "keep-avif", "tell"] {
            if let Ok(before) = entry(seen, step) {
                assert_eq!(entry(&done, step)?, before);
            }
        }
        assert!(
            outputs(&api, &done).await? == self.expected,
            "other bytes: {done}"
        );
        Ok(())
    }

    async fn check_books(&self) -> Result<(), Failure> {
        let api = self.server.api();
        wait_settled(&api, SETTLED_WITHIN).await?;
        let books = Books::read(&api).await?;
        books
            .check_runs(&api, &self.workflow, &self.acknowledged, 2)
            .await?;
        books.check_arrivals(&[&self.own, &self.subscribed]);
        nothing_is_left(&self.server.data_dir().join("scratch")).await
    }
}

async fn outputs(api: &Api, run: &Value) -> Result<Vec<Vec<u8>>, Failure> {
    let mut all = Vec::new();
    for output in list(&run["outputs"])? {
        all.push(download(api, &output).await?);
    }
    Ok(all)
}

/// Checks that intermediate files are removed with the run.
async fn nothing_is_left(scratch: &Path) -> Result<(), Failure> {
    eventually("no scratch is left", SWEPT_WITHIN, async || {
        let left = std::fs::read_dir(scratch).ok()?.count();
        (left == 0).then_some(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_after_each_step_a_run_continues_where_it_was() -> Result<(), Failure> {
    let mut scene = Scene::set().await?;
    for steps in 0..=WAY.len() {
        let id = scene.begin().await?;
        let seen = scene.kill_after(&id, steps, |_| Ok(())).await?;
        eprintln!(
            "killed after {steps}: {} {:?}",
            seen["status"],
            nodes(&seen, "completed")
        );
        scene.check(&id, &seen).await?;
        // No journalled step was repeated.
        let done = run(&scene.server.api(), &id).await?;
        for before in super::log(&seen) {
            assert_eq!(entry(&done, &text(&before["nodeId"])?)?, before);
        }
    }
    scene.check_books().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_loss_after_each_step_costs_no_more_than_the_work() -> Result<(), Failure> {
    let seed = seed()?;
    eprintln!("SLUICE_TEST_SEED={seed}");
    let mut dice = Dice::new(seed);
    let mut scene = Scene::set().await?;
    let mut lost = 0;
    for steps in 0..WAY.len() {
        let id = scene.begin().await?;
        let seen = scene
            .kill_after(&id, steps, |scratch| {
                lost += fail(scratch, &mut dice)?;
                Ok(())
            })
            .await?;
        scene.check(&id, &seen).await?;
    }
    eprintln!("{lost} files were spoilt");
    assert!(lost > 0, "the power failed and nothing was lost");
    scene.check_books().await
}

/// A stop is no crash: the run is given back at a step, and continues at the next start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_in_the_middle_a_run_continues_after_the_start() -> Result<(), Failure> {
    let mut scene = Scene::set().await?;
    for _ in 0..3 {
        let id = scene.begin().await?;
        let api = scene.server.api();
        eventually("the first step is done", SETTLED_WITHIN, async || {
            let seen = run(&api, &id).await.ok()?;
            (!nodes(&seen, "completed").is_empty()).then_some(())
        })
        .await?;
        assert!(scene.server.terminate().await?.success());
        scene.server.restart().await?;
        scene.check(&id, &Value::Null).await?;
    }
    scene.check_books().await
}

/// A run that takes the service down with it again and again is given up, and paid back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_never_comes_to_an_end_is_given_up() -> Result<(), Failure> {
    /// More than a row gets that is claimed without an end.
    const MOST_KILLS: usize = 5;
    let mut server = impatient().start().await?;
    let slow = chain(vec![node(
        "slow",
        "convert",
        json!({"format": "avif", "resizeWidth": 6_000}),
    )]);
    let workflow = create(&server.api(), "slow", &slow).await?;
    let id = begin(&server.api(), &workflow, "a.svg", &svg("red")).await?;
    for _ in 0..MOST_KILLS {
        // A metric of this process, since the run's status may still be that of the killed one.
        let ended = eventually("it is worked on", SETTLED_WITHIN, async || {
            let (_, metrics) = server.get("/metrics").await.ok()?;
            let metrics = String::from_utf8(metrics.into()).ok()?;
            let is_worked_on = metrics.contains("sluice_workflow_runs_active 1\n");
            let has_ended = has_ended(&run(&server.api(), &id).await.ok()?);
            (is_worked_on || has_ended).then_some(has_ended)
        });
        if ended.await? {
            break;
        }
        server.kill().await?;
        server.restart().await?;
    }
    let api = server.api();
    let given_up = wait_ended(&api, &id).await?;
    assert_eq!(given_up["status"], "failed", "{given_up}");
    assert_eq!(given_up["errorCode"], "crashed", "{given_up}");
    assert_eq!(api.operations_used().await?, 0);
    Ok(())
}

/// Runs from several clients at a time, until it is stopped.
struct Load {
    clients: JoinSet<()>,
    acknowledged: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
}

impl Load {
    fn start(api: &Api, workflow: &Workflow, image: &[u8]) -> Self {
        let mut load = Self {
            clients: JoinSet::new(),
            acknowledged: Arc::default(),
            stop: Arc::default(),
        };
        let number = Arc::<AtomicUsize>::default();
        for _ in 0..CLIENTS {
            let (api, workflow, image) = (api.clone(), workflow.clone(), image.to_owned());
            let (number, stop) = (number.clone(), load.stop.clone());
            let acknowledged = load.acknowledged.clone();
            load.clients.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let name = format!("{}.jpg", number.fetch_add(1, Ordering::Relaxed));
                    // Without an answer nothing was promised.
                    if let Ok(id) = begin(&api, &workflow, &name, &image).await {
                        acknowledged.lock().expect("no client panics").push(id);
                    }
                    sleep(PAUSE).await;
                }
            });
        }
        load
    }

    /// Ids of all runs that the service said it has.
    async fn finish(mut self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        while self.clients.join_next().await.is_some() {}
        let mut acknowledged = self.acknowledged.lock().expect("no client panics");
        std::mem::take(&mut *acknowledged)
    }
}

/// Resize, branch, convert, storage, webhook.
fn five_steps(own_url: &str) -> Value {
    json!({
        "nodes": [
            node("upload", "upload", json!({})),
            node("small", "resize", json!({"resizeWidth": 120})),
            node("wide", "branch", json!({})),
            node("webp", "convert", json!({"format": "webp"})),
            node("png", "convert", json!({"format": "png"})),
            node("keep", "storage", json!({})),
            node("tell", "webhook", json!({"url": own_url})),
        ],
        "edges": [
            edge("upload", "small"), edge("small", "wide"), labelled("wide", true, "webp"),
            labelled("wide", false, "png"), edge("webp", "keep"), edge("png", "keep"), edge("keep", "tell"),
        ],
        "branchConditions": {"wide": rule("width", "gt", 100)},
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_again_and_again_under_load_every_run_ends_once() -> Result<(), Failure> {
    let seed = seed()?;
    let ledger = target_folder().join(format!("tmp/workflows-{seed}.jsonl"));
    eprintln!("SLUICE_TEST_SEED={seed}; requests in {}", ledger.display());
    // A fresh one for each run.
    let _ = std::fs::remove_file(&ledger);
    let mut dice = Dice::new(seed);
    let mut server = impatient()
        .env("SLUICE_WEBHOOKS__RETRY_AFTER_S", "1,1,1,1,1")
        .start()
        .await?;
    let api = server.api();
    let receiver = async || Receiver::start_with_ledger(Behaviour::status(200), &ledger).await;
    let (own, subscribed) = (receiver().await?, receiver().await?);
    subscribe(
        &api,
        &subscribed.url("/subscribed"),
        &["workflow.completed"],
    )
    .await?;
    let workflow = create(&api, "photos", &five_steps(&own.url("/own"))).await?;

    let load = Load::start(&api, &workflow, &drawn("plain.jpg")?);
    let scratch: PathBuf = server.data_dir().join("scratch");
    let mut lost = 0;
    for _ in 0..KILLS {
        sleep(Duration::from_millis(500 + dice.below(2_000))).await;
        server.kill().await?;
        if dice.below(2) == 0 {
            lost += fail(&scratch, &mut dice)?;
        }
        server.restart().await?;
    }
    let acknowledged = load.finish().await;
    std::fs::write(
        ledger.with_extension("acknowledged"),
        acknowledged.join("\n"),
    )?;
    for id in &acknowledged {
        wait_ended(&api, id).await?;
    }
    let all_done = eventually("every run has ended", SETTLED_WITHIN, async || {
        let books = Books::read(&api).await.ok()?;
        let begun = books::run_count(&api, &workflow).await.ok()?;
        (books.completed() as u64 >= begun).then_some(books)
    });
    let books = all_done.await?;
    eprintln!(
        "{} runs acknowledged, {books}, {lost} files spoilt",
        acknowledged.len()
    );
    assert!(acknowledged.len() >= KILLS * 4, "this was no load");
    wait_settled(&api, SETTLED_WITHIN).await?;
    books.check_runs(&api, &workflow, &acknowledged, 1).await?;
    books.check_arrivals(&[&own, &subscribed]);
    nothing_is_left(&scratch).await?;
    std::fs::remove_file(ledger.with_extension("acknowledged"))?;
    std::fs::remove_file(&ledger)?;
    Ok(())
}
