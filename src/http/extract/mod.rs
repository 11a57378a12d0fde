//! Extractors of handlers: caller, JSON body, page of a list, base and client address.
//! ([`Caller`](crate::application::caller::Caller), [`Body`], [`PageQuery`], [`Reached`](crate::application::reached::Reached))

mod body;
mod caller;
mod page;
mod reached;

pub use body::Body;
pub(crate) use body::{bounded, bytes, is_json};
pub(crate) use caller::identity;
pub use caller::{InstallationCaller, Operator, OwnOrigin, SessionCaller};
pub use page::PageQuery;
pub(in crate::http) use page::query_value;
