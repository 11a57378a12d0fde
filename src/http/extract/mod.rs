//! What handlers take: who asks ([`Caller`]), a JSON body ([`Body`]), a page of a list ([`PageQuery`]), and where the
//! request came from ([`Reached`]).

mod body;
mod caller;
mod page;
mod reached;

pub use body::Body;
pub(crate) use body::{bytes, camel_case, from_object, is_json};
pub(crate) use caller::identity;
pub use caller::{
    Admin, Authentication, Caller, Credential, Identity, Read, SessionCaller, SignedIn, Write,
};
pub(crate) use page::page;
pub use page::{PageQuery, Pagination, next_cursor};
pub(in crate::http) use page::{cursor_text, query_value, read_cursor, row_count, row_offset};
pub use reached::Reached;
