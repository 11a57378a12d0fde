//! Table of event types: name, summary, opt-in or sent with `*`, place among the events of a resource.

use serde_json::{Map, Value};
use sluice_store::events::{
    Audience,
    EventPosition::{self, Last, Next, Only},
};

use super::{conversion, file, live, payload::Payload, video, workflow};

/// A type of event to which an endpoint can subscribe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventType {
    pub name: &'static str,
    /// Sent only to endpoints that name it; `*` does not include it.
    pub is_opt_in: bool,
    /// Occasion of the event, in a sentence without a full stop.
    pub summary: &'static str,
}

const fn listed(name: &'static str, summary: &'static str) -> EventType {
    EventType {
        name,
        is_opt_in: false,
        summary,
    }
}

const fn opt_in(name: &'static str, summary: &'static str) -> EventType {
    EventType {
        name,
        is_opt_in: true,
        summary,
    }
}

/// Makes of each line, `Variant(payload) = type, place`, a variant of [`Event`] with its type, and an entry of
/// [`known_types`]. The place is among the events about one resource.
macro_rules! events {
    ($($name:ident($payload:ty) = $type:expr, $place:expr;)*) => {
        /// An event of the service. `webhook.test` is not among these: an endpoint's owner asks for it, and the store
        /// writes it ([`sluice_store::webhooks::test`]).
        #[derive(Clone, Debug, PartialEq)]
        pub enum Event {
            $($name($payload),)*
        }

        static TYPES: &[EventType] = &[$($type,)*];

        impl Event {
            fn row(&self) -> EventType {
                match self {
                    $(Self::$name(_) => const { $type },)*
                }
            }

            /// Returns the resource that it is about, and its place among the events about that.
            pub(super) fn subject(&self) -> (String, EventPosition) {
                match self {
                    $(Self::$name(payload) => {
                        let place: fn(&$payload) -> EventPosition = $place;
                        (payload.resource(), place(payload))
                    })*
                }
            }

            /// Returns the payload, without the fields that the store adds.
            pub(super) fn data(&self) -> Map<String, Value> {
                let data = match self {
                    $(Self::$name(payload) => serde_json::to_value(payload),)*
                };
                match data {
                    Ok(Value::Object(data)) => data,
                    _ => unreachable!("payloads are structs with text keys"),
                }
            }
        }
    };
}

// The types of `*`, then those that are sent only to endpoints that name them (docs/reference/events.md).
events! {
    ConversionStarted(conversion::ConversionStarted) =
        listed("conversion.started", "a batch conversion or compression begins processing"),
        |_| Next;
    ConversionProgress(conversion::ConversionProgress) =
        listed("conversion.progress", "each file in a batch finishes"),
        |_| Next;
    ConversionCompleted(conversion::ConversionCompleted) =
        listed("conversion.completed", "all files in a batch complete successfully"),
        |_| Last;
    ConversionFailed(conversion::ConversionFailed) =
        listed("conversion.failed", "a conversion or compression job fails"),
        |_| Last;
    FileUploaded(file::FileUploaded) =
        listed("file.uploaded", "an original, uploaded or converted file is stored"),
        |_| Only;
    MediaToolCompleted(conversion::MediaToolCompleted) =
        listed("media.tool.completed", "a media tool request completes (thumbnail, watermark, PDF preview, trim, GIF and others)"),
        |_| Only;
    MediaToolFailed(conversion::MediaToolFailed) =
        listed("media.tool.failed", "a media tool request fails after authentication"),
        |_| Only;
    VideoStreamStarted(video::VideoStream) =
        listed("video.stream.started", "an HLS video stream asset starts processing"),
        |_| Next;
    VideoStreamReady(video::VideoStream) =
        listed("video.stream.ready", "manifest, renditions, segments and poster frame are ready for playback"),
        |_| Last;
    VideoStreamFailed(video::VideoStream) =
        listed("video.stream.failed", "a video stream asset fails during processing"),
        |_| Last;
    WorkflowCompleted(workflow::WorkflowCompleted) =
        listed("workflow.completed", "a workflow run completes and delivers its configured webhook step"),
        |_| Last;
    WorkflowFailed(workflow::WorkflowFailed) =
        opt_in("workflow.failed", "a workflow run fails or is cancelled"),
        // The run may be tried again.
        |_| Next;
    LiveInputConnected(live::LiveInputConnected) =
        opt_in("live.input.connected", "an encoder begins to publish to a live input"),
        |_| Next;
    LiveInputDisconnected(live::LiveInputDisconnected) =
        opt_in("live.input.disconnected", "an encoder that published to a live input is gone"),
        live::LiveInputDisconnected::position;
    LiveInputRecordingReady(live::LiveInputRecordingReady) =
        opt_in("live.input.recording.ready", "the recording of a broadcast is stored"),
        |_| Next;
}

/// Returns every type to which an endpoint can subscribe, those of the specification first.
pub fn known_types() -> &'static [EventType] {
    TYPES
}

impl Event {
    /// Returns its name on the wire.
    pub fn event_type(&self) -> &'static str {
        self.row().name
    }

    /// Returns whether endpoints must name it to get it.
    pub fn is_opt_in(&self) -> bool {
        self.row().is_opt_in
    }

    pub(super) fn audience(&self) -> Audience {
        match self.is_opt_in() {
            true => Audience::ThoseWhoNameIt,
            false => Audience::Everyone,
        }
    }
}
