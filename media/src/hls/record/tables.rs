//! Sample tables of a recording's MP4 (`stts`, `ctts`, `stsz`, `co64`; ISO/IEC 14496-12 §8.6, §8.7), run-length coded
//! where the format is.

use super::{
    super::boxes::{put_u32, put_u64, write_box, write_full_box},
    Sample,
};

/// Tables of a track's samples, in decode order.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// Count and duration.
    durations: Vec<(u32, u32)>,
    /// Count and composition offset.
    offsets: Vec<(u32, i32)>,
    sizes: Vec<u32>,
    /// Numbers of those that need no other, from 1.
    sync: Vec<u32>,
    chunks: Vec<Chunk>,
}

/// Samples with contiguous bytes.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    /// Offset from the payload's beginning.
    offset: u64,
    samples: u32,
    /// Number of the sample entry, from 1.
    entry: u32,
}

impl Tables {
    pub(super) fn begin_chunk(&mut self, offset: u64, entry: u32) {
        self.chunks.push(Chunk {
            offset,
            samples: 0,
            entry,
        });
    }

    /// Adds a sample to the open chunk. Its duration follows by [`lasts`](Self::lasts).
    pub(super) fn add(&mut self, sample: &Sample, cts: i32) {
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.samples += 1;
        }
        self.sizes.push(sample.size);
        if sample.key {
            self.sync
                .push(u32::try_from(self.sizes.len()).unwrap_or(u32::MAX));
        }
        count(&mut self.offsets, cts);
    }

    /// Sets the duration of the next sample without one.
    pub(super) fn lasts(&mut self, duration: u32) {
        count(&mut self.durations, duration);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// Writes the tables; `places` receives the places in `out` of the chunks' offsets, which count from the payload.
    pub(super) fn write(&self, out: &mut Vec<u8>, is_video: bool, places: &mut Vec<ChunkOffsets>) {
        write_full_box(out, b"stts", 0, 0, |out| {
            put_count(out, self.durations.len());
            for (count, duration) in &self.durations {
                put_u32(out, *count);
                put_u32(out, *duration);
            }
        });
        if self.offsets.iter().any(|(_, offset)| *offset != 0) {
            // Version 1: offsets are signed.
            write_full_box(out, b"ctts", 1, 0, |out| {
                put_count(out, self.offsets.len());
                for (count, offset) in &self.offsets {
                    put_u32(out, *count);
                    out.extend_from_slice(&offset.to_be_bytes());
                }
            });
        }
        if is_video && self.sync.len() < self.sizes.len() {
            write_full_box(out, b"stss", 0, 0, |out| {
                put_count(out, self.sync.len());
                self.sync.iter().for_each(|number| put_u32(out, *number));
            });
        }
        self.write_chunks(out);
        write_full_box(out, b"stsz", 0, 0, |out| {
            put_u32(out, 0);
            put_count(out, self.sizes.len());
            self.sizes.iter().for_each(|size| put_u32(out, *size));
        });
        write_box(out, b"co64", |out| {
            put_u32(out, 0);
            put_count(out, self.chunks.len());
            places.push(ChunkOffsets {
                at: out.len(),
                count: self.chunks.len(),
            });
            self.chunks
                .iter()
                .for_each(|chunk| put_u64(out, chunk.offset));
        });
    }

    fn write_chunks(&self, out: &mut Vec<u8>) {
        let mut runs: Vec<(u32, u32, u32)> = Vec::new();
        for (number, chunk) in (1..).zip(&self.chunks) {
            let is_same = |run: &(u32, u32, u32)| (run.1, run.2) == (chunk.samples, chunk.entry);
            if !runs.last().is_some_and(is_same) {
                runs.push((number, chunk.samples, chunk.entry));
            }
        }
        write_full_box(out, b"stsc", 0, 0, |out| {
            put_count(out, runs.len());
            for (first, samples, entry) in &runs {
                put_u32(out, *first);
                put_u32(out, *samples);
                put_u32(out, *entry);
            }
        });
    }
}

/// Places of chunk offsets.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkOffsets {
    at: usize,
    count: usize,
}

impl ChunkOffsets {
    /// Adds to every offset.
    pub(super) fn shift(self, out: &mut [u8], by: u64) {
        let offsets = out[self.at..self.at + self.count * 8].chunks_exact_mut(8);
        for offset in offsets {
            let value = u64::from_be_bytes(offset.try_into().expect("chunks of eight"));
            offset.copy_from_slice(&(value + by).to_be_bytes());
        }
    }
}

fn count<T: PartialEq>(runs: &mut Vec<(u32, T)>, value: T) {
    match runs.last_mut() {
        Some((count, last)) if *last == value => *count += 1,
        _ => runs.push((1, value)),
    }
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    put_u32(out, u32::try_from(count).unwrap_or(u32::MAX));
}
