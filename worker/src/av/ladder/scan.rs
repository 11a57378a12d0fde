//! Decides whether a source's coded frames can be copied into segments as they are: distance of key frames, open
//! groups, jumps of timestamps. Pure: it takes frames one by one.

use sluice_media::hls::vod::SegmentBoundaries;

/// A segment is shorter than the asset's segment duration and this: rounded to seconds it must not exceed it.
const ROUNDING_90K: i64 = 44_999;
/// A first frame that comes later is no delay of an encoder, but a hole.
const LATE_90K: i64 = 45_000;
/// A frame that lasts longer than this is no frame of a video.
const LONGEST_FRAME_90K: i64 = 10 * 90_000;
/// A segment with more bytes is not kept in memory.
const MOST_BYTES: u64 = 64 << 20;

/// Reason why a source is encoded after all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyObstacle {
    /// The source does not begin with a key frame, or begins late.
    Beginning,
    /// Key frames are too far apart.
    FarApart,
    /// Frames refer to ones before their key frame.
    Open,
    /// A segment has too many bytes.
    TooLarge,
    /// Its timestamps jump.
    Jumps,
}

/// Facts of a source that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopyableSource {
    pub(super) cuts: SegmentBoundaries,
    /// End of its last frame.
    pub(super) end_90k: i64,
    /// The most by which a frame is shown before its turn in the order of decoding.
    pub(super) delay_90k: u32,
}

/// Collects where key frames are.
#[derive(Debug)]
pub(super) struct Scan {
    most_90k: i64,
    starts: Vec<i64>,
    /// The latest key frame and the bytes before it in the open segment.
    key: Option<(i64, u64)>,
    bytes: u64,
    latest_90k: i64,
    end_90k: i64,
    /// Presentation times of the open group, in decode order.
    group: Vec<i64>,
    delay_90k: i64,
}

impl Scan {
    pub(super) fn new(segment_duration_s: u32) -> Self {
        Self {
            most_90k: i64::from(segment_duration_s) * 90_000 + ROUNDING_90K,
            starts: Vec::new(),
            key: None,
            bytes: 0,
            latest_90k: 0,
            end_90k: 0,
            group: Vec::new(),
            delay_90k: 0,
        }
    }

    /// Takes the next frame in decode order; it ends at `end_90k`.
    pub(super) fn observe(
        &mut self,
        pts_90k: i64,
        end_90k: i64,
        key: bool,
        bytes: u64,
    ) -> Result<(), CopyObstacle> {
        let Some((key_90k, _)) = self.key else {
            return self.begin(pts_90k, end_90k, key, bytes);
        };
        if pts_90k < key_90k || (key && pts_90k <= self.latest_90k) {
            return Err(CopyObstacle::Open);
        }
        if pts_90k - self.latest_90k > LONGEST_FRAME_90K {
            return Err(CopyObstacle::Jumps);
        }
        if key {
            self.end_group();
            self.cut_before(pts_90k)?;
            self.key = Some((pts_90k, self.bytes));
        }
        self.bytes += bytes;
        if self.bytes > MOST_BYTES {
            return Err(CopyObstacle::TooLarge);
        }
        self.group.push(pts_90k);
        self.latest_90k = self.latest_90k.max(pts_90k);
        self.end_90k = self.end_90k.max(end_90k);
        Ok(())
    }

    /// The first frame, which is shown from 0 on.
    fn begin(
        &mut self,
        pts_90k: i64,
        end_90k: i64,
        key: bool,
        bytes: u64,
    ) -> Result<(), CopyObstacle> {
        if !key || !(-LATE_90K..=LATE_90K).contains(&pts_90k) {
            return Err(CopyObstacle::Beginning);
        }
        self.starts.push(0);
        self.group.push(pts_90k);
        self.key = Some((pts_90k, 0));
        self.bytes = bytes;
        self.latest_90k = pts_90k;
        self.end_90k = end_90k;
        Ok(())
    }

    /// Ends the open segment at the latest key frame if it would reach too far up to `at_90k`.
    fn cut_before(&mut self, at_90k: i64) -> Result<(), CopyObstacle> {
        let start_90k = self.starts.last().copied().unwrap_or(0);
        if at_90k - start_90k <= self.most_90k {
            return Ok(());
        }
        match self.key {
            Some((key_90k, before)) if key_90k > start_90k => {
                self.starts.push(key_90k);
                self.bytes -= before;
                match at_90k - key_90k <= self.most_90k {
                    true => Ok(()),
                    false => Err(CopyObstacle::FarApart),
                }
            }
            _ => Err(CopyObstacle::FarApart),
        }
    }

    /// Measures how far frames of the group are shown before their turn.
    fn end_group(&mut self) {
        let mut shown = self.group.clone();
        shown.sort_unstable();
        let early = self.group.iter().zip(&shown).map(|(at, turn)| turn - at);
        self.delay_90k = self.delay_90k.max(early.max().unwrap_or(0));
        self.group.clear();
    }

    pub(super) fn finish(mut self) -> Result<CopyableSource, CopyObstacle> {
        if self.starts.is_empty() {
            return Err(CopyObstacle::Beginning);
        }
        self.end_group();
        self.cut_before(self.end_90k)?;
        Ok(CopyableSource {
            cuts: SegmentBoundaries::At(self.starts.into()),
            end_90k: self.end_90k,
            delay_90k: u32::try_from(self.delay_90k).map_err(|_| CopyObstacle::Jumps)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of a tenth of a second; those of these indices are keys.
    fn scanned(video_frames: i64, keys: impl Fn(i64) -> bool) -> Result<Vec<i64>, CopyObstacle> {
        let mut scan = Scan::new(2);
        for index in 0..video_frames {
            let at = index * 9_000;
            scan.observe(at, at + 9_000, keys(index), 1_000)?;
        }
        let found = scan.finish()?;
        assert_eq!((found.end_90k, found.delay_90k), (video_frames * 9_000, 0));
        let starts = (0..).map(|number| found.cuts.start_90k(number));
        Ok(starts.take_while(|start| *start < i64::MAX).collect())
    }

    #[test]
    fn segments_reach_as_far_as_they_may() {
        let tenths =
            |starts: &[i64]| Ok(starts.iter().map(|start| start * 9_000).collect::<Vec<_>>());
        assert_eq!(scanned(0, |_| true), Err(CopyObstacle::Beginning));
        assert_eq!(scanned(5, |index| index == 1), Err(CopyObstacle::Beginning));
        assert_eq!(scanned(1, |_| true), tenths(&[0]));
        assert_eq!(scanned(24, |index| index == 0), tenths(&[0]));
        assert_eq!(scanned(26, |index| index == 0), Err(CopyObstacle::FarApart));
        assert_eq!(scanned(60, |index| index % 20 == 0), tenths(&[0, 20, 40]));
        assert_eq!(scanned(61, |index| index % 5 == 0), tenths(&[0, 20, 40]));
        assert_eq!(
            scanned(66, |index| index % 5 == 0),
            tenths(&[0, 20, 40, 60])
        );
        assert_eq!(
            scanned(60, |index| index % 30 == 0),
            Err(CopyObstacle::FarApart)
        );
        assert_eq!(
            scanned(60, |index| index % 13 == 0),
            tenths(&[0, 13, 26, 39])
        );
    }

    #[test]
    fn reordered_frames_have_a_delay() {
        let mut scan = Scan::new(2);
        for (index, at) in [0, 4, 2, 1, 3, 5, 9, 7, 6, 8].into_iter().enumerate() {
            scan.observe(at * 3_000, at * 3_000 + 3_000, index % 5 == 0, 1)
                .unwrap();
        }
        assert_eq!(scan.finish().unwrap().delay_90k, 6_000);
    }

    #[test]
    fn odd_sources_are_encoded() {
        let observe = |video_frames: &[(i64, bool, u64)]| {
            let mut scan = Scan::new(2);
            video_frames
                .iter()
                .try_for_each(|&(pts, key, bytes)| scan.observe(pts, pts + 3_000, key, bytes))
        };
        for (video_frames, expected) in [
            (vec![(50_000, true, 1)], Err(CopyObstacle::Beginning)),
            (vec![(-50_000, true, 1)], Err(CopyObstacle::Beginning)),
            (
                vec![(0, true, 1), (9_000, true, 1), (6_000, false, 1)],
                Err(CopyObstacle::Open),
            ),
            (
                vec![(0, true, 1), (9_000, false, 1), (6_000, true, 1)],
                Err(CopyObstacle::Open),
            ),
            (
                vec![(0, true, 1), (1_000_000, false, 1)],
                Err(CopyObstacle::Jumps),
            ),
            (
                vec![(0, true, MOST_BYTES), (3_000, false, 1)],
                Err(CopyObstacle::TooLarge),
            ),
            (
                vec![(3_000, true, 1), (12_000, false, 1), (6_000, false, 1)],
                Ok(()),
            ),
        ] {
            assert_eq!(observe(&video_frames), expected, "{video_frames:?}");
        }
    }
}
