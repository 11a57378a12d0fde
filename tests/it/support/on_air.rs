//! A live stream concurrent with other work, which must not slow it: live has the higher priority.

use std::time::Duration;

use serde_json::json;

use super::{
    Failure,
    encoder::{Ffmpeg, Publish},
    media::{Clip, check_contiguous},
    server::Server,
    viewer::{Viewer, Viewing},
};

const SEEN_WITHIN: Duration = Duration::from_secs(10);
/// Longest time of a clip that is published at its own pace.
const PUBLISHED_WITHIN: Duration = Duration::from_secs(40);

/// A clip that is published, and watched.
pub struct OnAir {
    encoder: Ffmpeg,
    viewing: Viewing,
    video_frames: usize,
}

impl OnAir {
    /// Starts the stream and waits until frames are seen.
    pub async fn start(server: &Server, clip: &Clip) -> Result<Self, Failure> {
        let input = server.api().create(json!({"name": "on air"})).await?;
        let encoder = Publish::new(clip, &input.rtmp_url())?.start()?;
        let mut viewing = Viewer::new(&input.hls_url).start();
        viewing.until_frames(30, SEEN_WITHIN).await?;
        Ok(Self {
            encoder,
            viewing,
            video_frames: clip.frames() as usize,
        })
    }

    /// Waits for the clip's end; checks that every frame of it was seen, without a gap.
    pub async fn check_whole(mut self) -> Result<(), Failure> {
        let status = self.encoder.wait(PUBLISHED_WITHIN).await?;
        assert!(status.success(), "{}", self.encoder.complaints());
        let collection = self.viewing.until_ended(SEEN_WITHIN).await?;
        let numbers = collection.numbers()?;
        assert_eq!(numbers.len(), 1, "one session is one range");
        assert_eq!(
            numbers[0].len(),
            self.video_frames,
            "{}",
            collection.summary()
        );
        check_contiguous(&numbers[0], 0)
    }
}
