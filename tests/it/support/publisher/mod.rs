//! A controlled RTMP publisher: sends a clip up to an exact frame, then goes in the way a scenario wants.
//!
//! It knows which frames left whole: before a cut it waits until the peer's kernel has acknowledged every byte.
//! Only H.264 clips; the time stamps of a session begin at 0, as encoders' do.

mod wire;

use std::time::Duration;

use bytes::{Buf, BytesMut};
pub use sluice_testkit::publisher::{PublishError, Status, Target};
use sluice_testkit::{
    Failure,
    flv::{self, AUDIO, Tag, VIDEO},
    publisher::put_goodbye,
    rtmp::put_tag,
};
use tokio::time::{Instant, sleep_until};

use self::wire::Wire;
use super::media;

/// Pace of the tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At their time since the session's first tag.
    RealTime,
    /// Pace: as fast as the server reads.
    Unbounded,
}

/// Tags that were sent whole in a session.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    /// The numbers in the frames, ascending: with B-frames there may be a hole before the last ones.
    pub video_frames: Vec<u32>,
    pub audio_frames: usize,
}

/// A publish that the server has accepted.
#[derive(Debug)]
pub struct Publisher {
    wire: Wire,
    stream: String,
    clip: NumberedClip,
    /// Index of the next tag.
    next: usize,
    /// Time of the session's first tag in the clip.
    base_ms: Option<u32>,
    started: Instant,
    sent: Sent,
    /// Leaves audio out.
    muted: bool,
}

impl Publisher {
    /// Handshake and commands up to the server's permission.
    pub async fn open(target: &Target, clip: &media::Clip) -> Result<Self, PublishError> {
        Self::begin(target, NumberedClip::read(clip)?, false).await
    }

    /// Opens a session of an encoder whose audio comes later: up to [`Publisher::unmute`] it sends neither audio nor
    /// its configuration.
    pub async fn open_muted(target: &Target, clip: &media::Clip) -> Result<Self, PublishError> {
        Self::begin(target, NumberedClip::read(clip)?, true).await
    }

    async fn begin(target: &Target, clip: NumberedClip, muted: bool) -> Result<Self, PublishError> {
        let mut wire = Wire::open(target).await?;
        let mut out = BytesMut::new();
        for tag in clip
            .opening
            .iter()
            .filter(|tag| !muted || tag.kind != AUDIO)
        {
            put_tag(&mut out, tag, 0, wire.stream_id());
        }
        wire.write(&mut out).await?;
        Ok(Self {
            wire,
            stream: target.stream.clone(),
            clip,
            next: 0,
            base_ms: None,
            started: Instant::now(),
            sent: Sent::default(),
            muted,
        })
    }

    /// Returns the server's answer to a publish that must be rejected.
    pub async fn expect_rejection(target: &Target, clip: &media::Clip) -> Result<Status, Failure> {
        match Self::open(target, clip).await {
            Ok(_) => Err("the publish was accepted".into()),
            Err(PublishError::Refused(status)) => Ok(status),
            Err(PublishError::Failed(failure)) => Err(failure),
        }
    }

    /// The session begins at the first key frame whose frame has this number or a higher one.
    pub fn skip_to(&mut self, number: u32) -> Result<(), Failure> {
        assert!(self.base_ms.is_none(), "a session skips before it sends");
        let begins =
            |at: usize| self.clip.is_key_frame(at) && self.clip.numbers[at] >= Some(number);
        let found = (0..self.clip.tags.len()).find(|&at| begins(at));
        self.next = found.ok_or_else(|| format!("no key frame from frame {number} on"))?;
        Ok(())
    }

    /// Sends tags until this session has sent `total` frames, the audio between them included.
    pub async fn send_frames(&mut self, total: usize, pace: Pace) -> Result<&Sent, Failure> {
        let mut out = BytesMut::new();
        while self.sent.video_frames.len() < total {
            if self.muted {
                self.skip_audio();
            }
            let (tag, time_ms) = self.due(pace).await?;
            put_tag(&mut out, &tag, time_ms, self.wire.stream_id());
            self.wire.write(&mut out).await?;
            match self.clip.numbers[self.next] {
                Some(number) => self.sent.video_frames.push(number),
                None => self.sent.audio_frames += 1,
            }
            self.next += 1;
        }
        self.sent.video_frames.sort_unstable();
        Ok(&self.sent)
    }

    /// Sends the next frame but for its second half, which never comes.
    pub async fn send_half_a_frame(&mut self) -> Result<(), Failure> {
        self.skip_audio();
        let (tag, time_ms) = self.due(Pace::RealTime).await?;
        let mut out = BytesMut::new();
        put_tag(&mut out, &tag, time_ms, self.wire.stream_id());
        out.truncate(out.remaining() - tag.chunked.len() / 2);
        self.wire.write(&mut out).await
    }

    /// Sends the audio configuration; audio goes along from here on.
    pub async fn unmute(&mut self) -> Result<(), Failure> {
        self.muted = false;
        let (_, time_ms) = self.due(Pace::RealTime).await?;
        let mut out = BytesMut::new();
        for tag in self.clip.opening.iter().filter(|tag| tag.kind == AUDIO) {
            put_tag(&mut out, tag, time_ms, self.wire.stream_id());
        }
        self.wire.write(&mut out).await
    }

    fn skip_audio(&mut self) {
        let is_audio = |number: &Option<u32>| number.is_none();
        while self.clip.numbers.get(self.next).is_some_and(is_audio) {
            self.next += 1;
        }
    }

    /// The message stream that the server gave this session.
    pub fn stream_id(&self) -> u32 {
        self.wire.stream_id()
    }

    /// Sends chunks that no encoder makes.
    pub async fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.wire.write(&mut BytesMut::from(bytes)).await
    }

    /// The next tag and its time in the session, once it is due.
    async fn due(&mut self, pace: Pace) -> Result<(Tag, u32), Failure> {
        let tag = self
            .clip
            .tags
            .get(self.next)
            .ok_or("the clip is over")?
            .clone();
        if self.base_ms.is_none() {
            self.started = Instant::now();
        }
        let base_ms = *self.base_ms.get_or_insert(tag.time_ms);
        let time_ms = tag.time_ms.saturating_sub(base_ms);
        if pace == Pace::RealTime {
            sleep_until(self.started + Duration::from_millis(time_ms.into())).await;
        }
        Ok((tag, time_ms))
    }

    /// Returns the tags that were sent whole so far.
    pub fn sent(&self) -> &Sent {
        &self.sent
    }

    /// Status events that came since the publish was accepted.
    pub fn statuses(&self) -> Vec<Status> {
        self.wire.statuses()
    }

    /// Waits until the server closes the connection; its last words.
    pub async fn wait_closed(&mut self, deadline: Duration) -> Result<Vec<Status>, Failure> {
        self.wire.wait_closed(deadline).await?;
        Ok(self.statuses())
    }

    /// Cuts the connection without a word of RTMP, by FIN. All that was sent has arrived by then.
    pub async fn cut(mut self) -> Result<Sent, Failure> {
        self.wire.flush().await?;
        Ok(self.sent)
    }

    /// Cuts the connection by RST. All that was sent has arrived by then.
    pub async fn reset(mut self) -> Result<Sent, Failure> {
        self.wire.flush().await?;
        self.wire.reset()?;
        Ok(self.sent)
    }

    /// Ends as an encoder does when its user presses stop.
    pub async fn end(mut self) -> Result<Sent, Failure> {
        let mut out = BytesMut::new();
        put_goodbye(&mut out, &self.stream, self.wire.stream_id());
        self.wire.write(&mut out).await?;
        self.wire.flush().await?;
        Ok(self.sent)
    }
}

/// A clip's tags, and which frame each video tag carries.
#[derive(Debug)]
struct NumberedClip {
    opening: Vec<Tag>,
    tags: Vec<Tag>,
    /// By tag; `None` for audio.
    numbers: Vec<Option<u32>>,
}

impl NumberedClip {
    fn read(clip: &media::Clip) -> Result<Self, Failure> {
        if clip.recipe.needs_modern_ffmpeg() {
            return Err("the controlled publisher sends H.264 only".into());
        }
        let flv = std::fs::read(&clip.flv)?;
        let read = flv::Clip::read(&flv, u32::MAX)?;
        let numbers = numbers(&read.tags, clip.first());
        Ok(Self {
            opening: read.opening,
            tags: read.tags,
            numbers,
        })
    }

    fn is_key_frame(&self, at: usize) -> bool {
        let tag = &self.tags[at];
        tag.kind == VIDEO && tag.chunked.first().is_some_and(|head| head >> 4 == 1)
    }
}

/// Frames are numbered in the order of presentation, tags are in the order of decoding.
fn numbers(tags: &[Tag], first: u32) -> Vec<Option<u32>> {
    let mut shown_at: Vec<(i64, usize)> = tags
        .iter()
        .enumerate()
        .filter(|(_, tag)| tag.kind == VIDEO)
        .map(|(at, tag)| (i64::from(tag.time_ms) + composition_ms(tag), at))
        .collect();
    shown_at.sort_unstable();
    let mut numbers = vec![None; tags.len()];
    for (number, (_, at)) in (first..).zip(shown_at) {
        numbers[at] = Some(number);
    }
    numbers
}

/// CompositionTime of an AVC video tag: 24 bits, signed, after the packet type (FLV 10.1, E.4.3.1).
fn composition_ms(tag: &Tag) -> i64 {
    match tag.chunked.get(2..5) {
        Some(&[high, middle, low]) => i32::from_be_bytes([high, middle, low, 0]) as i64 >> 8,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_numbered_as_they_are_shown() {
        let clip = NumberedClip::read(&media::numbered(7)).unwrap();
        let decoded: Vec<u32> = clip.numbers.iter().copied().flatten().collect();
        assert_eq!(
            decoded[..4],
            [7, 10, 8, 9],
            "a key frame, a P-frame, two B-frames"
        );
        let mut shown = decoded;
        shown.sort_unstable();
        assert!(shown.into_iter().eq(7..1207));
        let key_frames = (0..clip.tags.len()).filter(|&at| clip.is_key_frame(at));
        let key_frames: Vec<_> = key_frames.filter_map(|at| clip.numbers[at]).collect();
        assert_eq!(key_frames[..3], [7, 67, 127]);
    }
}
