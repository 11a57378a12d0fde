//! State machine of an RTMP output: `connect`, `publish`, metadata, pings, the server's text of a rejection. Bytes and
//! units in, bytes out; no socket, no task.
//!
//! ```text
//! Handshake ──▶ Connecting ──_result──▶ Creating ──_result──▶ Asking ──Publish.Start──▶ Publishing
//! ```
//!
//! The server is as foreign as any peer: its messages are read within bounds, and its text of a rejection is shown
//! without secret words.

use std::sync::Arc;

use bytes::{Buf, BytesMut};
use sluice_media::{
    codec::{AudioConfig, VideoConfig},
    unit::Unit,
};

use super::{Failure, tag};
use crate::{
    Error,
    publish::Secret,
    rtmp::{
        amf0::Value,
        chunk::{ChunkLimits, ChunkReader},
        command::{self, Command},
        handshake::{FillRandom, PACKET_LEN},
        message::{Message, event, kind},
        writer::{Header, LONGEST_MESSAGE, Writer},
    },
};

/// Bounds of a server's messages: servers answer, and send no media to a publisher.
const LIMITS: ChunkLimits = ChunkLimits {
    chunk_streams: 16,
    command: 16 << 10,
    media: 64 << 10,
    unfinished: 128 << 10,
    reserve: 1 << 10,
};
const VERSION: u8 = 3;
/// Chunk streams of media, as encoders choose them; 3 is that of commands.
const DATA: u8 = 4;
const AUDIO: u8 = 5;
const VIDEO: u8 = 6;
/// Transactions of our calls.
const CONNECT: f64 = 1.0;
const RELEASE: f64 = 2.0;
const FC_PUBLISH: f64 = 3.0;
const CREATE_STREAM: f64 = 4.0;
const PUBLISH: f64 = 5.0;
const UNPUBLISH: f64 = 6.0;
const DELETE_STREAM: f64 = 7.0;
/// Acknowledgement window of a server that has not sent one.
const WINDOW: u32 = 2_500_000;
/// Name that encoders send and that servers require for publishing.
const FLASH_VERSION: &str = "FMLE/3.0 (compatible; Sluice)";
/// Codecs beyond FLV's own that we may send.
const FOURCCS: [&str; 4] = ["avc1", "hvc1", "av01", "Opus"];
const START: &str = "NetStream.Publish.Start";
/// Status codes of a server that has ended a stream, at a level that is no error.
const UNPUBLISH_CODES: [&str; 2] = [
    "NetStream.Unpublish.Success",
    "NetConnection.Connect.Closed",
];
/// Replacement of a secret.
const MASK: &str = "••••";

/// Target of a publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishTarget {
    /// The application of `connect`.
    pub app: Secret,
    /// The stream key, with its query.
    pub stream: Secret,
    /// The server's address with the application.
    pub tc_url: Secret,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientStage {
    Handshake,
    Connecting,
    Creating,
    Asking,
    Publishing,
}

/// State machine of an output's connection.
#[derive(Debug)]
pub(super) struct ClientSession {
    target: PublishTarget,
    stage: ClientStage,
    reader: ChunkReader,
    writer: Writer,
    /// Message stream that `createStream` returned.
    stream_id: u32,
    video: Option<Arc<VideoConfig>>,
    audio: Option<Arc<AudioConfig>>,
    /// Message that is due before the next unit.
    due: Due,
    bytes_received: u64,
    bytes_acknowledged: u64,
    window: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Due {
    video: bool,
    audio: bool,
}

impl ClientSession {
    /// Begins the handshake.
    pub(super) fn new(target: PublishTarget, fill_random: FillRandom) -> Self {
        let mut writer = Writer::new();
        let output = writer.output();
        output.push(VERSION);
        let mut c1 = [0; PACKET_LEN];
        // Four zero bytes after the time mean that there is no digest.
        fill_random(&mut c1[8..]);
        output.extend(c1);
        Self {
            target,
            stage: ClientStage::Handshake,
            reader: ChunkReader::new(LIMITS),
            writer,
            stream_id: 0,
            video: None,
            audio: None,
            due: Due::default(),
            bytes_received: 0,
            bytes_acknowledged: 0,
            window: WINDOW,
        }
    }

    /// Returns the bytes to send, in order; the sender empties it.
    pub(super) fn output(&mut self) -> &mut Vec<u8> {
        self.writer.output()
    }

    /// Returns whether units may be pushed.
    pub(super) fn is_publishing(&self) -> bool {
        self.stage == ClientStage::Publishing
    }

    /// Reads what the server sent. After an error the connection is unusable.
    pub(super) fn receive(&mut self, len: usize, input: &mut BytesMut) -> Result<(), Failure> {
        if self.stage == ClientStage::Handshake && !self.shake_hands(input)? {
            return Ok(());
        }
        self.acknowledge(len);
        while let Some(message) = self.reader.next(input)? {
            self.handle(&message)?;
        }
        Ok(())
    }

    /// Reads S0 to S2 at once; `false` while they are incomplete. S2 is not checked: nothing depends on it.
    fn shake_hands(&mut self, input: &mut BytesMut) -> Result<bool, Failure> {
        if let Some(&version) = input.first()
            && version != VERSION
        {
            let reason = format!("{version}, expected {VERSION}");
            return Err(Error::invalid("RTMP version", reason).into());
        }
        if input.len() < 1 + 2 * PACKET_LEN {
            return Ok(false);
        }
        self.writer.output().extend(&input[1..=PACKET_LEN]);
        input.advance(1 + 2 * PACKET_LEN);
        self.connect();
        self.stage = ClientStage::Connecting;
        Ok(true)
    }

    fn connect(&mut self) {
        let target = &self.target;
        self.writer.command(0, |c| {
            c.string("connect").number(CONNECT).object(|o| {
                o.name("app").string(&target.app);
                o.name("type").string("nonprivate");
                o.name("flashVer").string(FLASH_VERSION);
                o.name("tcUrl").string(&target.tc_url);
                o.name("fourCcList").strings(&FOURCCS);
            });
        });
    }

    fn acknowledge(&mut self, len: usize) {
        self.bytes_received += len as u64;
        let unacknowledged = self.bytes_received - self.bytes_acknowledged;
        if unacknowledged >= u64::from(self.window / 2).max(1) {
            self.writer.acknowledge(self.bytes_received);
            self.bytes_acknowledged = self.bytes_received;
        }
    }

    fn handle(&mut self, message: &Message) -> Result<(), Failure> {
        match message.kind {
            kind::SET_CHUNK_SIZE => self.reader.set_chunk_size(message.control_value()?)?,
            kind::ABORT => self.reader.abort(message.control_value()?),
            kind::WINDOW_ACKNOWLEDGEMENT_SIZE => self.window = message.control_value()?,
            kind::USER_CONTROL => self.answer_ping(message),
            kind::COMMAND_AMF0 | kind::COMMAND_AMF3 => {
                // Servers send commands of their own; only the answers that we wait for have to be valid.
                if let Ok(command) = Command::parse(message.amf0()) {
                    return self.take(&command);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn answer_ping(&mut self, message: &Message) {
        if let Some(&[e0, e1, t0, t1, t2, t3]) = message.payload.first_chunk::<6>()
            && u16::from_be_bytes([e0, e1]) == event::PING_REQUEST
        {
            self.writer
                .ping_response(u32::from_be_bytes([t0, t1, t2, t3]));
        }
    }

    fn take(&mut self, command: &Command) -> Result<(), Failure> {
        let answers = |call: f64| command.transaction == call;
        match (command.name.as_str(), self.stage) {
            ("_result", ClientStage::Connecting) if answers(CONNECT) => self.connected(command),
            ("_result", ClientStage::Creating) if answers(CREATE_STREAM) => self.created(command),
            ("_error", ClientStage::Connecting) if answers(CONNECT) => Err(self.rejected(command)),
            ("_error", ClientStage::Creating) if answers(CREATE_STREAM) => {
                Err(self.rejected(command))
            }
            ("onStatus", _) => self.take_status(command),
            ("close", _) => Err(Failure::Ended("it said close".to_owned())),
            _ => Ok(()),
        }
    }

    fn connected(&mut self, command: &Command) -> Result<(), Failure> {
        if level_of(command) == "error" {
            return Err(self.rejected(command));
        }
        self.writer.raise_chunk_size();
        let stream = &self.target.stream;
        for (name, transaction) in [("releaseStream", RELEASE), ("FCPublish", FC_PUBLISH)] {
            self.writer.command(0, |c| {
                c.string(name).number(transaction).null().string(stream);
            });
        }
        self.writer.command(0, |c| {
            c.string("createStream").number(CREATE_STREAM).null();
        });
        self.stage = ClientStage::Creating;
        Ok(())
    }

    fn created(&mut self, command: &Command) -> Result<(), Failure> {
        let id = command.stream_id().filter(|id| *id > 0);
        self.stream_id = id.ok_or_else(|| Error::invalid("stream id", "it is no number"))?;
        let stream = &self.target.stream;
        self.writer.command(self.stream_id, |c| {
            c.string("publish").number(PUBLISH).null();
            c.string(stream).string("live");
        });
        self.stage = ClientStage::Asking;
        Ok(())
    }

    fn take_status(&mut self, command: &Command) -> Result<(), Failure> {
        let code = property(command, "code");
        match self.stage {
            _ if level_of(command) == "error" => Err(self.rejected(command)),
            ClientStage::Asking if code == START => {
                self.stage = ClientStage::Publishing;
                Ok(())
            }
            ClientStage::Publishing if UNPUBLISH_CODES.contains(&code) => {
                Err(Failure::Ended(self.words(command)))
            }
            _ => Ok(()),
        }
    }

    fn rejected(&self, command: &Command) -> Failure {
        Failure::Refused(self.words(command))
    }

    /// Returns the server's text without the stream key, which some repeat.
    fn words(&self, command: &Command) -> String {
        let said = [property(command, "description"), property(command, "code")]
            .into_iter()
            .find_map(command::bounded_text)
            .unwrap_or_else(|| "without a reason".to_owned());
        let PublishTarget { app, stream, .. } = &self.target;
        let (name, query) = stream.split_once('?').unwrap_or((stream, ""));
        let instance = app.split_once('/').map_or("", |(_, instance)| instance);
        let mut shown = said;
        for secret in [&**stream, name, query, instance] {
            if !secret.is_empty() {
                shown = shown.replace(secret, MASK);
            }
        }
        shown
    }

    /// Writes a unit; times must rise from 0 on.
    pub(super) fn push(&mut self, unit: &Unit) -> Result<(), Failure> {
        match unit {
            Unit::VideoConfig(config) => {
                self.video = Some(Arc::clone(config));
                self.due.video = true;
            }
            Unit::AudioConfig(config) => {
                self.audio = Some(Arc::clone(config));
                self.due.audio = true;
            }
            Unit::Video(video_frame) => {
                let timestamp_ms = wrapped(video_frame.dts_90k);
                self.send_due(timestamp_ms);
                if let Some(codec) = self.video.as_ref().map(|config| config.codec) {
                    let head = tag::video_frame(codec, video_frame);
                    self.media(kind::VIDEO, timestamp_ms, &head, &video_frame.data)?;
                }
            }
            Unit::Audio(audio) => {
                let timestamp_ms = wrapped(audio.pts_90k);
                self.send_due(timestamp_ms);
                if let Some(codec) = self.audio.as_ref().map(|config| config.codec) {
                    self.media(kind::AUDIO, timestamp_ms, &tag::audio(codec), &audio.data)?;
                }
            }
        }
        Ok(())
    }

    /// Sends metadata and the configurations that changed.
    fn send_due(&mut self, timestamp_ms: u32) {
        let due = std::mem::take(&mut self.due);
        if !(due.video || due.audio) {
            return;
        }
        let (video, audio) = (self.video.clone(), self.audio.clone());
        let metadata = tag::metadata(video.as_deref(), audio.as_deref());
        self.message(kind::DATA_AMF0, timestamp_ms, &metadata, &[]);
        if let Some(video) = video.filter(|_| due.video) {
            let head = tag::video_configuration(video.codec);
            self.message(kind::VIDEO, timestamp_ms, &head, &video.record);
        }
        if let Some(audio) = audio.filter(|_| due.audio)
            && let Some(head) = tag::audio_configuration(audio.codec)
        {
            self.message(kind::AUDIO, timestamp_ms, &head, &audio.record);
        }
    }

    fn media(
        &mut self,
        kind: u8,
        timestamp_ms: u32,
        head: &[u8],
        body: &[u8],
    ) -> Result<(), Failure> {
        let length = head.len() + body.len();
        if length > LONGEST_MESSAGE {
            return Err(Error::too_large("frame", length, LONGEST_MESSAGE).into());
        }
        self.message(kind, timestamp_ms, head, body);
        Ok(())
    }

    fn message(&mut self, kind: u8, timestamp_ms: u32, head: &[u8], body: &[u8]) {
        let chunk_stream = match kind {
            kind::VIDEO => VIDEO,
            kind::AUDIO => AUDIO,
            _ => DATA,
        };
        let header = Header {
            chunk_stream,
            kind,
            stream_id: self.stream_id,
            timestamp_ms,
        };
        self.writer.message(header, head, body);
    }

    /// Sends `FCUnpublish` and `deleteStream`.
    pub(super) fn end_publish(&mut self) {
        if self.stage != ClientStage::Publishing {
            return;
        }
        let (stream, stream_id) = (&self.target.stream, self.stream_id);
        self.writer.command(0, |c| {
            c.string("FCUnpublish").number(UNPUBLISH).null();
            c.string(stream);
        });
        self.writer.command(0, |c| {
            c.string("deleteStream").number(DELETE_STREAM).null();
            c.number(f64::from(stream_id));
        });
    }
}

fn property<'a>(command: &'a Command, name: &str) -> &'a str {
    let status = command.arguments.first();
    status
        .and_then(|status| status.property(name))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn level_of(command: &Command) -> &str {
    property(command, "level")
}

/// Timestamp in RTMP's 32 bits.
fn wrapped(ticks: i64) -> u32 {
    (tag::milliseconds(ticks) & i64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> PublishTarget {
        PublishTarget {
            app: "live".into(),
            stream: "secret-key?token=veiled".into(),
            tc_url: "rtmp://cdn.test/live".into(),
        }
    }

    fn hand(session: &mut ClientSession, bytes: &[u8]) -> Result<(), Failure> {
        let mut input = BytesMut::from(bytes);
        session.receive(bytes.len(), &mut input)
    }

    fn shaken() -> ClientSession {
        let mut session = ClientSession::new(target(), |buffer| buffer.fill(9));
        let mut hello = vec![0; 1 + 2 * PACKET_LEN];
        hello[0] = VERSION;
        hand(&mut session, &hello).unwrap();
        session
    }

    fn says(fill: impl FnOnce(&mut crate::rtmp::amf0::Writer)) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.command(0, fill);
        writer.output().clone()
    }

    fn status(level: &str, code: &str, description: &str) -> Vec<u8> {
        let mut writer = Writer::new();
        command::on_status(&mut writer, 1, level, code, description);
        writer.output().clone()
    }

    fn publishing() -> ClientSession {
        let mut session = shaken();
        hand(
            &mut session,
            &says(|c| {
                c.string("_result").number(CONNECT).null().null();
            }),
        )
        .unwrap();
        hand(
            &mut session,
            &says(|c| {
                c.string("_result").number(CREATE_STREAM).null().number(1.0);
            }),
        )
        .unwrap();
        hand(&mut session, &status("status", START, "go")).unwrap();
        assert!(session.is_publishing());
        session
    }

    #[test]
    fn other_versions_end_at_the_first_byte() {
        for byte in [0, b'H', 6, 22] {
            let mut session = ClientSession::new(target(), |_| {});
            assert!(hand(&mut session, &[byte]).is_err(), "{byte}");
        }
    }

    #[test]
    fn rejections_are_reported_without_the_key() {
        let rejections: [(Vec<u8>, &str); 3] = [
            (
                status("error", "NetStream.Publish.BadName", "secret-key is taken"),
                "it rejected the stream: •••• is taken",
            ),
            (
                says(|c| {
                    c.string("_error").number(CONNECT).null().object(|o| {
                        o.name("code").string("NetConnection.Connect.Rejected");
                    });
                }),
                "it rejected the stream: NetConnection.Connect.Rejected",
            ),
            (
                says(|c| {
                    c.string("close").number(0.0).null();
                }),
                "it ended the stream: it said close",
            ),
        ];
        for (bytes, expected) in rejections {
            let rejection = hand(&mut shaken(), &bytes).unwrap_err();
            assert_eq!(rejection.to_string(), expected);
        }
        let shown = format!("{:?}", target());
        let is_hidden = !shown.contains("secret-key") && !shown.contains("veiled");
        assert!(is_hidden, "{shown}");
    }

    #[test]
    fn a_publish_that_the_server_ends_is_over() {
        let unpublished = status("status", UNPUBLISH_CODES[0], "unpublished");
        let ended = hand(&mut publishing(), &unpublished).unwrap_err();
        assert!(matches!(ended, Failure::Ended(_)), "{ended}");
    }

    #[test]
    fn pings_are_answered_and_odd_calls_are_not_minded() {
        let mut session = publishing();
        session.output().clear();
        let mut writer = Writer::new();
        writer.ping_request(77);
        writer.command(0, |c| {
            c.string("onBWDone").null();
        });
        let bytes = writer.output().clone();
        hand(&mut session, &bytes).unwrap();
        let mut answer = Writer::new();
        answer.ping_response(77);
        assert_eq!(session.output(), answer.output());
    }

    proptest::proptest! {
        /// A server may be hostile.
        #[test]
        fn no_answer_is_survived_badly(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..2048),
            ahead in 0_usize..4,
        ) {
            let openings: [fn() -> ClientSession; 4] = [
                || ClientSession::new(target(), |_| {}),
                shaken,
                publishing,
                || {
                    let mut session = shaken();
                    session.reader.set_chunk_size(1).unwrap();
                    session
                },
            ];
            let mut session = openings[ahead]();
            for piece in bytes.chunks(97) {
                if hand(&mut session, piece).is_err() {
                    break;
                }
            }
            proptest::prop_assert!(session.reader.unfinished() <= LIMITS.unfinished);
        }
    }

    #[test]
    fn a_window_of_nothing_is_survived() {
        let mut session = publishing();
        let mut writer = Writer::new();
        writer.window_acknowledgement_size(0);
        let bytes = writer.output().clone();
        hand(&mut session, &bytes).unwrap();
        hand(&mut session, &bytes).unwrap();
    }
}
