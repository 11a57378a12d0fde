use super::*;

const LIMITS: ChunkLimits = ChunkLimits {
    chunk_streams: 16,
    command: 16 << 10,
    media: 8 << 20,
    unfinished: 12 << 20,
    reserve: 4 << 10,
};

fn reader() -> ChunkReader {
    ChunkReader::new(LIMITS)
}

fn header0(id: u8, time: u32, length: u32, kind: u8) -> Vec<u8> {
    let mut bytes = vec![id];
    bytes.extend(&time.to_be_bytes()[1..]);
    bytes.extend(&length.to_be_bytes()[1..]);
    bytes.push(kind);
    bytes.extend(1u32.to_le_bytes());
    bytes
}

fn concat(pieces: &[&[u8]]) -> Vec<u8> {
    pieces.concat()
}

fn read_all(reader: &mut ChunkReader, bytes: &[u8]) -> Result<Vec<Message>, Error> {
    let mut input = BytesMut::from(bytes);
    let mut messages = Vec::new();
    while let Some(message) = reader.next(&mut input)? {
        messages.push(message);
    }
    Ok(messages)
}

fn times(messages: &[Message]) -> Vec<u32> {
    messages.iter().map(|m| m.timestamp_ms).collect()
}

#[test]
fn broken_or_greedy_headers_are_errors() {
    let cases: [(&str, Vec<u8>); 7] = [
        ("first chunk in format 3", vec![0xC4]),
        (
            "first chunk in format 1",
            vec![0x44, 0, 0, 0, 0, 0, 1, 8, 9],
        ),
        (
            "new message inside an open one",
            concat(&[&header0(4, 0, 200, 9), &[0; 128], &header0(4, 0, 1, 9)]),
        ),
        ("command over its limit", header0(3, 0, 16_385, 20)),
        ("media over its limit", header0(4, 0, (8 << 20) + 1, 9)),
        (
            "unknown kind over the command limit",
            header0(4, 0, 16_385, 99),
        ),
        (
            "seventeen chunk streams",
            (0..17).flat_map(|i| header0(3 + i, 0, 0, 20)).collect(),
        ),
    ];
    for (name, bytes) in cases {
        assert!(read_all(&mut reader(), &bytes).is_err(), "{name}");
    }
}

#[test]
fn chunk_sizes_are_bounded() {
    for (size, accepted) in [
        (0, false),
        (1, true),
        (0x7FFF_FFFF, true),
        (0x8000_0000, false),
        (u32::MAX, false),
    ] {
        assert_eq!(reader().set_chunk_size(size).is_ok(), accepted, "{size}");
    }
}

#[test]
fn declared_lengths_reserve_nothing() {
    let mut reader = reader();
    let mut held = 0;
    for id in 0..16 {
        let bytes = concat(&[&header0(3 + id, 0, 8 << 20, 9), &[0]]);
        let mut input = BytesMut::from(&bytes[..]);
        assert_eq!(reader.next(&mut input).unwrap(), None);
        reader.current = None;
        held += reader.streams[usize::from(id)].assembly.capacity();
    }
    assert_eq!(reader.unfinished(), 16);
    assert!(held <= 16 * 4096 * 2, "{held} bytes held for 16");
}

#[test]
fn unfinished_messages_are_bounded_together() {
    let mut reader = ChunkReader::new(ChunkLimits {
        unfinished: 300,
        ..LIMITS
    });
    let open = |id| concat(&[&header0(id, 0, 1000, 9), &[0; 128]]);
    assert!(read_all(&mut reader, &open(4)).unwrap().is_empty());
    assert!(read_all(&mut reader, &open(5)).unwrap().is_empty());
    assert!(read_all(&mut reader, &open(6)).is_err());
}

#[test]
fn every_split_of_the_input_gives_the_same_messages() {
    let bytes = concat(&[
        &header0(4, 10, 300, 9),
        &[1; 128],
        &header0(5, 11, 3, 8),
        b"abc",
        &[0xC4],
        &[2; 128],
        &[0xC4],
        &[3; 44],
        &[0x85, 0, 0, 23],
        b"def",
        &[0x00, 200 - 64, 0, 0, 9, 0, 0, 2, 8, 1, 0, 0, 0],
        b"xy",
    ]);
    let whole = read_all(&mut reader(), &bytes).unwrap();
    assert_eq!(times(&whole), [11, 10, 34, 9]);
    assert_eq!(whole[1].payload.len(), 300);
    for at in 1..bytes.len() {
        let mut reader = reader();
        let mut input = BytesMut::new();
        let mut messages = Vec::new();
        for piece in [&bytes[..at], &bytes[at..]] {
            input.extend_from_slice(piece);
            while let Some(message) = reader.next(&mut input).unwrap() {
                messages.push(message);
            }
        }
        assert_eq!(messages, whole, "split at {at}");
        assert_eq!(reader.unfinished(), 0);
    }
}

#[test]
fn timestamps_follow_the_formats() {
    let cases: [(&str, Vec<u8>, Vec<u32>); 6] = [
        (
            "type 3 adds the last delta",
            concat(&[
                &header0(4, 1000, 1, 9),
                b"a",
                &[0x84, 0, 0, 40],
                b"b",
                &[0xC4],
                b"c",
                &[0xC4],
                b"d",
            ]),
            vec![1000, 1040, 1080, 1120],
        ),
        (
            "type 3 right after type 0 adds nothing",
            concat(&[&header0(4, 1000, 1, 9), b"a", &[0xC4], b"b"]),
            vec![1000, 1000],
        ),
        (
            "type 1 carries a new length",
            concat(&[
                &header0(4, 1000, 1, 9),
                b"a",
                &[0x44, 0, 0, 33, 0, 0, 2, 9],
                b"bb",
            ]),
            vec![1000, 1033],
        ),
        (
            "extended absolute, then a small delta",
            concat(&[
                &header0(4, 0xFF_FFFF, 1, 9),
                &0x0100_0000u32.to_be_bytes(),
                b"a",
                &[0x84, 0, 0, 5],
                b"b",
            ]),
            vec![0x0100_0000, 0x0100_0005],
        ),
        (
            "exactly 2^24 - 1 is in the extended field",
            concat(&[
                &header0(4, 0xFF_FFFF, 1, 9),
                &0xFF_FFFFu32.to_be_bytes(),
                b"a",
            ]),
            vec![0xFF_FFFF],
        ),
        (
            "32-bit wrap by delta",
            concat(&[
                &header0(4, 0xFF_FFFF, 1, 9),
                &(u32::MAX - 9).to_be_bytes(),
                b"a",
                &[0x84, 0, 0, 40],
                b"b",
            ]),
            vec![u32::MAX - 9, 30],
        ),
    ];
    for (name, bytes, expected) in cases {
        let messages = read_all(&mut reader(), &bytes).unwrap();
        assert_eq!(times(&messages), expected, "{name}");
    }
}

#[test]
fn continuing_chunks_may_repeat_the_extended_field_or_not() {
    let start = concat(&[
        &header0(4, 0xFF_FFFF, 130, 9),
        &0x0200_0000u32.to_be_bytes(),
        &[1; 128],
        &[0xC4],
    ]);
    let after = concat(&[&header0(5, 1, 4, 8), b"next"]);
    for (name, repeat) in [("repeated", true), ("left out", false)] {
        let repeated: &[u8] = if repeat { &[2, 0, 0, 0] } else { &[] };
        let bytes = concat(&[&start, repeated, &[7, 7], &after]);
        let messages = read_all(&mut reader(), &bytes).unwrap();
        assert_eq!(messages.len(), 2, "{name}");
        assert_eq!(messages[0].payload.len(), 130, "{name}");
        assert_eq!(&messages[0].payload[128..], &[7, 7], "{name}");
    }
}

#[test]
fn abort_drops_the_open_message_only() {
    let mut reader = reader();
    let open = concat(&[&header0(4, 0, 200, 9), &[0; 128]]);
    assert!(read_all(&mut reader, &open).unwrap().is_empty());
    reader.abort(9);
    assert_eq!(reader.unfinished(), 128);
    reader.abort(4);
    assert_eq!(reader.unfinished(), 0);
    let messages = read_all(&mut reader, &concat(&[&header0(4, 5, 1, 9), b"a"])).unwrap();
    assert_eq!(messages.len(), 1);
}

#[test]
fn a_whole_message_is_not_copied() {
    let mut input = BytesMut::from(&concat(&[&header0(4, 0, 100, 9), &[5; 100]])[..]);
    let payload_at = input[12..].as_ptr();
    let message = reader().next(&mut input).unwrap().unwrap();
    assert_eq!(message.payload.as_ptr(), payload_at);
}

#[test]
fn librtmp_may_open_the_control_stream_in_format_1() {
    let bytes = concat(&[&[0x42, 0, 0, 0, 0, 0, 4, 1], &4096u32.to_be_bytes()]);
    assert_eq!(read_all(&mut reader(), &bytes).unwrap().len(), 1);
}
