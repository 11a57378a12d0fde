//! The payload of a command.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_ingest::rtmp::amf0;

fuzz_target!(|bytes: &[u8]| {
    let mut values = amf0::Reader::new(bytes);
    while let Ok(Some(_)) = values.next_value() {}
});
