//! Fuzz targets of the media parsers: pure functions that take any bytes and assert what must hold of the result.
//!
//! Listed here, run by the `fuzz` package under libFuzzer, and replayed over `fuzz/seeds` by `make test`.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::Value;

use crate::{
    captions,
    codec::{AudioCodec, AudioConfig, MAX_PIXELS_PER_SIDE, VideoCodec, VideoConfig, check_payload},
    format::Format,
    hls::{journal, names::MediaName},
    operation::{self, Params, TABLE},
    variant::{AcceptClass, VariantRequest, VariantSettings},
    workflow::{self, Facts, Pattern},
};

/// A parser of untrusted bytes under a name; `run` panics when it finds a defect.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
}

impl Target {
    pub const fn new(name: &'static str, run: fn(&[u8])) -> Self {
        Self { name, run }
    }
}

/// The targets of this crate.
pub const TARGETS: &[Target] = &[
    Target::new("video_record", video_record),
    Target::new("audio_record", audio_record),
    Target::new("parameter_set", parameter_set),
    Target::new("payload", payload),
    Target::new("captions", caption_file),
    Target::new("window_journal", window_journal),
    Target::new("delivery_address", delivery_address),
    Target::new("accept_header", accept_header),
    Target::new("workflow_definition", workflow_definition),
    Target::new("filename_pattern", filename_pattern),
    Target::new("file_format", file_format),
    Target::new("tool_parameters", tool_parameters),
];

/// Reads avcC, hvcC and av1C records: the same bytes as each of them, and as an AV1 key frame.
fn video_record(bytes: &[u8]) {
    let record = Bytes::copy_from_slice(bytes);
    for codec in [VideoCodec::Avc, VideoCodec::Hevc, VideoCodec::Av1] {
        if let Ok(config) = VideoConfig::parse(codec, record.clone()) {
            for side in [config.width, config.height] {
                assert!((1..=MAX_PIXELS_PER_SIDE).contains(&u32::from(side)));
            }
            assert!(config.frame_rate.is_none_or(f64::is_finite));
        }
    }
    if let Ok(config) = VideoConfig::from_av1_key_frame(bytes) {
        assert_eq!(
            VideoConfig::parse(VideoCodec::Av1, config.record.clone()),
            Ok(config)
        );
    }
}

/// Reads AudioSpecificConfig, OpusHead, MP3 frame headers and Opus packets.
fn audio_record(bytes: &[u8]) {
    let record = Bytes::copy_from_slice(bytes);
    let configs = [
        AudioConfig::parse(AudioCodec::Aac, record.clone()),
        AudioConfig::parse(AudioCodec::Opus, record),
        AudioConfig::from_mp3_frame(bytes),
    ];
    for config in configs.into_iter().flatten() {
        assert!((1..=8).contains(&config.channels));
        assert!(config.sample_rate > 0 && config.samples_per_frame > 0);
        assert!(config.samples_in(bytes) > 0);
        assert_eq!(
            config.opus_head().is_some(),
            config.codec == AudioCodec::Opus
        );
    }
}

/// Reads H.264 and HEVC sequence parameter sets inside a valid record, so that every input reaches the bit reader.
fn parameter_set(bytes: &[u8]) {
    let Ok(length) = u16::try_from(bytes.len()) else {
        return;
    };
    let mut avc = BytesMut::new();
    avc.put_slice(&[1, 0x64, 0, 0x28, 0xff, 0xe1]);
    avc.put_u16(length);
    avc.put_slice(bytes);
    avc.put_slice(&[1, 0, 1, 0x68]);
    let _ = VideoConfig::parse(VideoCodec::Avc, avc.freeze());

    let mut hevc = BytesMut::new();
    hevc.put_u8(1);
    hevc.put_bytes(0, 20);
    hevc.put_u8(0x0f);
    hevc.put_u8(3);
    for (nal_type, parameter_set) in [(32, &[][..]), (33, bytes), (34, &[][..])] {
        hevc.put_u8(nal_type);
        hevc.put_u16(1);
        hevc.put_u16(parameter_set.len() as u16);
        hevc.put_slice(parameter_set);
    }
    let _ = VideoConfig::parse(VideoCodec::Hevc, hevc.freeze());
}

/// Traverses NAL units and OBUs; the first byte chooses codec and length size.
fn payload(bytes: &[u8]) {
    let Some((choice, payload)) = bytes.split_first() else {
        return;
    };
    let (codec, nal_length_size) = match choice % 5 {
        0 => (VideoCodec::Avc, 4),
        1 => (VideoCodec::Avc, 2),
        2 => (VideoCodec::Avc, 1),
        3 => (VideoCodec::Hevc, 4),
        _ => (VideoCodec::Av1, 0),
    };
    let config = VideoConfig {
        codec,
        record: Bytes::new(),
        width: 16,
        height: 16,
        pixel_aspect: (1, 1),
        frame_rate: None,
        nal_length_size,
        codecs: String::new(),
        profile: String::new(),
        level: String::new(),
        bit_depth: 8,
        may_reorder: None,
    };
    if let Ok(facts) = check_payload(&config, payload) {
        assert!(facts.has_slice || !facts.has_idr);
    }
}

/// Reads WebVTT and SubRip files; what was written is read again to the same text.
fn caption_file(bytes: &[u8]) {
    if let Ok(webvtt) = captions::to_webvtt(bytes) {
        assert_eq!(captions::to_webvtt(webvtt.as_bytes()), Ok(webvtt));
    }
}

/// Replays a window journal, with the bytes unchanged and with valid checksums; the resulting window can be cut,
/// compacted, and replayed again.
fn window_journal(bytes: &[u8]) {
    let mut with_checksums = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Ok(record) = serde_json::from_slice(line) {
            journal::encode(&record, &mut with_checksums);
        }
    }
    for bytes in [bytes, &with_checksums] {
        if let Ok(mut recovered) = journal::replay(bytes) {
            recovered.truncate_to(|msn| (msn % 2 == 0).then_some(msn));
            let file = |name| {
                (!matches!(name, MediaName::Segment(msn) if msn % 3 == 0)).then(|| bytes.to_vec())
            };
            recovered.after_power_loss(8, "another boot", file);
            let again = journal::replay(&journal::compact(&recovered.window));
            assert!(again.is_ok(), "a compacted journal has a header");
        }
    }
}

/// Reads the query of a delivery address; its canonical text means the same.
fn delivery_address(bytes: &[u8]) {
    let Ok(query) = std::str::from_utf8(bytes) else {
        return;
    };
    let settings = VariantSettings::default();
    if let Ok(request) = VariantRequest::parse(query, &settings) {
        let canonical = request.canonical();
        let again = VariantRequest::parse(canonical, &settings).expect("canonical text is valid");
        assert_eq!(again.canonical(), canonical);
        assert!(canonical.len() <= 1024, "{canonical}");
    }
}

/// Folds an `Accept` header.
fn accept_header(bytes: &[u8]) {
    let _ = AcceptClass::fold(std::str::from_utf8(bytes).ok());
}

/// Checks a workflow definition, and evaluates its conditions on a file.
fn workflow_definition(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
        return;
    };
    let Some(definition) = workflow::check(&value).definition else {
        return;
    };
    assert!(
        workflow::saved(&value).is_some(),
        "a checked definition is read again"
    );
    let facts = Facts {
        mime: Some("image/jpeg".to_owned()),
        size_bytes: Some(1 << 20),
        ..Facts::named("holiday photo (1).JPG")
    };
    if let Some(gate) = &definition.gate {
        let _ = gate.is_met(&facts);
    }
    let upload = definition.upload().id.clone();
    for branch in [None, Some(true), Some(false)] {
        let _ = definition.next(&upload, branch);
    }
    assert!(definition.steps_ahead(&upload) < definition.nodes.len());
}

/// Reads a pattern for file names.
fn filename_pattern(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Pattern::parse(text);
    }
}

/// Recognises a file by its first bytes and by its name.
fn file_format(bytes: &[u8]) {
    let name = String::from_utf8_lossy(&bytes[..bytes.len().min(64)]);
    let by_bytes = Format::sniff(bytes);
    let recognised = Format::recognise(bytes, &name);
    assert!(by_bytes.is_none() || recognised.is_some());
}

/// Reads the form fields of a tool; the first byte chooses the tool.
fn tool_parameters(bytes: &[u8]) {
    let Some((choice, form)) = bytes.split_first() else {
        return;
    };
    let row = &TABLE[usize::from(*choice) % TABLE.len()];
    let form = String::from_utf8_lossy(form);
    let fields = form.split('&').filter_map(|field| field.split_once('='));
    if let Ok(operation) = operation::parse(row.tool, &Params::from_form(fields)) {
        assert_eq!(operation.tool(), row.tool);
    }
}
