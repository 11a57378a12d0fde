//! What happens around every handler, from the outside in: [`observe`], [`refuse_encoded`], [`admit`].

mod admission;
mod encoding;
mod observe;

pub use admission::admit;
pub use encoding::refuse_encoded;
pub use observe::observe;
