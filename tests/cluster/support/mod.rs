//! Parts of the scenarios: servers, nodes, balancer, clients, receiver, what was acknowledged.

pub mod api;
pub mod balancer;
pub mod cpu_share;
#[path = "../../it/support/dice.rs"]
pub mod dice;
pub mod faults;
pub mod installation;
#[path = "../../it/support/json.rs"]
pub mod json;
pub mod ledger;
pub mod node;
pub mod objects;
pub mod postgres;
pub mod process;
pub mod receiver;

pub use sluice_testkit::{Failure, eventually};

/// Number of faults of the soak. When it is set, outages and halts are as long, and times are asserted, as the design says.
pub const FAULTS: &str = "SLUICE_SOAK_FAULTS";

/// True when everything is as long as the design says, on a machine that has nothing else to do.
pub fn is_soak() -> bool {
    std::env::var_os(FAULTS).is_some()
}
