//! Effects of image addresses (`blur`, `bri`, `sat` …): range and steps of each, as its operation declares them.

use crate::task::Adjust;

/// A number in delivery URLs, whose parser, canonical text and description are made from it; 0 changes nothing.
#[derive(Debug)]
pub struct Effect {
    /// Name in URLs.
    pub parameter: &'static str,
    /// Least value; only a whole number may be negative.
    pub min: i32,
    pub max: i32,
    /// Values in one unit, 1 for whole numbers: finer ones would only multiply variants.
    pub steps: i32,
    pub summary: &'static str,
    /// Adds the change to those of the other effects.
    pub(crate) apply: fn(&mut Adjust, f32),
}

impl Effect {
    pub fn is_whole(&self) -> bool {
        self.steps == 1
    }

    /// Returns the allowed values, for a message.
    pub fn allowed(&self) -> String {
        let noun = match self.is_whole() {
            true => "whole number",
            false => "number",
        };
        format!("a {noun} from {} to {}", self.min, self.max)
    }
}
