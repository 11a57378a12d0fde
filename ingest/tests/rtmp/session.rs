//! Course of a connection, in bytes: order of commands, ends, pings, back-pressure.

use std::time::Duration;

use bytes::BytesMut;
use sluice_ingest::{
    Error,
    publish::Ended,
    rtmp::{
        RtmpSettings,
        message::kind,
        session::{DecodeState, ServerSession},
    },
};
use sluice_media::unit::Unit;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
};

use crate::{
    client::{self, Client, contains},
    support::{RecordingAuthorizer, Server},
};

const STREAM: &str = "slug.key";

async fn publishing(server: &Server) -> Client {
    let mut client = Client::sending(server, &client::opening("live", STREAM)).await;
    client.read_until("NetStream.Publish.Start").await;
    client
}

#[tokio::test]
async fn media_before_a_goodbye_in_the_same_read_goes_first() {
    let authorizer = RecordingAuthorizer::new();
    let mut server = Server::start(&authorizer).await;
    let mut client = publishing(&server).await;
    let bytes = [
        client::video_configuration(),
        client::key_frame(0),
        client::key_frame(33),
        client::delete_stream(),
        client::key_frame(66),
    ];
    client.send(&bytes.concat()).await;
    assert!(contains(
        client.read_to_end().await,
        "NetStream.Unpublish.Success"
    ));
    server.outcome().await.unwrap();
    let notes = authorizer.notes();
    assert_eq!(notes.units.len(), 3);
    assert_eq!(notes.largest_delivery, 3, "one delivery for one read");
    assert_eq!(notes.ends, [Ended::Clean]);
}

#[tokio::test]
async fn goodbyes_are_clean_and_lost_connections_are_not() {
    let fc_unpublish = client::command(0, |c| {
        c.string("FCUnpublish").number(5.0).null().string(STREAM);
    });
    let close_stream = client::command(1, |c| {
        c.string("closeStream").number(0.0).null();
    });
    let cases = [
        ("deleteStream", client::delete_stream(), Ended::Clean),
        ("FCUnpublish", fc_unpublish, Ended::Clean),
        ("closeStream", close_stream, Ended::Clean),
        ("end of file", vec![], Ended::Dropped),
        (
            "end of file in a message",
            client::key_frame(9)[..20].to_vec(),
            Ended::Dropped,
        ),
        ("protocol error", vec![0xFF], Ended::Dropped),
    ];
    for (name, last_bytes, expected) in cases {
        let authorizer = RecordingAuthorizer::new();
        let server = Server::start(&authorizer).await;
        let mut client = publishing(&server).await;
        let bytes = [
            client::video_configuration(),
            client::key_frame(0),
            last_bytes,
        ]
        .concat();
        client.send(&bytes).await;
        drop(client);
        let notes = authorizer
            .wait_for("end", |notes| !notes.ends.is_empty())
            .await;
        assert_eq!(notes.ends, [expected], "{name}");
        assert_eq!(notes.units.len(), 2, "{name}: whole units go out first");
    }
}

/// ffmpeg closes without reading our acknowledgements, which resets the connection while its last messages are still to
/// be read: an answer to one of them cannot be written any more.
#[tokio::test]
async fn a_goodbye_is_clean_when_the_encoder_takes_no_answer() {
    let ping = client::message(2, kind::USER_CONTROL, 0, 0, &[0, 6, 0, 0, 0, 1]);
    let body = [
        &[0x17, 1, 0, 0, 0, 0, 0, 0x7F, 0xFC, 0x65][..],
        &[0x88; 0x7FFB],
    ]
    .concat();
    let more_than_one_read: Vec<u8> = (0..6)
        .flat_map(|n| client::message(4, kind::VIDEO, 1, n * 40, &body))
        .collect();
    let goodbye = client::delete_stream();
    let cases = [
        ("in one read", [ping.clone(), goodbye.clone()].concat(), 0),
        (
            "reads later",
            [ping, more_than_one_read, goodbye].concat(),
            6,
        ),
    ];
    for (name, last_bytes, frames) in cases {
        let (taking, is_taking) = watch::channel(true);
        let authorizer = RecordingAuthorizer::holding(is_taking);
        let server = Server::start(&authorizer).await;
        let mut client = publishing(&server).await;
        taking.send(false).unwrap();
        client.send(&client::video_configuration()).await;
        client.send(&last_bytes).await;
        server.reset();
        drop(client);
        taking.send(true).unwrap();
        let notes = authorizer
            .wait_for("end", |notes| !notes.ends.is_empty())
            .await;
        assert_eq!(notes.ends, [Ended::Clean], "{name}");
        assert_eq!(notes.units.len(), 1 + frames, "{name}");
    }
}

#[tokio::test]
async fn the_service_ends_a_publish_politely() {
    for (name, by_stop) in [("closed", false), ("stopped", true)] {
        let authorizer = RecordingAuthorizer::new();
        let mut server = Server::start(&authorizer).await;
        let mut client = publishing(&server).await;
        match by_stop {
            true => server.stop.cancel(),
            false => authorizer.close_all(),
        }
        assert!(
            contains(client.read_to_end().await, "NetStream.Unpublish.Success"),
            "{name}"
        );
        drop(client);
        server.outcome().await.unwrap();
        assert_eq!(authorizer.notes().ends, [Ended::Dropped], "{name}");
    }
}

/// Sends frames while the authorizer takes nothing, then closes the publish and lets the authorizer take.
async fn frames_taken_at_the_end<S>(
    mut client: Client<S>,
    authorizer: &RecordingAuthorizer,
    taking: &watch::Sender<bool>,
    frames: &[Vec<u8>],
) -> usize
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    client.send(&client::opening("live", "slug.key")).await;
    client.read_until("NetStream.Publish.Start").await;
    client.send(&client::video_configuration()).await;
    for frame in frames {
        client.send(frame).await;
    }
    authorizer.close_all();
    taking.send(true).unwrap();
    let said = client.read_to_end().await;
    assert!(contains(said, "NetStream.Unpublish.Success"));
    let is_video_frame = |unit: &&Unit| matches!(unit, Unit::Video(_));
    authorizer
        .notes()
        .units
        .iter()
        .filter(is_video_frame)
        .count()
}

/// Checks data that is mostly not read yet, or read and not decoded, when the service ends the publish.
#[tokio::test]
async fn what_had_arrived_when_the_service_ends_a_publish_is_taken() {
    let body = [
        &[0x17, 1, 0, 0, 0, 0, 0, 0x7F, 0xFC, 0x65][..],
        &[0x88; 0x7FFB],
    ]
    .concat();
    let large: Vec<_> = (0..6)
        .map(|n| client::message(4, kind::VIDEO, 1, n * 40, &body))
        .collect();
    let small: Vec<u8> = (0..1_500).flat_map(|n| client::key_frame(n * 40)).collect();
    for (name, frames, expected) in [("large", large, 6), ("small", vec![small], 1_500)] {
        for tls in [false, true] {
            let (taking, is_taking) = watch::channel(false);
            let authorizer = RecordingAuthorizer::holding(is_taking);
            let taken = if tls {
                let server = Server::start_tls(&authorizer).await;
                let client = Client::connect_tls(&server).await;
                frames_taken_at_the_end(client, &authorizer, &taking, &frames).await
            } else {
                let server = Server::start(&authorizer).await;
                let client = Client::connect(&server).await;
                frames_taken_at_the_end(client, &authorizer, &taking, &frames).await
            };
            assert_eq!(taken, expected, "{name} frames, tls: {tls}");
        }
    }
}

#[tokio::test]
async fn while_units_wait_the_socket_is_not_read() {
    let (taking, is_taking) = watch::channel(false);
    let authorizer = RecordingAuthorizer::holding(is_taking);
    let server = Server::start(&authorizer).await;
    let mut client = publishing(&server).await;
    client.send(&client::video_configuration()).await;
    // Far more than both socket buffers hold: the write can only end once the authorizer takes units.
    let frame = client::message(
        4,
        kind::VIDEO,
        1,
        0,
        &[&[0x27, 1, 0, 0, 0][..], &[0; 60_000]].concat(),
    );
    let mut writing = tokio::spawn(async move {
        for _ in 0..400 {
            client.send(&frame).await;
        }
        client
    });
    let stuck = tokio::time::timeout(Duration::from_millis(500), &mut writing).await;
    assert!(stuck.is_err(), "24 MB were taken while no one took units");
    taking.send(true).unwrap();
    let client = writing.await.unwrap();
    drop(client);
    authorizer
        .wait_for("end", |notes| !notes.ends.is_empty())
        .await;
}

#[tokio::test]
async fn a_player_is_refused_politely() {
    let authorizer = RecordingAuthorizer::new();
    let mut server = Server::start(&authorizer).await;
    let play = client::command(1, |c| {
        c.string("play").number(3.0).null().string(STREAM);
    });
    let bytes = [
        client::handshake(),
        client::connect("live"),
        client::create_stream(),
        play,
    ];
    let mut client = Client::sending(&server, &bytes.concat()).await;
    assert!(contains(
        client.read_to_end().await,
        "NetStream.Play.Failed"
    ));
    drop(client);
    assert!(matches!(
        server.outcome().await,
        Err(Error::Unsupported { .. })
    ));
}

#[tokio::test]
async fn a_second_publish_is_refused_and_the_first_continues() {
    let authorizer = RecordingAuthorizer::new();
    let server = Server::start(&authorizer).await;
    let mut client = publishing(&server).await;
    client.send(&client::publish("another.key")).await;
    client.read_until("NetStream.Publish.BadName").await;
    client
        .send(&[client::video_configuration(), client::key_frame(0)].concat())
        .await;
    let notes = authorizer
        .wait_for("units", |notes| notes.units.len() == 2)
        .await;
    assert_eq!(notes.requests.len(), 1);
}

/// Returns a session that went through its opening, and its state.
fn opened(bytes: &[u8]) -> Result<(ServerSession, DecodeState), Error> {
    let mut session = ServerSession::new(&RtmpSettings::default(), |buffer| buffer.fill(7));
    let mut input = BytesMut::from(bytes);
    let progress = session.receive(&mut input, Duration::ZERO, &mut Vec::new())?;
    Ok((session, progress))
}

fn publishing_session() -> ServerSession {
    let (mut session, progress) = opened(&client::opening("live", STREAM)).unwrap();
    assert!(matches!(progress, DecodeState::Asked(_)));
    session.admit(Duration::ZERO);
    session.output().clear();
    session
}

fn receive(session: &mut ServerSession, bytes: &[u8]) -> (Result<DecodeState, Error>, Vec<Unit>) {
    let mut input = BytesMut::from(bytes);
    let mut units = Vec::new();
    let mut progress = session.receive(&mut input, Duration::ZERO, &mut units);
    while let Ok(DecodeState::Paused) = progress {
        progress = session.receive(&mut input, Duration::ZERO, &mut units);
    }
    (progress, units)
}

#[test]
fn commands_out_of_order_end_the_connection() {
    let handshake = client::handshake;
    let cases = [
        (
            "createStream before connect",
            [handshake(), client::create_stream()].concat(),
        ),
        (
            "publish before connect",
            [handshake(), client::publish(STREAM)].concat(),
        ),
        (
            "publish without a stream",
            [
                handshake(),
                client::connect("live"),
                client::publish(STREAM),
            ]
            .concat(),
        ),
        (
            "connect twice",
            [
                handshake(),
                client::connect("live"),
                client::connect("live"),
            ]
            .concat(),
        ),
        (
            "media before publish",
            [handshake(), client::connect("live"), client::key_frame(0)].concat(),
        ),
        (
            "connect without an application",
            [
                handshake(),
                client::command(0, |c| {
                    c.string("connect").number(1.0).null();
                }),
            ]
            .concat(),
        ),
        (
            "seventeen streams",
            [
                handshake(),
                client::connect("live"),
                client::create_stream().repeat(17),
            ]
            .concat(),
        ),
        (
            "65 messages before publish",
            [
                handshake(),
                client::connect("live"),
                client::command(0, |c| {
                    c.string("x").number(0.0);
                })
                .repeat(64),
            ]
            .concat(),
        ),
    ];
    for (name, bytes) in cases {
        assert!(opened(&bytes).is_err(), "{name}");
    }
}

#[test]
fn nothing_is_confirmed_before_the_gate_said_yes() {
    let bytes = [
        client::opening("live", STREAM),
        client::video_configuration(),
    ]
    .concat();
    let (mut session, progress) = opened(&bytes).unwrap();
    assert!(matches!(progress, DecodeState::Asked(ask) if &*ask.stream == STREAM));
    assert!(!contains(session.output(), "NetStream.Publish.Start"));
    session.admit(Duration::ZERO);
    assert!(contains(session.output(), "NetStream.Publish.Start"));
}

#[test]
fn names_that_are_none_are_refused_without_asking() {
    let long = "k".repeat(300);
    for stream in ["", "?only=query", "a\0b", &long] {
        let refused = opened(&client::opening("live", stream));
        assert!(matches!(refused, Err(Error::Refused(_))), "{stream:?}");
    }
    for app in ["live/", "/live", "live?x=1"] {
        let asked = opened(&client::opening(app, STREAM));
        assert!(matches!(asked, Ok((_, DecodeState::Asked(_)))), "{app:?}");
    }
    for app in ["", "../live", "live/../live", "LIVE", "live\0"] {
        let refused = opened(&client::opening(app, STREAM));
        assert!(matches!(refused, Err(Error::Refused(_))), "{app:?}");
    }
}

#[test]
fn enhanced_clients_are_answered_in_kind() {
    let enhanced = client::command(0, |c| {
        c.string("connect").number(1.0).object(|o| {
            o.name("app").string("live");
            o.name("fourCcList").strings(&["*"]);
            o.name("capsEx").number(15.0);
            o.name("videoFourCcInfoMap").object(|map| {
                map.name("*").number(1.0);
            });
        });
    });
    for (name, connect, answered) in [
        ("plain", client::connect("live"), false),
        ("enhanced", enhanced, true),
    ] {
        let (mut session, _) = opened(&[client::handshake(), connect].concat()).unwrap();
        for word in ["fourCcList", "capsEx", "videoFourCcInfoMap", "hvc1"] {
            assert_eq!(contains(session.output(), word), answered, "{name}: {word}");
        }
        assert!(!contains(session.output(), "audioFourCcInfoMap"), "{name}");
    }
}

#[test]
fn unknown_calls_are_answered_and_notices_are_not() {
    let mut session = publishing_session();
    let call = |transaction| {
        client::command(0, |c| {
            c.string("_checkbw").number(transaction).null();
        })
    };
    receive(&mut session, &call(0.0)).0.unwrap();
    assert!(session.output().is_empty());
    receive(&mut session, &call(7.0)).0.unwrap();
    assert!(contains(session.output(), "NetConnection.Call.Failed"));
}

#[test]
fn amf3_commands_are_amf0_behind_a_zero() {
    let mut payload = vec![0];
    payload.extend(&client::delete_stream()[12..]);
    let mut session = publishing_session();
    let bytes = client::message(3, kind::COMMAND_AMF3, 0, 0, &payload);
    assert_eq!(receive(&mut session, &bytes).0.unwrap(), DecodeState::Ended);
}

#[test]
fn metadata_names_the_encoder() {
    let mut session = publishing_session();
    let mut payload = sluice_ingest::rtmp::amf0::Writer::new();
    payload
        .string("@setDataFrame")
        .string("onMetaData")
        .object(|o| {
            o.name("encoder")
                .string("obs-output module (libobs version 30.2)");
        });
    let bytes = client::message(4, kind::DATA_AMF0, 1, 0, &payload.into_bytes());
    receive(&mut session, &bytes).0.unwrap();
    let encoder = session.report().encoder.unwrap();
    assert_eq!(encoder, "obs-output module (libobs version 30.2)");
}

#[test]
fn pings_are_answered_and_sent() {
    let mut session = publishing_session();
    let ping = client::message(2, kind::USER_CONTROL, 0, 0, &[0, 6, 0, 0, 0, 9]);
    receive(&mut session, &ping).0.unwrap();
    assert!(session.output().ends_with(&[0, 7, 0, 0, 0, 9]));
    session.output().clear();

    session.resume(Duration::from_secs(29));
    session.tick(Duration::from_secs(29)).unwrap();
    assert!(session.output().is_empty());
    session.tick(Duration::from_secs(30)).unwrap();
    assert!(session.output().ends_with(&[0, 6, 0, 0, 0x75, 0x30]));
}

#[test]
fn windows_are_acknowledged() {
    let mut session = publishing_session();
    let window = client::message(
        2,
        kind::WINDOW_ACKNOWLEDGEMENT_SIZE,
        0,
        0,
        &1000u32.to_be_bytes(),
    );
    receive(&mut session, &window).0.unwrap();
    session.count_received(499);
    assert!(session.output().is_empty());
    session.count_received(1);
    assert!(session.output().ends_with(&500u32.to_be_bytes()));
}

#[test]
fn deadlines_hold_for_each_stage() {
    let seconds = Duration::from_secs;
    let before_handshake = || opened(&[3]).unwrap().0;
    let connected = || {
        opened(&[client::handshake(), client::connect("live")].concat())
            .unwrap()
            .0
    };
    let cases: [(&str, ServerSession, u64); 3] = [
        ("handshake", before_handshake(), 5),
        ("publish", connected(), 10),
        ("media", publishing_session(), 20),
    ];
    for (name, mut session, limit) in cases {
        assert!(
            session
                .tick(seconds(limit) - Duration::from_millis(1))
                .is_ok(),
            "{name}"
        );
        let late = session.tick(seconds(limit));
        assert!(matches!(late, Err(Error::TimedOut { .. })), "{name}");
    }
}

#[test]
fn aggregates_become_units_and_lying_ones_are_counted() {
    let tag = |time: u32, declared: u32, body: &[u8]| {
        let mut bytes = vec![kind::VIDEO];
        bytes.extend(&declared.to_be_bytes()[1..]);
        bytes.extend(&time.to_be_bytes()[1..]);
        bytes.extend([0; 4]);
        bytes.extend(body);
        bytes.extend([0; 4]);
        bytes
    };
    let frame = [0x27, 1, 0, 0, 0, 0, 0, 0, 2, 0x41, 0xFF];
    let payload = [
        tag(100, 11, &frame),
        tag(133, 11, &frame),
        tag(166, 0xFF_FFFF, &frame),
    ]
    .concat();
    let mut session = publishing_session();
    let bytes = [
        client::video_configuration(),
        client::message(5, kind::AGGREGATE, 1, 5000, &payload),
        client::key_frame(5066),
    ];
    let (progress, units) = receive(&mut session, &bytes.concat());
    assert_eq!(progress.unwrap(), DecodeState::Starved);
    let times: Vec<i64> = units
        .iter()
        .filter_map(|unit| match unit {
            Unit::Video(video) => Some(video.dts_90k / 90),
            _ => None,
        })
        .collect();
    assert_eq!(times, [5000, 5033, 5066]);
    assert_eq!(session.report().damaged, 1);
}

#[test]
fn timestamps_continue_over_the_32_bit_wrap() {
    let mut session = publishing_session();
    let start = u32::MAX - 40;
    let bytes = [
        client::video_configuration(),
        client::key_frame(start),
        client::key_frame(start.wrapping_add(33)),
        client::key_frame(start.wrapping_add(66)),
    ];
    let (progress, units) = receive(&mut session, &bytes.concat());
    progress.unwrap();
    let times: Vec<i64> = units
        .iter()
        .filter_map(|unit| match unit {
            Unit::Video(video) => Some(video.dts_90k / 90),
            _ => None,
        })
        .collect();
    assert_eq!(times[0] + 33, times[1]);
    assert_eq!(times[0] + 66, times[2]);
}
