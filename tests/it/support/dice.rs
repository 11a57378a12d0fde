//! Random numbers that a seed repeats (`SLUICE_TEST_SEED`).

use super::Failure;

const DEFAULT_SEED: u64 = 20_261_121;

/// Returns the seed of this run: `SLUICE_TEST_SEED`, or the same one each time.
pub fn seed() -> Result<u64, Failure> {
    match std::env::var("SLUICE_TEST_SEED") {
        Ok(seed) => Ok(seed.parse()?),
        Err(_) => Ok(DEFAULT_SEED),
    }
}

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to one less than `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// For a part of the run with a course of its own.
    pub fn another(&mut self) -> Self {
        Self(self.next())
    }
}
