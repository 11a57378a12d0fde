//! Rows of accounts and of who may act for them: users, invitations, sessions, API keys, audit log; the forms of secrets.

pub mod accounts;
pub mod api_keys;
pub mod audit;
pub(crate) mod bootstrap;
pub mod credentials;
pub mod derived;
pub mod idempotency;
pub mod installation;
pub mod invitations;
pub mod sessions;
pub mod users;
pub mod welcome_codes;
