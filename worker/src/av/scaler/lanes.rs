//! Arithmetic of the video scaler on sixteen samples at once: with AVX2 where the processor has it, else in plain code.
//!
//! A sum is sixteen numbers of 16 bits with six bits behind the point; each product is rounded to that.
#![allow(
    unsafe_code,
    reason = "registers are asked for by the processor's own names"
)]

use super::plane::{PlaneScaler, Rows, RowsMut, SIDE, Sixteen};

/// Bits behind the point of a sum.
const FRACTION: u32 = 6;
/// Bits by which samples are shifted: their product with a weight, of which [`WHOLE`](super::weights::WHOLE) is one,
/// has the point in its place once its lower [`CUT`] bits are gone.
const SHIFT: u32 = 7;
const CUT: u32 = 15;

/// Sixteen sums.
pub trait Lanes: Copy {
    fn zero() -> Self;

    /// Returns the samples as factors.
    fn factors(samples: &Sixteen) -> [i16; SIDE];

    fn plus(self, factors: &[i16; SIDE], weight: i16) -> Self;

    /// The samples that the sums are.
    fn rounded(self) -> Sixteen;

    /// Rows to columns.
    fn turned(block: &[Sixteen; SIDE]) -> [Sixteen; SIDE];
}

/// Scales with the best registers that there are.
pub fn scale(scaler: &mut PlaneScaler, source: Rows<'_>, target: RowsMut<'_>) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has what the function is made for.
        return unsafe { avx2::scale(scaler, source, target) };
    }
    scaler.scale_with::<Portable>(source, target);
}

/// Value added to a sum before its fraction is cut off.
const HALF: i16 = 1 << (FRACTION - 1);

/// In plain code.
#[derive(Clone, Copy, Debug)]
pub struct Portable([i16; SIDE]);

impl Lanes for Portable {
    fn zero() -> Self {
        Self([0; SIDE])
    }

    fn factors(samples: &Sixteen) -> [i16; SIDE] {
        samples.map(|sample| i16::from(sample) << SHIFT)
    }

    fn plus(mut self, factors: &[i16; SIDE], weight: i16) -> Self {
        for (sum, &factor) in self.0.iter_mut().zip(factors) {
            let product = i32::from(factor) * i32::from(weight) + (1 << (CUT - 1));
            *sum = sum.wrapping_add((product >> CUT) as i16);
        }
        self
    }

    fn rounded(self) -> Sixteen {
        let sample = |sum: i16| (sum.saturating_add(HALF) >> FRACTION).clamp(0, 255);
        self.0.map(|sum| sample(sum) as u8)
    }

    fn turned(block: &[Sixteen; SIDE]) -> [Sixteen; SIDE] {
        std::array::from_fn(|column| std::array::from_fn(|row| block[row][column]))
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_loadu_si128, _mm_packus_epi16, _mm_storeu_si128, _mm_unpackhi_epi8,
        _mm_unpacklo_epi8, _mm256_add_epi16, _mm256_adds_epi16, _mm256_castsi256_si128,
        _mm256_cvtepu8_epi16, _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_mulhrs_epi16,
        _mm256_set1_epi16, _mm256_setzero_si256, _mm256_slli_epi16, _mm256_srai_epi16,
        _mm256_storeu_si256,
    };

    use super::*;

    #[target_feature(enable = "avx2")]
    pub(super) fn scale(scaler: &mut PlaneScaler, source: Rows<'_>, target: RowsMut<'_>) {
        scaler.scale_with::<Registers>(source, target);
    }

    /// Made only inside of [`scale`].
    #[derive(Clone, Copy)]
    struct Registers(__m256i);

    #[inline(always)]
    fn load(samples: &Sixteen) -> __m128i {
        // SAFETY: sixteen bytes are read, which are there; alignment is not asked for.
        unsafe { _mm_loadu_si128(samples.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(register: __m128i) -> Sixteen {
        let mut samples = [0; SIDE];
        // SAFETY: sixteen bytes are written, which are there; alignment is not asked for.
        unsafe { _mm_storeu_si128(samples.as_mut_ptr().cast(), register) };
        samples
    }

    // SAFETY of all below: only `scale` uses these, where the processor has AVX2.
    impl Lanes for Registers {
        #[inline(always)]
        fn zero() -> Self {
            Self(unsafe { _mm256_setzero_si256() })
        }

        #[inline(always)]
        fn factors(samples: &Sixteen) -> [i16; SIDE] {
            let mut factors = [0; SIDE];
            unsafe {
                let samples = _mm256_cvtepu8_epi16(load(samples));
                let shifted = _mm256_slli_epi16::<{ SHIFT as i32 }>(samples);
                _mm256_storeu_si256(factors.as_mut_ptr().cast(), shifted);
            }
            factors
        }

        #[inline(always)]
        fn plus(self, factors: &[i16; SIDE], weight: i16) -> Self {
            Self(unsafe {
                let factors = _mm256_loadu_si256(factors.as_ptr().cast());
                _mm256_add_epi16(
                    self.0,
                    _mm256_mulhrs_epi16(factors, _mm256_set1_epi16(weight)),
                )
            })
        }

        #[inline(always)]
        fn rounded(self) -> Sixteen {
            store(unsafe {
                let sums = _mm256_adds_epi16(self.0, _mm256_set1_epi16(HALF));
                let sums = _mm256_srai_epi16::<{ FRACTION as i32 }>(sums);
                _mm_packus_epi16(
                    _mm256_castsi256_si128(sums),
                    _mm256_extracti128_si256::<1>(sums),
                )
            })
        }

        /// Rows are interleaved with those eight below four times, which takes each sample to its place.
        #[inline(always)]
        fn turned(block: &[Sixteen; SIDE]) -> [Sixteen; SIDE] {
            let mut rows: [__m128i; SIDE] = std::array::from_fn(|row| load(&block[row]));
            for _ in 0..4 {
                let before = rows;
                for row in 0..SIDE / 2 {
                    let (upper, lower) = (before[row], before[row + SIDE / 2]);
                    rows[2 * row] = unsafe { _mm_unpacklo_epi8(upper, lower) };
                    rows[2 * row + 1] = unsafe { _mm_unpackhi_epi8(upper, lower) };
                }
            }
            rows.map(store)
        }
    }
}
