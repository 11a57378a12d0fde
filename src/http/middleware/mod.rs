//! Middleware around every handler, from the outside in: [`end_unread`], [`observe`], [`reject_encoded`], [`admit`].

mod admission;
mod encoding;
mod observe;
mod unread;

pub use admission::admit;
pub use encoding::reject_encoded;
pub use observe::observe;
pub use unread::end_unread;
