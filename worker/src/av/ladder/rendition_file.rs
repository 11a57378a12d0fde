//! A rendition's file: its init section, then segments, each reported once it is written; limits of length and bytes
//! (`av_workers.max_duration`).

use std::{
    fs::File,
    os::{fd::OwnedFd, unix::fs::FileExt},
    sync::Arc,
};

use bytes::Bytes;
use parking_lot::Mutex;
use sluice_media::{
    av::Report,
    hls::{StreamInfo, vod::MadeSegment},
    task::{Failure, FailureCode, Limits},
};

use super::{
    super::{MAX_OUTPUT, internal},
    work::LadderTask,
};
use crate::serve::unwritten;

/// Tolerance for a last video or audio frame, and for the priming of audio.
const LONGER_BY_MS: u64 = 1_000;

#[derive(Debug)]
pub(super) struct RenditionFile {
    rendition: u8,
    file: File,
    /// Largest size and longest duration of the file.
    limits: Limits,
    work: LadderTask,
    written: Mutex<Written>,
}

#[derive(Debug, Default)]
struct Written {
    length: u64,
    /// End of its last segment on the asset's timeline.
    end_90k: i64,
}

impl RenditionFile {
    /// Files are continued from where they end.
    pub(super) fn open_all(
        files: Vec<OwnedFd>,
        limits: &Limits,
        work: &LadderTask,
    ) -> Result<Vec<Arc<Self>>, Failure> {
        (0_u8..)
            .zip(files)
            .map(|(rendition, file)| {
                let file = File::from(file);
                let metadata = file
                    .metadata()
                    .map_err(|error| unwritten(&error, MAX_OUTPUT));
                let length = metadata?.len();
                Ok(Arc::new(Self {
                    rendition,
                    file,
                    limits: *limits,
                    work: work.clone(),
                    written: Mutex::new(Written { length, end_90k: 0 }),
                }))
            })
            .collect()
    }

    /// The work that this is a part of.
    pub(super) fn work(&self) -> &LadderTask {
        &self.work
    }

    /// Puts the init section at the beginning. A file that is continued must have the same one there.
    pub(super) fn begin(
        &self,
        init: &Bytes,
        info: StreamInfo,
        copied: bool,
    ) -> Result<(), Failure> {
        let mut written = self.written.lock();
        if written.length > 0 {
            return self.compare(init);
        }
        let length = self.append(&mut written, init)?;
        self.work.send(Report::Init {
            rendition: self.rendition,
            length,
            info,
            copied,
        });
        Ok(())
    }

    fn compare(&self, init: &Bytes) -> Result<(), Failure> {
        let mut there = vec![0; init.len()];
        let same = self.file.read_exact_at(&mut there, 0).is_ok() && there == init.as_ref();
        match same {
            true => Ok(()),
            false => Err(internal(
                "a rendition cannot be continued: it was begun with other settings",
            )),
        }
    }

    /// Appends a segment and reports it.
    pub(super) fn store(&self, segment: &MadeSegment) -> Result<(), Failure> {
        let end_90k = segment.start_90k + i64::from(segment.duration_90k);
        self.check_end(end_90k)?;
        let mut written = self.written.lock();
        let offset = written.length;
        let length = self.append(&mut written, &segment.data)?;
        written.end_90k = end_90k;
        self.work.send(Report::Segment {
            rendition: self.rendition,
            number: segment.number,
            offset,
            length,
            start_90k: segment.start_90k,
            duration_90k: segment.duration_90k,
            key_length: segment.key_length,
        });
        Ok(())
    }

    /// Checks the end. A container's declared duration is not trusted: a rate is kept up to the last timestamp,
    /// wherever it is.
    fn check_end(&self, end_90k: i64) -> Result<(), Failure> {
        let end_ms = end_90k.unsigned_abs() / 90;
        let most_ms = self.limits.max_duration_ms;
        // A segment may reach a little further than its source.
        if end_ms <= most_ms.saturating_add(LONGER_BY_MS) {
            return Ok(());
        }
        Err(Failure::new(
            FailureCode::TooLarge,
            format!(
                "the file lasts longer than it says: at most {} seconds are allowed (av_workers.max_duration)",
                most_ms / 1_000
            ),
        ))
    }

    fn append(&self, written: &mut Written, data: &[u8]) -> Result<u64, Failure> {
        let length = data.len() as u64;
        let most = self.limits.max_output_bytes;
        if written.length.saturating_add(length) > most {
            return Err(Failure::new(
                FailureCode::TooLarge,
                format!(
                    "a rendition has more than the {most} bytes that a result may have ({MAX_OUTPUT})"
                ),
            ));
        }
        self.file
            .write_all_at(data, written.length)
            .map_err(|error| unwritten(&error, MAX_OUTPUT))?;
        written.length += length;
        Ok(length)
    }

    pub(super) fn length(&self) -> u64 {
        self.written.lock().length
    }

    /// Returns the end of its last segment; 0 before the first of this run.
    pub(super) fn end_90k(&self) -> i64 {
        self.written.lock().end_90k
    }
}
