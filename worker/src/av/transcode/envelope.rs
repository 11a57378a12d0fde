//! Gain of audio over time: `volume`, fades, loudness normalisation to −16 LUFS, and a limiter of peaks. Pure.
//!
//! The limiter looks at the peaks that an earlier pass measured, so it is ready before each of them and delays nothing.

use sluice_media::av::AudioWork;

use super::loudness::{Loudness, PEAKS_PER_SECOND};

/// EBU R 128 names −23 LUFS for broadcasts; −16 is what the web has settled on.
const TARGET_LUFS: f64 = -16.0;
/// −1 dBTP, with what encoders add to a peak.
const CEILING: f32 = 0.86;
/// No more than 30 dB: below that is noise.
const MOST_GAIN: f64 = 31.6;
/// Steps of the limiter in a hundredth of a second, down before a peak and back after it: 1 dB, and a third of that.
const ATTACK: f32 = 1.122;
const RELEASE: f32 = 1.04;

/// A gain for each moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    gain: f32,
    fade_in_s: f64,
    /// Begin and duration of the fade out.
    fade_out: Option<(f64, f64)>,
    /// Below 1 around peaks, one value for each [`PEAKS_PER_SECOND`]th; empty: no limit.
    limit: Vec<f32>,
}

impl Envelope {
    /// Returns whether a programme must be measured first: for its loudness, or for its end.
    pub fn needs_measuring(work: &AudioWork) -> bool {
        work.normalize || work.fade_out_s > 0.0
    }

    /// For what is asked of a programme; `None`: nothing is multiplied.
    pub fn of(work: &AudioWork, measured: Option<&Loudness>) -> Option<Self> {
        if !work.changes_loudness() {
            return None;
        }
        let mut gain = f64::from(work.volume.max(0.0));
        let mut limit = Vec::new();
        if let (true, Some(loudness)) = (work.normalize, measured) {
            if let Some(integrated) = loudness.integrated {
                gain *= 10_f64
                    .powf((TARGET_LUFS - integrated) / 20.0)
                    .min(MOST_GAIN);
            }
            limit = limiter(&loudness.peaks, gain as f32);
        }
        let fade_out_s = f64::from(work.fade_out_s);
        let fade_out = measured
            .filter(|_| fade_out_s > 0.0)
            .map(|measured| (measured.length_s - fade_out_s, fade_out_s));
        Some(Self {
            gain: gain as f32,
            fade_in_s: f64::from(work.fade_in_s.max(0.0)),
            fade_out,
            limit,
        })
    }

    /// Seconds from the beginning.
    pub fn at(&self, second: f64) -> f32 {
        let mut share = 1.0;
        if second < self.fade_in_s {
            share *= second / self.fade_in_s;
        }
        if let Some((start_s, length_s)) = self.fade_out
            && second > start_s
        {
            share *= 1.0 - (second - start_s) / length_s;
        }
        self.gain * share.clamp(0.0, 1.0) as f32 * self.limit_at(second)
    }

    /// On the line between the middles of two steps.
    fn limit_at(&self, second: f64) -> f32 {
        let Some(last) = self.limit.len().checked_sub(1) else {
            return 1.0;
        };
        let place = (second * f64::from(PEAKS_PER_SECOND) - 0.5).max(0.0);
        let before = (place as usize).min(last);
        let after = (before + 1).min(last);
        let share = (place - before as f64).min(1.0) as f32;
        self.limit[before] * (1.0 - share) + self.limit[after] * share
    }
}

/// The gain on top of `gain` that keeps every peak below the ceiling, without jumps.
fn limiter(peaks: &[f32], gain: f32) -> Vec<f32> {
    let allowed: Vec<f32> = peaks
        .iter()
        .map(|peak| (CEILING / (peak * gain).max(CEILING)).min(1.0))
        .collect();
    if allowed.iter().all(|share| *share >= 1.0) {
        return Vec::new();
    }
    // Lines between neighbours stay below what each of them allows.
    let mut limit: Vec<f32> = (0..allowed.len())
        .map(|at| {
            let around = at.saturating_sub(1)..(at + 2).min(allowed.len());
            allowed[around].iter().copied().fold(1.0, f32::min)
        })
        .collect();
    for at in 1..limit.len() {
        limit[at] = limit[at].min(limit[at - 1] * RELEASE);
    }
    for at in (1..limit.len()).rev() {
        limit[at - 1] = limit[at - 1].min(limit[at] * ATTACK);
    }
    limit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loudness(integrated: Option<f64>, peaks: Vec<f32>) -> Loudness {
        Loudness {
            integrated,
            length_s: peaks.len() as f64 / f64::from(PEAKS_PER_SECOND),
            peaks,
        }
    }

    fn assert_near(envelope: &Envelope, points: &[(f64, f32)]) {
        for (second, expected) in points {
            let found = envelope.at(*second);
            assert!((found - expected).abs() < 0.01, "{second} s: {found}");
        }
    }

    #[test]
    fn nothing_asked_multiplies_nothing() {
        let work = AudioWork::default();
        assert_eq!(Envelope::of(&work, None), None);
        assert!(!Envelope::needs_measuring(&work));
    }

    #[test]
    fn fades_begin_and_end_where_the_programme_does() {
        let work = AudioWork {
            volume: 2.0,
            fade_in_s: 1.0,
            fade_out_s: 2.0,
            ..AudioWork::default()
        };
        let envelope =
            Envelope::of(&work, Some(&loudness(None, vec![0.1; 1_000]))).expect("an envelope");
        assert_near(
            &envelope,
            &[
                (-1.0, 0.0),
                (0.0, 0.0),
                (0.5, 1.0),
                (1.0, 2.0),
                (8.0, 2.0),
                (9.0, 1.0),
                (10.0, 0.0),
                (99.0, 0.0),
            ],
        );
        // Fades longer than the programme cross: a half of the one, a quarter of the other.
        let short =
            Envelope::of(&work, Some(&loudness(None, vec![0.1; 100]))).expect("an envelope");
        assert_near(&short, &[(0.5, 0.25), (1.0, 0.0)]);
    }

    #[test]
    fn loudness_is_brought_to_the_target_and_peaks_stay_below_the_ceiling() {
        let work = AudioWork {
            normalize: true,
            ..AudioWork::default()
        };
        let of = |integrated, peaks| {
            Envelope::of(&work, Some(&loudness(integrated, peaks))).expect("an envelope")
        };
        assert_near(&of(Some(-22.0), vec![0.1; 10]), &[(0.05, 1.995)]);
        assert_near(&of(Some(-10.0), vec![1.0; 10]), &[(0.05, 0.501)]);
        assert_near(&of(Some(-69.0), vec![0.001; 10]), &[(0.05, 31.6)]);
        assert_near(&of(None, vec![0.0; 10]), &[(0.05, 1.0)]);

        let mut peaks = vec![0.05; 300];
        peaks[150] = 0.9;
        let envelope = of(Some(-28.0), peaks.clone());
        for step in 0..3_000 {
            let second = f64::from(step) / 1_000.0;
            let peak = peaks[(second * 100.0) as usize];
            assert!(envelope.at(second) * peak <= CEILING + 1e-4, "{second} s");
            let jump = (envelope.at(second + 0.001) / envelope.at(second) - 1.0).abs();
            assert!(jump < 0.013, "{second} s: {jump}");
        }
        assert_near(&envelope, &[(0.1, 3.981), (2.99, 3.981)]);
    }
}
