//! Allow list of GStreamer elements: demuxers, parsers, decoders, encoders, multiplexers; one that is not named here
//! does not exist.
//!
//! Demuxers and decoders are chosen by what the bytes look like, so a playlist with a video's name would find elements that
//! fetch what it says. None of those is here: nothing that opens a path, a socket or a device, nothing that reads lists
//! of addresses. Decoders that run must be here too, so each one that is added is one that hostile bytes can reach.

use gst::prelude::*;
use gstreamer as gst;

use super::{scaler, source};

/// Elements that connect graphs.
const PLUMBING: &[&str] = &[
    "appsink",
    "appsrc",
    "bin",
    "capsfilter",
    "clocksync",
    "concat",
    "decodebin",
    "fakesink",
    "fdsink",
    "funnel",
    "identity",
    "input-selector",
    "multiqueue",
    "parsebin",
    "pipeline",
    "queue",
    "tee",
    "typefind",
    "uridecodebin",
    "valve",
    source::FACTORY,
];

/// Elements that process video and audio.
const FILTERS: &[&str] = &[
    "audioamplify",
    "audioconvert",
    "audiodynamic",
    "audiomixer",
    "audiomixmatrix",
    "audiorate",
    "audioresample",
    "audiosegmentclip",
    "audiotestsrc",
    "compositor",
    "deinterlace",
    "gaussianblur",
    "imagefreeze",
    "level",
    "overlaycomposition",
    "rganalysis",
    "rglimiter",
    "videobalance",
    "videobox",
    "videoconvert",
    "videoconvertscale",
    "videocrop",
    "videoflip",
    "videorate",
    "volume",
    scaler::FACTORY,
];

/// Demultiplexers, and readers of tags before and behind streams.
const DEMUXERS: &[&str] = &[
    "aiffparse",
    "apedemux",
    "asfdemux",
    "auparse",
    "avidemux",
    "flvdemux",
    "id3demux",
    "matroskademux",
    "mpegpsdemux",
    "mxfdemux",
    "oggdemux",
    "qtdemux",
    "tsdemux",
    "tsparse",
    "wavparse",
];

/// Parsers of frames and blocks of audio.
const PARSERS: &[&str] = &[
    "aacparse",
    "ac3parse",
    "amrparse",
    "av1parse",
    "avwait",
    "dcaparse",
    "dvdlpcmdec",
    "flacparse",
    "h263parse",
    "h264parse",
    "h264timestamper",
    "h265parse",
    "h265timestamper",
    "jpegparse",
    "mpeg4videoparse",
    "mpegaudioparse",
    "mpegvideoparse",
    "oggparse",
    "opusparse",
    "theoraparse",
    "vc1parse",
    "vorbisparse",
    "vp8parse",
    "vp9parse",
    "wavpackparse",
];

/// Decoders; without `avdec_av1`, which decodes nothing where no graphics card does it.
const DECODERS: &[&str] = &[
    "a52dec",
    "adpcmdec",
    "alawdec",
    "amrnbdec",
    "amrwbdec",
    "av1dec",
    "avdec_aac",
    "avdec_aac_fixed",
    "avdec_aac_latm",
    "avdec_ac3",
    "avdec_adpcm_ima_qt",
    "avdec_adpcm_ima_wav",
    "avdec_adpcm_ms",
    "avdec_adpcm_swf",
    "avdec_alac",
    "avdec_als",
    "avdec_amrnb",
    "avdec_amrwb",
    "avdec_ape",
    "avdec_cinepak",
    "avdec_dca",
    "avdec_dnxhd",
    "avdec_dvvideo",
    "avdec_eac3",
    "avdec_ffv1",
    "avdec_flac",
    "avdec_flv",
    "avdec_g722",
    "avdec_h261",
    "avdec_h263",
    "avdec_h263p",
    "avdec_h264",
    "avdec_h265",
    "avdec_huffyuv",
    "avdec_indeo3",
    "avdec_indeo5",
    "avdec_mjpeg",
    "avdec_mp2float",
    "avdec_mp3",
    "avdec_mpeg2video",
    "avdec_mpeg4",
    "avdec_mpegvideo",
    "avdec_msmpeg4",
    "avdec_msmpeg4v1",
    "avdec_msmpeg4v2",
    "avdec_prores",
    "avdec_qtrle",
    "avdec_svq1",
    "avdec_svq3",
    "avdec_utvideo",
    "avdec_vc1",
    "avdec_vp6",
    "avdec_vp6f",
    "avdec_wavpack",
    "avdec_wmapro",
    "avdec_wmav1",
    "avdec_wmav2",
    "avdec_wmavoice",
    "avdec_wmv1",
    "avdec_wmv2",
    "avdec_wmv3",
    "flacdec",
    "jpegdec",
    "mpeg2dec",
    "mpg123audiodec",
    "mulawdec",
    "opusdec",
    "pngdec",
    "theoradec",
    "vorbisdec",
    "vp8dec",
    "vp9dec",
    "wavpackdec",
];

const ENCODERS: &[&str] = &[
    "avenc_aac",
    "flacenc",
    "lamemp3enc",
    "opusenc",
    "vp9enc",
    "wavenc",
    "x264enc",
];

const MUXERS: &[&str] = &[
    "flvmux",
    "matroskamux",
    "mp4mux",
    "oggmux",
    "qtmux",
    "webmmux",
    "xingmux",
    "id3v2mux",
];

/// Elements that every machine must have for the work that Sluice offers; the rest of the lists is for rarer inputs.
const NEEDED: &[&str] = &[
    "audioconvert",
    "audioresample",
    "avdec_aac",
    "avdec_h264",
    "avdec_h265",
    "avdec_mpeg4",
    "avdec_prores",
    "avdec_wmv3",
    "avenc_aac",
    "avidemux",
    "asfdemux",
    "decodebin",
    "deinterlace",
    "flacenc",
    "flvdemux",
    "h264parse",
    "h265parse",
    "lamemp3enc",
    "level",
    "matroskademux",
    "matroskamux",
    "mp4mux",
    "mpegpsdemux",
    "oggdemux",
    "oggmux",
    "opusdec",
    "opusenc",
    "qtdemux",
    "qtmux",
    "tsdemux",
    "videoconvert",
    "videoflip",
    "videorate",
    "vp8dec",
    "vp9dec",
    "vp9enc",
    "wavenc",
    "wavparse",
    "webmmux",
    "x264enc",
];

/// Types of files that name other files, such as playlists: they are never recognised.
const LISTS: &[&str] = &[
    "hls", "dash", "mss", "ms-sstr", "uri", "sdp", "smil", "itc", "m3u", "asx", "playlist", "xspf",
];

fn lists() -> [&'static [&'static str]; 7] {
    [
        PLUMBING, FILTERS, DEMUXERS, PARSERS, DECODERS, ENCODERS, MUXERS,
    ]
}

/// Removes every element that is not named here, for good.
pub(super) fn enforce() {
    let registry = gst::Registry::get();
    for factory in registry.features(gst::ElementFactory::static_type()) {
        let name = factory.name();
        if !lists().iter().any(|list| list.contains(&name.as_str())) {
            registry.remove_feature(&factory);
        }
    }
    for finder in registry.features(gst::TypeFindFactory::static_type()) {
        let name = finder.name().to_ascii_lowercase();
        let caps = finder
            .downcast_ref::<gst::TypeFindFactory>()
            .and_then(gst::TypeFindFactory::caps)
            .map(|caps| caps.to_string())
            .unwrap_or_default();
        if LISTS
            .iter()
            .any(|list| name.contains(list) || caps.contains(list))
        {
            registry.remove_feature(&finder);
        }
    }
}

/// Returns the needed elements that this machine lacks.
pub(super) fn missing() -> Vec<&'static str> {
    let is_missing = |name: &&'static str| gst::ElementFactory::find(name).is_none();
    NEEDED.iter().copied().filter(is_missing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_allowed() {
        for name in NEEDED {
            assert!(lists().iter().any(|list| list.contains(name)), "{name}");
        }
    }
}
