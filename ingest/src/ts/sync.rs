//! Finds the start of MPEG-TS packets in bytes of any size, and finds it again when it was lost.

use super::packet::{PACKET_BYTES, SYNC};

/// Bytes that prove a start: it is accepted when the next packet starts right after it.
const PROOF_BYTES: usize = PACKET_BYTES + 1;

/// Keeps the incomplete rest between two pieces: less than two packets.
#[derive(Debug, Default)]
pub(super) struct Synchroniser {
    rest: Vec<u8>,
    lost: bool,
    resyncs: u64,
}

impl Synchroniser {
    /// Times that the start was lost.
    pub(super) fn resyncs(&self) -> u64 {
        self.resyncs
    }

    /// Gives every packet that is complete to `take`.
    pub(super) fn push(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8; PACKET_BYTES])) {
        if self.rest.is_empty() {
            let used = self.take_packets(bytes, &mut take);
            self.rest.extend_from_slice(&bytes[used..]);
            return;
        }
        let mut joined = std::mem::take(&mut self.rest);
        joined.extend_from_slice(bytes);
        let used = self.take_packets(&joined, &mut take);
        self.rest.extend_from_slice(&joined[used..]);
    }

    /// Ends the stream: a last packet needs no successor to be accepted.
    pub(super) fn flush(&mut self, mut take: impl FnMut(&[u8; PACKET_BYTES])) {
        let rest = std::mem::take(&mut self.rest);
        if let Some(packet) = rest.first_chunk().filter(|packet| packet[0] == SYNC) {
            take(packet);
        }
    }

    /// Gives whole packets to `take`; returns how many bytes were consumed.
    fn take_packets(&mut self, bytes: &[u8], take: &mut impl FnMut(&[u8; PACKET_BYTES])) -> usize {
        let mut at = 0;
        while let Some(packet) = bytes[at..].first_chunk::<PACKET_BYTES>() {
            if packet[0] == SYNC && !self.lost {
                take(packet);
                at += PACKET_BYTES;
                continue;
            }
            if !self.lost {
                self.lost = true;
                self.resyncs += 1;
            }
            match find_start(&bytes[at..]) {
                Found::At(start) => {
                    self.lost = false;
                    at += start;
                }
                Found::NotBefore(start) => return at + start,
            }
        }
        at
    }
}

enum Found {
    At(usize),
    /// More bytes are needed to decide.
    NotBefore(usize),
}

fn find_start(bytes: &[u8]) -> Found {
    for (at, byte) in bytes.iter().enumerate() {
        if *byte != SYNC {
            continue;
        }
        match bytes.get(at + PROOF_BYTES - 1) {
            Some(&SYNC) => return Found::At(at),
            Some(_) => {}
            None => return Found::NotBefore(at),
        }
    }
    Found::NotBefore(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: u8) -> [u8; PACKET_BYTES] {
        let mut packet = [number; PACKET_BYTES];
        packet[0] = SYNC;
        packet
    }

    /// Returns the second bytes of the packets found, and how often the start was lost.
    fn numbers(bytes: &[u8], piece: usize) -> (Vec<u8>, u64) {
        let mut synchroniser = Synchroniser::default();
        let mut numbers = Vec::new();
        for piece in bytes.chunks(piece) {
            synchroniser.push(piece, |packet| numbers.push(packet[1]));
            assert!(synchroniser.rest.len() < 2 * PACKET_BYTES);
        }
        synchroniser.flush(|packet| numbers.push(packet[1]));
        (numbers, synchroniser.resyncs())
    }

    #[test]
    fn packets_are_found_in_pieces_of_any_size() {
        let clean: Vec<u8> = (1..6).flat_map(packet).collect();
        let garbage = [&[0, SYNC, 9, 9][..], &clean].concat();
        let cut = [&clean[..200], &clean[300..]].concat();
        for piece in [1, 7, 187, 188, 189, 1316, 4096] {
            assert_eq!(numbers(&clean, piece), (vec![1, 2, 3, 4, 5], 0), "{piece}");
            assert_eq!(
                numbers(&garbage, piece),
                (vec![1, 2, 3, 4, 5], 1),
                "{piece}"
            );
            // The second packet lost 100 bytes: it takes them from the third, which is lost with it.
            assert_eq!(numbers(&cut, piece), (vec![1, 2, 4, 5], 1), "{piece}");
        }
    }

    #[test]
    fn bytes_without_a_start_are_let_go() {
        assert_eq!(numbers(&[0; 4096], 1000), (vec![], 1));
        let decoys: Vec<u8> = (0..4096)
            .map(|at| if at % 5 == 0 { SYNC } else { 1 })
            .collect();
        let (_, resyncs) = numbers(&decoys, 100);
        assert!(resyncs >= 1);
    }
}
