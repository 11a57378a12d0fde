//! Bytes from the wire to access units. Knows neither actors, HTTP nor SQL.

pub mod gate;
