//! Conversions as jobs: batches, their progress, their end, what they cost, and what a kill leaves of them.

mod batches;
mod crash;
mod rejections;

use crate::support::json::{number, text};

/// Returns an SVG whose rendering time grows with its size.
fn svg(colour: &str) -> Vec<u8> {
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="400" height="300">
           <rect width="400" height="300" fill="{colour}"/><circle cx="200" cy="150" r="90" fill="white"/></svg>"#
    )
    .into_bytes()
}
