//! Stills: the right frame, upright, in the right colours.

use sluice_media::{
    av::{AvTask, Still},
    format::Format,
    task::{Encode, FailureCode, Fit, Limits, Render, Resize},
};

use super::{
    clips::{self, LIMITS, can_be_made, clip},
    material::{
        COUNT, RATE, X264, assert_near, counted, number, perform, perform_within, pixel, raster,
        shown, still,
    },
};

#[test]
fn the_frame_shown_at_a_time_is_found_in_every_container() {
    if !can_be_made() {
        return;
    }
    let mpeg4 = "-c:v mpeg4 -q:v 1 -g 10";
    let reordered = "-c:v libx264 -preset ultrafast -qp 1 -g 15 -bf 3 -b_strategy 0";
    for (name, arguments) in [
        ("counted.mp4", X264),
        ("reordered.mp4", reordered),
        ("counted.mkv", reordered),
        ("counted.mov", X264),
        (
            "counted.webm",
            "-c:v libvpx -crf 4 -b:v 2M -g 10 -deadline realtime",
        ),
        ("counted.avi", mpeg4),
        ("counted.ts", reordered),
        ("counted.flv", X264),
        ("counted.3gp", mpeg4),
        ("prores.mov", "-c:v prores_ks -profile:v 0"),
        (
            "hevc.mp4",
            "-c:v libx265 -preset ultrafast -x265-params qp=1:keyint=10:log-level=none",
        ),
        ("counted.wmv", "-c:v wmv2 -q:v 1 -g 10"),
    ] {
        let clip = counted(name, arguments);
        for (at_s, expected) in [(0.0, 0), (0.199, 1), (1.9996, 20), (2.9, 29), (1e9, 29)] {
            let shown = number(&shown(&clip, at_s));
            assert_eq!(shown, expected, "{name} at {at_s}");
        }
    }
}

#[test]
fn frames_of_varying_length_are_shown_until_the_next() {
    if !can_be_made() {
        return;
    }
    // Frames 0 to 4 at 0 s to 0.4 s, then 20 to 29 from 2 s on.
    let filter = "-vf select='lt(n,5)+gte(n,20)' -fps_mode vfr";
    for name in ["varying.mp4", "varying.mkv"] {
        let clip = counted(name, &format!("{filter} {X264}"));
        for (at_s, expected) in [
            (0.35, 3),
            (0.45, 4),
            (1.5, 4),
            (1.99, 4),
            (2.0, 20),
            (2.5, 25),
        ] {
            assert_eq!(number(&shown(&clip, at_s)), expected, "{name} at {at_s}");
        }
    }
}

/// Red in the top left corner, blue elsewhere; BT.601 by its tags.
const CORNER: &str = "-f lavfi -i color=c=0x1414dc:size=96x64:rate=5:duration=1,drawbox=x=0:y=0:w=48:h=32:color=0xdc1414:t=fill";
const RED: [u8; 3] = [220, 20, 20];
const BLUE: [u8; 3] = [20, 20, 220];
const LOSSLESS: &str = "-c:v libx264 -preset ultrafast -qp 1";

#[test]
fn frames_are_upright_and_their_pixels_square() {
    if !can_be_made() {
        return;
    }
    let plain = clip(
        "corner.mp4",
        &format!(
            "{CORNER} -vf scale=out_color_matrix=bt709,format=yuv420p {LOSSLESS} -colorspace bt709 -color_primaries bt709 -color_trc bt709"
        ),
    );
    let header = std::fs::read(&plain).expect("a clip");
    let matrix = 44
        + header
            .windows(4)
            .position(|name| name == b"tkhd")
            .expect("a track");
    // ISO/IEC 14496-12 §8.3.2: the first two columns of a matrix of fixed-point numbers.
    let turn = |name: &str, numbers: [i32; 4]| {
        let mut turned = header.clone();
        for (number, place) in numbers.iter().zip([0, 4, 12, 16]) {
            let bytes = (number << 16).to_be_bytes();
            turned[matrix + place..matrix + place + 4].copy_from_slice(&bytes);
        }
        clips::bytes(name, &turned)
    };
    let wide = clip(
        "wide.mkv",
        &format!(
            "{CORNER} -vf scale=out_color_matrix=bt709,format=yuv420p,setsar=2 {LOSSLESS} -colorspace bt709"
        ),
    );
    let odd = clip(
        "odd.mkv",
        "-f lavfi -i color=c=0xdc1414:size=66x34:rate=5:duration=1 -vf scale=33:17:out_color_matrix=bt709,format=yuv444p -c:v libx264 -qp 1 -colorspace bt709",
    );
    for (clip, size, red) in [
        (&plain, (96, 64), (10, 10)),
        (&turn("quarter.mp4", [0, 1, -1, 0]), (64, 96), (54, 10)),
        (&turn("half.mp4", [-1, 0, 0, -1]), (96, 64), (86, 54)),
        (&turn("three.mp4", [0, -1, 1, 0]), (64, 96), (10, 86)),
        (&wide, (192, 64), (20, 10)),
        (&odd, (33, 17), (16, 8)),
    ] {
        let shown = shown(clip, 0.5);
        let name = clip.display().to_string();
        assert_eq!((shown.width, shown.height), size, "{name}");
        assert_near(pixel(&shown, red.0, red.1), RED, 6, &name);
        if size != (33, 17) {
            let other = (size.0 - 1 - red.0, size.1 - 1 - red.1);
            assert_near(pixel(&shown, other.0, other.1), BLUE, 6, &name);
        }
    }
}

#[test]
fn colours_are_those_of_the_tags() {
    if !can_be_made() {
        return;
    }
    let red = "-f lavfi -i color=c=0xdc1414:size=64x48:rate=5:duration=1";
    for (name, filter, tags) in [
        (
            "bt601.mp4",
            "scale=out_color_matrix=bt601,format=yuv420p",
            "-colorspace smpte170m",
        ),
        (
            "bt709.mp4",
            "scale=out_color_matrix=bt709,format=yuv420p",
            "-colorspace bt709",
        ),
        (
            "full.mp4",
            "scale=out_color_matrix=bt709:out_range=full,format=yuv420p",
            "-colorspace bt709 -color_range pc",
        ),
        (
            "ten.mp4",
            "scale=out_color_matrix=bt709,format=yuv420p10le",
            "-colorspace bt709",
        ),
        (
            "deep.mp4",
            "scale=out_color_matrix=bt709,format=yuv422p10le",
            "-colorspace bt709",
        ),
    ] {
        let arguments = format!("{red} -vf {filter} {LOSSLESS} {tags}");
        let shown = shown(&clip(name, &arguments), 0.0);
        assert_near(pixel(&shown, 30, 20), RED, 6, name);
    }
}

#[test]
fn a_high_dynamic_range_becomes_a_sane_frame() {
    if !can_be_made() {
        return;
    }
    // Grey of 58 % PQ is reference white: nearly white, neither dark nor burnt out.
    let grey = "-f lavfi -i color=c=0x949494:size=64x48:rate=5:duration=1 -vf scale=out_color_matrix=bt2020:out_range=limited,format=yuv420p10le";
    let tags =
        "-c:v libx264 -qp 1 -colorspace bt2020nc -color_primaries bt2020 -color_trc smpte2084";
    let shown = shown(&clip("hdr.mp4", &format!("{grey} {tags}")), 0.0);
    assert_near(pixel(&shown, 30, 20), [235; 3], 12, "PQ");
}

#[test]
fn the_frame_is_rendered_like_any_image() {
    if !can_be_made() {
        return;
    }
    let clip = counted("rendered.mp4", X264);
    let mut render = Render::new(Format::Png, Encode::new(Format::Webp, 80));
    render.resize = Some(Resize::new(Some(20), Some(20), Fit::Cover));
    let performed = perform(&AvTask::Still(Still { at_s: 1.0, render }), &clip).expect("an image");
    let facts = &performed.done.outputs[0];
    assert_eq!((facts.width, facts.height), (Some(20), Some(20)));
    assert_eq!(facts.format, Some(Format::Webp));
    assert_eq!(number(&raster(&performed.outputs[0], Format::Webp)), 10);
    let media = performed.done.media.expect("facts of the source");
    assert_eq!(media.duration_ms, Some(3_000));

    let limits = Limits {
        max_pixels: 64 * 47,
        ..LIMITS
    };
    let failure = perform_within(&still(0.0), &clip, &limits)
        .err()
        .expect("too many pixels");
    assert_eq!(failure.code, FailureCode::TooLarge);
}

#[test]
fn a_damaged_frame_gives_way_to_a_good_one() {
    if !can_be_made() {
        return;
    }
    let clip = counted(
        "whole.ts",
        "-c:v libx264 -preset ultrafast -qp 1 -g 1 -bf 0",
    );
    let mut damaged = std::fs::read(&clip).expect("a clip");
    let middle = damaged.len() / 2;
    for byte in &mut damaged[middle - 700..middle + 700] {
        *byte ^= 0x5a;
    }
    let damaged = clips::bytes("damaged.ts", &damaged);
    for at_s in [0.0, 1.4, 1.5, 1.6, 2.9] {
        let found = f64::from(number(&shown(&damaged, at_s)));
        assert!((found - at_s * RATE).abs() < 8.0, "{at_s}: {found}");
    }
    let cut = &std::fs::read(&clip).expect("a clip")[..middle];
    let cut = clips::bytes("cut.ts", cut);
    let last = number(&shown(&cut, 2.9));
    assert!((COUNT / 3..COUNT * 2 / 3).contains(&last), "{last}");
}

#[test]
fn a_audio_shows_its_cover() {
    if !can_be_made() {
        return;
    }
    let cover = clip(
        "cover.png",
        "-f lavfi -i color=c=0xdc1414:size=40x30 -frames:v 1",
    );
    let audio = "-f lavfi -i sine=duration=1";
    let attached = format!(
        "{audio} -i {} -map 0 -map 1 -c:v copy -disposition:v attached_pic",
        cover.display()
    );
    for (name, codec) in [
        ("cover.mp3", "-c:a libmp3lame"),
        ("cover.m4a", "-c:a aac"),
        ("cover.flac", "-c:a flac"),
    ] {
        let clip = clip(name, &format!("{attached} {codec}"));
        let shown = shown(&clip, 7.0);
        assert_eq!((shown.width, shown.height), (40, 30), "{name}");
        assert_near(pixel(&shown, 20, 15), RED, 3, name);
    }
    let bare = clip("bare.mp3", &format!("{audio} -c:a libmp3lame"));
    let failure = perform(&still(0.0), &bare).err().expect("no cover");
    assert_eq!(failure.code, FailureCode::Impossible);
}
