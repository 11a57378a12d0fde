//! Viewers of a low-latency stream: a watcher that times what is listed, and a player's traffic.
//!
//! A part's time runs from the sending of its *first* frame to the moment at which a playlist that lists it has
//! arrived: no frame waits longer than that.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use sluice_testkit::{
    Failure,
    playlist::{MediaPlaylist, Segment, ServerControl},
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::{http::Client, publisher::SendLog};

/// Between two tries while the stream is not on air yet.
const NOT_YET: Duration = Duration::from_millis(50);
/// A frame's time is rounded to a millisecond by RTMP and to ten microseconds by the playlist.
const ROUNDING_MS: f64 = 8.0;
/// Time that a part may take beyond its target.
const ALLOWANCE: Duration = Duration::from_millis(100);

/// Addresses of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Playback {
    pub(crate) address: String,
    /// Path of the folder that holds the media playlist, with its slash.
    pub(crate) folder: String,
}

impl Playback {
    fn media_playlist(&self) -> String {
        format!("{}media.m3u8", self.folder)
    }

    fn reload(&self, list: &MediaPlaylist) -> String {
        let can_skip = |control: &ServerControl| control.can_skip_until_s.is_some();
        let skip = match list.control.as_ref().is_some_and(can_skip) {
            true => "&_HLS_skip=YES",
            false => "",
        };
        let (msn, part) = list.next();
        format!(
            "{}?_HLS_msn={msn}&_HLS_part={part}{skip}",
            self.media_playlist()
        )
    }
}

/// Times that the watchers of all streams measured.
#[derive(Debug, Default)]
pub(crate) struct Timings {
    /// From the sending of a part's first frame to its listing.
    pub(crate) first_frame: Vec<Duration>,
    /// From the sending of a part's last frame to its listing.
    pub(crate) last_frame: Vec<Duration>,
    /// Parts whose first frame took longer than the part target and 100 ms.
    pub(crate) late: usize,
}

impl Timings {
    pub(crate) fn merge(&mut self, other: Self) {
        self.first_frame.extend(other.first_frame);
        self.last_frame.extend(other.last_frame);
        self.late += other.late;
    }

    fn note(&mut self, first: Duration, last: Duration, target: Duration) {
        self.first_frame.push(first);
        self.last_frame.push(last);
        self.late += usize::from(first > target + ALLOWANCE);
    }
}

/// Follows a broadcast from its start on, by blocking reloads, and times every part against `log`. The parts of the
/// first playlist set the clock only: a stream becomes visible when it has enough of them for a player.
pub(crate) async fn watch(
    playback: &Playback,
    log: &SendLog,
    stop: &CancellationToken,
) -> Result<Timings, Failure> {
    let mut timings = Timings::default();
    let mut client = Client::new(&playback.address);
    let mut clock = Clock::default();
    let mut list = first_playlist(&mut client, playback).await?;
    if list.media_sequence > 0 {
        return Err("the watcher came after the broadcast's first segment".into());
    }
    clock.new_parts(&list.segments);
    let part_target_s = list
        .part_target_s
        .ok_or("the playlist has no PART-TARGET")?;
    while !list.ended {
        let path = playback.reload(&list);
        let answer = tokio::select! {
            answer = client.get(&path) => answer?,
            () = stop.cancelled() => break,
        };
        let seen = Instant::now();
        if answer.status != 200 {
            return Err(format!("{path}: status {}", answer.status).into());
        }
        list = MediaPlaylist::parse(&answer.text())?;
        for (from_ms, to_ms) in clock.new_parts(&list.segments) {
            if let Some((first, last)) = log.between(from_ms, to_ms) {
                timings.note(
                    seen.duration_since(first),
                    seen.duration_since(last),
                    Duration::from_secs_f64(part_target_s),
                );
            }
        }
    }
    Ok(timings)
}

/// The broadcast's timeline, summed up from the durations that the playlist gives.
#[derive(Debug, Default)]
struct Clock {
    msn: u64,
    next_part: usize,
    segment_start_ms: f64,
    part_start_ms: f64,
}

impl Clock {
    /// Returns begin and end in the broadcast of the parts that were not listed before.
    fn new_parts(&mut self, segments: &[Segment]) -> Vec<(u64, u64)> {
        let mut parts = Vec::new();
        for segment in segments {
            if segment.msn != self.msn {
                continue;
            }
            for part in segment.parts.iter().skip(self.next_part) {
                self.next_part += 1;
                // No frame was sent for a gap.
                if part.gap {
                    continue;
                }
                let start_ms = self.part_start_ms;
                self.part_start_ms += part.duration_s * 1000.0;
                parts.push((frame_edge(start_ms), frame_edge(self.part_start_ms)));
            }
            if let Some(whole) = &segment.whole {
                self.msn += 1;
                self.next_part = 0;
                if !segment.gap {
                    self.segment_start_ms += whole.duration_s * 1000.0;
                }
                self.part_start_ms = self.segment_start_ms;
            }
        }
        parts
    }
}

fn frame_edge(time_ms: f64) -> u64 {
    (time_ms - ROUNDING_MS).max(0.0) as u64
}

/// Traffic of all viewers.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) bytes: AtomicU64,
    pub(crate) requests: AtomicU64,
}

/// Plays as hls.js does at the live edge: one connection reloads the playlist, the other fetches each new part.
pub(crate) async fn view(
    playback: &Playback,
    traffic: Arc<Traffic>,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    let mut lists = Client::new(&playback.address);
    let (parts, mut wanted) = tokio::sync::mpsc::channel::<String>(64);
    let mut media = Client::new(&playback.address);
    let received = Arc::clone(&traffic);
    let fetching = tokio::spawn(async move {
        while let Some(path) = wanted.recv().await {
            // A part may leave the window while the machine is overloaded; the next one is there.
            if let Ok(answer) = media.get(&path).await {
                received.count(answer.body.len());
            }
        }
    });
    let followed = tokio::select! {
        followed = follow(&mut lists, playback, &traffic, &parts) => followed,
        () = stop.cancelled() => Ok(()),
    };
    drop(parts);
    fetching.await?;
    followed
}

async fn follow(
    client: &mut Client,
    playback: &Playback,
    traffic: &Traffic,
    parts: &tokio::sync::mpsc::Sender<String>,
) -> Result<(), Failure> {
    let mut list = first_playlist(client, playback).await?;
    let init = list
        .segments
        .iter()
        .find_map(|segment| segment.map.as_ref());
    if let Some(init) = init {
        parts.send(format!("{}{init}", playback.folder)).await?;
    }
    let mut next = list.next();
    while !list.ended {
        let path = playback.reload(&list);
        let answer = client.get(&path).await?;
        traffic.count(answer.body.len());
        if answer.status != 200 {
            return Err(format!("{path}: status {}", answer.status).into());
        }
        list = MediaPlaylist::parse(&answer.text())?;
        for segment in &list.segments {
            for (index, part) in (0..).zip(&segment.parts) {
                if (segment.msn, index) >= next {
                    parts
                        .send(format!("{}{}", playback.folder, part.uri))
                        .await?;
                }
            }
        }
        next = list.next();
    }
    Ok(())
}

impl Traffic {
    fn count(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits until the stream is on air and its playlist has parts.
async fn first_playlist(
    client: &mut Client,
    playback: &Playback,
) -> Result<MediaPlaylist, Failure> {
    loop {
        let answer = client.get(&playback.media_playlist()).await?;
        if answer.status == 200 {
            let list = MediaPlaylist::parse(&answer.text())?;
            if !list.segments.is_empty() {
                return Ok(list);
            }
        }
        sleep(NOT_YET).await;
    }
}
