//! Rows of image delivery: delivery keys and presets.

pub mod delivery_keys;
pub mod presets;
