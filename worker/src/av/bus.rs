//! Errors of a GStreamer pipeline and the failures that users see for them: unsupported, encrypted, damaged, disk full;
//! its end.

use gst::prelude::*;
use gstreamer as gst;
use sluice_media::task::{Failure, FailureCode};

use super::refused;

/// Fails when something in the pipeline has.
pub fn check(pipeline: &gst::Pipeline) -> Result<(), Failure> {
    error_on(pipeline).map_or(Ok(()), Err)
}

/// Waits at most `wait` for the end; returns whether it has come.
pub fn has_ended(pipeline: &gst::Pipeline, wait: gst::ClockTime) -> Result<bool, Failure> {
    let kinds = [gst::MessageType::Error, gst::MessageType::Eos];
    let message = bus(pipeline).timed_pop_filtered(wait, &kinds);
    match message.as_ref().map(|message| message.view()) {
        Some(gst::MessageView::Error(error)) => Err(failure(&error.error())),
        Some(_) => Ok(true),
        None => Ok(false),
    }
}

/// The first error that waits on the pipeline's bus.
pub(super) fn error_on(pipeline: &gst::Pipeline) -> Option<Failure> {
    let message = bus(pipeline).pop_filtered(&[gst::MessageType::Error])?;
    match message.view() {
        gst::MessageView::Error(error) => Some(failure(&error.error())),
        _ => None,
    }
}

/// Takes the errors off the bus that a flushing seek, just done, has caused.
///
/// A flush reaches sinks before the threads that push to them: a sink that flushes already refuses what is on its way,
/// the caps of the first buffer above all, and the thread stops with an error, `not-negotiated`, before it receives the
/// flush itself, which starts it again. It has posted that when the seek returns, since a flush waits for the threads
/// it stops. Errors of elements themselves stay.
pub(super) fn forget_interrupted(pipeline: &gst::Pipeline) {
    let bus = bus(pipeline);
    let errors: Vec<_> =
        std::iter::from_fn(|| bus.pop_filtered(&[gst::MessageType::Error])).collect();
    for error in errors.into_iter().filter(|error| !is_stopped_flow(error)) {
        let _ = bus.post(error);
    }
}

/// Returns whether a thread reports that it could push no further, not why.
fn is_stopped_flow(message: &gst::MessageRef) -> bool {
    match message.view() {
        gst::MessageView::Error(error) => error
            .details()
            .is_some_and(|details| details.has_field("flow-return")),
        _ => false,
    }
}

fn bus(pipeline: &gst::Pipeline) -> gst::Bus {
    pipeline.bus().expect("every pipeline has a bus")
}

/// Maps an error to a failure for the user. Its own words are left out: they name files and elements.
pub(super) fn failure(error: &gst::glib::Error) -> Failure {
    if let Some(resource) = error.kind::<gst::ResourceError>() {
        return match resource {
            gst::ResourceError::NoSpaceLeft => {
                Failure::new(FailureCode::NoSpace, "the disk is full")
            }
            gst::ResourceError::Write => Failure::internal("the result cannot be written"),
            _ => Failure::new(
                FailureCode::Undecodable,
                "the file cannot be read as a clip",
            ),
        };
    }
    if let Some(stream) = error.kind::<gst::StreamError>() {
        return match stream {
            gst::StreamError::TypeNotFound | gst::StreamError::WrongType => Failure::new(
                FailureCode::UnsupportedType,
                "the file is no video or audio that Sluice reads",
            ),
            gst::StreamError::CodecNotFound => Failure::new(
                FailureCode::UnsupportedType,
                "no track of the file has a codec that Sluice decodes",
            ),
            gst::StreamError::Decrypt | gst::StreamError::DecryptNokey => {
                Failure::new(FailureCode::UnsupportedType, "the file is encrypted")
            }
            gst::StreamError::Encode => {
                refused("its video or its audio cannot be encoded in this form")
            }
            gst::StreamError::Mux => refused("its tracks do not go into one file together"),
            _ => Failure::new(
                FailureCode::Undecodable,
                "the file is damaged: its tracks do not decode",
            ),
        };
    }
    if error.matches(gst::CoreError::MissingPlugin) {
        return Failure::new(
            FailureCode::UnsupportedType,
            "no track of the file has a codec that Sluice decodes",
        );
    }
    refused("its tracks change their form or do not fit together")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_can_bring_about_is_no_defect_of_ours() {
        use gst::{CoreError, LibraryError, ResourceError, StreamError, glib::Error};
        let by_input = [
            Error::new(CoreError::Pad, ""),
            Error::new(CoreError::Negotiation, ""),
            Error::new(CoreError::Caps, ""),
            Error::new(CoreError::StateChange, ""),
            Error::new(CoreError::Failed, ""),
            Error::new(CoreError::MissingPlugin, ""),
            Error::new(LibraryError::Init, ""),
            Error::new(LibraryError::Settings, ""),
            Error::new(LibraryError::Encode, ""),
            Error::new(ResourceError::Seek, ""),
            Error::new(ResourceError::Read, ""),
            Error::new(ResourceError::Failed, ""),
            Error::new(StreamError::Failed, ""),
            Error::new(StreamError::Encode, ""),
            Error::new(StreamError::Decode, ""),
            Error::new(StreamError::Demux, ""),
            Error::new(StreamError::Mux, ""),
            Error::new(StreamError::Format, ""),
        ];
        for error in by_input {
            let failure = failure(&error);
            let is_of_the_file = matches!(
                failure.code,
                FailureCode::Undecodable | FailureCode::UnsupportedType
            );
            assert!(is_of_the_file, "{error:?}: {failure:?}");
        }
        let unwritten = failure(&Error::new(ResourceError::Write, ""));
        assert_eq!(unwritten.code, FailureCode::Internal);
    }
}
