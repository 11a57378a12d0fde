//! Trait of event payloads: the resource that an event is about (`job:<uuid>`).

use serde::Serialize;

/// Implemented by the payload of a row of the table: a struct with text keys.
pub(super) trait Payload: Serialize {
    /// The resource that the event is about, as in `job:<uuid>`.
    fn resource(&self) -> String;
}
