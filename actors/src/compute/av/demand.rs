//! Memory that work on video and audio is expected to take, by pixels of the source; its queue (short, long) and lane.

use sluice_media::av::{AvTask, Transcode};

use crate::compute::assignment::Lane;

const MIB: u64 = 1 << 20;
/// Memory of GStreamer with a demuxer, a decoder and their queues.
const BASE_BYTES: u64 = 200 * MIB;
/// Memory for each pixel of a source's frame: reference frames of decoder and encoder, x264's lookahead, queues. Measured:
/// 420 MiB at 1080p.
const TRANSCODE_BYTES_PER_PIXEL: u64 = 112;
/// Memory for each pixel for a ladder of four renditions, of which all but the largest are small: 650 MiB at 1080p.
const LADDER_BYTES_PER_PIXEL: u64 = 228;
/// Pixels of a source of unknown size: 2560 × 1440.
const UNKNOWN_PIXELS: u64 = 2_560 * 1_440;

/// Two queues that do not wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    Short,
    Long,
}

/// Resources that have to be free before a task begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    pub(super) queue: Queue,
    pub(super) lane: Lane,
    /// Estimated memory.
    pub(super) memory_bytes: u64,
}

impl Demand {
    /// `pixels`: of one frame of the source, where that is known.
    pub(super) fn of(task: &AvTask, lane: Lane, pixels: Option<u64>) -> Self {
        let queue = match task.is_short() {
            true => Queue::Short,
            false => Queue::Long,
        };
        Self {
            queue,
            lane,
            memory_bytes: memory(task, pixels.unwrap_or(UNKNOWN_PIXELS)),
        }
    }
}

fn memory(task: &AvTask, pixels: u64) -> u64 {
    let per_pixel = match task {
        AvTask::Probe
        | AvTask::Live
        | AvTask::Still(_)
        | AvTask::Waveform(_)
        | AvTask::Concat(_)
        | AvTask::Transcode(Transcode { video: None, .. }) => 0,
        AvTask::Sheet(_) | AvTask::Animation(_) | AvTask::Transcode(_) => TRANSCODE_BYTES_PER_PIXEL,
        AvTask::Ladder(ladder) if ladder.video.is_empty() => 0,
        AvTask::Ladder(_) => LADDER_BYTES_PER_PIXEL,
    };
    BASE_BYTES.saturating_add(pixels.saturating_mul(per_pixel))
}

#[cfg(test)]
mod tests {
    use sluice_media::av::{Ladder, LadderVideo};

    use super::*;

    const FULL_HD: u64 = 1_920 * 1_080;

    fn ladder(renditions: usize) -> AvTask {
        let rendition = LadderVideo {
            width: 640,
            height: 360,
            bitrate: 800_000,
            max_bitrate: 1_000_000,
            copy: false,
        };
        AvTask::Ladder(Ladder {
            video: vec![rendition; renditions],
            audio: None,
            segment_duration_s: 6,
            resume: None,
            sheet: None,
        })
    }

    #[test]
    fn memory_is_expected_by_work_and_source() {
        let mebibytes =
            |task: &AvTask, pixels| Demand::of(task, Lane::Batch, Some(pixels)).memory_bytes / MIB;
        for (task, pixels, expected) in [
            (AvTask::Probe, FULL_HD, 200..=200),
            (ladder(0), FULL_HD, 200..=200),
            (ladder(3), FULL_HD, 640..=660),
            (ladder(3), 4 * FULL_HD, 1_900..=2_100),
            (ladder(3), u64::MAX, u64::MAX / MIB..=u64::MAX / MIB),
        ] {
            let found = mebibytes(&task, pixels);
            assert!(expected.contains(&found), "{found} MiB: {task:?} {pixels}");
        }
        let unknown = Demand::of(&ladder(1), Lane::Batch, None);
        assert!(unknown.memory_bytes / MIB > mebibytes(&ladder(1), FULL_HD));
    }
}
