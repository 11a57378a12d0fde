//! Rows of live inputs: broadcasts, connections, outputs, recordings and their media, and playback keys.

pub mod broadcasts;
pub mod input_list;
pub mod live_connections;
pub mod live_inputs;
pub mod live_segments;
pub mod outputs;
pub mod playback_keys;
pub mod publisher_connections;
pub mod recordings;
