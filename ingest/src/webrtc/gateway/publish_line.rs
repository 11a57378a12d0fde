//! Presentation times of a publisher's two tracks on one line: by arrival first, by its sender reports as soon as both tracks have
//! one (`SLEW_90K`, `MAX_CORRECTION_90K`, `MAX_DRIFT_90K`).
//!
//! Pure. The video is the line; audio is moved to it, little by little, so that no packet is cut or repeated.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Step by which audio is moved per packet: half a millisecond.
const SLEW_90K: i64 = 45;
/// Largest correction that reports are believed to ask for: 2 s.
const MAX_CORRECTION_90K: i64 = 2 * 90_000;
/// Largest distance between a track's times and their arrival; beyond it, its clock was changed.
const MAX_DRIFT_90K: i64 = 10 * 90_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Track {
    Video,
    Audio,
}

/// A sender report: one moment on the sender's clock and on the track's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    pub ntp: SystemTime,
    pub rtp_90k: i64,
}

#[derive(Debug, Default)]
pub(super) struct PublishLine {
    /// Arrival of the first frame, which has the presentation time zero.
    origin: Option<Instant>,
    video: Option<TrackLine>,
    audio: Option<TrackLine>,
}

#[derive(Clone, Copy, Debug)]
struct TrackLine {
    offset_90k: i64,
    /// Time of the sender's clock less the track's time.
    sender_90k: Option<i64>,
}

impl PublishLine {
    /// Returns the presentation time of a frame.
    pub fn pts_90k(
        &mut self,
        track: Track,
        rtp_90k: i64,
        arrived_at: Instant,
        report: Option<Report>,
    ) -> i64 {
        let origin = *self.origin.get_or_insert(arrived_at);
        let arrival_90k = in_90k(arrived_at.saturating_duration_since(origin).as_micros());
        let of_track = match track {
            Track::Video => &mut self.video,
            Track::Audio => &mut self.audio,
        };
        let line = of_track.get_or_insert(TrackLine {
            offset_90k: arrival_90k - rtp_90k,
            sender_90k: None,
        });
        if (rtp_90k + line.offset_90k - arrival_90k).abs() > MAX_DRIFT_90K {
            line.offset_90k = arrival_90k - rtp_90k;
            line.sender_90k = None;
        }
        if let Some(report) = report {
            let ntp = report.ntp.duration_since(UNIX_EPOCH).unwrap_or_default();
            line.sender_90k = Some(in_90k(ntp.as_micros()) - report.rtp_90k);
        }
        let offset_90k = line.offset_90k;
        if track == Track::Audio {
            self.move_audio();
        }
        rtp_90k + offset_90k
    }

    /// Moves later audio towards the line of the video.
    fn move_audio(&mut self) {
        let (Some(video), Some(audio)) = (self.video, &mut self.audio) else {
            return;
        };
        let (Some(of_video), Some(of_audio)) = (video.sender_90k, audio.sender_90k) else {
            return;
        };
        let correction = video.offset_90k + of_audio - of_video - audio.offset_90k;
        if correction.abs() <= MAX_CORRECTION_90K {
            audio.offset_90k += correction.clamp(-SLEW_90K, SLEW_90K);
        }
    }
}

fn in_90k(micros: u128) -> i64 {
    i64::try_from(micros * 9 / 100).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MS_90K: i64 = 90;

    #[test]
    fn tracks_begin_by_arrival() {
        let (mut line, start) = (PublishLine::default(), Instant::now());
        let later = start + Duration::from_millis(30);
        assert_eq!(line.pts_90k(Track::Video, 77_000, start, None), 0);
        assert_eq!(line.pts_90k(Track::Audio, 5, later, None), 30 * MS_90K);
        assert_eq!(line.pts_90k(Track::Video, 80_000, later, None), 3_000);
    }

    #[test]
    fn audio_is_moved_to_the_video_by_reports() {
        let (mut line, start) = (PublishLine::default(), Instant::now());
        let sampled = UNIX_EPOCH + Duration::from_secs(1_790_000_000);
        let report = |rtp_90k| {
            Some(Report {
                ntp: sampled,
                rtp_90k,
            })
        };
        line.pts_90k(Track::Video, 1_000_000, start, report(1_000_000));
        // Audio of the same moment arrives 40 ms later.
        let mut skew = Vec::new();
        for packet in 0..120 {
            let at = start + Duration::from_millis(40 + 20 * packet);
            let rtp = 20 * MS_90K * packet as i64;
            let pts = line.pts_90k(Track::Audio, 500 + rtp, at, report(500));
            skew.push(pts - rtp);
        }
        assert_eq!(skew[0], 40 * MS_90K);
        assert!(
            skew.windows(2)
                .all(|pair| (0..=SLEW_90K).contains(&(pair[0] - pair[1])))
        );
        assert_eq!(skew.last(), Some(&0));
    }

    #[test]
    fn reports_that_cannot_be_are_not_believed() {
        let (mut line, start) = (PublishLine::default(), Instant::now());
        let wrong = Report {
            ntp: UNIX_EPOCH,
            rtp_90k: 0,
        };
        let right = Report {
            ntp: SystemTime::now(),
            rtp_90k: 0,
        };
        line.pts_90k(Track::Video, 0, start, Some(right));
        assert_eq!(line.pts_90k(Track::Audio, 0, start, Some(wrong)), 0);
        assert_eq!(line.pts_90k(Track::Audio, 1_800, start, Some(wrong)), 1_800);
    }

    #[test]
    fn a_clock_that_was_changed_continues_by_arrival() {
        for jump in [i64::from(u32::MAX), -20_000_000] {
            let (mut line, start) = (PublishLine::default(), Instant::now());
            line.pts_90k(Track::Video, 30_000_000, start, None);
            let later = start + Duration::from_millis(100);
            let pts = line.pts_90k(Track::Video, 30_000_000 + jump, later, None);
            assert_eq!(pts, 100 * MS_90K);
        }
    }
}
