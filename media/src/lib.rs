//! What media is: access units, codec configurations, the HLS packager. Pure: no I/O, no task, no actor.

pub mod unit;
