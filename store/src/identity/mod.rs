//! Accounts and who may act for them: users, sessions, API keys, and the secrets that they show.

pub mod accounts;
pub mod api_keys;
pub mod audit;
pub(crate) mod bootstrap;
pub mod credentials;
pub mod derived;
pub mod idempotency;
pub mod installation;
pub mod sessions;
pub mod users;
