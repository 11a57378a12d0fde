//! Runs the fuzz target that `FUZZ_TARGET` names; its arguments are libFuzzer's.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use sluice::fuzzing::{Target, targets};

fuzz_target!(|bytes: &[u8]| {
    static TARGET: OnceLock<Target> = OnceLock::new();
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        let all = targets();
        let found = all.iter().find(|target| target.name == name).copied();
        found.unwrap_or_else(|| {
            let names: Vec<_> = all.iter().map(|target| target.name).collect();
            panic!("FUZZ_TARGET must be one of {}", names.join(", "))
        })
    });
    (target.run)(bytes);
});
