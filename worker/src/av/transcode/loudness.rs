//! Loudness of a programme: integrated loudness (ITU-R BS.1770-4, EBU R 128) and its peaks. Pure.

/// Steps of 100 ms, each with one value of energy; four of them are a gating block.
const STEPS_PER_SECOND: u32 = 10;
const STEPS_PER_BLOCK: usize = 4;
/// Peaks are kept for each 10 ms.
pub const PEAKS_PER_SECOND: u32 = 100;
/// LUFS below which a block is silence.
const ABSOLUTE_GATE: f64 = -70.0;
/// LU below the mean of what is no silence.
const RELATIVE_GATE: f64 = -10.0;
/// BS.1770-4 equation 2.
const OFFSET: f64 = -0.691;

/// Measured loudness.
#[derive(Clone, Debug, PartialEq)]
pub struct Loudness {
    /// LUFS; `None`: silence, or too short to say.
    pub integrated: Option<f64>,
    /// The largest true peak in each [`PEAKS_PER_SECOND`]th, 1: full scale.
    pub peaks: Vec<f32>,
    pub length_s: f64,
}

/// Takes interleaved samples and weighs them.
pub struct Meter {
    rate: u32,
    channels: Vec<Channel>,
    frames: u64,
    /// Energy of the current step.
    energy: f64,
    energies: Vec<f64>,
    peak: f32,
    peaks: Vec<f32>,
}

struct Channel {
    weight: f64,
    shelving: Biquad,
    high_pass: Biquad,
    oversampler: Oversampler,
}

impl Meter {
    /// `rate` in hertz, at least [`PEAKS_PER_SECOND`]. Six channels are 5.1: left, right, centre, low frequencies, surrounds.
    pub fn new(rate: u32, channels: u32) -> Self {
        let weight = |index: u32| match (channels, index) {
            (6, 3) => 0.0,
            (6, 4 | 5) => 1.41,
            _ => 1.0,
        };
        let channels = (0..channels.max(1))
            .map(|index| Channel {
                weight: weight(index),
                shelving: Biquad::shelving(rate),
                high_pass: Biquad::high_pass(rate),
                oversampler: Oversampler::default(),
            })
            .collect();
        Self {
            rate: rate.max(PEAKS_PER_SECOND),
            channels,
            frames: 0,
            energy: 0.0,
            energies: Vec::new(),
            peak: 0.0,
            peaks: Vec::new(),
        }
    }

    /// Whole frames of interleaved samples, 1: full scale.
    pub fn push(&mut self, samples: &[f32]) {
        for frame in samples.chunks_exact(self.channels.len()) {
            for (channel, sample) in self.channels.iter_mut().zip(frame) {
                let sample = if sample.is_finite() { *sample } else { 0.0 };
                let weighted = channel
                    .high_pass
                    .next(channel.shelving.next(f64::from(sample)));
                self.energy += channel.weight * weighted * weighted;
                self.peak = self.peak.max(channel.oversampler.peak(sample));
            }
            self.frames += 1;
            self.close_steps();
        }
    }

    fn close_steps(&mut self) {
        if self
            .frames
            .is_multiple_of(u64::from(self.rate / PEAKS_PER_SECOND))
        {
            self.peaks.push(std::mem::take(&mut self.peak));
        }
        let step = u64::from(self.rate / STEPS_PER_SECOND);
        if self.frames.is_multiple_of(step) {
            self.energies
                .push(std::mem::take(&mut self.energy) / step as f64);
        }
    }

    pub fn finish(mut self) -> Loudness {
        self.peaks.push(self.peak);
        Loudness {
            integrated: integrated(&self.energies),
            peaks: self.peaks,
            length_s: self.frames as f64 / f64::from(self.rate),
        }
    }
}

/// The gated mean over all blocks (BS.1770-4 §5.1).
fn integrated(energies: &[f64]) -> Option<f64> {
    let blocks = || {
        energies
            .windows(STEPS_PER_BLOCK)
            .map(|steps| steps.iter().sum::<f64>() / STEPS_PER_BLOCK as f64)
    };
    let mean_above = |gate: f64| {
        let (sum, count) = blocks()
            .filter(|energy| loudness(*energy) > gate)
            .fold((0.0, 0_u64), |(sum, count), energy| {
                (sum + energy, count + 1)
            });
        (count > 0).then(|| loudness(sum / count as f64))
    };
    let ungated = mean_above(ABSOLUTE_GATE)?;
    mean_above((ungated + RELATIVE_GATE).max(ABSOLUTE_GATE))
}

fn loudness(energy: f64) -> f64 {
    OFFSET + 10.0 * energy.log10()
}

/// A filter of second order in transposed direct form II.
#[derive(Clone, Copy, Debug, Default)]
struct Biquad {
    b: [f64; 3],
    a: [f64; 2],
    state: [f64; 2],
}

impl Biquad {
    /// The head's effect: BS.1770-4 table 1, from its analogue form so that any rate has it.
    fn shelving(rate: u32) -> Self {
        const CORNER_HZ: f64 = 1_681.974_450_955_533;
        const GAIN_DB: f64 = 3.999_843_853_973_347;
        const QUALITY: f64 = 0.707_175_236_955_419_6;
        const BAND_EXPONENT: f64 = 0.499_666_774_154_541_6;
        let k = warped(CORNER_HZ, rate);
        let high = 10_f64.powf(GAIN_DB / 20.0);
        let band = high.powf(BAND_EXPONENT);
        let a0 = 1.0 + k / QUALITY + k * k;
        Self {
            b: [
                (high + band * k / QUALITY + k * k) / a0,
                2.0 * (k * k - high) / a0,
                (high - band * k / QUALITY + k * k) / a0,
            ],
            a: feedback(k, QUALITY),
            state: [0.0; 2],
        }
    }

    /// BS.1770-4 table 2.
    fn high_pass(rate: u32) -> Self {
        const CORNER_HZ: f64 = 38.135_470_876_024_44;
        const QUALITY: f64 = 0.500_327_037_323_877_3;
        Self {
            b: [1.0, -2.0, 1.0],
            a: feedback(warped(CORNER_HZ, rate), QUALITY),
            state: [0.0; 2],
        }
    }

    fn next(&mut self, input: f64) -> f64 {
        let output = self.b[0] * input + self.state[0];
        self.state[0] = self.b[1] * input - self.a[0] * output + self.state[1];
        self.state[1] = self.b[2] * input - self.a[1] * output;
        output
    }
}

/// The bilinear transform's frequency; corners stay below half of the rate.
fn warped(corner_hz: f64, rate: u32) -> f64 {
    let rate = f64::from(rate.max(1));
    (std::f64::consts::PI * (corner_hz / rate).min(0.49)).tan()
}

fn feedback(k: f64, quality: f64) -> [f64; 2] {
    let a0 = 1.0 + k / quality + k * k;
    [2.0 * (k * k - 1.0) / a0, (1.0 - k / quality + k * k) / a0]
}

const TAPS: usize = 12;
/// BS.1770-4 annex 2, the first two of four phases; the others are these reversed.
const PHASES: [[f32; TAPS]; 2] = [
    [
        0.001_708_984_4,
        0.010_986_328,
        -0.019_653_32,
        0.033_203_125,
        -0.059_448_242,
        0.137_329_1,
        0.972_167_97,
        -0.102_294_92,
        0.047_607_422,
        -0.026_611_328,
        0.014_892_578,
        -0.008_300_781,
    ],
    [
        -0.029_174_805,
        0.029_296_875,
        -0.051_757_812,
        0.089_111_33,
        -0.166_503_9,
        0.465_087_9,
        0.779_785_16,
        -0.200_317_38,
        0.101_562_5,
        -0.058_227_54,
        0.033_081_055,
        -0.018_920_898,
    ],
];

/// The peak between samples, by four values for each.
#[derive(Clone, Copy, Debug, Default)]
struct Oversampler {
    /// The last samples, the newest at `at`, twice, so that any twelve of them are contiguous.
    recent: [f32; 2 * TAPS],
    at: usize,
}

impl Oversampler {
    fn peak(&mut self, sample: f32) -> f32 {
        self.at = if self.at == 0 { TAPS - 1 } else { self.at - 1 };
        self.recent[self.at] = sample;
        self.recent[self.at + TAPS] = sample;
        let newest_first = &self.recent[self.at..self.at + TAPS];
        let mut peak = sample.abs();
        for phase in &PHASES {
            let (mut forth, mut back) = (0.0, 0.0);
            for (tap, value) in newest_first.iter().enumerate() {
                forth += phase[tap] * value;
                back += phase[TAPS - 1 - tap] * value;
            }
            peak = peak.max(f32::abs(forth)).max(f32::abs(back));
        }
        peak
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(rate: u32, hertz: f64, amplitude: f64, seconds: f64) -> Vec<f32> {
        let frames = (f64::from(rate) * seconds) as u32;
        (0..frames)
            .map(|index| {
                let phase = std::f64::consts::TAU * hertz * f64::from(index) / f64::from(rate);
                (amplitude * phase.sin()) as f32
            })
            .collect()
    }

    fn measured(rate: u32, channels: u32, samples: &[f32]) -> Loudness {
        let mut meter = Meter::new(rate, channels);
        for part in samples.chunks(channels as usize * 1_000) {
            meter.push(part);
        }
        meter.finish()
    }

    fn interleaved(mono: &[f32], gains: &[f32]) -> Vec<f32> {
        mono.iter()
            .flat_map(|sample| gains.iter().map(move |gain| sample * gain))
            .collect()
    }

    #[test]
    fn a_full_scale_tone_of_997_hertz_has_the_loudness_of_the_recommendation() {
        // BS.1770-4 §4: 0 dBFS in one of left, right and centre reads −3.01 LKFS.
        for rate in [22_050, 44_100, 48_000, 96_000] {
            let samples = tone(rate, 997.0, 1.0, 2.0);
            let one = measured(rate, 1, &samples).integrated.expect("a tone");
            assert!((one + 3.01).abs() < 0.05, "{rate}: {one}");
        }
        let mono = tone(48_000, 997.0, 1.0, 1.0);
        for (gains, expected) in [
            (vec![1.0, 1.0], 0.0),
            (vec![0.0, 0.0, 0.0, 1.0, 0.0, 0.0], f64::NAN),
            (vec![0.0, 0.0, 0.0, 0.0, 1.0, 0.0], -3.01 + 1.49),
        ] {
            let found = measured(48_000, gains.len() as u32, &interleaved(&mono, &gains));
            match found.integrated {
                None => assert!(expected.is_nan(), "{gains:?}"),
                Some(found) => assert!((found - expected).abs() < 0.1, "{gains:?}: {found}"),
            }
        }
    }

    #[test]
    fn silence_and_quiet_passages_do_not_count() {
        let loud = tone(48_000, 997.0, 0.1, 4.0);
        let alone = measured(48_000, 1, &loud).integrated.expect("a tone");
        let mut programme = loud;
        programme.extend(tone(48_000, 997.0, 0.001, 8.0));
        programme.extend(vec![0.0; 48_000 * 4]);
        let gated = measured(48_000, 1, &programme).integrated.expect("a tone");
        assert!((gated - alone).abs() < 0.3, "{gated} against {alone}");
        for samples in [
            vec![],
            vec![0.0; 48_000],
            vec![f32::NAN; 48_000],
            vec![1.0; 100],
        ] {
            assert_eq!(measured(48_000, 1, &samples).integrated, None);
        }
    }

    #[test]
    fn peaks_between_samples_are_found_and_stand_where_they_are() {
        // At a quarter of the rate and 45°, every sample is at 0.707 of the peak.
        let samples: Vec<f32> = (0..48_000)
            .map(|index| {
                let phase =
                    std::f32::consts::FRAC_PI_2 * index as f32 + std::f32::consts::FRAC_PI_4;
                if index < 24_000 { 0.0 } else { phase.sin() }
            })
            .collect();
        let peaks = measured(48_000, 1, &samples).peaks;
        assert_eq!(peaks.len(), 101);
        assert!(
            peaks[..49].iter().all(|peak| *peak < 0.01),
            "{:?}",
            &peaks[..50]
        );
        assert!((peaks[75] - 1.0).abs() < 0.02, "{}", peaks[75]);
    }
}
