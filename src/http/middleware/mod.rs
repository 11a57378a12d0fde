//! Middleware around every handler, from the outside in: [`end_unread`], [`observe`], [`reject_encoded`], [`admit`], [`note_change`],
//! [`answer_head`].

mod admission;
mod encoding;
mod head;
mod note_change;
mod observe;
mod unread;

pub use admission::admit;
pub use encoding::reject_encoded;
pub use head::answer_head;
pub use note_change::note_change;
pub use observe::observe;
pub use unread::end_unread;
