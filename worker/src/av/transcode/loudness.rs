//! Measures loudness: integrated loudness (ITU-R BS.1770-4, EBU R 128) and true peaks. Pure.

use ebur128::{Channel, EbuR128, Mode};

/// Peaks are kept for each 10 ms.
pub const PEAKS_PER_SECOND: u32 = 100;
/// Rates in hertz that the library measures.
const RATES: (u32, u32) = (PEAKS_PER_SECOND, 2_822_400);
const MOST_CHANNELS: u32 = 64;
/// Channels of 5.1: left, right, centre, low frequencies, surrounds.
const SURROUND: u32 = 6;

/// Measured loudness.
#[derive(Clone, Debug, PartialEq)]
pub struct Loudness {
    /// LUFS; `None`: silence, or too short to say.
    pub integrated: Option<f64>,
    /// The largest true peak in each [`PEAKS_PER_SECOND`]th, 1: full scale.
    pub peaks: Vec<f32>,
    pub length_s: f64,
}

/// Takes interleaved samples and measures them.
pub struct Meter {
    state: EbuR128,
    /// Samples of the current 10 ms.
    pending: Vec<f32>,
    samples_per_peak: usize,
    frames: u64,
    peaks: Vec<f32>,
}

impl Meter {
    /// `rate` in hertz. Six channels are 5.1; those of other layouts weigh the same.
    pub fn new(rate: u32, channels: u32) -> Self {
        let (rate, channels) = (
            rate.clamp(RATES.0, RATES.1),
            channels.clamp(1, MOST_CHANNELS),
        );
        let mut state = EbuR128::new(channels, rate, Mode::I | Mode::TRUE_PEAK)
            .expect("rate and channels are in the library's range");
        if channels != SURROUND {
            state
                .set_channel_map(&vec![Channel::Left; channels as usize])
                .expect("there is an entry for each channel");
        }
        Self {
            state,
            pending: Vec::new(),
            samples_per_peak: (rate / PEAKS_PER_SECOND * channels) as usize,
            frames: 0,
            peaks: Vec::new(),
        }
    }

    /// Whole frames of interleaved samples, 1: full scale.
    pub fn push(&mut self, samples: &[f32]) {
        for frame in samples.chunks_exact(self.state.channels() as usize) {
            let finite = frame
                .iter()
                .map(|it| if it.is_finite() { *it } else { 0.0 });
            self.pending.extend(finite);
            self.frames += 1;
            if self.pending.len() == self.samples_per_peak {
                self.measure();
            }
        }
    }

    fn measure(&mut self) {
        self.state
            .add_frames_f32(&self.pending)
            .expect("whole frames");
        let is_empty = self.pending.is_empty();
        self.pending.clear();
        let peaks = (0..self.state.channels())
            .filter(|_| !is_empty)
            .filter_map(|channel| self.state.prev_true_peak(channel).ok());
        self.peaks.push(peaks.fold(0.0, f64::max) as f32);
    }

    pub fn finish(mut self) -> Loudness {
        self.measure();
        Loudness {
            // Silence is minus infinity.
            integrated: self
                .state
                .loudness_global()
                .ok()
                .filter(|it| it.is_finite()),
            peaks: self.peaks,
            length_s: self.frames as f64 / f64::from(self.state.rate()),
        }
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
    fn peaks_between_samples_are_found_and_are_where_they_are() {
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
