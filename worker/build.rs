//! Compiles the C side of the planar path.

fn main() {}
