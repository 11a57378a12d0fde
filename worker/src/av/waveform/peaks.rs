//! Peaks of a waveform: the lowest and highest samples of audio of any length, in a bounded number of bins.
//!
//! When the bins are full, neighbours are merged and each covers twice as many samples; so the length of the audio need
//! not be known before.

/// Bins for each column of the drawing, at the least half as many: what a column takes from its neighbours does not show.
const BINS_FOR_EACH: usize = 16;
const FEWEST_BINS: usize = 1 << 12;
const MOST_BINS: usize = 1 << 20;
const SAMPLE_BYTES: usize = 2;

/// The lowest and the highest of some samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub low: i16,
    pub high: i16,
}

impl Extent {
    const NOTHING: Self = Self {
        low: i16::MAX,
        high: i16::MIN,
    };

    fn and(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }

    /// Reads little-endian samples.
    fn of(bytes: &[u8]) -> Self {
        let (samples, _) = bytes.as_chunks::<SAMPLE_BYTES>();
        samples.iter().fold(Self::NOTHING, |extent, sample| {
            let sample = i16::from_le_bytes(*sample);
            extent.and(Self {
                low: sample,
                high: sample,
            })
        })
    }
}

#[derive(Debug)]
pub struct Peaks {
    bins: Vec<Extent>,
    most: usize,
    /// Instants that a full bin covers.
    span: usize,
    /// The bin that is being filled, and the instants that it covers so far.
    current: Extent,
    filled: usize,
}

impl Peaks {
    /// For a drawing of so many columns.
    pub fn new(columns: u32) -> Self {
        Self {
            bins: Vec::new(),
            most: (columns as usize * BINS_FOR_EACH).clamp(FEWEST_BINS, MOST_BINS),
            span: 1,
            current: Extent::NOTHING,
            filled: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.bins.is_empty() && self.filled == 0
    }

    /// Takes interleaved samples of 16 bits; all channels count as one.
    pub fn push(&mut self, bytes: &[u8], channels: usize) {
        let instant_bytes = channels * SAMPLE_BYTES;
        let mut rest = &bytes[..bytes.len() - bytes.len() % instant_bytes];
        while !rest.is_empty() {
            let room = (self.span - self.filled) * instant_bytes;
            let (taken, after) = rest.split_at(room.min(rest.len()));
            self.current = self.current.and(Extent::of(taken));
            self.filled += taken.len() / instant_bytes;
            rest = after;
            if self.filled == self.span {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        self.bins.push(self.current);
        (self.current, self.filled) = (Extent::NOTHING, 0);
        if self.bins.len() == self.most {
            let merged = self.bins.chunks(2).map(|pair| {
                pair.iter()
                    .fold(Extent::NOTHING, |extent, bin| extent.and(*bin))
            });
            self.bins = merged.collect();
            self.span *= 2;
        }
    }

    /// The extents of so many even parts; `None`: there was no audio.
    pub fn columns(mut self, columns: u32) -> Option<Vec<Extent>> {
        if self.filled > 0 {
            self.bins.push(self.current);
        }
        if self.bins.is_empty() {
            return None;
        }
        let (count, columns) = (self.bins.len(), columns as usize);
        let boundary = |column: usize| column * count / columns;
        let parts = (0..columns).map(|column| {
            let first = boundary(column);
            let end = boundary(column + 1).max(first + 1);
            let bins = &self.bins[first..end];
            bins.iter()
                .fold(Extent::NOTHING, |extent, bin| extent.and(*bin))
        });
        Some(parts.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(samples: &[i16]) -> Vec<u8> {
        samples
            .iter()
            .flat_map(|sample| sample.to_le_bytes())
            .collect()
    }

    fn extent(low: i16, high: i16) -> Extent {
        Extent { low, high }
    }

    #[test]
    fn columns_have_the_peaks_of_their_part_however_long_the_audio_is() {
        // A ramp; a piece of odd length at a time.
        for length in [4_096usize, 65_536, 1_000_000] {
            let mut peaks = Peaks::new(4);
            let ramp: Vec<i16> = (0..length)
                .map(|index| (index * 30_000 / length) as i16)
                .collect();
            for piece in ramp.chunks(997) {
                peaks.push(&bytes(piece), 1);
            }
            assert!(peaks.bins.len() < FEWEST_BINS);
            let columns = peaks.columns(4).expect("audio");
            for (index, column) in columns.iter().enumerate() {
                let (low, high) = (index as i16 * 7_500, (index as i16 + 1) * 7_500);
                assert!((column.low - low).abs() < 20, "{length}: {column:?}");
                assert!((column.high - high).abs() < 20, "{length}: {column:?}");
            }
        }
    }

    #[test]
    fn few_samples_fill_many_columns_and_none_fill_nothing() {
        let mut peaks = Peaks::new(4);
        assert!(peaks.is_empty());
        peaks.push(&bytes(&[-5, 7])[..3], 1);
        peaks.push(&bytes(&[9]), 1);
        let columns = peaks.columns(4).expect("audio");
        assert_eq!(columns[..2], [extent(-5, -5); 2]);
        assert_eq!(columns[2..], [extent(9, 9); 2]);
        assert_eq!(Peaks::new(4).columns(4), None);
    }

    #[test]
    fn channels_count_together() {
        let mut peaks = Peaks::new(2);
        peaks.push(&bytes(&[1, -1, 2, -2]), 2);
        let columns = peaks.columns(2).expect("audio");
        assert_eq!(columns, [extent(-1, 1), extent(-2, 2)]);
    }
}
