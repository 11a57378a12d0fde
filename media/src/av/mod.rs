//! Video and audio as data: facts of a clip, tasks of a worker, reports, and which codecs a request needs.
//!
//! Nothing here decodes. The codecs are in `worker/src/av`; which of them a request needs is decided here.

mod facts;
pub mod ladder;
pub mod live;
pub mod plan;
mod report;
mod task;

pub use facts::{AudioTrack, Colour, MediaFacts, SubtitleTrack, VideoTrack};
pub use report::Report;
pub use task::{
    Animation, AudioWork, AvTask, Concat, Ladder, LadderAudio, LadderVideo, Range, Resume, Sheet,
    Still, Transcode, VideoWork, Waveform,
};
