//! Fuzz targets of the whole program (see [`sluice_media::fuzzing`]): each parser of bytes from clients, other programs and files.

pub use sluice_media::fuzzing::Target;

/// Every target, the lowest crate's first.
pub fn targets() -> Vec<Target> {
    [
        sluice_media::fuzzing::TARGETS,
        sluice_ingest::fuzzing::TARGETS,
        sluice_worker::fuzzing::TARGETS,
        sluice_actors::fuzzing::TARGETS,
        crate::http::fuzzing::TARGETS,
        &[
            Target::new("mcp_message", mcp_message),
            Target::new("event_stream", event_stream),
        ],
    ]
    .concat()
}

/// Reads a message to the agent server.
fn mcp_message(bytes: &[u8]) {
    let _ = crate::mcp::message::read(bytes);
}

/// Reads server-sent events, whole and in pieces: the events are the same.
fn event_stream(bytes: &[u8]) {
    const MAX_EVENT_BYTES: usize = 256;
    let mut whole = crate::cli::event_stream::Reader::new(MAX_EVENT_BYTES);
    let mut pieces = crate::cli::event_stream::Reader::new(MAX_EVENT_BYTES);
    let events = whole.push(bytes);
    let mut collected = Vec::new();
    let parts = bytes.chunks(3).try_for_each(|piece| {
        collected.extend(pieces.push(piece)?);
        Ok(())
    });
    match events {
        Ok(events) => {
            assert_eq!(parts, Ok(()));
            assert_eq!(collected, events);
            assert_eq!(pieces.last_id(), whole.last_id());
        }
        Err(error) => assert_eq!(parts, Err(error)),
    }
}
