//! What handlers take: who asks ([`Caller`]), a JSON body ([`Body`]), a page of a list ([`PageQuery`]), and where the
//! request came from ([`Reached`]).

mod body;
mod caller;
mod page;
mod reached;

pub use body::Body;
pub(in crate::http) use body::camel_case;
pub use caller::{Admin, Authentication, Caller, Identity, Read, SessionCaller, SignedIn, Write};
pub(in crate::http) use page::page;
pub use page::{PageQuery, Pagination, next_cursor};
pub use reached::Reached;
