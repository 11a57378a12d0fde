//! Units of clips as an ingest gives them, by ffprobe's dump of packets; Ogg files of Opus packets.

use std::{path::Path, process::Command, sync::Arc};

use bytes::Bytes;
use serde_json::Value;
use sluice_media::{
    codec::{AudioCodec, AudioConfig, VideoCodec, VideoConfig},
    unit::{AudioUnit, Unit, VideoUnit},
};

/// Returns the configurations of an MP4 clip, then its units in the order of their decode times.
pub fn units(path: &Path) -> Vec<Unit> {
    let output = Command::new("ffprobe")
        .args(["-v", "error", "-of", "json", "-show_data"])
        .args(["-show_streams", "-show_packets"])
        .arg(path)
        .output()
        .expect("ffprobe runs");
    let dump: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let streams = dump["streams"].as_array().expect("streams");
    let mut units: Vec<Unit> = streams.iter().map(config).collect();
    let packets = dump["packets"].as_array().expect("packets");
    let mut timed: Vec<(i64, Unit)> = packets
        .iter()
        .map(|packet| {
            let index = packet["stream_index"].as_u64().expect("an index") as usize;
            unit(
                packet,
                streams[index]["time_base"].as_str().expect("a base"),
            )
        })
        .collect();
    timed.sort_by_key(|(time, _)| *time);
    units.extend(timed.into_iter().map(|(_, unit)| unit));
    units
}

fn config(stream: &Value) -> Unit {
    let record = stream["extradata"].as_str().map(bytes).unwrap_or_default();
    let video = |codec| {
        let config = VideoConfig::parse(codec, record.clone()).expect("a record");
        Unit::VideoConfig(Arc::new(config))
    };
    let audio = |codec| {
        let config = AudioConfig::parse(codec, record.clone()).expect("a record");
        Unit::AudioConfig(Arc::new(config))
    };
    match stream["codec_name"].as_str().expect("a codec") {
        "h264" => video(VideoCodec::Avc),
        "hevc" => video(VideoCodec::Hevc),
        "av1" => video(VideoCodec::Av1),
        "aac" => audio(AudioCodec::Aac),
        "opus" => audio(AudioCodec::Opus),
        "mp3" => Unit::AudioConfig(Arc::new(AudioConfig {
            codec: AudioCodec::Mp3,
            record: Bytes::new(),
            sample_rate: 44_100,
            channels: 2,
            codecs: "mp3".to_owned(),
            samples_per_frame: 1_152,
        })),
        other => panic!("{other}"),
    }
}

/// Returns the decode time and the unit of a packet.
fn unit(packet: &Value, base: &str) -> (i64, Unit) {
    let (ticks, second) = base.split_once('/').expect("a fraction");
    let (ticks, second): (i64, i64) = (ticks.parse().unwrap(), second.parse().unwrap());
    let time = |name: &str| {
        let time = packet[name].as_i64().expect("a time");
        (time * ticks * 90_000 * 2 + second) / (second * 2)
    };
    let (pts_90k, dts_90k) = (time("pts"), time("dts"));
    let data = bytes(packet["data"].as_str().expect("data"));
    let unit = match packet["codec_type"].as_str() {
        Some("video") => Unit::Video(VideoUnit {
            dts_90k,
            cts_90k: (pts_90k - dts_90k) as i32,
            key: packet["flags"]
                .as_str()
                .is_some_and(|it| it.starts_with('K')),
            data,
        }),
        _ => Unit::Audio(AudioUnit { pts_90k, data }),
    };
    (dts_90k, unit)
}

/// Reads a dump: an offset, groups of digits, two spaces and text in each line.
fn bytes(dump: &str) -> Bytes {
    let mut bytes = Vec::new();
    for line in dump.lines() {
        let Some((_, line)) = line.split_once(": ") else {
            continue;
        };
        let digits = line.split("  ").next().unwrap_or_default();
        let digits: Vec<u8> = digits.bytes().filter(|byte| *byte != b' ').collect();
        bytes.extend(digits.chunks_exact(2).map(|pair| {
            let pair = std::str::from_utf8(pair).expect("ASCII");
            u8::from_str_radix(pair, 16).expect("two digits")
        }));
    }
    bytes.into()
}

/// Returns the presentation times of a track's units.
pub fn times(units: &[Unit], of_video: bool) -> Vec<i64> {
    let time = |unit: &Unit| match unit {
        Unit::Video(frame) if of_video => Some(frame.dts_90k + i64::from(frame.cts_90k)),
        Unit::Audio(frame) if !of_video => Some(frame.pts_90k),
        _ => None,
    };
    let mut times: Vec<i64> = units.iter().filter_map(time).collect();
    times.sort_unstable();
    times
}

/// Frames of H.264 with lengths of 4 bytes as a byte stream.
pub fn byte_stream<'a>(frames: impl IntoIterator<Item = &'a Bytes>) -> Vec<u8> {
    let mut stream = Vec::new();
    for frame in frames {
        let mut rest = &frame[..];
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let (unit, behind) = behind.split_at(u32::from_be_bytes(*length) as usize);
            stream.extend_from_slice(b"\0\0\0\x01");
            stream.extend_from_slice(unit);
            rest = behind;
        }
    }
    stream
}

/// Writes packets of 20 ms as an Ogg file (RFC 3533, RFC 7845), one on each page, without pre-skip.
pub fn ogg<'a>(packets: impl IntoIterator<Item = &'a Bytes>) -> Vec<u8> {
    let mut out = Vec::new();
    put_page(&mut out, 0, 2, 0, b"OpusHead\x01\x02\0\0\x80\xbb\0\0\0\0\0");
    put_page(&mut out, 1, 0, 0, b"OpusTags\0\0\0\0\0\0\0\0");
    for (number, packet) in packets.into_iter().enumerate() {
        let number = number as u32;
        put_page(&mut out, number + 2, 0, u64::from(number + 1) * 960, packet);
    }
    out
}

fn put_page(out: &mut Vec<u8>, number: u32, flags: u8, position: u64, packet: &[u8]) {
    let start = out.len();
    out.extend_from_slice(b"OggS\0");
    out.push(flags);
    out.extend(position.to_le_bytes());
    out.extend(1_u32.to_le_bytes());
    out.extend(number.to_le_bytes());
    out.extend([0; 4]);
    out.push((packet.len() / 255 + 1) as u8);
    out.extend(std::iter::repeat_n(255, packet.len() / 255));
    out.push((packet.len() % 255) as u8);
    out.extend_from_slice(packet);
    let checksum = out[start..].iter().fold(0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte) << 24, |sum, _| match sum >> 31 {
            1 => sum << 1 ^ 0x04c1_1db7,
            _ => sum << 1,
        })
    });
    out[start + 22..start + 26].copy_from_slice(&checksum.to_le_bytes());
}
