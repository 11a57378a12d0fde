//! MCP tools for agents: their table, arguments, and the server that the transport of `/mcp` calls.
//!
//! A tool calls the function of the application layer that the handler of REST calls, as the same caller: what an agent may do, what
//! it costs and how it fails are decided once. Nothing outlives a call but the run that it began.

mod agent;
mod arguments;
pub(crate) mod message;
pub(crate) mod place;
mod schema;
mod server;
mod tools;

pub(crate) use agent::Agent;
pub(crate) use server::Server;
