//! Monthly counters: blocks taken durably, spent from atomics that the façade reads.
