//! Session of a viewer: which frames of its feeds it is sent, with which times and numbers.
//!
//! Video begins with a burst of the open group of pictures, or at a key frame; where frames are left out, it begins again at the
//! next key frame. Sequence numbers have no gaps, whatever is left out, and times run on when a feed is replaced by another.

use std::{
    collections::VecDeque,
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use str0m::{
    Event,
    media::{MediaTime, Mid, Pt},
    rtp::{ExtensionValues, RtpWrite},
    stats::MediaEgressStats,
};

use super::{
    super::message::{FeedId, FromGateway, GoneReason, SessionStatistics},
    answer::{NegotiatedAudio, NegotiatedVideo},
    burst::Burst,
    frame::{Content, FeedFrame},
    group::Group,
    line::{Line, opus_samples},
    outbox::Outbox,
    pace::{Pace, Second, Verdict},
    peer::{Peer, milliseconds},
};

/// Longest time for which a browser may hold a frame back on a clean line, in hundredths of a second: it then shows frames as soon
/// as they are decoded, and audio that comes late delays them no further.
const PLAYOUT_CLEAN: u64 = 40;
/// The same on a lossy line: the browser's ordinary buffer.
const PLAYOUT_LOSSY: u64 = 200;
/// Interval of statistics.
const REPORT_EVERY: Duration = Duration::from_secs(1);

pub(super) struct Viewer {
    video: Option<NegotiatedVideo>,
    audio: Option<NegotiatedAudio>,
    video_feed: Option<FeedId>,
    /// Feed that replaces the present one at its next key frame.
    next_video_feed: Option<FeedId>,
    audio_feed: Option<FeedId>,
    state: State,
    line: Line,
    /// RTP time of the frame whose packets are written.
    video_time: u32,
    video_sequence: u64,
    audio_sequence: u64,
    is_playout_adaptive: bool,
    playout: u64,
    is_thin: bool,
    /// True once a frame was sent.
    has_begun: bool,
    /// True from the attachment of a feed to its first frame.
    is_joining: bool,
    needs_key_frame: bool,
    pace: Pace,
    counts: Counts,
    next_report: Instant,
}

/// State of the video.
enum State {
    /// Until a key frame.
    Waiting,
    Bursting(Burst),
    Live,
}

/// Counts since the last report, and the library's totals.
#[derive(Default)]
struct Counts {
    key_frame_requests: u32,
    dropped_frames: u32,
    was_full: bool,
    written: u32,
    /// Packets of audio among `written`.
    written_audio: u32,
    loss: Option<f64>,
    rtt_ms: Option<f64>,
    /// Last known round-trip time.
    last_rtt_ms: f64,
    last_loss: f64,
    totals: Vec<(Mid, Totals)>,
    reported: Totals,
}

/// Totals of the library for a track.
#[derive(Clone, Copy, Default)]
struct Totals {
    packets: u64,
    bytes: u64,
    nacks: u64,
}

impl Viewer {
    pub fn new(
        video: Option<NegotiatedVideo>,
        audio: Option<NegotiatedAudio>,
        is_playout_adaptive: bool,
        now: Instant,
    ) -> Self {
        let mut viewer = Self {
            video,
            audio,
            video_feed: None,
            next_video_feed: None,
            audio_feed: None,
            state: State::Waiting,
            line: Line::default(),
            video_time: 0,
            video_sequence: 0,
            audio_sequence: 0,
            is_playout_adaptive,
            playout: 0,
            is_thin: false,
            has_begun: false,
            is_joining: false,
            needs_key_frame: false,
            pace: Pace::new(now),
            counts: Counts::default(),
            next_report: now + REPORT_EVERY,
        };
        viewer.set_playout(now);
        viewer
    }

    /// Changes the feeds. Another video feed takes effect at its next key frame, but for the first.
    pub fn attach(&mut self, video: Option<FeedId>, audio: Option<FeedId>) {
        self.audio_feed = audio;
        if video == self.video_feed {
            self.next_video_feed = None;
            return;
        }
        let is_playing = self.video_feed.is_some() && video.is_some() && self.has_begun;
        match is_playing {
            true => {
                self.next_video_feed = video;
                self.needs_key_frame = true;
            }
            false => self.begin(video),
        }
    }

    fn begin(&mut self, video: Option<FeedId>) {
        self.video_feed = video;
        self.next_video_feed = None;
        self.state = State::Waiting;
        self.is_joining = true;
    }

    /// True when frames of the feed are for this viewer.
    pub fn takes(&self, feed: FeedId) -> bool {
        [self.video_feed, self.next_video_feed, self.audio_feed].contains(&Some(feed))
    }

    /// Returns the feed whose key frame is wanted, or which is played.
    pub fn wanted_feed(&self) -> Option<FeedId> {
        self.next_video_feed.or(self.video_feed)
    }

    /// True when a burst of the feed's open group would begin the video.
    pub fn wants_group(&self, peer: &Peer) -> bool {
        self.is_joining
            && peer.connected_at.is_some()
            && self.video_feed.is_some()
            && matches!(self.state, State::Waiting)
            && !self.needs_key_frame
    }

    /// Begins with a feed's open group, or waits for a key frame where there is none.
    pub fn join(&mut self, group: Option<&Group>, now: Instant) {
        static NO_FRAMES: VecDeque<Arc<FeedFrame>> = VecDeque::new();
        let frames = group.map_or(&NO_FRAMES, Group::frames);
        let rate = group.map_or(0, Group::bytes_per_second);
        match Burst::new(frames, rate, now) {
            Some(burst) => self.state = State::Bursting(burst),
            None => self.needs_key_frame = true,
        }
    }

    /// Forgets a feed that is over. One that replaces it begins at once.
    pub fn forget(&mut self, feed: FeedId) {
        if self.video_feed == Some(feed) {
            let next = self.next_video_feed.take();
            self.begin(next);
        }
    }

    /// Returns whether a key frame is needed since this was last asked.
    pub fn take_needs_key_frame(&mut self) -> bool {
        std::mem::take(&mut self.needs_key_frame)
    }

    /// Writes a frame, if the viewer is sent it; returns whether anything was written.
    pub fn frame(
        &mut self,
        peer: &mut Peer,
        frame: &Arc<FeedFrame>,
        is_after_gap: bool,
        outbox: &Outbox,
        now: Instant,
    ) -> bool {
        if peer.connected_at.is_none() {
            return false;
        }
        match &frame.content {
            Content::Video { .. } => self.video(peer, frame, is_after_gap, outbox, now),
            Content::Audio(packet) if self.audio_feed == Some(frame.feed) => {
                self.write_audio(peer, frame, packet, now);
                if self.video_feed.is_none() {
                    self.note_first(peer, outbox, now);
                }
                true
            }
            Content::Audio(_) => false,
        }
    }

    fn video(
        &mut self,
        peer: &mut Peer,
        frame: &Arc<FeedFrame>,
        is_after_gap: bool,
        outbox: &Outbox,
        now: Instant,
    ) -> bool {
        if self.next_video_feed == Some(frame.feed) && frame.is_key() {
            self.video_feed = self.next_video_feed.take();
            self.state = State::Live;
        }
        if self.video_feed != Some(frame.feed) {
            return false;
        }
        if !frame.is_key() && (is_after_gap || self.is_thin) {
            self.state = State::Waiting;
        }
        match &mut self.state {
            State::Waiting if !frame.is_key() => {
                self.counts.dropped_frames += u32::from(self.has_begun);
                false
            }
            State::Bursting(burst) => {
                burst.push(frame.clone());
                false
            }
            State::Waiting | State::Live => {
                self.state = State::Live;
                self.write_video(peer, frame, frame.pts_90k, 0..frame.packets().len(), now);
                self.note_first(peer, outbox, now);
                true
            }
        }
    }

    /// Writes what is due of a burst; returns whether anything was written.
    pub fn advance(&mut self, peer: &mut Peer, outbox: &Outbox, now: Instant) -> bool {
        let mut has_written = false;
        while let State::Bursting(burst) = &mut self.state {
            let Some(chunk) = burst.next(now) else {
                if burst.due().is_none() {
                    self.state = State::Live;
                }
                break;
            };
            self.write_video(peer, &chunk.frame, chunk.pts_90k, chunk.packets, now);
            self.note_first(peer, outbox, now);
            has_written = true;
        }
        has_written
    }

    /// Returns the time of the next deadline.
    pub fn due(&self) -> Instant {
        match &self.state {
            State::Bursting(burst) => burst
                .due()
                .map_or(self.next_report, |due| due.min(self.next_report)),
            _ => self.next_report,
        }
    }

    /// Notes that packets were not taken by the socket: the rest up to the next key frame is left out.
    pub fn note_full(&mut self) {
        self.counts.was_full = true;
        if self.has_begun {
            self.counts.dropped_frames += 1;
            self.state = State::Waiting;
        }
    }

    fn note_first(&mut self, peer: &Peer, outbox: &Outbox, now: Instant) {
        if !std::mem::replace(&mut self.has_begun, true) {
            let since = peer.connected_at.unwrap_or(now);
            outbox.push(&FromGateway::FirstFrame {
                session: peer.session,
                after_ms: milliseconds(now.duration_since(since)),
            });
        }
    }

    fn write_video(
        &mut self,
        peer: &mut Peer,
        frame: &FeedFrame,
        pts_90k: i64,
        packets: Range<usize>,
        now: Instant,
    ) {
        let Content::Video {
            codec,
            packets: all,
            ..
        } = &frame.content
        else {
            return;
        };
        let video = self.video.as_ref();
        let Some((mid, pt)) =
            video.and_then(|video| Some((video.mid, video.payload_type(*codec)?)))
        else {
            return;
        };
        if packets.start == 0 {
            self.video_time = self.line.video(pts_90k, now);
        }
        let time = self.video_time;
        self.is_joining = false;
        let sampled_at = shifted(frame.sampled_at, pts_90k - frame.pts_90k).min(now);
        let playout = ExtensionValues {
            play_delay_min: Some(MediaTime::from_hundredths(0)),
            play_delay_max: Some(MediaTime::from_hundredths(self.playout)),
            ..ExtensionValues::default()
        };
        let mut api = peer.rtc.direct_api();
        let Some(stream) = api.stream_tx_by_mid(mid, None) else {
            return;
        };
        for packet in &all[packets] {
            self.video_sequence += 1;
            self.counts.written += 1;
            let write = write(pt, self.video_sequence, time, sampled_at, &packet.payload)
                .marker(packet.marker)
                .nackable(true)
                .ext_vals(playout.clone());
            stream.write_rtp(write);
        }
    }

    fn write_audio(
        &mut self,
        peer: &mut Peer,
        frame: &FeedFrame,
        packet: &Arc<[u8]>,
        now: Instant,
    ) {
        let Some(audio) = self.audio else {
            return;
        };
        let mut api = peer.rtc.direct_api();
        let Some(stream) = api.stream_tx_by_mid(audio.mid, None) else {
            return;
        };
        let time = self.line.audio(frame.pts_90k, opus_samples(packet), now);
        self.audio_sequence += 1;
        self.counts.written += 1;
        self.counts.written_audio += 1;
        let sampled_at = frame.sampled_at.min(now);
        stream.write_rtp(write(
            audio.payload_type,
            self.audio_sequence,
            time,
            sampled_at,
            packet,
        ));
    }

    /// Follows the library's events.
    pub fn follow(&mut self, event: Event) {
        match event {
            Event::KeyframeRequest(_) => {
                self.counts.key_frame_requests += 1;
                self.needs_key_frame |= !matches!(self.state, State::Bursting(_));
            }
            Event::MediaEgressStats(statistics) => {
                let of_video = self.video.as_ref().map(|video| video.mid);
                let decides = of_video.is_none_or(|mid| mid == statistics.mid);
                self.counts.note(&statistics, decides);
            }
            _ => {}
        }
    }

    /// Judges the line and reports, once a second.
    pub fn report(&mut self, peer: &mut Peer, outbox: &Outbox, now: Instant) {
        if now < self.next_report {
            return;
        }
        self.next_report = now + REPORT_EVERY;
        if peer.connected_at.is_none() {
            return;
        }
        let (mut statistics, second) = self.counts.take();
        match self.pace.judge(second, now) {
            Verdict::Whole => self.is_thin = false,
            Verdict::Thin => self.is_thin = true,
            Verdict::TooSlow => peer.end(GoneReason::TooSlow),
        }
        self.set_playout(now);
        statistics.is_thin = self.is_thin;
        outbox.push(&FromGateway::Statistics {
            session: peer.session,
            statistics,
        });
    }

    fn set_playout(&mut self, now: Instant) {
        let is_immediate = !self.is_playout_adaptive && !self.is_thin && self.pace.is_clean(now);
        self.playout = match is_immediate {
            true => PLAYOUT_CLEAN,
            false => PLAYOUT_LOSSY,
        };
    }
}

impl Counts {
    fn note(&mut self, statistics: &MediaEgressStats, decides: bool) {
        let totals = Totals {
            packets: statistics.packets,
            bytes: statistics.bytes,
            nacks: statistics.nacks,
        };
        match self
            .totals
            .iter_mut()
            .find(|(mid, _)| *mid == statistics.mid)
        {
            Some((_, known)) => *known = totals,
            None => self.totals.push((statistics.mid, totals)),
        }
        if decides {
            self.loss = statistics
                .loss
                .map(f64::from)
                .filter(|loss| loss.is_finite());
            self.rtt_ms = statistics.rtt.map(|rtt| rtt.as_secs_f64() * 1_000.0);
        }
    }

    /// Returns the counts of the second that is over, and begins the next.
    fn take(&mut self) -> (SessionStatistics, Second) {
        let mut totals = Totals::default();
        for (_, of_track) in &self.totals {
            totals.packets += of_track.packets;
            totals.bytes += of_track.bytes;
            totals.nacks += of_track.nacks;
        }
        let since = |total: u64, reported: u64| {
            u32::try_from(total.saturating_sub(reported)).unwrap_or(u32::MAX)
        };
        let packets = since(totals.packets, self.reported.packets);
        self.last_rtt_ms = self.rtt_ms.unwrap_or(self.last_rtt_ms);
        self.last_loss = self.loss.unwrap_or(self.last_loss);
        let statistics = SessionStatistics {
            rtt_ms: self.last_rtt_ms,
            loss: self.last_loss,
            packets,
            bytes: since(totals.bytes, self.reported.bytes),
            retransmitted: packets.saturating_sub(self.written),
            nacks: since(totals.nacks, self.reported.nacks),
            key_frame_requests: self.key_frame_requests,
            dropped_frames: self.dropped_frames,
            is_thin: false,
        };
        let second = Second {
            packets: packets.saturating_sub(self.written_audio),
            retransmitted: statistics.retransmitted,
            loss: self.loss,
            rtt_ms: self.rtt_ms,
            was_full: self.was_full,
        };
        *self = Self {
            last_rtt_ms: self.last_rtt_ms,
            last_loss: self.last_loss,
            totals: std::mem::take(&mut self.totals),
            reported: totals,
            ..Self::default()
        };
        (statistics, second)
    }
}

fn write(pt: Pt, sequence: u64, time: u32, sampled_at: Instant, payload: &Arc<[u8]>) -> RtpWrite {
    RtpWrite::new(pt, sequence.into(), time, sampled_at, payload.clone())
}

/// Returns a moment that is later by a span of presentation time.
fn shifted(at: Instant, by_90k: i64) -> Instant {
    let by = Duration::from_micros(by_90k.unsigned_abs().saturating_mul(100) / 9);
    let shifted = match by_90k >= 0 {
        true => at.checked_add(by),
        false => at.checked_sub(by),
    };
    shifted.unwrap_or(at)
}
