//! Segments of a video stream: one worker task writes all renditions, reports are recorded in groups, deaths and failed
//! continuations are tried again.
//!
//! Reports wait in a bounded queue, and the worker with them. Everything in the queue is one group: its files are
//! flushed, and uploaded where there is an object store; its rows are written in one transaction, and then players see it.

use std::{collections::BTreeSet, fs::File, sync::Arc};

use sluice_media::{
    av::{AvTask, Ladder, LadderAudio, LadderVideo, Report},
    task::{Done, Failure, FailureCode},
};
use sluice_store::{
    now_ms, video,
    video::{Group, Init, NewObject, RenditionKind, Segment},
};
use tokio::sync::mpsc::{self, Receiver};
use tracing::warn;

use super::{
    asset::{Asset, ensure_room, file_of},
    boundary,
    files::{flushed, lengths, open_at, open_empty},
    images::STORYBOARD,
    playback::Playback,
};
use crate::{
    compute::Follow,
    durable::{
        step_error::{CodedFailure, RowError, code_of, with_patience},
        workers,
    },
};

/// Most reports that wait to be recorded; then the worker waits.
const REPORTS: usize = 256;
/// Deaths of a stream's worker without an explanation after which it fails.
const DEATHS: u32 = 2;

impl Asset<'_> {
    /// Makes the missing segments. When the process dies without an explanation, the next one continues behind its last
    /// report. Segments that cannot be continued, because this program or its codecs differ from those that began, are
    /// made again.
    pub(super) async fn make(&mut self) -> Result<(), RowError> {
        let mut kept = self.kept().await?;
        for _ in 1..DEATHS {
            match self.attempt(kept).await {
                Err(RowError::Failed(failure)) if is(&failure, FailureCode::DecodeFailed) => {
                    warn!(stream = %self.lease.id, reason = failure.message, "its worker died; another one continues");
                    kept = self.kept().await?;
                }
                // The continuation may be what fails: from the beginning it can succeed.
                Err(RowError::Failed(failure)) if kept > 0 && is_of_its_place(&failure) => {
                    warn!(stream = %self.lease.id, reason = failure.message, "it cannot be continued; it is made again");
                    kept = 0;
                }
                ended => return ended,
            }
        }
        self.attempt(kept).await
    }

    async fn attempt(&mut self, kept: u32) -> Result<(), RowError> {
        self.step_back(kept).await?;
        let tracks = &self.playback.tracks;
        let wanted: Vec<_> = tracks
            .iter()
            .map(|track| (file_of(track), boundary::length(track, kept)))
            .collect();
        // The worker of an owner that lost the stream may write until it has been ended.
        let mut files = with_patience(|| open_at(&self.folder, wanted.clone())).await?;
        self.copy_inits(kept, &files).await?;
        let mut ladder = ladder(&self.playback, kept);
        ladder.sheet = self.missing_sheet().filter(|_| kept == 0);
        if ladder.sheet.is_some() {
            for file in STORYBOARD {
                files.push(open_empty(&self.folder, file).await?);
            }
        }
        let renditions = ladder.renditions();
        let done = self.run(ladder, files).await?;
        // A storyboard that was not made with them is made from the source.
        match done.outputs.len() > renditions {
            true => self.keep_storyboard().await,
            false => Ok(()),
        }
    }

    /// Copies the init sections that the worker compares from objects into the files, which may be new on this node.
    async fn copy_inits(&self, kept: u32, files: &[File]) -> Result<(), RowError> {
        if kept == 0 {
            return Ok(());
        }
        let (store, objects) = (&self.services.store, &self.playback.objects);
        for (track, file) in self.playback.tracks.iter().zip(files) {
            let length = track.rendition.init_length.unwrap_or(0).unsigned_abs();
            video::copy_beginning(store, self.lease.id, &file_of(track), objects, length, file)
                .await?;
        }
        Ok(())
    }

    /// Returns the number of video segments to continue behind.
    async fn kept(&self) -> Result<u32, RowError> {
        let tracks = &self.playback.tracks;
        let mut lengths = lengths(&self.folder, tracks.iter().map(file_of).collect()).await?;
        for (track, length) in tracks.iter().zip(&mut lengths) {
            // The file may be that of an owner before the last one.
            match self.playback.objects.covered(&file_of(track)) {
                0 => {}
                covered => *length = covered,
            }
        }
        let kept = boundary::kept(tracks, &lengths);
        Ok(boundary::with_rest(tracks, kept, self.stream().duration_ms))
    }

    /// Forgets the segments that are made again.
    async fn step_back(&mut self, kept: u32) -> Result<(), RowError> {
        if !boundary::has_more(&self.playback.tracks, kept) {
            return Ok(());
        }
        let (store, lease) = (&self.services.store, self.lease);
        let stepped = with_patience(|| {
            let lease = lease.clone();
            store.write_for(lease.account_id, move |tx| {
                Box::pin(async move { video::step_back(tx, &lease, kept, now_ms()).await })
            })
        });
        let stream = stepped.await?;
        self.playback = Playback::load(store, stream).await?;
        self.services.playbacks.forget(&self.stream().playback_id);
        Ok(())
    }

    /// Runs the ladder, and records its segments meanwhile.
    async fn run(&mut self, ladder: Ladder, files: Vec<File>) -> Result<Done, RowError> {
        let (sender, mut reports) = mpsc::channel(REPORTS);
        let mut assignment = self.assignment(AvTask::Ladder(ladder), files);
        // The receiver is gone once the stream is deleted or the service stops.
        assignment.follow = Follow::new(move |report| drop(sender.blocking_send(report)));
        let (services, lane) = (self.services, self.lease.lane);
        let mut work = std::pin::pin!(workers::run(&*services.workers, lane, assignment));
        loop {
            let done = tokio::select! {
                biased;
                Some(report) = reports.recv() => {
                    self.hear(report, &mut reports).await?;
                    continue;
                }
                done = &mut work => done,
            };
            // The last report, behind which the next process continues.
            if let Ok(report) = reports.try_recv() {
                self.hear(report, &mut reports).await?;
            }
            return Ok(done?);
        }
    }

    /// Takes a report and those that wait behind it, and records them.
    async fn hear(
        &mut self,
        first: Report,
        reports: &mut Receiver<Report>,
    ) -> Result<(), RowError> {
        let mut group = Group::default();
        self.sort(first, &mut group);
        // No more than wait at a time: a worker that reports without an end must not keep this thread.
        for report in (1..REPORTS).map_while(|_| reports.try_recv().ok()) {
            self.sort(report, &mut group);
        }
        if !group.is_empty() {
            group.progress = self.progress.percent;
            self.record(group).await?;
        }
        self.publish_progress();
        Ok(())
    }

    fn sort(&mut self, report: Report, group: &mut Group) {
        match report {
            Report::Waiting { place } => self.progress.queue_place = Some(place),
            Report::Working { share } => {
                self.progress.queue_place = None;
                let percent = (share.clamp(0.0, 0.99) * 100.0) as u8;
                self.progress.percent = self.progress.percent.max(percent);
            }
            Report::Init {
                rendition,
                length,
                info,
                copied,
            } => {
                // A process that continues has it already.
                if !self.has_init(rendition) {
                    group.inits.push(Init {
                        rendition,
                        length,
                        codecs: info.codecs,
                        frame_rate: info.frame_rate,
                        is_copy: copied,
                    });
                }
            }
            Report::Segment {
                rendition,
                number,
                offset,
                length,
                start_90k,
                duration_90k,
                key_length,
            } => group.segments.push(Segment {
                rendition,
                number,
                offset,
                length,
                start_90k,
                duration_90k,
                key_length,
            }),
        }
    }

    fn has_init(&self, rendition: u8) -> bool {
        let track = self.playback.tracks.get(usize::from(rendition));
        track.is_some_and(|track| track.rendition.init_length.is_some())
    }

    /// Flushes and uploads the files of a group, writes its rows, and publishes it to players.
    async fn record(&mut self, group: Group) -> Result<(), RowError> {
        ensure_room(self.services)?;
        self.flush(&group).await?;
        let objects = Arc::new(self.upload(&group).await?);
        let group = Arc::new(group);
        let (store, lease, playbacks) =
            (&self.services.store, self.lease, &self.services.playbacks);
        let seen = playbacks.changes();
        let written = with_patience(|| {
            let (group, lease, objects) = (group.clone(), lease.clone(), objects.clone());
            store.write_for(lease.account_id, move |tx| {
                Box::pin(async move {
                    let now = now_ms();
                    let stream = video::record(tx, &lease, &group, now).await?;
                    video::add_objects(tx, lease.id, &objects, now).await?;
                    let captions = video::captions(tx, lease.id).await?;
                    Ok((stream, captions))
                })
            })
        });
        (self.playback.stream, self.playback.captions) = written.await?;
        self.playback.grow(&group);
        self.playback.objects.add(&objects);
        self.progress.playable = self.playback.stream.playable;
        playbacks.publish(self.playback.clone(), seen);
        Ok(())
    }

    async fn flush(&self, group: &Group) -> Result<(), RowError> {
        for number in touched(group) {
            let track = self.playback.tracks.get(usize::from(number));
            let track =
                track.ok_or_else(|| Failure::internal("a segment of no rendition was made"))?;
            let length = flushed(&self.folder, file_of(track)).await?;
            if !lies_within(group, number, length) {
                return Err(Failure::internal("a reported segment was not written").into());
            }
        }
        Ok(())
    }

    /// Uploads what objects lack of the files of a group; nothing without an object store.
    async fn upload(&self, group: &Group) -> Result<Vec<NewObject>, RowError> {
        let store = &self.services.store;
        if !store.blobs().has_objects() {
            return Ok(Vec::new());
        }
        let mut wanted = Vec::new();
        for number in touched(group) {
            let Some(track) = self.playback.tracks.get(usize::from(number)) else {
                continue;
            };
            let file = file_of(track);
            let parts = boundary::parts(track, group, self.playback.objects.covered(&file));
            wanted.extend(parts.into_iter().map(|part| (file.clone(), part)));
        }
        Ok(video::upload(store, self.lease.id, wanted).await?)
    }
}

/// Returns the renditions that a group adds to.
fn touched(group: &Group) -> BTreeSet<u8> {
    let inits = group.inits.iter().map(|init| init.rendition);
    let segments = group.segments.iter().map(|segment| segment.rendition);
    inits.chain(segments).collect()
}

/// Returns whether the failure may be caused by continuing: an encoder that begins a rendition in another way, or
/// frames that end before the source does.
fn is_of_its_place(failure: &CodedFailure) -> bool {
    use FailureCode::{Impossible, Internal, Undecodable};
    [Internal, Impossible, Undecodable]
        .iter()
        .any(|code| is(failure, *code))
}

/// Checks that a reported group is inside the rendition's file, whose length this is: a worker is not trusted.
fn lies_within(group: &Group, rendition: u8, length: u64) -> bool {
    let inits = group.inits.iter().filter(|it| it.rendition == rendition);
    let segments = group.segments.iter();
    let segments = segments.filter(|it| it.rendition == rendition);
    let mut ends = inits
        .map(|it| Some(it.length))
        .chain(segments.map(|it| it.offset.checked_add(it.length)));
    ends.all(|end| end.is_some_and(|end| end <= length))
}

fn is(failure: &CodedFailure, code: FailureCode) -> bool {
    failure.code == code_of(code)
}

/// Returns the ladder of the rows, from its present state.
fn ladder(playback: &Playback, kept: u32) -> Ladder {
    let renditions = || playback.tracks.iter().map(|track| &track.rendition);
    let video = renditions().filter(|it| it.kind == RenditionKind::Video);
    let audio = renditions().find(|it| it.kind == RenditionKind::Audio);
    Ladder {
        video: video
            .map(|it| LadderVideo {
                width: it.width.unwrap_or(0),
                height: it.height.unwrap_or(0),
                bitrate: it.bitrate,
                max_bitrate: it.max_bitrate,
                copy: it.is_copy,
            })
            .collect(),
        audio: audio.map(|it| LadderAudio {
            bitrate: it.bitrate,
            copy: it.is_copy,
        }),
        segment_duration_s: playback.stream.segment_duration_s,
        resume: boundary::resume(&playback.tracks, kept),
        sheet: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reported_lies_in_the_file() {
        let segment = |rendition, offset, length| Segment {
            rendition,
            number: 0,
            offset,
            length,
            start_90k: 0,
            duration_90k: 1,
            key_length: 0,
        };
        for (segments, length, expected) in [
            (vec![], 0, true),
            (vec![segment(0, 10, 90)], 100, true),
            (vec![segment(0, 10, 91)], 100, false),
            (vec![segment(0, 0, 9), segment(0, 100, 1)], 100, false),
            // Another rendition's.
            (vec![segment(1, 10, 91)], 100, true),
            (vec![segment(0, u64::MAX, 2)], u64::MAX, false),
        ] {
            let group = Group {
                segments,
                ..Group::default()
            };
            assert_eq!(lies_within(&group, 0, length), expected, "{group:?}");
        }
    }
}
