//! Crate of media without I/O: formats, operations, image requests, codec configurations, the HLS packager, archives.
//! No async task, no actor.
//!
//! Everything here takes foreign bytes and a time, and gives values back. It never panics on what it is given, and
//! allocates by what arrived, never by a length that was declared.

/// Makes an enum whose variants have a word each: `ALL` lists them, `name` returns the word.
macro_rules! words {
    ($(#[$attribute:meta])* $visible:vis enum $name:ident { $($(#[$note:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $visible enum $name {
            $($(#[$note])* $variant,)+
        }

        #[allow(dead_code, reason = "not every enum is listed")]
        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word on the wire.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    };
}

pub mod av;
mod calendar;
pub mod captions;
pub mod codec;
mod error;
pub mod format;
pub mod framing;
#[doc(hidden)]
pub mod fuzzing;
pub mod geometry;
pub mod hls;
pub mod meter;
pub mod operation;
pub mod setting;
pub mod task;
pub mod unit;
pub mod variant;
pub mod workflow;
pub mod zip;

pub use error::Error;
