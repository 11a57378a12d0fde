//! Conversions of a clip into one file, each of its tracks copied or re-encoded: video, audio, watermark, tags,
//! trimming.
//!
//! ```text
//! Graph ┬ Video ─► frame (shape, tone, watermark) ─► encoder ─┐
//!       │         or, copied, ────────────► parser ───────────┤
//!       └ Audio ─► audio (rate, channels, envelope) ► enc ────┴► multiplexer ─► file ─► fast start ─► check
//! ```
//!
//! What is copied and what is encoded, [`plan`] decides; here it is carried out. A result is returned only when it is
//! as long as it has to be: a source that breaks off is a failure, not a short file.

mod audio;
mod check;
mod concat;
mod encoder;
mod envelope;
mod faststart;
mod headroom;
mod kernel;
mod loudness;
mod measure;
mod tags;
mod tail;
mod tone;
mod track;
mod video;
mod watermark;
mod whole;
mod writer;

use std::os::fd::OwnedFd;

use sluice_media::{
    av::{
        MediaFacts, Range, Report, Transcode,
        plan::{self, AudioEncoding, Plan, Strategy},
    },
    format::Format,
    task::{Done, Failure, Limits},
};

pub use concat::concat;

use self::{envelope::Envelope, watermark::PlacedWatermark, writer::Writer};
use super::{
    drive,
    graph::{BranchKind, Graph, Want},
    probe,
    source::Input,
};

/// The share of the work that measuring audio takes of one that then encodes it.
const MEASURING_SHARE: f32 = 0.3;

/// Converts input 0 into the output; input 1 is a watermark's image.
pub fn transcode(
    task: &Transcode,
    inputs: &[Input],
    output: &OwnedFd,
    limits: &Limits,
    on_report: &mut dyn FnMut(Report),
) -> Result<Done, Failure> {
    let [input, ..] = inputs else {
        return Err(super::internal("a conversion without its input"));
    };
    let facts = probe::probe(input, limits)?;
    let asked = exact_where_audio_changes(task);
    let plan = plan::plan(&facts, &asked)?;
    let work = Work {
        task: &asked,
        input,
        facts: &facts,
        plan: &plan,
    };
    let watermark = work.watermark(inputs.get(1), limits)?;
    let (envelope, done_share) = work.envelope(on_report)?;
    let graph = work.graph()?;
    let mut writer = Writer::new(&graph, plan.format, output)?;
    work.link_video_frames(&graph, &mut writer, watermark)?;
    work.link_audio(&graph, &mut writer, envelope)?;
    let ends = writer.finish(work.track_count())?;
    drive::run(
        &graph,
        work.span_s(),
        &mut between(done_share, 1.0, on_report),
    )?;
    drop(graph);
    let expected = check::Expected::of(&work, &ends)?;
    check::result(&expected, output, limits, facts.clone())
}

/// A range whose audio is measured begins where the measuring began.
fn exact_where_audio_changes(task: &Transcode) -> Transcode {
    let mut task = task.clone();
    if let Some(range) = &mut task.range {
        range.accurate |= task.audio.changes_loudness();
    }
    task
}

/// Reports of a part of the work on the scale of the whole, of which it is the part between these shares.
fn between<'a>(
    from: f32,
    to: f32,
    on_report: &'a mut dyn FnMut(Report),
) -> impl FnMut(Report) + use<'a> {
    move |report| {
        on_report(match report {
            Report::Working { share } => Report::Working {
                share: from + share * (to - from),
            },
            other => other,
        });
    }
}

/// A planned conversion.
struct Work<'a> {
    task: &'a Transcode,
    input: &'a Input,
    facts: &'a MediaFacts,
    plan: &'a Plan,
}

impl Work<'_> {
    fn watermark(
        &self,
        image: Option<&Input>,
        limits: &Limits,
    ) -> Result<Option<PlacedWatermark>, Failure> {
        let wanted = self
            .task
            .video
            .as_ref()
            .and_then(|video| video.watermark.as_ref());
        let video_frame = self.plan.video.as_ref().and_then(Strategy::encoding);
        match (wanted, video_frame) {
            (Some(wanted), Some(video_frame)) => {
                PlacedWatermark::make(wanted, image, video_frame.shape.size(), limits)
            }
            _ => Ok(None),
        }
    }

    /// Returns the factors of the samples, and the share of the work that finding them took.
    fn envelope(
        &self,
        on_report: &mut dyn FnMut(Report),
    ) -> Result<(Option<Envelope>, f32), Failure> {
        let Some(audio) = self.audio() else {
            return Ok((None, 0.0));
        };
        if !Envelope::needs_measuring(&self.task.audio) {
            return Ok((Envelope::of(&self.task.audio, None), 0.0));
        }
        let mut on_report = between(0.0, MEASURING_SHARE, on_report);
        let measured = measure::measure(self, audio, &mut on_report)?;
        let envelope = Envelope::of(&self.task.audio, Some(&measured));
        Ok((envelope, MEASURING_SHARE))
    }

    fn audio(&self) -> Option<&AudioEncoding> {
        self.plan.audio.as_ref().and_then(Strategy::encoding)
    }

    /// Tracks are taken apart as far as the one that needs it least: what is copied must not be decoded.
    fn graph(&self) -> Result<Graph, Failure> {
        let want = Want {
            video: self.plan.video.is_some(),
            audio: self.plan.audio.is_some(),
        };
        if self.copies() {
            Graph::parse(self.input, self.facts, want, self.range())
        } else {
            Graph::decode(self.input, self.facts, want, self.range())
        }
    }

    fn copies(&self) -> bool {
        matches!(self.plan.video, Some(Strategy::Copy))
            || matches!(self.plan.audio, Some(Strategy::Copy))
    }

    fn range(&self) -> Option<Range> {
        self.task.range.map(|range| Range {
            accurate: !self.plan.begins_at_key(),
            ..range
        })
    }

    fn link_video_frames(
        &self,
        graph: &Graph,
        writer: &mut Writer<'_>,
        watermark: Option<PlacedWatermark>,
    ) -> Result<(), Failure> {
        let (Some(way), Some(work), Some(facts)) =
            (&self.plan.video, &self.task.video, self.facts.video_track())
        else {
            return Ok(());
        };
        let kind = BranchKind::Video;
        tags::filter(graph, kind, self.task.keep_tags);
        let (mut elements, coded) = match way {
            Strategy::Copy => (Vec::new(), track::parsers(&facts.codec)?),
            Strategy::Encode(video_frame) => (
                video::chain(video_frame, &work.adjust, watermark)?,
                encoder::video(video_frame.codec)?,
            ),
        };
        if matches!(way, Strategy::Copy) {
            headroom::make(graph, kind);
            let has_no_decode_times = matches!(self.facts.format, Some(Format::Mkv | Format::Webm));
            if let Some(last) = coded
                .last()
                .filter(|_| has_no_decode_times && coded.len() > 1)
            {
                headroom::forget_decode_times(last);
            }
        }
        writer.follow(kind, coded.first());
        elements.extend(coded);
        let decodes = way.encoding().is_some() && self.copies();
        track::link(graph, kind, &elements, decodes)?;
        writer.take(kind, elements.last())
    }

    fn link_audio(
        &self,
        graph: &Graph,
        writer: &mut Writer<'_>,
        envelope: Option<Envelope>,
    ) -> Result<(), Failure> {
        let (Some(way), Some(facts)) = (&self.plan.audio, self.facts.audio_track()) else {
            return Ok(());
        };
        let kind = BranchKind::Audio;
        tags::filter(graph, kind, self.task.keep_tags);
        let (mut elements, coded) = match way {
            Strategy::Copy => (Vec::new(), track::parsers(&facts.codec)?),
            Strategy::Encode(audio) => (audio::chain(audio, envelope)?, encoder::audio(audio)?),
        };
        writer.follow(kind, coded.first());
        elements.extend(coded);
        let decodes = way.encoding().is_some() && self.copies();
        track::link(graph, kind, &elements, decodes)?;
        writer.take(kind, elements.last())
    }

    /// Returns the degrees by which copied frames are to be turned.
    fn copied_turn(&self) -> u16 {
        match (&self.plan.video, self.facts.video_track()) {
            (Some(Strategy::Copy), Some(track)) => track.rotation,
            _ => 0,
        }
    }

    fn track_count(&self) -> usize {
        usize::from(self.plan.video.is_some()) + usize::from(self.plan.audio.is_some())
    }

    /// Returns the expected length of the result, in seconds; 0: unknown.
    fn span_s(&self) -> f64 {
        let whole_s = self.facts.duration_s();
        let span_s = match &self.task.range {
            Some(range) => range.span_s(whole_s),
            None => whole_s,
        };
        span_s.unwrap_or(0.0)
    }
}
