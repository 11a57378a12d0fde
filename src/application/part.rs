//! Files sent with a request, and their size limits: `image_upload` and `video_upload` of the plan (413).

use sluice_media::format::Format;
use sluice_store::blob::Spool;

use crate::{application::error::ApiError, config::Plan};

/// The largest size of a file.
#[derive(Clone, Copy, Debug)]
pub struct SizeLimit {
    pub bytes: u64,
    /// Source of `bytes` for the rejection, such as `uploads.max_file`.
    pub named: &'static str,
}

impl SizeLimit {
    /// Limit of an image that an operation takes.
    fn of_images(plan: &Plan) -> Self {
        Self {
            bytes: plan.image_upload.as_u64(),
            named: "image_upload of the plan",
        }
    }

    /// Limit for audio and video that an operation takes.
    pub fn of_videos(plan: &Plan) -> Self {
        Self {
            bytes: plan.video_upload.as_u64(),
            named: "video_upload of the plan",
        }
    }

    /// Answers 413 when the length, of a file or of its bytes so far, is beyond the limit.
    pub fn check(&self, filename: &str, length: u64) -> Result<(), ApiError> {
        match length > self.bytes {
            false => Ok(()),
            true => Err(self.rejection(filename)),
        }
    }

    /// Makes the 413 for a file known to be larger.
    pub fn rejection(&self, filename: &str) -> ApiError {
        let (bytes, named) = (self.bytes, self.named);
        ApiError::TooLarge(format!("{filename} is larger than {bytes} bytes ({named})"))
    }
}

/// The largest size of a file by its kind, which its first bytes show.
#[derive(Clone, Copy, Debug)]
pub struct SizeLimits {
    /// For images and unknown types.
    image: SizeLimit,
    /// For audio and video.
    video: SizeLimit,
}

impl SizeLimits {
    /// Limits of the files that an operation takes.
    pub fn of(plan: &Plan) -> Self {
        Self {
            image: SizeLimit::of_images(plan),
            video: SizeLimit::of_videos(plan),
        }
    }

    pub fn of_format(self, format: Option<Format>) -> SizeLimit {
        match format.is_some_and(|format| format.class().is_timed()) {
            true => self.video,
            false => self.image,
        }
    }

    /// The limit of every file.
    pub fn largest(self) -> SizeLimit {
        match self.image.bytes > self.video.bytes {
            true => self.image,
            false => self.video,
        }
    }

    /// Answers 413 when the bytes of a file so far are beyond the limit for the type that its first bytes show.
    pub fn check(self, filename: &str, spool: &Spool) -> Result<(), ApiError> {
        let smallest = self.image.bytes.min(self.video.bytes);
        if spool.len() <= smallest {
            return Ok(());
        }
        let format = Format::recognise(spool.head(), filename);
        self.of_format(format).check(filename, spool.len())
    }
}

/// Applies one limit to every type.
impl From<SizeLimit> for SizeLimits {
    fn from(limit: SizeLimit) -> Self {
        Self {
            image: limit,
            video: limit,
        }
    }
}

/// File of a form.
#[derive(Debug)]
pub struct Part {
    /// The field's name as the client wrote it.
    pub field: String,
    /// Safe name, see [`filename::clean`].
    pub filename: String,
    /// The stored bytes; the media type that the client declares is not kept.
    pub spool: Spool,
}
