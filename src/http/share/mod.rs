//! Share links of folders over HTTP: routes of their owner, of readers, and the page.
//!
//! The owner makes, shows and revokes the link of a folder ([`owner`]). A reader shows nothing but the link's token: every
//! handler of a reader takes a [`ShareAccess`], and whatever is wrong with a link is answered alike ([`access`]). Bytes are sent
//! under the link's guard ([`open_requests`]) and end when it is withdrawn.

mod access;
mod counts;
mod listing;
mod open_requests;
mod owner;
mod page;
mod password;
mod reader;

pub use owner::{
    __path_create, __path_list, __path_revoke, __path_show, create, list, revoke, show,
};
pub use page::{__path_enter_password, __path_open_page, enter_password, open_page};
pub use reader::{
    __path_browse, __path_download, __path_preview, __path_unlock, __path_zip, browse, download,
    preview, unlock, zip,
};
