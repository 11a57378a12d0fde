//! Poster and storyboard of a video stream: position of the poster, size, quality, interval and number of storyboard frames.
//!
//! The poster is made before the segments. The storyboard comes with the segments where the source is decoded for them from
//! its beginning on, else it is made after them. A source whose frames cannot be taken still becomes a stream, without
//! images.

use std::{fs::File, sync::Arc};

use sluice_media::{
    av::{AvTask, Report, Sheet, Still},
    format::Format,
    task::{Done, Encode, Fit, Render, Resize},
};
use sluice_store::{
    now_ms, video,
    video::{MadeImages, MediaFile, NewObject},
};
use tokio::sync::mpsc;
use tracing::info;

use super::{
    asset::Asset,
    files::{blocking, flushed, lengths, open_empty},
};
use crate::{
    compute::{Assignment, Follow},
    durable::{
        step_error::{RowError, StepError, with_patience},
        workers,
    },
};

/// Longest edge of a poster, in pixels, and its JPEG quality.
const POSTER_EDGE: u32 = 1_920;
const POSTER_QUALITY: u8 = 82;
/// Position of the poster in the source: a share of it, since many begin black, and at most so far in.
const POSTER_SHARE: f64 = 0.1;
const POSTER_LATEST_S: f64 = 10.0;
/// Interval between the frames of a storyboard, and their most; then columns, width of a frame in pixels and JPEG quality.
const SHEET_EVERY_S: f64 = 5.0;
const SHEET_FRAMES: f64 = 100.0;
const SHEET_COLUMNS: u32 = 10;
const SHEET_WIDTH: u32 = 160;
const SHEET_QUALITY: u8 = 70;
/// Files of the storyboard: image and map.
pub(super) const STORYBOARD: [MediaFile; 2] =
    [MediaFile::StoryboardImage, MediaFile::StoryboardMap];

impl Asset<'_> {
    /// Takes the poster, once.
    pub(super) async fn take_poster(&mut self) -> Result<(), RowError> {
        if self.stream().width.is_none() || self.stream().has_poster {
            return Ok(());
        }
        let task = AvTask::Still(poster(self.duration_s()));
        let poster_bytes = self.taken(task, &[MediaFile::Poster]).await?;
        let images = MadeImages {
            poster_bytes,
            ..MadeImages::default()
        };
        self.note(images, &[MediaFile::Poster]).await
    }

    /// Takes the storyboard from the source, unless it is there.
    pub(super) async fn take_storyboard(&mut self) -> Result<(), RowError> {
        let Some(sheet) = self.missing_sheet() else {
            return Ok(());
        };
        let storyboard_bytes = self.taken(AvTask::Sheet(sheet), &STORYBOARD).await?;
        self.note_storyboard(storyboard_bytes).await
    }

    /// Takes over the storyboard that came with the segments.
    pub(super) async fn keep_storyboard(&mut self) -> Result<(), RowError> {
        let storyboard_bytes = Some(self.bytes_of(&STORYBOARD).await?);
        self.note_storyboard(storyboard_bytes).await
    }

    async fn note_storyboard(&mut self, storyboard_bytes: Option<u64>) -> Result<(), RowError> {
        let images = MadeImages {
            storyboard_bytes,
            ..MadeImages::default()
        };
        self.note(images, &STORYBOARD).await
    }

    /// Returns the form of the storyboard, if it is to be made.
    pub(super) fn missing_sheet(&self) -> Option<Sheet> {
        let is_missing = self.stream().width.is_some() && !self.stream().has_storyboard;
        is_missing.then(|| sheet(self.duration_s()))
    }

    fn duration_s(&self) -> f64 {
        self.stream().duration_ms.unwrap_or(0) as f64 / 1_000.0
    }

    /// Uploads the images where there is an object store, and notes them in the row.
    async fn note(
        &mut self,
        video_frames: MadeImages,
        files: &[MediaFile],
    ) -> Result<(), RowError> {
        if video_frames == MadeImages::default() {
            return Ok(());
        }
        let objects = Arc::new(self.upload_whole(files).await?);
        let (store, lease) = (&self.services.store, self.lease);
        let noted = with_patience(|| {
            let (lease, objects) = (lease.clone(), objects.clone());
            store.write_for(lease.account_id, move |tx| {
                Box::pin(async move {
                    let now = now_ms();
                    let stream = video::images_made(tx, &lease, video_frames, now).await?;
                    video::add_objects(tx, lease.id, &objects, now).await?;
                    Ok(stream)
                })
            })
        });
        self.playback.stream = noted.await?;
        self.playback.objects.add(&objects);
        self.services.playbacks.forget(&self.stream().playback_id);
        Ok(())
    }

    /// Uploads files that are flushed; nothing without an object store.
    async fn upload_whole(&self, files: &[MediaFile]) -> Result<Vec<NewObject>, RowError> {
        let store = &self.services.store;
        if !store.blobs().has_objects() {
            return Ok(Vec::new());
        }
        let lengths = lengths(&self.folder, files.to_vec()).await?;
        let files = files.iter().zip(lengths);
        let parts = files.map(|(file, length)| (file.clone(), 0..length));
        Ok(video::upload(store, self.lease.id, parts.collect()).await?)
    }

    /// Has a worker make these files; returns their bytes, or `None` when it cannot be done.
    async fn taken(&mut self, task: AvTask, files: &[MediaFile]) -> Result<Option<u64>, RowError> {
        let mut opened: Vec<File> = Vec::with_capacity(files.len());
        for file in files {
            opened.push(open_empty(&self.folder, file.clone()).await?);
        }
        let assignment = self.assignment(task, opened);
        match self.run_queued(assignment).await {
            Ok(_) => {}
            Err(StepError::Failed(failure)) => {
                info!(stream = %self.lease.id, %failure, ?files, "frames cannot be taken");
                self.remove(files).await?;
                return Ok(None);
            }
            Err(stop) => return Err(stop.into()),
        }
        Ok(Some(self.bytes_of(files).await?))
    }

    /// Makes files durable, and returns their bytes.
    async fn bytes_of(&self, files: &[MediaFile]) -> Result<u64, RowError> {
        let mut bytes = 0;
        for file in files {
            bytes += flushed(&self.folder, file.clone()).await?;
        }
        Ok(bytes)
    }

    /// Runs work without progress of its own, and reports its place in the queue while it waits, which may be long.
    async fn run_queued(&mut self, mut assignment: Assignment) -> Result<Done, StepError> {
        let (sender, mut reports) = mpsc::channel(1);
        assignment.follow = Follow::new(move |report| drop(sender.blocking_send(report)));
        let (services, lane) = (self.services, self.lease.lane);
        let mut work = std::pin::pin!(workers::run(&*services.workers, lane, assignment));
        loop {
            let place = tokio::select! {
                biased;
                Some(report) = reports.recv() => match report {
                    Report::Waiting { place } => Some(place),
                    _ => None,
                },
                done = &mut work => {
                    self.set_place(None);
                    return done;
                }
            };
            self.set_place(place);
        }
    }

    fn set_place(&mut self, place: Option<u32>) {
        if place != self.progress.queue_place {
            self.progress.queue_place = place;
            self.publish_progress();
        }
    }

    async fn remove(&self, files: &[MediaFile]) -> Result<(), RowError> {
        let (folder, files) = (self.folder.clone(), files.to_vec());
        let removed = blocking(move || files.iter().try_for_each(|file| folder.remove_file(file)));
        Ok(removed.await?)
    }
}

fn poster(duration_s: f64) -> Still {
    let fitting = Resize::new(Some(POSTER_EDGE), Some(POSTER_EDGE), Fit::Inside);
    Still {
        at_s: (duration_s * POSTER_SHARE).min(POSTER_LATEST_S),
        render: Render {
            resize: Some(fitting),
            ..Render::new(Format::Png, Encode::new(Format::Jpg, POSTER_QUALITY))
        },
    }
}

fn sheet(duration_s: f64) -> Sheet {
    let frames = (duration_s / SHEET_EVERY_S).ceil().clamp(1.0, SHEET_FRAMES) as u32;
    Sheet {
        frames,
        columns: frames.min(SHEET_COLUMNS),
        width: SHEET_WIDTH,
        output: Encode::new(Format::Jpg, SHEET_QUALITY),
        image_name: MediaFile::StoryboardImage.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_fit_the_length_of_the_source() {
        for (duration_s, at_s, frames, columns) in [
            (0.0, 0.0, 1, 1),
            (0.5, 0.05, 1, 1),
            (30.0, 3.0, 6, 6),
            (60.0, 6.0, 12, 10),
            (7_200.0, 10.0, 100, 10),
        ] {
            let (poster, sheet) = (poster(duration_s), sheet(duration_s));
            assert!((poster.at_s - at_s).abs() < 1e-9, "{duration_s}");
            assert_eq!((sheet.frames, sheet.columns), (frames, columns));
        }
    }
}
