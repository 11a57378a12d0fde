//! Parts of scenarios: clips, encoders, viewers, a strict playlist checker and the service under test.
//!
//! Everything here waits for conditions with deadlines, and ends what it started when it is dropped.
#![allow(dead_code, unused_imports, reason = "each scenario uses a part of it")]

pub mod asset;
pub mod changes;
pub mod checker;
pub mod clips;
pub mod command;
pub mod database_lock;
pub mod definition;
pub mod dice;
pub mod document;
pub mod encoder;
pub mod ffprobe;
pub mod fmp4;
pub mod http;
pub mod images;
pub mod json;
pub mod media;
pub mod neighbour;
pub mod on_air;
pub mod power;
pub mod publisher;
pub mod receiver;
pub mod server;
pub mod shell;
pub mod small_disk;
pub mod viewer;

use std::io::Write;

pub use sluice_testkit::{Failure, eventually};

/// Says on the terminal, past the test harness, that a scenario was left out on this machine.
pub fn skip(scenario: &str, reason: &str) {
    // A closed stderr is no failure.
    let _ = writeln!(std::io::stderr(), "SKIPPED {scenario}: {reason}");
}
