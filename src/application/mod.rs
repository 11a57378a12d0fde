//! The application layer: the use cases for a caller, whatever the transport (HTTP, MCP, the command line).
//!
//! Functions take a [`caller::Caller`] or an account id, the [`context`] of their resource, and typed requests; they answer with
//! records that serialize as the API shows them, or with an [`error::ApiError`] whose text says what to change. Nothing here
//! knows HTTP: the façade (`crate::http`) turns requests into calls and records into answers, and `crate::mcp` does the same for
//! agents.

// First: its macro `invalid!` is for all that follow.
#[macro_use]
pub(crate) mod error;

pub(crate) mod address;
pub(crate) mod agent_calls;
pub(crate) mod answer;
pub(crate) mod archive;
pub(crate) mod attempt_counter;
pub(crate) mod audit;
pub(crate) mod caller;
pub(crate) mod capabilities;
pub(crate) mod change_feed;
pub(crate) mod changes;
pub(crate) mod context;
pub(crate) mod delivery;
pub(crate) mod downloads;
pub(crate) mod events;
pub(crate) mod field;
pub(crate) mod filename;
pub(crate) mod files;
pub(crate) mod folders;
pub(crate) mod jobs;
pub(crate) mod live_inputs;
pub(crate) mod members;
pub(crate) mod object;
pub(crate) mod order;
pub(crate) mod owner_sessions;
pub(crate) mod page;
pub(crate) mod part;
pub(crate) mod password_checks;
pub(crate) mod playback_token;
pub(crate) mod rate_limit;
pub(crate) mod reached;
pub(crate) mod readiness;
pub(crate) mod sessions;
pub(crate) mod share;
pub(crate) mod shared_attempts;
pub(crate) mod shared_counts;
pub(crate) mod sign_in;
pub(crate) mod signing;
pub(crate) mod source_url;
pub(crate) mod suspension;
pub(crate) mod system;
pub(crate) mod tus;
pub(crate) mod uploads;
pub(crate) mod usage_history;
pub(crate) mod video;
pub(crate) mod webhooks;
pub(crate) mod webrtc;
pub(crate) mod workflows;
