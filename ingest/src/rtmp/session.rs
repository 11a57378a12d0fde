//! State machine of an RTMP publisher: commands, application `live`, texts of rejections, pings, window, bounds before
//! `publish`. Bytes and time in, units and bytes out; no socket, no task.
//!
//! ```text
//! Handshake ──▶ Connecting ──connect──▶ Connected ──publish──▶ Asking ──admitted──▶ Publishing ──deleteStream──▶ Ended
//! ```
//!
//! While the authorizer is asked, nothing is decoded: the caller holds what was read. Time is the age of the
//! connection.

use std::time::Duration;

use bytes::BytesMut;
use sluice_media::unit::Unit;

use crate::{
    Error,
    publish::{Rejection, Secret, SessionReport},
};

use super::{
    RtmpSettings,
    amf0::{self, Value},
    chunk::{ChunkLimits, ChunkReader},
    clock::TimestampUnwrapper,
    command::{self, Command, Connect},
    flv::{Aggregate, Corruption, Demuxer},
    handshake::{FillRandom, Handshake},
    message::{Message, event, kind},
    writer::Writer,
};

/// Name of the only application: addresses end in `/live`.
pub const APP: &str = "live";
/// Messages decoded in one turn; bounds the units delivered at once and the time until other connections run.
const MESSAGES_PER_TURN: usize = 256;
/// Messages a client may send before it publishes. Real ones need about ten.
const MESSAGES_BEFORE_PUBLISH: usize = 64;
/// Bytes reserved for an admitted publisher's message when its first chunk comes.
const RESERVE_PUBLISHING: usize = 256 << 10;
/// Bytes reserved in the same way before publish, where the client is not authorized yet.
const RESERVE_BEFORE_PUBLISH: usize = 1 << 10;
/// Bytes of answers that may wait; a client that causes more in one turn is disconnected.
const MAX_OUTPUT: usize = 64 << 10;
/// Message streams a client may create.
const MAX_STREAMS: u32 = 16;
/// Window and bandwidth that we announce, and the client's window until it sends its own.
const WINDOW: u32 = 2_500_000;

const BAD_NAME: &str = "NetStream.Publish.BadName";
const BAD_APP: &str =
    "the server address must end in /live: copy server and key from the live input again";

/// State in which decoding stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeState {
    /// Everything whole was decoded: more input is needed.
    Starved,
    /// The turn is over: deliver the units, then continue with the same input.
    Paused,
    /// The client sent `publish`: answer with [`ServerSession::admit`] or [`ServerSession::refuse`].
    Asked(PublishCommand),
    /// The client ended the publish.
    Ended,
}

/// `publish` command, in bounded texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishCommand {
    pub stream: Secret,
    pub encoder: Option<String>,
}

/// State machine of a publisher's connection.
#[derive(Debug)]
pub struct ServerSession {
    deadlines: Deadlines,
    stage: ServerStage,
    handshake: Handshake,
    reader: ChunkReader,
    publishing_limits: ChunkLimits,
    writer: Writer,
    clock: TimestampUnwrapper,
    demuxer: Demuxer,
    aggregate: Option<Aggregate>,
    /// The application of `connect`; `None` before it, and when the client's text was no name.
    app: Option<String>,
    encoder: Option<String>,
    /// Ids 1 to this were given out by `createStream`.
    streams: u32,
    /// Message stream of the publish, once requested.
    publishing: u32,
    messages_before_publish: usize,
    damaged: u64,
    last_damage: Option<Corruption>,
    bytes_received: u64,
    bytes_acknowledged: u64,
    window: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerStage {
    Handshake,
    Connecting,
    Connected,
    Asking,
    Publishing,
    Ended,
}

#[derive(Debug)]
struct Deadlines {
    handshake: Duration,
    publish: Duration,
    idle: Duration,
    ping_interval: Duration,
    /// Begin of the stage; while publishing, arrival of the last media.
    since: Duration,
    last_ping: Duration,
}

impl ServerSession {
    pub fn new(settings: &RtmpSettings, fill_random: FillRandom) -> Self {
        let command = bytes(settings.max_command);
        let before_publish = ChunkLimits {
            chunk_streams: settings.max_chunk_streams,
            command,
            // Media is an error before publish; the message itself is rejected with that error once it is whole.
            media: command,
            unfinished: bytes(settings.max_unfinished_before_publish),
            reserve: RESERVE_BEFORE_PUBLISH,
        };
        Self {
            deadlines: Deadlines {
                handshake: settings.handshake_timeout,
                publish: settings.publish_timeout,
                idle: settings.idle_timeout,
                ping_interval: settings.ping_interval,
                since: Duration::ZERO,
                last_ping: Duration::ZERO,
            },
            stage: ServerStage::Handshake,
            handshake: Handshake::new(fill_random),
            reader: ChunkReader::new(before_publish),
            publishing_limits: ChunkLimits {
                media: bytes(settings.max_media),
                unfinished: bytes(settings.max_unfinished),
                reserve: RESERVE_PUBLISHING,
                ..before_publish
            },
            writer: Writer::new(),
            clock: TimestampUnwrapper::new(),
            demuxer: Demuxer::new(),
            aggregate: None,
            app: None,
            encoder: None,
            streams: 0,
            publishing: 0,
            messages_before_publish: 0,
            damaged: 0,
            last_damage: None,
            bytes_received: 0,
            bytes_acknowledged: 0,
            window: WINDOW,
        }
    }

    /// Returns the bytes to send, in order; the sender empties it.
    pub fn output(&mut self) -> &mut Vec<u8> {
        self.writer.output()
    }

    /// Counts bytes that were read, and acknowledges them when the client's window requires it.
    pub fn count_received(&mut self, len: usize) {
        self.bytes_received += len as u64;
        let unacknowledged = self.bytes_received - self.bytes_acknowledged;
        if self.app.is_some() && unacknowledged >= u64::from(self.window / 2) {
            self.writer.acknowledge(self.bytes_received);
            self.bytes_acknowledged = self.bytes_received;
        }
    }

    /// Decodes `input` and appends the resulting units to `units`. After an error the connection is over; units and
    /// output that came before it are still valid.
    pub fn receive(
        &mut self,
        input: &mut BytesMut,
        now: Duration,
        units: &mut Vec<Unit>,
    ) -> Result<DecodeState, Error> {
        if self.stage == ServerStage::Handshake {
            if !self.handshake.advance(input, self.writer.output())? {
                return Ok(DecodeState::Starved);
            }
            self.enter(ServerStage::Connecting, now);
        }
        for _ in 0..MESSAGES_PER_TURN {
            if self.stage == ServerStage::Ended {
                return Ok(DecodeState::Ended);
            }
            // One tag at a time, so that `MESSAGES_PER_TURN` bounds the units of a large aggregate too.
            if self.take_aggregated(units) {
                continue;
            }
            let Some(message) = self.reader.next(input)? else {
                return Ok(DecodeState::Starved);
            };
            if let Some(ask) = self.handle(message, now, units)? {
                self.enter(ServerStage::Asking, now);
                return Ok(DecodeState::Asked(ask));
            }
        }
        Ok(DecodeState::Paused)
    }

    /// Admits the publisher: media may follow.
    pub fn admit(&mut self, now: Duration) {
        self.enter(ServerStage::Publishing, now);
        self.deadlines.last_ping = now;
        // Only now: a client whose key was not checked must not make us hold large messages.
        self.reader.set_limits(self.publishing_limits);
        self.writer.stream_begin(self.publishing);
        self.status("status", "NetStream.Publish.Start", "publishing");
    }

    /// Rejects the publisher. The connection ends with the returned error, after the output was sent.
    pub fn refuse(&mut self, rejection: Rejection) -> Error {
        self.stage = ServerStage::Ended;
        self.status("error", BAD_NAME, rejection.message());
        Error::Refused(rejection)
    }

    /// Notifies a publisher of its end, whichever side ended it.
    pub fn close_stream(&mut self) {
        self.stage = ServerStage::Ended;
        self.status("status", "NetStream.Unpublish.Success", "unpublished");
    }

    /// Restarts the measure of silence: the client could not send while its units waited to be taken.
    pub fn resume(&mut self, now: Duration) {
        self.deadlines.since = now;
    }

    /// Checks deadlines and sends pings; to be called about once a second.
    pub fn tick(&mut self, now: Duration) -> Result<(), Error> {
        let (what, limit) = match self.stage {
            ServerStage::Handshake => ("handshake", self.deadlines.handshake),
            ServerStage::Connecting | ServerStage::Connected => {
                ("way to publish", self.deadlines.publish)
            }
            ServerStage::Publishing => ("silence of the publisher", self.deadlines.idle),
            ServerStage::Asking | ServerStage::Ended => return Ok(()),
        };
        if now.saturating_sub(self.deadlines.since) >= limit {
            return Err(Error::TimedOut { what, limit });
        }
        let since_ping = now.saturating_sub(self.deadlines.last_ping);
        if self.stage == ServerStage::Publishing && since_ping >= self.deadlines.ping_interval {
            self.deadlines.last_ping = now;
            let timestamp_ms = (now.as_millis() & u128::from(u32::MAX)) as u32;
            self.writer.ping_request(timestamp_ms);
        }
        Ok(())
    }

    /// Returns the facts for health; totals.
    pub fn report(&self) -> SessionReport {
        SessionReport {
            encoder: self.encoder.clone(),
            damaged: self.damaged,
            last_damage: self.last_damage.as_ref().map(Corruption::to_string),
            bytes_received: self.bytes_received,
            line: None,
        }
    }

    fn enter(&mut self, stage: ServerStage, now: Duration) {
        // `publish_timeout` covers both stages together: `connect` does not extend it.
        let is_same_wait = self.stage == ServerStage::Connecting && stage == ServerStage::Connected;
        self.stage = stage;
        if !is_same_wait {
            self.deadlines.since = now;
        }
    }

    fn handle(
        &mut self,
        message: Message,
        now: Duration,
        units: &mut Vec<Unit>,
    ) -> Result<Option<PublishCommand>, Error> {
        if self.stage != ServerStage::Publishing {
            self.count_before_publish()?;
        }
        match message.kind {
            kind::AUDIO | kind::VIDEO | kind::AGGREGATE => {
                self.check_media_allowed()?;
                self.deadlines.since = now;
                self.take_media(message, units);
            }
            kind::COMMAND_AMF0 | kind::COMMAND_AMF3 => return self.take_command(&message, now),
            kind::DATA_AMF0 | kind::DATA_AMF3 => self.take_metadata(&message),
            kind::SET_CHUNK_SIZE => self.reader.set_chunk_size(message.control_value()?)?,
            kind::ABORT => self.reader.abort(message.control_value()?),
            kind::WINDOW_ACKNOWLEDGEMENT_SIZE => self.window = message.control_value()?,
            kind::USER_CONTROL => self.take_user_control(&message),
            // Acknowledgements and bandwidth are about what we send, which is little.
            _ => {}
        }
        self.check_output()?;
        Ok(None)
    }

    fn count_before_publish(&mut self) -> Result<(), Error> {
        self.messages_before_publish += 1;
        if self.messages_before_publish > MESSAGES_BEFORE_PUBLISH {
            return Err(Error::too_large(
                "number of messages before publish",
                self.messages_before_publish,
                MESSAGES_BEFORE_PUBLISH,
            ));
        }
        Ok(())
    }

    fn check_media_allowed(&self) -> Result<(), Error> {
        match self.stage {
            ServerStage::Publishing => Ok(()),
            _ => Err(Error::invalid("media message", "it came before publish")),
        }
    }

    fn check_output(&mut self) -> Result<(), Error> {
        let waiting = self.writer.output().len();
        if waiting > MAX_OUTPUT {
            return Err(Error::too_large("sum of answers", waiting, MAX_OUTPUT));
        }
        Ok(())
    }

    fn take_media(&mut self, message: Message, units: &mut Vec<Unit>) {
        if message.kind == kind::AGGREGATE {
            self.aggregate = Some(Aggregate::new(message.timestamp_ms, message.payload));
            return;
        }
        // Clients send empty bodies to keep connections alive.
        if message.payload.is_empty() {
            return;
        }
        let time_ms = self.clock.unwrap_ms(message.timestamp_ms);
        let taken = match message.kind {
            kind::VIDEO => self.demuxer.video(time_ms, message.payload, units),
            _ => self.demuxer.audio(time_ms, message.payload, units),
        };
        if let Err(corruption) = taken {
            self.note(corruption);
        }
    }

    /// Takes one tag of an aggregate in progress; `false` when there is none.
    fn take_aggregated(&mut self, units: &mut Vec<Unit>) -> bool {
        let Some(aggregate) = &mut self.aggregate else {
            return false;
        };
        match aggregate.next_tag() {
            Ok(Some(tag)) => {
                if matches!(tag.kind, kind::AUDIO | kind::VIDEO) {
                    let message = Message {
                        timestamp_ms: tag.timestamp_ms,
                        kind: tag.kind,
                        stream_id: self.publishing,
                        payload: tag.body,
                    };
                    self.take_media(message, units);
                }
            }
            Ok(None) => self.aggregate = None,
            Err(corruption) => {
                self.aggregate = None;
                self.note(corruption);
            }
        }
        true
    }

    fn note(&mut self, corruption: Corruption) {
        self.damaged += 1;
        self.last_damage = Some(corruption);
    }

    fn take_user_control(&mut self, message: &Message) {
        let Some(&[e0, e1, t0, t1, t2, t3]) = message.payload.first_chunk::<6>() else {
            return;
        };
        if u16::from_be_bytes([e0, e1]) == event::PING_REQUEST {
            self.writer
                .ping_response(u32::from_be_bytes([t0, t1, t2, t3]));
        }
    }

    /// Reads `@setDataFrame` `onMetaData` {…}: only the encoder's name is used. The media itself is more reliable for
    /// everything else.
    fn take_metadata(&mut self, message: &Message) {
        let mut values = amf0::Reader::new(message.amf0());
        // Malformed metadata does not affect the media.
        while let Ok(Some(value)) = values.next_value() {
            let name = value.property("encoder").and_then(Value::as_str);
            if let Some(encoder) = name.and_then(command::bounded_text) {
                self.encoder = Some(encoder);
            }
        }
    }

    fn take_command(
        &mut self,
        message: &Message,
        now: Duration,
    ) -> Result<Option<PublishCommand>, Error> {
        let command = Command::parse(message.amf0())?;
        let transaction = command.transaction;
        match command.name.as_str() {
            "connect" => self.connect(&command, now)?,
            _ if self.stage == ServerStage::Connecting => {
                return Err(Error::invalid("command", "it came before connect"));
            }
            "releaseStream" => command::result_null(&mut self.writer, transaction),
            "FCPublish" => {
                let stream = command::bounded_name(command.text(0)).unwrap_or_default();
                command::on_fc_publish(&mut self.writer, &stream);
                command::result_null(&mut self.writer, transaction);
            }
            "createStream" => self.create_stream(transaction)?,
            "publish" => return self.publish(&command, message.stream_id),
            "play" | "play2" => return Err(self.reject_play(message.stream_id)),
            "FCUnpublish" => self.end_if_publishing(transaction),
            "closeStream" if message.stream_id == self.publishing => {
                self.end_if_publishing(transaction);
            }
            "deleteStream" if command.stream_id().is_none_or(|id| id == self.publishing) => {
                self.end_if_publishing(transaction);
            }
            // Answers to our calls, and calls that expect no answer.
            "closeStream" | "deleteStream" | "_result" | "_error" | "onStatus" => {}
            _ if transaction != 0.0 => command::error(&mut self.writer, transaction),
            _ => {}
        }
        self.check_output()?;
        Ok(None)
    }

    fn connect(&mut self, command: &Command, now: Duration) -> Result<(), Error> {
        if self.stage != ServerStage::Connecting {
            return Err(Error::invalid("connect", "it came twice"));
        }
        let connect = Connect::parse(&command.object)?;
        self.writer.window_acknowledgement_size(WINDOW);
        self.writer.peer_bandwidth(WINDOW);
        self.writer.raise_chunk_size();
        connect.accept(command.transaction, &mut self.writer);
        self.app = connect.app;
        self.encoder = connect.flash_version;
        self.enter(ServerStage::Connected, now);
        Ok(())
    }

    fn create_stream(&mut self, transaction: f64) -> Result<(), Error> {
        if self.streams >= MAX_STREAMS {
            let (asked, limit) = (MAX_STREAMS as usize + 1, MAX_STREAMS as usize);
            return Err(Error::too_large("number of message streams", asked, limit));
        }
        self.streams += 1;
        command::result_number(&mut self.writer, transaction, f64::from(self.streams));
        Ok(())
    }

    fn publish(
        &mut self,
        command: &Command,
        stream_id: u32,
    ) -> Result<Option<PublishCommand>, Error> {
        if self.stage == ServerStage::Publishing {
            let reason = "this connection publishes already";
            command::on_status(&mut self.writer, stream_id, "error", BAD_NAME, reason);
            return Ok(None);
        }
        if stream_id == 0 || stream_id > self.streams {
            return Err(Error::invalid(
                "publish",
                format!("message stream {stream_id} was not created"),
            ));
        }
        self.publishing = stream_id;
        // Encoders show the reason of a rejected publish, and none of a rejected connect: so the application is
        // checked here.
        if self.app.as_deref() != Some(APP) {
            self.status("error", BAD_NAME, BAD_APP);
            self.stage = ServerStage::Ended;
            return Err(Error::Refused(Rejection::Unauthorized));
        }
        match command::bounded_name(command.text(0)) {
            Some(stream) if !stream.is_empty() => Ok(Some(PublishCommand {
                stream: stream.into(),
                encoder: self.encoder.clone(),
            })),
            _ => Err(self.refuse(Rejection::Unauthorized)),
        }
    }

    fn reject_play(&mut self, stream_id: u32) -> Error {
        let reason = "this address takes streams only: play the HLS address";
        command::on_status(
            &mut self.writer,
            stream_id,
            "error",
            "NetStream.Play.Failed",
            reason,
        );
        self.stage = ServerStage::Ended;
        Error::unsupported("play", reason)
    }

    fn end_if_publishing(&mut self, transaction: f64) {
        if self.stage == ServerStage::Publishing {
            self.stage = ServerStage::Ended;
        } else if transaction != 0.0 {
            command::result_null(&mut self.writer, transaction);
        }
    }

    fn status(&mut self, level: &str, code: &str, description: &str) {
        command::on_status(&mut self.writer, self.publishing, level, code, description);
    }
}

fn bytes(size: bytesize::ByteSize) -> usize {
    usize::try_from(size.as_u64()).unwrap_or(usize::MAX)
}
