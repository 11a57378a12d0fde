//! Each step of a render, by what it does to [`quarters`].

use sluice_media::{
    format::Format,
    task::{Adjust, Colour, Crop, FailureCode, Fit, Gravity, Render, Resize, Watermark},
};
use sluice_worker::image::{Raster, vips};

use crate::material::*;

const EXACT: u8 = 2;

fn rendered(change: impl FnOnce(&mut Render)) -> Raster {
    rendered_of(&quarters(64, 48), change)
}

fn rendered_of(raster: &Raster, change: impl FnOnce(&mut Render)) -> Raster {
    let mut render = request(Format::Png, Format::Png);
    change(&mut render);
    let input = written(raster, Format::Png);
    let mark = written(&half_transparent(10, 10), Format::Png);
    let (_, bytes) = vips::render(&render, &input, Some(&mark), &LIMITS).unwrap();
    vips::raster(render.output.format, 1, &bytes, &LIMITS, 10_000).unwrap()
}

fn size(raster: &Raster) -> (u32, u32) {
    (raster.width, raster.height)
}

fn resize(width: u32, height: u32, fit: Fit) -> Option<Resize> {
    Some(Resize::new(Some(width), Some(height), fit))
}

#[test]
fn a_crop_takes_its_part_and_none_beside_the_image() {
    let part = rendered(|render| {
        render.crop = Some(Crop {
            left: 32,
            top: 24,
            width: 100,
            height: 10,
        });
    });
    assert_eq!(size(&part), (32, 10));
    assert_colour(&colour_at(&part, 0.0, 0.0), &GREY, EXACT, "crop");
    let mut render = request(Format::Png, Format::Png);
    render.crop = Some(Crop {
        left: 64,
        top: 0,
        width: 1,
        height: 1,
    });
    let input = written(&quarters(64, 48), Format::Png);
    let failure = vips::render(&render, &input, None, &LIMITS).unwrap_err();
    assert_eq!(failure.code, FailureCode::Impossible);
}

#[test]
fn a_focal_point_moves_the_cut() {
    for (x, expected) in [(0.0, RED), (1.0, GREEN)] {
        let cut = rendered(|render| {
            render.resize = Some(Resize {
                gravity: Gravity::Point { x, y: 0.0 },
                ..resize(10, 24, Fit::Cover).unwrap()
            });
        });
        assert_eq!(size(&cut), (10, 24));
        assert_colour(&colour_at(&cut, 0.5, 0.2), &expected, 6, "focal point");
    }
}

#[test]
fn attention_cuts_to_what_is_salient() {
    let mut raster = quarters(300, 100);
    raster.pixels.fill(200);
    for y in 30..70 {
        for x in 240..280 {
            let start = (y * 300 + x) * 3;
            let lively = if (x + y) % 6 < 3 { RED } else { [250, 240, 10] };
            raster.pixels[start..start + 3].copy_from_slice(&lively);
        }
    }
    let cut = rendered_of(&raster, |render| {
        render.resize = Some(Resize {
            gravity: Gravity::Smart,
            ..resize(100, 100, Fit::Cover).unwrap()
        });
    });
    assert_eq!(size(&cut), (100, 100));
    assert!(
        cut.pixels.chunks(3).any(|pixel| pixel[2] < 60),
        "what sticks out is not in the cut"
    );
}

#[test]
fn a_contained_image_is_on_its_canvas() {
    let behind = Colour {
        red: 1,
        green: 200,
        blue: 3,
    };
    let see = |output, background| {
        rendered(|render| {
            render.resize = resize(40, 40, Fit::Contain);
            render.background = background;
            render.output.format = output;
        })
    };
    let clear = see(Format::Png, None);
    assert_eq!((size(&clear), clear.bands), ((40, 40), 4));
    assert_eq!(colour_at(&clear, 0.5, 0.0)[3], 0);
    assert_colour(&colour_at(&clear, 0.2, 0.3), &RED, 6, "contain");
    let white = see(Format::Jpg, None);
    assert_colour(&colour_at(&white, 0.5, 0.0), &[255; 3], 3, "white");
    let green = see(Format::Png, Some(behind));
    assert_eq!(green.bands, 3);
    assert_colour(&colour_at(&green, 0.5, 0.0), &[1, 200, 3], EXACT, "green");
}

#[test]
fn turns_are_clockwise() {
    let quarter = rendered(|render| render.rotate = 90);
    assert_eq!(size(&quarter), (48, 64));
    assert_colour(&colour_at(&quarter, 0.9, 0.1), &RED, EXACT, "90");
    assert_colour(&colour_at(&quarter, 0.1, 0.1), &BLUE, EXACT, "90");
    let back = rendered(|render| render.rotate = -90);
    assert_colour(&colour_at(&back, 0.1, 0.9), &RED, EXACT, "-90");
    let half = rendered(|render| render.rotate = 180);
    assert_colour(&colour_at(&half, 0.9, 0.9), &RED, EXACT, "180");
    let odd = rendered(|render| render.rotate = 45);
    assert_eq!(odd.bands, 4);
    assert_eq!(colour_at(&odd, 0.02, 0.02)[3], 0, "corners are clear");
    assert_colour(&colour_at(&odd, 0.5, 0.15), &RED, 6, "45");
    let filled = rendered(|render| {
        render.rotate = 45;
        render.output.format = Format::Jpg;
    });
    assert_colour(&colour_at(&filled, 0.02, 0.02), &[255; 3], 6, "corners");
}

#[test]
fn flips_are_up_and_down_and_flops_left_and_right() {
    let flipped = rendered(|render| render.flip = true);
    assert_colour(&colour_at(&flipped, 0.1, 0.9), &RED, EXACT, "flip");
    let flopped = rendered(|render| render.flop = true);
    assert_colour(&colour_at(&flopped, 0.9, 0.1), &RED, EXACT, "flop");
}

#[test]
fn a_border_of_even_colour_is_cut_away() {
    let inner = quarters(40, 30);
    let framed = |edge: &[u8], bands: u8| {
        let mut pixels = Vec::new();
        for y in 0..50u32 {
            for x in 0..60u32 {
                if (10..50).contains(&x) && (10..40).contains(&y) {
                    let start = (((y - 10) * 40 + x - 10) * 3) as usize;
                    pixels.extend(&inner.pixels[start..start + 3]);
                    pixels.extend(std::iter::repeat_n(255, bands as usize - 3));
                } else {
                    pixels.extend(edge);
                }
            }
        }
        Raster {
            width: 60,
            height: 50,
            bands,
            pixels,
        }
    };
    for raster in [
        framed(&[255, 255, 255], 3),
        framed(&[0, 0, 90], 3),
        framed(&[0, 0, 0, 0], 4),
    ] {
        let trimmed = rendered_of(&raster, |render| render.trim = true);
        assert_eq!(size(&trimmed), (40, 30));
        assert_colour(&colour_at(&trimmed, 0.0, 0.0), &RED, EXACT, "trim");
    }
    let mut even = quarters(20, 10);
    even.pixels.fill(7);
    let kept = rendered_of(&even, |render| render.trim = true);
    assert_eq!(size(&kept), (20, 10), "nothing but border");
}

#[test]
fn a_drawing_is_trimmed_in_its_own_points() {
    let svg = br##"<svg xmlns="http://www.w3.org/2000/svg" width="20000" height="10000"><path fill="#00f" d="M5000 2500h10000v2500H5000z"/></svg>"##;
    let mut render = request(Format::Svg, Format::Png);
    render.trim = true;
    render.resize = resize(400, 400, Fit::Inside);
    let (facts, bytes) = vips::render(&render, svg, None, &LIMITS).unwrap();
    assert_eq!((facts.width, facts.height), (Some(400), Some(100)));
    let drawn = vips::raster(Format::Png, 1, &bytes, &LIMITS, 400).unwrap();
    assert_eq!(colour_at(&drawn, 0.02, 0.05), [0, 0, 255, 255]);
}

#[test]
fn light_and_colour_change_as_named() {
    let at = |adjust: Adjust, x: f64, y: f64| {
        let image = rendered(|render| render.adjust = adjust);
        colour_at(&image, x, y)
    };
    let plain = Adjust::default();
    let half = Adjust {
        brightness: 0.5,
        ..plain
    };
    assert_colour(&at(half, 0.75, 0.75), &[64; 3], EXACT, "brightness");
    let flat = Adjust {
        contrast: 0.0,
        ..plain
    };
    assert_colour(&at(flat, 0.25, 0.25), &[128; 3], EXACT, "contrast");
    let inverse = Adjust {
        invert: true,
        ..plain
    };
    assert_colour(
        &at(inverse, 0.25, 0.25),
        &RED.map(|red| 255 - red),
        EXACT,
        "invert",
    );
    let dull = Adjust {
        saturation: 0.0,
        ..plain
    };
    for adjust in [
        dull,
        Adjust {
            grayscale: true,
            ..plain
        },
    ] {
        let red = at(adjust, 0.25, 0.25);
        let spread = red.iter().max().unwrap() - red.iter().min().unwrap();
        assert!(spread < 4, "{red:?}");
    }
    let turned = at(
        Adjust {
            hue: 180.0,
            ..plain
        },
        0.25,
        0.25,
    );
    assert!(turned[1] > turned[0], "red becomes cyan: {turned:?}");
    let soft = rendered(|render| {
        render.adjust = Adjust {
            blur: 6.0,
            sharpen: 0.0,
            ..plain
        };
    });
    let edge = colour_at(&soft, 0.5, 0.1);
    assert!(edge[0] < 200 && edge[1] < 170, "the edge is soft: {edge:?}");
    let sharp = Adjust {
        sharpen: 1.0,
        ..plain
    };
    assert_colour(&at(sharp, 0.25, 0.25), &RED, 4, "flat parts stay");
}

#[test]
fn transparent_pixels_do_not_bleed() {
    let soft = rendered_of(&half_transparent(64, 48), |render| {
        render.adjust.blur = 3.0;
        render.resize = resize(32, 24, Fit::Inside);
    });
    let edge = colour_at(&soft, 0.5, 0.2);
    assert!(edge[3] > 20 && edge[3] < 235, "{edge:?}");
    assert_colour(&edge[..3], &RED, 8, "no green under it");
}

#[test]
fn marks_are_where_they_are_placed() {
    let marked = |position, opacity, text: Option<&str>, image| {
        let mut black = quarters(400, 300);
        black.pixels.fill(0);
        rendered_of(&black, |render| {
            render.watermark = Some(Watermark {
                text: text.map(Into::into),
                image,
                position,
                opacity,
                margin: 10,
                width: Some(100),
            });
        })
    };
    let changed = |raster: &Raster, left: u32, top: u32| {
        (top..top + 100).any(|y| {
            (left..left + 133).any(|x| {
                let start = ((y * raster.width + x) * 3) as usize;
                raster.pixels[start] > 60
            })
        })
    };
    for position in 1..=9u32 {
        let marked = marked(position as u8, 1.0, Some("Sluice & <b>Söhne</b>"), None);
        assert_eq!(size(&marked), (400, 300));
        for cell in 1..=9u32 {
            let found = changed(&marked, (cell - 1) % 3 * 133, (cell - 1) / 3 * 100);
            assert_eq!(found, cell == position, "mark {position}, cell {cell}");
        }
    }
    let image = marked(1, 0.5, None, Some(Format::Png));
    assert_colour(
        &colour_at(&image, 0.05, 0.05),
        &[110, 15, 15],
        4,
        "half a red",
    );
    assert_colour(
        &colour_at(&image, 0.25, 0.05),
        &[0; 3],
        EXACT,
        "its clear half",
    );
    let both = marked(5, 1.0, Some("under"), Some(Format::Png));
    assert!(changed(&both, 133, 100));
    for text in ["", " \n\t", "\u{1}", "&amp;</span>", "𓀀漢字\u{202e}"] {
        let _ = marked(9, 1.0, Some(text), None);
    }
}

#[test]
fn marks_larger_than_the_image_shrink_into_it() {
    for (width, height) in [(1, 1), (2, 50), (30, 3)] {
        let marked = rendered_of(&quarters(width, height), |render| {
            render.watermark = Some(Watermark {
                text: Some("a long line of text".into()),
                image: Some(Format::Png),
                position: 9,
                opacity: 1.0,
                margin: 4_000_000,
                width: Some(u32::MAX),
            });
        });
        assert_eq!(size(&marked), (width, height));
    }
}

#[test]
fn metadata_goes_unless_it_is_kept() {
    let jpeg = with_segment(&written(&quarters(64, 48), Format::Jpg), 0xe1, &exif(6));
    for format in [Format::Jpg, Format::Png, Format::Webp, Format::Tiff] {
        for keep in [false, true] {
            let mut render = request(Format::Jpg, format);
            render.keep_metadata = keep;
            let (_, bytes) = vips::render(&render, &jpeg, None, &LIMITS).unwrap();
            let seen = vips::inspect(format, &bytes, &LIMITS).unwrap();
            assert_eq!(seen.orientation, 1, "{} {keep}", format.name());
            assert_eq!((seen.width, seen.height), (48, 64));
            let camera = seen.exif.get("Make").map(String::as_str);
            let expected = (keep && format != Format::Tiff).then_some("Canon");
            assert_eq!(camera, expected, "{} {keep}", format.name());
        }
    }
}

#[test]
fn metadata_is_not_made_up() {
    let plain = written(&quarters(64, 48), Format::Jpg);
    let tagged = with_profile(&plain, &display_p3());
    for format in [Format::Jpg, Format::Png, Format::Webp] {
        let mut render = request(Format::Jpg, format);
        let bytes = |render: &Render, source: &[u8]| {
            let (_, bytes) = vips::render(render, source, None, &LIMITS).unwrap();
            bytes
        };
        let bare = bytes(&render, &plain);
        render.keep_metadata = true;
        assert_eq!(bytes(&render, &plain), bare, "{}", format.name());
        let seen = vips::inspect(format, &bytes(&render, &tagged), &LIMITS).unwrap();
        assert!(seen.profile.is_some(), "{}", format.name());
    }
}
