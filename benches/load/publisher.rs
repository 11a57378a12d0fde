//! Light RTMP publisher of the load harness: connect, createStream, publish, then the clip's tags when they are due.
//!
//! Written for the harness because a hundred ffmpeg processes would take the processor that is to be measured.

use std::{collections::VecDeque, sync::Mutex, time::Duration};

use bytes::BytesMut;
use sluice_testkit::{
    Failure,
    flv::{Clip, VIDEO},
    publisher::{Connection, Target, listen, put_goodbye, put_pong},
    rtmp::put_tag,
};
use tokio::{
    io::AsyncWriteExt,
    net::tcp::OwnedWriteHalf,
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

/// Frames whose time of sending is remembered: longer than any part or segment takes to be listed.
const REMEMBERED_FRAMES: usize = 1024;
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
    let Connection {
        answers,
        mut writer,
        stream_id,
    } = Connection::open(target).await?;
    let (pings, mut asked) = mpsc::channel(4);
    let mut listening = tokio::spawn(listen(answers, pings, drop));
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
    let mut out = BytesMut::new();
    put_goodbye(&mut out, &target.stream, stream_id);
    writer.write_all_buf(&mut out).await?;
    Ok(writer.shutdown().await?)
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
                    put_pong(&mut self.buffer, time);
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
