//! Phases of a live input as viewers see them: `idle`, `starting`, `live`, `reconnecting`, `ended`.

use serde::Serialize;

/// Phase of an input, as viewers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Nothing is on air, and nothing is left of the last broadcast.
    Idle,
    /// An encoder sends, and there is nothing to list yet.
    Starting,
    Live,
    /// The encoder is gone; its window is open.
    Reconnecting,
    /// The playlist is closed and stays for a while.
    Ended,
}
