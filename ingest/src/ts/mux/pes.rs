//! Writes PES packets of MPEG-TS outputs (ISO/IEC 13818-1 §2.4.3.6): one unit each, with its times.

use super::packets::raw;

/// Bytes up to and with the length field.
const PREFIX_BYTES: usize = 6;
const TIMESTAMP_BYTES: u8 = 5;

/// Contents of a PES packet (table 2-22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum StreamId {
    /// Private stream 1, which carries Opus.
    Private = 0xbd,
    Audio = 0xc0,
    Video = 0xe0,
}

/// Times at which a unit is shown and decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) pts_90k: i64,
    pub(super) dts_90k: i64,
}

/// Writes the header into an empty buffer; bytes appended after it are the payload, until [`end`].
pub(super) fn begin(stream_id: StreamId, times: Times, pes: &mut Vec<u8>) {
    let has_dts = times.pts_90k != times.dts_90k;
    let (flags, header_bytes) = match has_dts {
        true => (0xc0, 2 * TIMESTAMP_BYTES),
        false => (0x80, TIMESTAMP_BYTES),
    };
    pes.extend([0, 0, 1, stream_id as u8, 0, 0]);
    // The payload begins with the start of a unit: data_alignment_indicator.
    pes.extend([0x84, flags, header_bytes]);
    put_timestamp(if has_dts { 0b0011 } else { 0b0010 }, times.pts_90k, pes);
    if has_dts {
        put_timestamp(0b0001, times.dts_90k, pes);
    }
}

/// Writes the length, with which a receiver completes the unit without waiting for the next one. Only video may omit
/// it where it is too long for the field; `None` for other units that are too long.
pub(super) fn end(stream_id: StreamId, pes: &mut [u8]) -> Option<()> {
    let length = match u16::try_from(pes.len() - PREFIX_BYTES) {
        Ok(length) => length,
        Err(_) if stream_id == StreamId::Video => 0,
        Err(_) => return None,
    };
    pes[4..6].copy_from_slice(&length.to_be_bytes());
    Some(())
}

/// Writes 33 bits between marker bits, after 4 bits that indicate which time it is.
fn put_timestamp(kind: u8, time_90k: i64, pes: &mut Vec<u8>) {
    let time = raw(time_90k);
    pes.extend([
        kind << 4 | (time >> 29) as u8 & 0x0e | 1,
        (time >> 22) as u8,
        (time >> 14) as u8 | 1,
        (time >> 7) as u8,
        (time << 1) as u8 | 1,
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(stream_id: StreamId, pts_90k: i64, dts_90k: i64) -> Vec<u8> {
        let mut pes = Vec::new();
        begin(stream_id, Times { pts_90k, dts_90k }, &mut pes);
        pes
    }

    #[test]
    fn times_are_written_as_the_standard_lays_them_out() {
        let all = (1 << 33) - 1;
        assert_eq!(
            header(StreamId::Audio, all, all),
            [
                0, 0, 1, 0xc0, 0, 0, 0x84, 0x80, 5, 0x2f, 0xff, 0xff, 0xff, 0xff
            ]
        );
        assert_eq!(
            header(StreamId::Video, 1 << 33, 1),
            [
                0, 0, 1, 0xe0, 0, 0, 0x84, 0xc0, 10, 0x31, 0, 1, 0, 1, 0x11, 0, 1, 0, 3
            ]
        );
    }

    #[test]
    fn lengths_are_reported_where_they_fit() {
        for (stream_id, payload, expected) in [
            (StreamId::Audio, 10, Some([0, 18])),
            (StreamId::Audio, 65_527, Some([0xff, 0xff])),
            (StreamId::Audio, 65_528, None),
            (StreamId::Video, 65_528, Some([0, 0])),
        ] {
            let mut pes = header(stream_id, 0, 0);
            pes.resize(pes.len() + payload, 0);
            let length = end(stream_id, &mut pes).map(|()| [pes[4], pes[5]]);
            assert_eq!(length, expected, "{stream_id:?} {payload}");
        }
    }
}
