//! Bytes that no encoder sends: they end their own connection only, in bounded time and memory.

use std::time::Duration;

use sluice_ingest::{
    Error,
    publish::{Ended, Protocol},
    rtmp::{RtmpSettings, message::kind, serve},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio_util::sync::CancellationToken;

use crate::{
    client::{self, Client},
    support::{RecordingAuthorizer, Server},
};

/// A header in format 0 that declares more than follows.
fn declaring(chunk_stream: u8, kind: u8, length: u32) -> Vec<u8> {
    let mut bytes = client::message(chunk_stream, kind, 1, 0, &[]);
    bytes[4..7].copy_from_slice(&length.to_be_bytes()[1..]);
    bytes
}

fn set_chunk_size(size: u32) -> Vec<u8> {
    client::message(2, kind::SET_CHUNK_SIZE, 0, 0, &size.to_be_bytes())
}

/// Sixty-four chunk streams, each with a message of 16 MB declared and one byte sent.
fn many_declared_messages() -> Vec<u8> {
    (3..64u8)
        .flat_map(|id| [declaring(id, kind::VIDEO, 0xFF_FFFF), vec![0]].concat())
        .collect()
}

fn first_command(amf: &[u8]) -> Vec<u8> {
    [
        client::handshake(),
        client::message(3, kind::COMMAND_AMF0, 0, 0, amf),
    ]
    .concat()
}

#[tokio::test]
async fn before_publish_it_costs_the_connection() {
    let nested = [
        b"\x02\x00\x07connect\x00\x3F\xF0\0\0\0\0\0\0".to_vec(),
        b"\x03\x00\x01a".repeat(75_000),
    ]
    .concat();
    let array = b"\x02\x00\x07connect\x00\x3F\xF0\0\0\0\0\0\0\x0A\xFF\xFF\xFF\xFF".to_vec();
    let cases = [
        ("HTTP", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
        ("TLS", vec![0x16, 3, 1, 2, 0]),
        ("RTMPE", vec![6; 1537]),
        ("300 kB of nested objects", first_command(&nested)),
        ("12 kB of nested objects", first_command(&nested[..12_000])),
        ("strict array of 2^32", first_command(&array)),
        (
            "chunk size 2^31",
            [client::handshake(), set_chunk_size(1 << 31)].concat(),
        ),
        (
            "2 GB chunk, long message",
            [
                client::handshake(),
                set_chunk_size(i32::MAX as u32),
                declaring(3, kind::COMMAND_AMF0, 0xFF_FFFF),
            ]
            .concat(),
        ),
        (
            "64 streams of 16 MB",
            [client::handshake(), many_declared_messages()].concat(),
        ),
        (
            "empty messages in a flood",
            [
                client::handshake(),
                declaring(3, kind::ACKNOWLEDGEMENT, 0),
                vec![0xC3; 100_000],
            ]
            .concat(),
        ),
        (
            "media before publish",
            [
                client::handshake(),
                client::connect("live"),
                client::key_frame(0),
            ]
            .concat(),
        ),
    ];
    let authorizer = RecordingAuthorizer::new();
    let mut server = Server::start(&authorizer).await;
    for (name, bytes) in cases {
        let mut client = Client::sending(&server, &bytes).await;
        client.read_to_end().await;
        assert!(server.outcome().await.is_err(), "{name}");
    }
    assert!(authorizer.notes().requests.is_empty());
}

#[tokio::test]
async fn after_publish_it_costs_the_connection_or_the_tag() {
    let lying_nal = [0x17, 1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x65];
    let speex = client::message(5, kind::AUDIO, 1, 0, &[0xB6, 1, 2, 3]);
    let cases: [(&str, Vec<u8>, Ended, u64); 7] = [
        (
            "64 streams of 16 MB",
            many_declared_messages(),
            Ended::Dropped,
            0,
        ),
        (
            "a message inside another",
            [
                declaring(6, kind::VIDEO, 500),
                vec![0; 128],
                declaring(6, kind::VIDEO, 5),
            ]
            .concat(),
            Ended::Dropped,
            0,
        ),
        (
            "9 MB message",
            declaring(6, kind::VIDEO, 9 << 20),
            Ended::Dropped,
            0,
        ),
        (
            "lengths beyond the tag",
            [
                client::message(6, kind::VIDEO, 1, 0, &lying_nal),
                client::delete_stream(),
            ]
            .concat(),
            Ended::Clean,
            1,
        ),
        (
            "codec that is not carried",
            [speex, client::delete_stream()].concat(),
            Ended::Clean,
            1,
        ),
        (
            "timestamps back by 2^31",
            [
                client::key_frame(1 << 31),
                client::key_frame(0),
                client::key_frame(1 << 31),
                client::delete_stream(),
            ]
            .concat(),
            Ended::Clean,
            0,
        ),
        (
            "100 000 empty messages",
            [
                declaring(6, kind::VIDEO, 0),
                vec![0xC6; 100_000],
                client::delete_stream(),
            ]
            .concat(),
            Ended::Clean,
            0,
        ),
    ];
    for (name, bytes, expected, damaged) in cases {
        let authorizer = RecordingAuthorizer::new();
        let server = Server::start(&authorizer).await;
        let mut client = Client::sending(&server, &client::opening("live", "a.b")).await;
        client.read_until("NetStream.Publish.Start").await;
        client
            .send(&[client::video_configuration(), bytes].concat())
            .await;
        client.read_to_end().await;
        drop(client);
        let notes = authorizer
            .wait_for("end", |notes| !notes.ends.is_empty())
            .await;
        assert_eq!(notes.ends, [expected], "{name}");
        assert_eq!(notes.report.unwrap().damaged, damaged, "{name}");
        assert!(
            notes.largest_delivery <= 256,
            "{name}: {} at once",
            notes.largest_delivery
        );
    }
}

#[tokio::test]
async fn three_hundred_at_once_do_not_keep_a_publisher_out() {
    let authorizer = RecordingAuthorizer::new();
    let server = Server::start(&authorizer).await;
    let half = &client::opening("live", "a.b")[..2000];
    let mut idle = Vec::new();
    for _ in 0..300 {
        idle.push(Client::sending(&server, half).await);
    }
    let mut client = Client::sending(&server, &client::opening("live", "a.b")).await;
    client.read_until("NetStream.Publish.Start").await;
}

/// Serves one end of an in-memory pipe and gives the other.
fn served(
    authorizer: &RecordingAuthorizer,
) -> (
    tokio::io::DuplexStream,
    tokio::task::JoinHandle<Result<(), Error>>,
) {
    let (near, far) = duplex(64 << 10);
    let authorizer = authorizer.clone();
    let serving = tokio::spawn(async move {
        let remote = ([127, 0, 0, 1], 9).into();
        let settings = RtmpSettings::default();
        serve(
            far,
            remote,
            Protocol::Rtmp,
            &authorizer,
            &settings,
            CancellationToken::new(),
        )
        .await
    });
    (near, serving)
}

#[tokio::test(start_paused = true)]
async fn one_byte_per_second_is_cut() {
    let cases: [(&str, Vec<u8>, u64); 4] = [
        ("handshake", vec![], 5),
        ("connect", client::handshake(), 10),
        (
            "publish",
            [client::handshake(), client::connect("live")].concat(),
            10,
        ),
        ("media", client::opening("live", "a.b"), 20),
    ];
    for (name, opening, limit) in cases {
        let authorizer = RecordingAuthorizer::new();
        let (mut socket, serving) = served(&authorizer);
        let started = tokio::time::Instant::now();
        socket.write_all(&opening).await.unwrap();
        let (mut reading, mut writing) = tokio::io::split(socket);
        let answers = tokio::spawn(async move { reading.read_to_end(&mut Vec::new()).await });
        let dripped = match opening.is_empty() {
            true => client::handshake(),
            // The header of a long message, and then its payload.
            false => [declaring(9, kind::DATA_AMF0, 9000), vec![0; 100]].concat(),
        };
        for byte in dripped {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if writing.write_all(&[byte]).await.is_err() || serving.is_finished() {
                break;
            }
        }
        let outcome = serving.await.unwrap();
        assert!(
            matches!(outcome, Err(Error::TimedOut { .. })),
            "{name}: {outcome:?}"
        );
        let lasted = started.elapsed().as_secs();
        assert!((limit..=limit + 3).contains(&lasted), "{name}: {lasted} s");
        answers.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_no_answers_is_cut() {
    let authorizer = RecordingAuthorizer::new();
    let (near, far) = duplex(512);
    let serving = tokio::spawn(async move {
        let remote = ([127, 0, 0, 1], 9).into();
        let settings = RtmpSettings::default();
        serve(
            far,
            remote,
            Protocol::Rtmp,
            &authorizer,
            &settings,
            CancellationToken::new(),
        )
        .await
    });
    let (_reading, mut writing) = tokio::io::split(near);
    writing
        .write_all(&client::handshake()[..1537])
        .await
        .unwrap();
    assert!(matches!(
        serving.await.unwrap(),
        Err(Error::TimedOut { .. })
    ));
}
