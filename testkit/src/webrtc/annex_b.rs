//! H.264 in Annex B cut into access units (ISO/IEC 14496-10, 7.4.1.2.3), for publishers.

use std::sync::Arc;

const SLICE: u8 = 1;
const IDR_SLICE: u8 = 5;

/// A frame with its start codes.
#[derive(Clone, Debug)]
pub struct AccessUnit {
    pub data: Arc<[u8]>,
    pub is_key: bool,
}

/// Cuts a stream before each unit that comes first in a frame. Fields and slices out of order, which encoders of tests do not make, are
/// not distinguished from frames.
pub fn access_units(stream: &[u8]) -> Vec<AccessUnit> {
    let mut frames = Vec::new();
    let mut start = None;
    let mut has_slice = false;
    let mut is_key = false;
    for position in start_codes(stream) {
        let unit = &stream[position + 3..];
        let kind = unit.first().map_or(0, |byte| byte & 0x1f);
        let is_slice = matches!(kind, SLICE | IDR_SLICE);
        // `first_mb_in_slice` is 0 when its Exp-Golomb code begins with 1.
        let is_first = !is_slice || unit.get(1).is_some_and(|byte| byte & 0x80 != 0);
        if has_slice && is_first {
            push(&mut frames, stream, start, position, is_key);
            (start, has_slice, is_key) = (None, false, false);
        }
        start.get_or_insert(position);
        has_slice |= is_slice;
        is_key |= kind == IDR_SLICE;
    }
    if has_slice {
        push(&mut frames, stream, start, stream.len(), is_key);
    }
    frames
}

fn push(
    frames: &mut Vec<AccessUnit>,
    stream: &[u8],
    start: Option<usize>,
    end: usize,
    is_key: bool,
) {
    if let Some(start) = start {
        let data = Arc::from(&stream[start..end]);
        frames.push(AccessUnit { data, is_key });
    }
}

/// Positions of `00 00 01`.
fn start_codes(stream: &[u8]) -> impl Iterator<Item = usize> {
    let windows = stream.windows(3).enumerate();
    windows.filter_map(|(position, bytes)| (bytes == [0, 0, 1]).then_some(position))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_begin_with_their_parameter_sets_and_hold_all_their_slices() {
        let stream = [
            &[0, 0, 0, 1, 0x67, 1][..],
            &[0, 0, 1, 0x68, 1],
            &[0, 0, 1, 0x65, 0x88],
            &[0, 0, 1, 0x65, 0x08],
            &[0, 0, 1, 0x41, 0x9a],
            &[0, 0, 1, 0x06, 1],
            &[0, 0, 1, 0x41, 0x9b],
        ]
        .concat();
        let frames = access_units(&stream);
        assert_eq!(frames.len(), 3);
        assert_eq!(frames[0].data[..], stream[1..21]);
        assert_eq!(frames[2].data[..], [0, 0, 1, 0x06, 1, 0, 0, 1, 0x41, 0x9b]);
        let keys: Vec<bool> = frames.iter().map(|frame| frame.is_key).collect();
        assert_eq!(keys, [true, false, false]);
    }
}
