//! Dry runs compared with runs: on random graphs, a dry run equals the run's log wherever it does not say unknown.

use std::collections::{BTreeSet, HashMap};

use sluice_media::{
    format::Format,
    workflow::{Certainty, DryRun, Facts, Field, Premise, check, dry_run},
};

use super::{super::run::naming::date, *};

const GRAPHS: u64 = 200;

/// A generator of numbers that gives the same ones every time (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }
}

/// A file and the graph that it runs through.
struct Sample {
    definition: Value,
    filename: &'static str,
    text: String,
    source: &'static str,
    /// Facts that the dry run does not know.
    unknown: BTreeSet<Field>,
}

impl Sample {
    fn of(numbers: &mut Numbers) -> Self {
        // The workers of these tests make images only; what comes as a video is streamed, named and stored.
        let is_video = numbers.one_in(6);
        let filename = match is_video {
            true => "clip.mp4",
            false => numbers.of(&["a.png", "b.jpg", "c.d.jpeg", "e.webp", "f.pdf"]),
        };
        let text = match numbers.one_in(8) {
            true => "no size".to_owned(),
            false => format!("w={}", 1 + numbers.below(20)),
        };
        let unknown = Field::ALL
            .iter()
            .copied()
            .filter(|field| match field {
                Field::Mime | Field::UploadSource | Field::Filename => numbers.one_in(12),
                _ => numbers.one_in(3),
            })
            .collect();
        Self {
            definition: definition(numbers, is_video),
            filename,
            text,
            source: numbers.of(&["api", "dashboard", "folder"]),
            unknown,
        }
    }

    fn format(&self) -> Format {
        Format::from_filename(self.filename).unwrap()
    }

    /// The file as the dry run knows it.
    fn premise(&self, run: &Run) -> Premise {
        let width = self
            .text
            .strip_prefix("w=")
            .map(|width| width.parse().unwrap());
        Premise {
            facts: Facts {
                mime: Some(self.format().mime().to_owned()),
                size_bytes: Some(run.input_size.unsigned_abs()),
                width,
                height: width.map(|_| 100),
                upload_source: Some(self.source.to_owned()),
                ..Facts::named(self.filename)
            },
            unknown: self.unknown.clone(),
            date: date(run.created_at),
            clean: |name| name.replace('!', ""),
        }
    }
}

fn definition(numbers: &mut Numbers, is_video: bool) -> Value {
    let count = 2 + numbers.below(12);
    let (mut nodes, mut edges) = (vec![("n0".to_owned(), "upload", json!({}))], String::new());
    for at in 1..=count {
        let (kind, config) = step(numbers, is_video);
        nodes.push((format!("n{at}"), kind, config));
    }
    for (at, (_, kind, _)) in nodes.iter().enumerate() {
        let mut lead = |numbers: &mut Numbers, label: &str| {
            let target = at + 1 + numbers.below(3);
            if target <= count {
                edges += &format!("n{at}{label}>n{target} ");
            }
        };
        if *kind != "branch" {
            lead(numbers, "");
            continue;
        }
        for (label, missing) in [(">true", 6), (">false", 6)] {
            if !numbers.one_in(missing) {
                lead(numbers, label);
            }
        }
        if numbers.one_in(6) {
            lead(numbers, "");
        }
    }
    let nodes: Vec<(&str, &str, Value)> = nodes
        .iter()
        .map(|(id, kind, config)| (id.as_str(), *kind, config.clone()))
        .collect();
    let mut definition = flow(&nodes, &edges);
    if numbers.one_in(4) {
        definition["uploadGate"] = group(numbers, is_video, 2);
    }
    if numbers.one_in(4) {
        definition["renamePattern"] = json!(pattern(numbers, is_video));
    }
    definition
}

fn step(numbers: &mut Numbers, is_video: bool) -> (&'static str, Value) {
    let most = if is_video { 11 } else { 16 };
    match numbers.below(most) {
        0..=5 => ("branch", json!({"condition": group(numbers, is_video, 2)})),
        6 | 7 => ("rename", json!({"pattern": pattern(numbers, is_video)})),
        8 => ("storage", json!({})),
        9 => ("webhook", json!({})),
        10 if is_video || numbers.one_in(4) => ("hls", json!({"profile": "basic"})),
        10 | 11 => ("inspect", json!({})),
        12 | 13 => ("resize", json!({"resizeWidth": 1 + numbers.below(20)})),
        _ => {
            let format = numbers.of(&["png", "jpg", "webp", "pdf"]);
            ("convert", json!({"format": format}))
        }
    }
}

fn pattern(numbers: &mut Numbers, is_video: bool) -> &'static str {
    let choices: &[&str] = &[
        "{original}-{format}",
        "{n}. {original}",
        "{date}",
        "a!b",
        "{original} {width}",
    ];
    let most = choices.len() - usize::from(is_video);
    numbers.of(&choices[..most])
}

fn group(numbers: &mut Numbers, is_video: bool, depth: usize) -> Value {
    let rules: Vec<Value> = (0..numbers.below(3))
        .map(|_| rule(numbers, is_video))
        .collect();
    let groups: Vec<Value> = match depth {
        0 => Vec::new(),
        _ => (0..numbers.below(3))
            .map(|_| group(numbers, is_video, depth - 1))
            .collect(),
    };
    let logic = numbers.of(&["and", "or"]);
    json!({"logic": logic, "negate": numbers.one_in(3), "conditions": rules, "groups": groups})
}

fn rule(numbers: &mut Numbers, is_video: bool) -> Value {
    let most = if is_video { 5 } else { 8 };
    let (field, operators, value): (_, &[&str], Value) = match numbers.below(most) {
        0 => (
            "mime",
            &["equals", "not_equals", "starts_with"],
            json!(numbers.of(&["image/png", "image/", "video/mp4"])),
        ),
        1 => (
            "extension",
            &["equals", "not_equals"],
            json!(numbers.of(&["png", "jpg", "jpeg", "webp", "mp4"])),
        ),
        2 => (
            "filename",
            &["contains", "ends_with", "matches"],
            json!(numbers.of(&["a", "1", "png", "2"])),
        ),
        3 => ("size_bytes", &["gt", "lte"], json!(20 + numbers.below(20))),
        4 => (
            "upload_source",
            &["equals", "is_not_empty"],
            json!(numbers.of(&["api", "folder"])),
        ),
        5 => (
            "width",
            &["gt", "lt", "equals", "is_empty"],
            json!(1 + numbers.below(20)),
        ),
        6 => ("height", &["gte", "is_not_empty"], json!(100)),
        _ => ("duration", &["gt", "is_empty"], json!(1)),
    };
    let operator = numbers.of(operators);
    json!({"field": field, "operator": operator, "value": value, "negate": numbers.one_in(4)})
}

/// Numbers that show that the comparison compares something.
#[derive(Debug, Default)]
struct Compared {
    taken: usize,
    not_taken: usize,
    unknown: usize,
    branches: usize,
    failures: usize,
    /// Runs that failed at a step of which the dry run did not know the type of file.
    unforeseen: usize,
    files: usize,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_equals_the_log_of_the_run_wherever_it_is_certain() {
    let site = Site::open().await;
    let mut numbers = Numbers(7);
    let mut compared = Compared::default();
    for graph in 0..GRAPHS {
        let sample = Sample::of(&mut numbers);
        let workflow = site.save(sample.definition.clone()).await;
        let used_before = site.used().await;
        let submitted = site.offer(&workflow, sample.filename, &sample.text, |request| {
            request.input.mime_type = sample.format().mime().to_owned();
            request.upload_source = sample.source.to_owned();
        });
        let Submitted::New(run) = submitted.await else {
            panic!("nothing keeps the run from being made");
        };
        let run = site.end_of(&run).await;
        let definition = check(&sample.definition).definition.unwrap();
        let dry = dry_run(&definition, &sample.premise(&run));
        let steps: HashMap<String, Step> = site
            .steps(&run)
            .await
            .into_iter()
            .map(|step| (step.node_id.clone(), step))
            .collect();
        let used = u32::try_from(site.used().await - used_before).unwrap();
        let stored = site.stored_names(&run).await;
        let context = format!(
            "graph {graph}: {} of {} without {:?}\n{}\n{dry:#?}\n{run:?}\n{steps:#?}",
            sample.filename, sample.text, sample.unknown, sample.definition
        );
        compare(&dry, &run, &steps, used, &stored, &mut compared, &context);
    }
    let Compared {
        taken,
        not_taken,
        unknown,
        branches,
        failures,
        unforeseen,
        files,
    } = compared;
    assert!(
        taken > 500 && not_taken > 300 && unknown > 50,
        "{compared:?}"
    );
    assert!(branches > 100 && files > 50 && failures > 2, "{compared:?}");
    assert!(unforeseen < 30, "{compared:?}");
}

fn compare(
    dry: &DryRun,
    run: &Run,
    steps: &HashMap<String, Step>,
    used: u32,
    stored: &HashMap<String, String>,
    compared: &mut Compared,
    context: &str,
) {
    let failed_at = run.error_node.as_deref();
    let is_unforeseen = failed_at.is_some_and(|failed_at| {
        let step = dry.path.iter().find(|step| step.node_id == failed_at);
        step.is_some_and(|step| !step.fails)
    });
    compared.unforeseen += usize::from(is_unforeseen);
    if let Some(Some(gate)) = dry.gate {
        assert_eq!(run.gate, Some(gate), "gate, {context}");
    }
    assert_eq!(dry.path.len(), steps.len(), "{context}");
    for foreseen in &dry.path {
        let step = &steps[&foreseen.node_id];
        let expected = match (foreseen.state, foreseen.fails) {
            (Certainty::Taken, true) => Some(StepStatus::Failed),
            (Certainty::Taken, false) => Some(StepStatus::Completed),
            (Certainty::NotTaken, _) => Some(StepStatus::Skipped),
            (Certainty::Unknown, _) => None,
        };
        match foreseen.state {
            Certainty::Taken => compared.taken += 1,
            Certainty::NotTaken => compared.not_taken += 1,
            Certainty::Unknown => compared.unknown += 1,
        }
        let is_behind_failure = is_unforeseen && step.status != StepStatus::Completed;
        if let Some(expected) = expected
            && !is_behind_failure
        {
            assert_eq!(step.status, expected, "{}, {context}", step.node_id);
        }
        if foreseen.fails && step.status != StepStatus::Skipped {
            compared.failures += 1;
            assert_eq!(
                step.status,
                StepStatus::Failed,
                "{}, {context}",
                step.node_id
            );
        }
        if let Some(Some(branch)) = foreseen.branch
            && step.status == StepStatus::Completed
        {
            compared.branches += 1;
            assert_eq!(step.branch, Some(branch), "{}, {context}", step.node_id);
        }
    }
    if !is_unforeseen {
        let most = dry.operations.charged + dry.operations.unknown;
        let charged = dry.operations.charged..=most;
        assert!(charged.contains(&used), "used {used}, {context}");
    }
    for file in dry.files.iter().filter(|_| !is_unforeseen) {
        let made = match &file.node_id {
            Some(node) => stored.get(node).cloned(),
            None => run.output().map(|output| output.filename),
        };
        if file.state == Certainty::Taken {
            assert!(made.is_some(), "{file:?}, {context}");
        }
        if let (Some(expected), Some(made)) = (&file.facts.filename, made) {
            compared.files += 1;
            assert_eq!(&made, expected, "{context}");
        }
    }
}

impl Site {
    /// Names of the files that the run stored, by their nodes.
    async fn stored_names(&self, run: &Run) -> HashMap<String, String> {
        let steps = self.steps(run).await.into_iter();
        let nodes = steps.filter(|step| step.stored_file_id.is_some());
        nodes
            .map(|step| step.node_id)
            .zip(self.stored(run).await.into_iter().map(|(name, _)| name))
            .collect()
    }
}
