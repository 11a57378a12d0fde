//! The payloads against their documentation, their bounds, and the transaction that they are written in.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sluice_store::{
    Page, Store, StoreSettings, accounts, now_ms,
    webhooks::{self, NewEndpoint},
};

use super::*;

/// Every event of an account's feed so far: its type and its data, in the order of the commits.
pub(crate) async fn feed(store: &Store, account_id: Uuid) -> Vec<(String, Value)> {
    let mut reader = store.read().await.unwrap();
    let events = outbox::after(&mut reader, account_id, 0, 10_000).await;
    let typed = |event: outbox::Event| {
        let mut envelope: Value = serde_json::from_str(&event.body).unwrap();
        assert_eq!(envelope["type"], event.event_type);
        (event.event_type, envelope["data"].take())
    };
    events.unwrap().into_iter().map(typed).collect()
}

/// The data's `sequence`.
pub(crate) fn sequence(data: &Value) -> u64 {
    data["sequence"].as_u64().unwrap()
}

const REFERENCE: &str = include_str!("../../../docs/reference/events.md");

/// The ids of the examples in the reference.
fn id(number: u8) -> Uuid {
    let mut bytes = *Uuid::parse_str("0196b1c2-0000-7000-8000-000000000000")
        .unwrap()
        .as_bytes();
    bytes[15] = number;
    Uuid::from_bytes(bytes)
}

fn stream(status: &'static str, manifest_url: Option<&str>, error: Option<&str>) -> VideoStream {
    VideoStream {
        stream_id: id(5),
        playback_id: "pb_7GQ2m1XcVd0RkYtB9sLe".into(),
        status,
        manifest_url: manifest_url.map(str::to_owned),
        error: error.map(str::to_owned),
    }
}

fn connected() -> LiveInputConnected {
    LiveInputConnected {
        live_input_id: id(8),
        name: "Stage left".into(),
        playback_id: "pb_7GQ2m1XcVd0RkYtB9sLe".into(),
        broadcast_id: "9f31c04ab7de".into(),
        protocol: "rtmp".into(),
        remote_address: Some("203.0.113.7".into()),
    }
}

fn bad_file() -> FailedFile {
    FailedFile {
        filename: "notes.txt".into(),
        error: "notes.txt is of no type that is known".into(),
        code: Some("unsupported_type".into()),
    }
}

/// Returns one of each, with the values of the reference's examples.
fn samples() -> Vec<Event> {
    let photo = || "mountain lake.jpg".to_owned();
    let webp = ResultFile {
        filename: "mountain lake.webp".into(),
        mime_type: "image/webp".into(),
        size_bytes: 201_442,
        width: Some(1920),
        height: Some(1280),
        stored_file_id: None,
    };
    let thumbnail = ResultFile {
        filename: photo(),
        mime_type: "image/jpeg".into(),
        size_bytes: 30_912,
        width: Some(512),
        height: Some(512),
        stored_file_id: Some(id(4)),
    };
    vec![
        Event::FileUploaded(FileUploaded {
            file_id: id(1),
            filename: photo(),
            mime_type: "image/jpeg".into(),
            size_bytes: 482_113,
            folder_id: None,
            role: "uploaded",
        }),
        Event::ConversionStarted(ConversionStarted {
            job_id: id(2),
            filename: photo(),
            file_count: 3,
            job_type: "convert",
        }),
        Event::ConversionProgress(ConversionProgress {
            job_id: id(2),
            filename: bad_file().filename,
            index: 1,
            status: "failed",
            error: Some(bad_file().error),
            completed: 2,
            total: 3,
        }),
        Event::ConversionCompleted(ConversionCompleted {
            job_id: id(2),
            filename: photo(),
            job_type: "convert",
            results: Results::new([webp], 1),
        }),
        Event::ConversionFailed(ConversionFailed {
            job_id: id(2),
            filename: photo(),
            job_type: "convert",
            error: bad_file().error,
            code: bad_file().code,
            results: Results::default(),
            failures: Failures::new([bad_file()], 1),
        }),
        Event::MediaToolCompleted(MediaToolCompleted {
            tool: "thumbnail".into(),
            job_id: id(3),
            filename: photo(),
            results: Results::new([thumbnail], 1),
        }),
        Event::MediaToolFailed(MediaToolFailed {
            tool: Some("thumbnail".into()),
            job_id: None,
            filename: Some(photo()),
            error: "width must be 1 to 8192, got `0`".into(),
            code: None,
            results: Results::default(),
            failures: Failures::default(),
        }),
        Event::VideoStreamStarted(stream("processing", None, None)),
        Event::VideoStreamReady(stream(
            "ready",
            Some("https://media.example.com/video/v1/pb_7GQ2m1XcVd0RkYtB9sLe/master.m3u8"),
            None,
        )),
        Event::VideoStreamFailed(stream(
            "failed",
            None,
            Some("the source has no video track"),
        )),
        Event::WorkflowCompleted(WorkflowCompleted {
            workflow_id: id(6),
            run_id: id(7),
            name: "Product photos".into(),
            status: "completed",
            outputs: vec![RunOutput {
                filename: "mountain lake-webp.webp".into(),
                mime_type: "image/webp".into(),
                size_bytes: 201_442,
                stored_file_id: Some(id(4)),
            }],
        }),
        Event::WorkflowFailed(WorkflowFailed {
            workflow_id: id(6),
            run_id: id(7),
            name: "Product photos".into(),
            status: "failed",
            error: "step `Resize` (small): the image does not decode".into(),
            outputs: Vec::new(),
        }),
        Event::LiveInputConnected(connected()),
        Event::LiveInputDisconnected(LiveInputDisconnected {
            connection: connected(),
            reason: Parting::Ended,
        }),
        Event::LiveInputRecordingReady(LiveInputRecordingReady {
            live_input_id: id(8),
            name: "Stage left".into(),
            playback_id: "pb_7GQ2m1XcVd0RkYtB9sLe".into(),
            broadcast_id: "9f31c04ab7de".into(),
            file_id: id(9),
            stream_id: None,
            filename: "Stage left 2026-01-31 20-00.mp4".into(),
            size_bytes: 734_003_200,
            duration: Some(3605.5),
        }),
    ]
}

/// The sections of the reference that are about a type: its text by its name.
fn sections() -> BTreeMap<&'static str, &'static str> {
    REFERENCE
        .split("\n## `")
        .skip(1)
        .map(|section| section.split_once("`\n").unwrap())
        .collect()
}

fn example(section: &str) -> Value {
    let (_, rest) = section.split_once("```json\n").unwrap();
    let (json, _) = rest.split_once("```").unwrap();
    serde_json::from_str(json).unwrap()
}

/// The fields that the section's table names, each row `` | `name` | ``.
fn fields(section: &str) -> BTreeSet<&str> {
    section
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|row| row.split('`').next())
        .collect()
}

#[test]
fn every_type_is_documented_as_it_is_sent() {
    let sections = sections();
    let samples = samples();
    let mut named: BTreeSet<_> = known_types().iter().map(|known| known.name).collect();
    named.insert("webhook.test");
    assert_eq!(named, sections.keys().copied().collect());
    for event in &samples {
        let name = event.event_type();
        let mut expected = example(sections[name]);
        let sequence = expected.as_object_mut().unwrap().remove("sequence");
        assert!(sequence.is_some_and(|number| number.is_u64()), "{name}");
        assert_eq!(Value::Object(event.data()), expected, "{name}");
    }
}

#[test]
fn every_field_has_a_row_of_the_reference() {
    let sections = sections();
    for event in samples() {
        let name = event.event_type();
        let documented = fields(sections[name]);
        for field in event.data().keys() {
            // Its table points to that of the connection, whose fields it repeats.
            let is_repeated = name == "live.input.disconnected" && field != "reason";
            assert!(
                is_repeated || documented.contains(field.as_str()),
                "{name}: {field}"
            );
        }
    }
}

#[test]
fn types_are_listed_once_and_live_ones_must_be_named() {
    let names: BTreeSet<_> = known_types().iter().map(|known| known.name).collect();
    assert_eq!(names.len(), known_types().len());
    let sendable: BTreeSet<_> = samples().iter().map(Event::event_type).collect();
    assert_eq!(names, sendable);
    let opt_in = known_types().iter().filter(|known| known.is_opt_in);
    assert_eq!(
        opt_in.map(|known| known.name).collect::<Vec<_>>(),
        [
            "workflow.failed",
            "live.input.connected",
            "live.input.disconnected",
            "live.input.recording.ready"
        ]
    );
    for event in samples() {
        let known = known_types()
            .iter()
            .find(|known| known.name == event.event_type());
        assert_eq!(event.is_opt_in(), known.unwrap().is_opt_in);
    }
}

/// A name of the greatest length, each byte of which JSON doubles.
fn long_name() -> String {
    "\"".repeat(255)
}

#[test]
fn the_largest_batch_makes_an_event_of_less_than_64_kib() {
    let result = ResultFile {
        filename: long_name(),
        mime_type: "application/octet-stream".into(),
        size_bytes: u64::MAX,
        width: Some(u32::MAX),
        height: Some(u32::MAX),
        stored_file_id: Some(Uuid::max()),
    };
    let failure = FailedFile {
        filename: long_name(),
        error: error_text(&"\u{1}".repeat(10_000)),
        code: Some("unsupported_type".into()),
    };
    let event = Event::ConversionFailed(ConversionFailed {
        job_id: Uuid::max(),
        filename: long_name(),
        job_type: "compress",
        error: error_text(&"\u{1}".repeat(10_000)),
        code: Some("unsupported_type".into()),
        results: Results::new(vec![result; 1_000], 1_000),
        failures: Failures::new(vec![failure; 1_000], 1_000),
    });
    let data = event.data();
    let length = serde_json::to_vec(&data).unwrap().len();
    assert!(length < (64 << 10) - 512, "{length}");
    assert!(data["files"].as_array().unwrap().len() > 50);
    assert_eq!(
        (&data["filesTotal"], &data["errorsTotal"]),
        (&1_000.into(), &1_000.into())
    );
}

#[test]
fn entries_are_cut_at_a_hundred() {
    let small = ResultFile {
        filename: "a.png".into(),
        mime_type: "image/png".into(),
        size_bytes: 1,
        width: None,
        height: None,
        stored_file_id: None,
    };
    for (there, kept) in [(0, 0), (99, 99), (100, 100), (101, 100), (1_000, 100)] {
        let results = Results::new(vec![small.clone(); there], there as u64);
        let data = serde_json::to_value(&results).unwrap();
        assert_eq!(data["files"].as_array().unwrap().len(), kept);
        assert_eq!(data["filesTotal"], there);
    }
}

async fn open_store() -> (Store, Uuid, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let settings = StoreSettings::without_reserve(folder.path());
    let store = Store::open(&settings).await.unwrap();
    let account = store.write(|tx| Box::pin(async move { accounts::create(tx, "here", 0).await }));
    let account_id = account.await.unwrap().id;
    (store, account_id, folder)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_undone_is_not_reported_and_takes_no_number() {
    let (store, account_id, _folder) = open_store().await;
    let connect = |is_undone: bool| {
        store.write(move |tx| {
            Box::pin(async move {
                let event = Event::LiveInputConnected(connected());
                emit(tx, account_id, &event, now_ms()).await?;
                match is_undone {
                    true => Err(Error::Conflict("a test".into())),
                    false => Ok(()),
                }
            })
        })
    };
    connect(true).await.unwrap_err();
    assert_eq!(feed(&store, account_id).await, []);
    connect(false).await.unwrap();
    connect(true).await.unwrap_err();
    connect(false).await.unwrap();
    let events = feed(&store, account_id).await;
    let numbers: Vec<u64> = events.iter().map(|(_, data)| sequence(data)).collect();
    assert_eq!(numbers, [1, 2]);
}

/// Checks the types that each endpoint gets when one of each happens, and a test of the endpoint.
#[tokio::test(flavor = "multi_thread")]
async fn opt_in_types_go_to_those_only_that_name_them() {
    let (store, account_id, _folder) = open_store().await;
    let all: BTreeSet<_> = known_types().iter().map(|known| known.name).collect();
    let listed = known_types().iter().filter(|known| !known.is_opt_in);
    let listed: BTreeSet<_> = listed.map(|known| known.name).collect();
    let named = BTreeSet::from(["live.input.connected", "workflow.failed", "file.uploaded"]);
    let cases = [
        (vec!["*"], listed.clone()),
        (named.iter().copied().collect(), named),
        (vec!["*", "workflow.failed"], {
            let mut both = listed;
            both.insert("workflow.failed");
            both
        }),
        (all.iter().copied().collect(), all),
    ];
    let mut endpoints = Vec::new();
    for (subscribed, _) in &cases {
        let new = NewEndpoint {
            url: "http://192.0.2.1/hook".into(),
            event_types: subscribed.iter().map(ToString::to_string).collect(),
            description: None,
            is_active: true,
        };
        let made = store.write(move |tx| {
            Box::pin(async move { webhooks::create(tx, account_id, new, 10, now_ms()).await })
        });
        endpoints.push(made.await.unwrap().0);
    }
    for event in samples() {
        let written = store
            .write(move |tx| Box::pin(async move { emit(tx, account_id, &event, now_ms()).await }));
        written.await.unwrap();
    }
    for (endpoint, (subscribed, expected)) in endpoints.iter().zip(&cases) {
        let filter = webhooks::DeliveryFilter {
            endpoint_id: Some(endpoint.id),
            ..webhooks::DeliveryFilter::default()
        };
        let mut reader = store.read().await.unwrap();
        let deliveries =
            webhooks::deliveries(&mut reader, account_id, &filter, Page::first(100)).await;
        let deliveries = deliveries.unwrap();
        let got: BTreeSet<_> = deliveries.iter().map(|it| it.event_type.as_str()).collect();
        assert_eq!(&got, expected, "{subscribed:?}");
        assert_eq!(got.len(), deliveries.len(), "each once");
    }
    assert_eq!(feed(&store, account_id).await.len(), samples().len());
}
