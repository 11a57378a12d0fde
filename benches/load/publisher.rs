//! A light RTMP publisher: connect, createStream, publish, then the clip's tags when they are due.
//!
//! Written for the harness because a hundred ffmpeg processes would take the processor that is to be measured.

use std::{collections::VecDeque, sync::Mutex, time::Duration};

use bytes::BytesMut;
use tokio::{
    io::AsyncWriteExt,
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Failure,
    clip::{Clip, VIDEO},
    rtmp::{
        Amf, Answers, CHUNK_SIZE, COMMAND, CONTROL_STREAM, SET_CHUNK_SIZE, USER_CONTROL,
        created_stream, put_command, put_message, put_tag, shake_hands,
    },
};

const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
/// Frames whose time of sending is remembered: longer than any part or segment takes to be listed.
const REMEMBERED_FRAMES: usize = 1024;
const PING_REQUEST: [u8; 2] = [0, 6];
const PING_RESPONSE: [u8; 2] = [0, 7];

/// Target of a publish: `rtmp://{address}/{app}` and the stream name.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) address: String,
    pub(crate) app: String,
    pub(crate) stream: String,
}

/// Send time of each frame, by its time in the broadcast.
#[derive(Debug, Default)]
pub(crate) struct SendLog {
    frames: Mutex<VecDeque<(u64, Instant)>>,
    worst_lag: Mutex<Duration>,
}

impl SendLog {
    fn sent(&self, time_ms: u64, lag: Duration) {
        let mut frames = self.frames.lock().expect("no holder panics");
        if frames.len() == REMEMBERED_FRAMES {
            frames.pop_front();
        }
        frames.push_back((time_ms, Instant::now()));
        drop(frames);
        let mut worst = self.worst_lag.lock().expect("no holder panics");
        *worst = lag.max(*worst);
    }

    /// The largest delay of a frame behind its due time. Beyond some milliseconds the harness, or a server that does
    /// not read, is the bottleneck.
    pub(crate) fn worst_lag(&self) -> Duration {
        *self.worst_lag.lock().expect("no holder panics")
    }

    /// Returns the send times of the first and the last frame with a time in `from_ms..to_ms`; `None` when none is
    /// remembered.
    pub(crate) fn between(&self, from_ms: u64, to_ms: u64) -> Option<(Instant, Instant)> {
        let frames = self.frames.lock().expect("no holder panics");
        let mut inside = frames
            .iter()
            .filter(|(time_ms, _)| (from_ms..to_ms).contains(time_ms));
        let first = inside.next()?.1;
        Some((first, inside.next_back().map_or(first, |(_, at)| *at)))
    }
}

/// Publishes the clip in a loop until `stop`, then says goodbye.
pub(crate) async fn publish(
    target: &Target,
    clip: &Clip,
    log: &SendLog,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    let (answers, mut writer, stream_id) =
        timeout(ANSWER_DEADLINE, open(target)).await.map_err(|_| {
            format!(
                "no answer from {} within {ANSWER_DEADLINE:?}",
                target.address
            )
        })??;
    let (pings, mut asked) = mpsc::channel(4);
    let mut listening = tokio::spawn(listen(answers, pings));
    let mut publication = Publication {
        clip,
        log,
        stream_id,
        buffer: BytesMut::with_capacity(64 * 1024),
    };
    tokio::select! {
        ended = publication.run(&mut writer, &mut asked) => return ended,
        failure = &mut listening => {
            let reason = failure.unwrap_or_else(Into::into);
            return Err(format!("a publish ended early: {reason}").into());
        }
        () = stop.cancelled() => {}
    }
    listening.abort();
    goodbye(&mut writer, target, stream_id).await
}

struct Publication<'a> {
    clip: &'a Clip,
    log: &'a SendLog,
    stream_id: u32,
    buffer: BytesMut,
}

impl Publication<'_> {
    async fn run(
        &mut self,
        writer: &mut OwnedWriteHalf,
        asked: &mut mpsc::Receiver<[u8; 4]>,
    ) -> Result<(), Failure> {
        for tag in &self.clip.opening {
            put_tag(&mut self.buffer, tag, 0, self.stream_id);
        }
        let start = Instant::now();
        let mut turn_ms = 0;
        loop {
            for tag in &self.clip.tags {
                let time_ms = turn_ms + tag.time_ms;
                let due = start + Duration::from_millis(time_ms.into());
                sleep_until(due).await;
                put_tag(&mut self.buffer, tag, time_ms, self.stream_id);
                if let Ok(time) = asked.try_recv() {
                    put_message(
                        &mut self.buffer,
                        CONTROL_STREAM,
                        USER_CONTROL,
                        0,
                        &[&PING_RESPONSE[..], &time].concat(),
                    );
                }
                writer.write_all_buf(&mut self.buffer).await?;
                if tag.kind == VIDEO {
                    self.log.sent(time_ms.into(), due.elapsed());
                }
            }
            turn_ms += self.clip.duration_ms;
        }
    }
}

/// Handshake and commands up to the server's permission to publish. Returns the message stream's id.
async fn open(target: &Target) -> Result<(Answers<OwnedReadHalf>, OwnedWriteHalf, u32), Failure> {
    let mut socket = TcpStream::connect(&target.address).await?;
    socket.set_nodelay(true)?;
    shake_hands(&mut socket).await?;
    let (reader, mut writer) = socket.into_split();
    let mut answers = Answers::new(reader);

    let address = format!("rtmp://{}/{}", target.address, target.app);
    let connect = [
        ("app", target.app.as_str()),
        ("type", "nonprivate"),
        ("flashVer", "FMLE/3.0 (compatible; sluice load)"),
        ("tcUrl", &address),
    ];
    let name = Amf::Text(&target.stream);
    let mut out = BytesMut::new();
    put_message(
        &mut out,
        CONTROL_STREAM,
        SET_CHUNK_SIZE,
        0,
        &(CHUNK_SIZE as u32).to_be_bytes(),
    );
    put_command(&mut out, 0, "connect", 1.0, &[Amf::Object(&connect)]);
    put_command(&mut out, 0, "releaseStream", 2.0, &[Amf::Null, name]);
    put_command(&mut out, 0, "FCPublish", 3.0, &[Amf::Null, name]);
    put_command(&mut out, 0, "createStream", 4.0, &[Amf::Null]);
    writer.write_all_buf(&mut out).await?;

    let stream_id = loop {
        let message = answers.next().await?;
        if message.kind == COMMAND
            && let Some(id) = created_stream(&message.body)
        {
            break id;
        }
    };
    put_command(
        &mut out,
        stream_id,
        "publish",
        5.0,
        &[Amf::Null, name, Amf::Text("live")],
    );
    writer.write_all_buf(&mut out).await?;
    loop {
        let message = answers.next().await?;
        let says = |text: &str| {
            message
                .body
                .windows(text.len())
                .any(|window| window == text.as_bytes())
        };
        if message.kind == COMMAND && says("NetStream.Publish.Start") {
            return Ok((answers, writer, stream_id));
        }
        if message.kind == COMMAND && says("NetStream.Publish.") {
            return Err(format!(
                "the publish was refused: {}",
                String::from_utf8_lossy(&message.body)
            )
            .into());
        }
    }
}

/// Hands over what pings ask; returns why the server stopped talking.
async fn listen(mut answers: Answers<OwnedReadHalf>, pings: mpsc::Sender<[u8; 4]>) -> Failure {
    loop {
        match answers.next().await {
            Ok(message) if message.kind == USER_CONTROL => {
                let time = message
                    .body
                    .strip_prefix(&PING_REQUEST)
                    .and_then(|time| time.first_chunk());
                // A ping that finds the queue full is answered by the pong to an earlier one.
                time.map(|time| pings.try_send(*time));
            }
            Ok(_) => {}
            Err(failure) => return failure,
        }
    }
}

/// Ends the broadcast as an encoder does when its user presses stop.
async fn goodbye(
    writer: &mut OwnedWriteHalf,
    target: &Target,
    stream_id: u32,
) -> Result<(), Failure> {
    let mut out = BytesMut::new();
    put_command(
        &mut out,
        0,
        "FCUnpublish",
        6.0,
        &[Amf::Null, Amf::Text(&target.stream)],
    );
    put_command(
        &mut out,
        0,
        "deleteStream",
        7.0,
        &[Amf::Null, Amf::Number(stream_id.into())],
    );
    writer.write_all_buf(&mut out).await?;
    Ok(writer.shutdown().await?)
}
