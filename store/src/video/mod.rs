//! Rows and folders of video streams: HLS assets that are made of a stored clip once, and then played.
//!
//! - A stream's owner writes through a lease of the kind [`KIND`]. Segments are recorded in groups, after their bytes
//!   were flushed ([`record`]), so that the next owner continues after the last of them ([`step_back`]).
//! - The bytes are files of the stream's own folder ([`folder`]), never blobs: one that grows for each rendition. With an
//!   object store they are objects, too, and the folder is only where they are made ([`objects`](mod@objects)). The source is a
//!   blob, which is kept until the stream has ended.
//! - Everything in the folder, and captions, count into the account's storage.
//! - A stream that is deleted or fails is removed at once; of its segments, which may be hundreds of thousands, a
//!   sweep deletes as many at a time as fit a turn of the writer.

mod captions;
mod ending;
mod folder;
mod objects;
mod renditions;
mod segments;
mod streams;
mod sweep;
#[cfg(test)]
mod tests;

pub use captions::{Caption, NewCaption, add_caption, captions, captions_of, remove_caption};
pub use ending::{Failure, begin, delete, fail, finish, give_up};
pub(crate) use folder::all as stream_folders;
pub use folder::{Folder, MediaFile};
pub use objects::{
    NewObject, StreamObjects, add_objects, copy_beginning, delete_objects, objects, source, upload,
};
pub(crate) use objects::{PREFIX as OBJECT_PREFIX, strays as stray_objects};
pub use renditions::{
    Plan, PlannedRendition, Rendition, RenditionKind, plan, renditions, renditions_of,
};
pub use segments::{Group, Init, Segment, record, segments, step_back};
pub use streams::{
    Access, CustomRendition, MadeImages, NewStream, Showing, Stream, StreamCounts, StreamFilter,
    StreamPatch, StreamSource, StreamStatus, Submitted, by_id, by_playback_id, count_by_status,
    create, get, images_made, list, showing, update,
};
pub(crate) use sweep::{sweep_folders, sweep_segments};

/// Kind of a stream's row in [`crate::work`].
pub const KIND: &str = "video";
/// Operations that a stream costs.
const OPERATIONS: u64 = 1;
