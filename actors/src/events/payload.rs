//! Resources of the payloads: the row that an event is about (`job:<uuid>`).

use serde::Serialize;
use uuid::Uuid;

use super::{
    conversion::{
        ConversionCompleted, ConversionFailed, ConversionProgress, ConversionStarted,
        MediaToolCompleted, MediaToolFailed,
    },
    file::FileUploaded,
    live::{LiveInputConnected, LiveInputDisconnected, LiveInputRecordingReady},
    video::VideoStream,
    workflow::{WorkflowCompleted, WorkflowFailed},
};

/// Implemented by the payload of a row of the table: a struct with text keys.
pub(super) trait Payload: Serialize {
    /// The resource that the event is about, as in `job:<uuid>`.
    fn resource(&self) -> String;
}

/// Implements [`Payload`] by the word for the resource and the field with its id.
macro_rules! resources {
    ($($payload:ty: $kind:literal, $($id:ident).+;)*) => {$(
        impl Payload for $payload {
            fn resource(&self) -> String {
                format!(concat!($kind, ":{}"), self.$($id).+)
            }
        }
    )*};
}

resources! {
    ConversionStarted: "job", job_id;
    ConversionProgress: "job", job_id;
    ConversionCompleted: "job", job_id;
    ConversionFailed: "job", job_id;
    MediaToolCompleted: "job", job_id;
    FileUploaded: "file", file_id;
    LiveInputConnected: "live-input", live_input_id;
    LiveInputDisconnected: "live-input", connection.live_input_id;
    LiveInputRecordingReady: "live-input", live_input_id;
    VideoStream: "stream", stream_id;
    WorkflowCompleted: "run", run_id;
    WorkflowFailed: "run", run_id;
}

impl Payload for MediaToolFailed {
    fn resource(&self) -> String {
        match self.job_id {
            Some(job_id) => format!("job:{job_id}"),
            None => format!("rejection:{}", Uuid::now_v7()),
        }
    }
}
