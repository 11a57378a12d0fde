//! Benchmark of the RTMP chunk reader: a second of 1080p30 at 6 Mbit/s with AAC, as encoders cut it into chunks.

use bytes::BytesMut;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use sluice_ingest::rtmp::chunk::{ChunkLimits, ChunkReader};

const LIMITS: ChunkLimits = ChunkLimits {
    chunk_streams: 16,
    command: 16 << 10,
    media: 8 << 20,
    unfinished: 12 << 20,
    reserve: 256 << 10,
};
const VIDEO_FRAMES: u32 = 30;
const VIDEO_FRAME_BYTES: usize = 25_000;
const AUDIO_PER_VIDEO: u32 = 2;
const AUDIO_BYTES: usize = 340;
/// Bytes of one read of the socket.
const READ_BYTES: usize = 64 << 10;

fn message(chunk_size: usize, chunk_stream: u8, kind: u8, time_ms: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![chunk_stream];
    bytes.extend(&time_ms.to_be_bytes()[1..]);
    bytes.extend(&(len as u32).to_be_bytes()[1..]);
    bytes.push(kind);
    bytes.extend(1u32.to_le_bytes());
    for (index, piece) in vec![0x65; len].chunks(chunk_size).enumerate() {
        if index > 0 {
            bytes.push(0xC0 | chunk_stream);
        }
        bytes.extend(piece);
    }
    bytes
}

fn one_second(chunk_size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for video_frame in 0..VIDEO_FRAMES {
        let time_ms = video_frame * 1000 / VIDEO_FRAMES;
        bytes.extend(message(chunk_size, 6, 9, time_ms, VIDEO_FRAME_BYTES));
        for _ in 0..AUDIO_PER_VIDEO {
            bytes.extend(message(chunk_size, 4, 8, time_ms, AUDIO_BYTES));
        }
    }
    bytes
}

/// The messages of a second that arrives read by read.
fn read(chunk_size: usize, reads: Vec<BytesMut>) -> usize {
    let mut reader = ChunkReader::new(LIMITS);
    let size = u32::try_from(chunk_size).expect("a chunk size");
    reader.set_chunk_size(size).expect("a chunk size");
    let mut messages = 0;
    let mut input = BytesMut::new();
    for read in reads {
        match input.is_empty() {
            true => input = read,
            false => input.extend_from_slice(&read),
        }
        while reader.next(&mut input).expect("a right stream").is_some() {
            messages += 1;
        }
    }
    messages
}

fn chunk_reader(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("chunk_reader");
    for (name, chunk_size) in [
        ("obs_4096", 4096),
        ("ffmpeg_60000", 60_000),
        ("smallest_128", 128),
    ] {
        let second = one_second(chunk_size);
        let expected = (VIDEO_FRAMES + VIDEO_FRAMES * AUDIO_PER_VIDEO) as usize;
        group.throughput(Throughput::Bytes(second.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || second.chunks(READ_BYTES).map(BytesMut::from).collect(),
                |reads| assert_eq!(read(chunk_size, reads), expected),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, chunk_reader);
criterion_main!(benches);
