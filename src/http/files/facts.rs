//! What an image worker finds out about an upload before it becomes a file: its size in pixels.

use std::{fs::File, sync::Arc, time::Duration};

use sluice_actors::compute::{Assignment, Lane, Output};
use sluice_media::{format::Format, task::Task};
use sluice_store::files::Facts;

use crate::http::context::AppState;

/// Facts are a service, not a condition: an upload does not wait longer for them.
const PATIENCE: Duration = Duration::from_secs(5);
/// EXIF orientations from here on turn the image by a quarter.
const FIRST_TURNED: u8 = 5;

/// The facts of a file of that media type; none when it is no image, and when no worker can tell in time.
pub(in crate::http) async fn find(state: &AppState, mime_type: &str, file: File) -> Facts {
    let Some(format) = Format::from_mime(mime_type).filter(|format| format.is_image()) else {
        return Facts::default();
    };
    let assignment = Assignment {
        task: Task::Inspect { format },
        inputs: vec![Arc::new(file)],
        output: Output::Memory,
        limits: state.compute.limits(),
    };
    let inspection = state.compute.run(Lane::Interactive, assignment);
    let found = match tokio::time::timeout(PATIENCE, inspection).await {
        Ok(Ok(finished)) => finished.done.image,
        Ok(Err(_)) | Err(_) => None,
    };
    let Some(image) = found else {
        return Facts::default();
    };
    let (width, height) = match image.orientation >= FIRST_TURNED {
        true => (image.height, image.width),
        false => (image.width, image.height),
    };
    Facts {
        width: Some(width),
        height: Some(height),
        duration_ms: None,
    }
}
