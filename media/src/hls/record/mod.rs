//! Recordings and clips of live inputs as flat MP4 files (ISO/IEC 14496-12), made of live's own fragments without
//! re-encoding.
//!
//! ```text
//! init sections ──► Described ─┐
//!                              ├─► Movie ──► the header of a file; the fragments' payloads follow it as they are
//! fragments ──────► Fragment ──┘
//! ```
//!
//! This program wrote the bytes, but a disk may have corrupted them: every length is checked. [`Entry`] is the line of
//! a segment, so that a recording survives the process that makes it.

mod boxes;
mod described;
mod event;
mod fragment;
mod index;
mod movie;
mod tables;
#[cfg(test)]
mod tests;

pub use self::{
    boxes::{BoxHeader, MOST_HEADER_BYTES},
    described::{Described, Description, TrackKind},
    event::EventPlaylist,
    fragment::{Fragment, Run, Sample},
    index::{Entry, SegmentEntry, decode, encode, signature},
    movie::{MOST_SAMPLES, Movie, MovieHeader},
};
