//! RTP times of a session's two tracks, of one line.
//!
//! Pure. Presentation times of a stream are on one clock, whatever feed a track is taken from; a jump of that clock (another
//! publisher session that was not joined to the last) is taken out, so that the receiver sees time pass as it does.

use std::time::Instant;

/// Largest step of presentation time, forwards or backwards, that is passed on to the receiver.
const MAX_STEP_90K: i64 = 10 * 90_000;
/// Distance of video frames whose presentation times do not increase: 1 ms. The frames of a re-encoded feed come later than those of
/// the feed that it replaces.
const SHORTEST_STEP_90K: i64 = 90;
/// Largest difference between an Opus packet's time and the end of the one before it that is taken for rounding: 5 ms.
const MAX_ROUNDING_48K: i64 = 240;

/// Line of RTP times: one offset for both tracks.
#[derive(Debug, Default)]
pub(super) struct Line {
    anchor: Option<Anchor>,
    /// RTP time of the last video frame.
    video_90k: Option<i64>,
    /// RTP time at which the last audio packet ends.
    audio_end_48k: Option<i64>,
}

/// Last presentation time of either track, what it became, and when.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    pts_90k: i64,
    offset_90k: i64,
    at: Instant,
}

impl Line {
    /// Returns the RTP time of a video frame: later than that of the frame before it, whatever feed that came from.
    pub fn video(&mut self, pts_90k: i64, now: Instant) -> u32 {
        let exact = pts_90k + self.offset(pts_90k, now);
        let time = match self.video_90k {
            Some(last) if exact <= last => last + SHORTEST_STEP_90K,
            _ => exact,
        };
        self.video_90k = Some(time);
        time as u32
    }

    /// Returns the RTP time of an Opus packet: the end of the one before it where the two differ by rounding only.
    pub fn audio(&mut self, pts_90k: i64, samples_48k: u32, now: Instant) -> u32 {
        let exact = (pts_90k + self.offset(pts_90k, now)) * 8 / 15;
        let time = match self.audio_end_48k {
            Some(end) if (end - exact).abs() <= MAX_ROUNDING_48K => end,
            _ => exact,
        };
        self.audio_end_48k = Some(time + i64::from(samples_48k));
        time as u32
    }

    /// Returns what is added to presentation times. It changes when they jump.
    fn offset(&mut self, pts_90k: i64, now: Instant) -> i64 {
        let anchor = self.anchor.get_or_insert(Anchor {
            pts_90k,
            // Far from zero, so that frames before the first are no wrap of the 32 bits.
            offset_90k: (1 << 28) - pts_90k,
            at: now,
        });
        let step = pts_90k - anchor.pts_90k;
        if step.abs() > MAX_STEP_90K {
            let passed = now.duration_since(anchor.at).as_micros() as i64 * 9 / 100;
            anchor.offset_90k += passed - step;
        }
        if step > 0 || step.abs() > MAX_STEP_90K {
            anchor.pts_90k = pts_90k;
            anchor.at = now;
        }
        anchor.offset_90k
    }
}

/// Returns the samples of an Opus packet at 48 kHz (RFC 6716 §3.1); those of 20 ms where the packet is malformed.
pub(super) fn opus_samples(packet: &[u8]) -> u32 {
    const TWENTY_MS: u32 = 960;
    let Some(toc) = packet.first() else {
        return TWENTY_MS;
    };
    let of_frame = match toc >> 3 {
        configuration @ 0..12 => [480, 960, 1_920, 2_880][usize::from(configuration & 3)],
        configuration @ 12..16 => [480, 960][usize::from(configuration & 1)],
        configuration => [120, 240, 480, 960][usize::from(configuration & 3)],
    };
    let frames = match (toc & 3, packet.get(1)) {
        (0, _) => 1,
        (1 | 2, _) => 2,
        (_, Some(count)) => u32::from(count & 63),
        (_, None) => 0,
    };
    match of_frame * frames {
        samples @ 1..=5_760 => samples,
        _ => TWENTY_MS,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn both_tracks_are_on_one_line() {
        let (mut line, now) = (Line::default(), Instant::now());
        let video = line.video(900_000, now);
        let audio = line.audio(900_000 + 1_800, 960, now);
        assert_eq!(i64::from(audio), (i64::from(video) + 1_800) * 8 / 15);
        assert_eq!(line.video(903_000, now), video + 3_000);
    }

    #[test]
    fn video_of_a_later_feed_follows_in_short_steps_until_it_has_caught_up() {
        let (mut line, now) = (Line::default(), Instant::now());
        let first = line.video(9_000, now);
        for (pts, time) in [(6_000, 90), (9_000, 180), (9_100, 270), (12_000, 3_000)] {
            assert_eq!(line.video(pts, now), first + time);
        }
    }

    #[test]
    fn rounding_of_opus_times_is_taken_out_and_a_gap_is_not() {
        let (mut line, now) = (Line::default(), Instant::now());
        let first = line.audio(0, 960, now);
        let mut end = first + 960;
        for (index, rounding) in [1, -1, 90, -90, 45].into_iter().enumerate() {
            let pts = 1_800 * (index as i64 + 1) + rounding;
            assert_eq!(line.audio(pts, 960, now), end, "packet {index}");
            end += 960;
        }
        let behind_gap = line.audio(1_800 * 106, 960, now);
        assert_eq!(behind_gap, first + 960 * 106);
    }

    #[test]
    fn a_jump_of_the_clock_becomes_the_time_that_passed() {
        for jump in [i64::from(u32::MAX), -50_000_000] {
            let (mut line, start) = (Line::default(), Instant::now());
            let first = line.video(100_000_000, start);
            let later = start + Duration::from_millis(40);
            assert_eq!(line.video(100_000_000 + jump, later), first + 3_600);
            let audio = line.audio(100_000_000 + jump, 960, later);
            assert_eq!(i64::from(audio), (i64::from(first) + 3_600) * 8 / 15);
        }
    }

    #[test]
    fn opus_packets_tell_their_length() {
        for (packet, samples) in [
            (&[0xfc][..], 960),
            (&[0x78], 960),
            (&[0x18], 2_880),
            (&[0xe0], 120),
            (&[0xf9], 1_920),
            (&[0xff, 3], 2_880),
            (&[0xff, 63], 960),
            (&[0xff, 0], 960),
            (&[0xff], 960),
            (&[], 960),
        ] {
            assert_eq!(opus_samples(packet), samples, "{packet:x?}");
        }
    }
}
