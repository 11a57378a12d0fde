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
