//! Extractors of handlers: the caller ([`Caller`](crate::application::caller::Caller)), a JSON body ([`Body`]), a page
//! of a list ([`PageQuery`]), and the address by which the request came
//! ([`Reached`](crate::application::reached::Reached)).

mod body;
mod caller;
mod page;
mod reached;

pub use body::Body;
pub(crate) use body::{bytes, is_json};
pub(crate) use caller::identity;
pub use caller::{Operator, OwnOrigin, SessionCaller};
pub use page::PageQuery;
pub(in crate::http) use page::query_value;
