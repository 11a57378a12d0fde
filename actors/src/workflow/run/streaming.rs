//! Workflow node `hls`: makes a video stream of the buffer, which must be video or audio, and passes the buffer on.

use sluice_media::{
    av::ladder::Profile,
    format::Class,
    task::{Failure, FailureCode},
};
use sluice_store::video::{Access, NewStream, StreamSource};

use super::{super::change::NewVideoStream, RunTraversal};
use crate::{durable::step_error::StepError, video::SEGMENT_DURATION_S};

impl RunTraversal<'_> {
    /// Has the next change make a stream of the buffer.
    pub(super) async fn cast(&mut self, profile: &Profile) -> Result<(), StepError> {
        let (source, _) = self.buffer.source(self.services).await?;
        if !matches!(source.format.class(), Class::Video | Class::Audio) {
            return Err(StepError::Failed(Failure::new(
                FailureCode::UnsupportedType,
                format!(
                    "a video stream is made of video or audio, {} is {}: convert it first, or put a branch before the node",
                    self.buffer.filename,
                    source.format.name()
                ),
            )));
        }
        let (filename, blob) = (self.output_name().await?, self.sealed().await?);
        let is_input = Some(blob) == self.run.input_blob;
        let stream = NewStream {
            account_id: self.run.account_id,
            source: StreamSource {
                blob,
                filename: filename.clone(),
                file_id: self.run.source_file_id.filter(|_| is_input),
            },
            title: filename,
            profile: profile.name().to_owned(),
            custom_renditions: Vec::new(),
            segment_duration_s: SEGMENT_DURATION_S,
            access: Access::Public,
            token_ttl_s: None,
            allowed_domains: Vec::new(),
            allowance: self.run.allowance,
            idempotency: None,
        };
        self.unwritten.cast = Some(NewVideoStream {
            step: self.unwritten.steps.len(),
            stream,
        });
        Ok(())
    }
}
