//! `POST /api/convert`: every format in, every format out, and the resize presets.

use crate::{
    images::{LOSSY, UPRIGHT, check_upright, expect},
    support::{
        Failure,
        images::{DELAYS, DecodedImage, HEIGHT, WIDTH, available, drawn, look, photographs},
        server::{Api, Server},
    },
};

/// Pillow's names of our formats.
const TARGETS: [(&str, &str); 8] = [
    ("jpg", "JPEG"),
    ("png", "PNG"),
    ("webp", "WEBP"),
    ("avif", "AVIF"),
    ("tiff", "TIFF"),
    ("gif", "GIF"),
    ("heif", "HEIF"),
    ("jxl", "JXL"),
];

async fn converted(
    api: &Api,
    name: &str,
    fields: &[(&str, &str)],
) -> Result<(String, DecodedImage), Failure> {
    let case = format!("{name} {fields:?}");
    let (record, bytes) = expect(&case, api.convert(name, &drawn(name)?, fields).await)?;
    let image = expect(&case, look(&bytes).await)?;
    assert_eq!(record["width"], image.width, "{case}: {record}");
    assert_eq!(record["height"], image.height, "{case}: {record}");
    assert_eq!(record["finalSize"], bytes.len(), "{case}: {record}");
    Ok((case, image))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_format_becomes_every_other() -> Result<(), Failure> {
    if !available("every_format_becomes_every_other")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    for (target, format) in TARGETS {
        for source in ["plain.jpg", "plain.png"] {
            let (case, image) = converted(&api, source, &[("format", target)]).await?;
            assert_eq!(image.format, format, "{case}");
            assert_eq!(image.size(), (WIDTH, HEIGHT), "{case}");
            check_upright(&case, &image)?;
        }
    }
    for source in [
        "progressive.jpg",
        "full-chroma.jpg",
        "half-chroma.jpg",
        "lossless.webp",
        "plain.webp",
        "plain.avif",
        "plain.heic",
        "plain.jxl",
        "plain.tiff",
        "plain.bmp",
        "plain.tga",
        "plain.gif",
        "palette.png",
        "deep.png",
        "pages.tiff",
        "pages.pdf",
    ] {
        for (target, format) in [("png", "PNG"), ("webp", "WEBP")] {
            let (case, image) = converted(&api, source, &[("format", target)]).await?;
            assert_eq!(image.format, format, "{case}");
            check_upright(&case, &image)?;
        }
    }
    let (case, icon) = converted(&api, "plain.ico", &[("format", "png")]).await?;
    assert_eq!(icon.size(), (64, 43), "{case}");
    check_upright(&case, &icon)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_is_upright_whatever_its_exif_says() -> Result<(), Failure> {
    if !available("an_image_is_upright_whatever_its_exif_says")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    for orientation in 1..=8 {
        let source = format!("orientation-{orientation}.jpg");
        // JPEG, WebP and AVIF go by the planar path, PNG by libvips; both also when they shrink.
        for target in ["jpg", "webp", "avif", "png"] {
            let (case, whole) = converted(&api, &source, &[("format", target)]).await?;
            assert_eq!(whole.size(), (WIDTH, HEIGHT), "{case}");
            check_upright(&case, &whole)?;
            let small = [("format", target), ("resizeWidth", "90")];
            let (case, small) = converted(&api, &source, &small).await?;
            assert_eq!(small.size(), (90, 60), "{case}");
            check_upright(&case, &small)?;
        }
    }
    let as_stored = [("format", "png"), ("autoOrient", "false")];
    let (case, sideways) = converted(&api, "orientation-6.jpg", &as_stored).await?;
    assert_eq!(sideways.size(), (HEIGHT, WIDTH), "{case}");
    assert!(sideways.check_corners(UPRIGHT, 60).is_err(), "{case}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transparency_stays_where_the_format_has_it() -> Result<(), Failure> {
    if !available("transparency_stays_where_the_format_has_it")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    for source in ["hole.png", "hole.webp", "hole.tiff"] {
        for target in ["png", "webp", "avif", "tiff", "gif", "heif", "jxl"] {
            let (case, image) = converted(&api, source, &[("format", target)]).await?;
            assert!(image.has_alpha, "{case}: {}", image.mode);
            let [left, right, ..] = image.corners();
            assert!(left[3] < 8 && right[3] > 247, "{case}: {left:?} {right:?}");
        }
        let (case, flat) = converted(&api, source, &[("format", "jpg")]).await?;
        let [left, right, ..] = flat.corners();
        assert!(
            left.iter().all(|&channel| channel > 247),
            "{case}: {left:?}"
        );
        assert!(
            right[1].abs_diff(UPRIGHT[1][1]) <= LOSSY,
            "{case}: {right:?}"
        );
    }
    let (case, grey) = converted(&api, "grey-hole.png", &[("format", "webp")]).await?;
    assert!(grey.has_alpha, "{case}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_animation_keeps_its_frames_and_their_times() -> Result<(), Failure> {
    if !available("an_animation_keeps_its_frames_and_their_times")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    for source in ["animated.gif", "animated.webp"] {
        for target in ["gif", "webp"] {
            let fields = [("format", target), ("resizeWidth", "120")];
            let (case, image) = converted(&api, source, &fields).await?;
            assert_eq!(image.size(), (120, 80), "{case}");
            assert_eq!(image.delays, DELAYS, "{case}");
            expect(&case, image.check_corners(UPRIGHT, 14))?;
            assert_ne!(image.last_corners(), Some(image.corners()), "{case}");
        }
        let (case, still) = converted(&api, source, &[("format", "png")]).await?;
        assert_eq!(still.frames, 1, "{case}");
        assert_eq!(still.size(), (WIDTH, HEIGHT), "{case}");
        expect(&case, still.check_corners(UPRIGHT, 14))?;
    }
    Ok(())
}

/// A source, the fields that ask for a size, and that size.
type Resized<'a> = (&'a str, &'a [(&'a str, &'a str)], (u32, u32));

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn presets_give_the_sizes_they_promise() -> Result<(), Failure> {
    if !available("presets_give_the_sizes_they_promise")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    let width = |value| [("resizePreset", "width"), ("resizeWidth", value)];
    // A raster never grows; a drawing is rendered at the size.
    let cases: [Resized<'_>; 14] = [
        ("plain.png", &[("resizePreset", "original")], (240, 160)),
        ("plain.png", &[("resizePreset", "website")], (240, 160)),
        ("plain.png", &width("100"), (100, 67)),
        (
            "plain.png",
            &[("resizePreset", "height"), ("resizeHeight", "80")],
            (120, 80),
        ),
        (
            "plain.png",
            &[("resizePreset", "square"), ("resizeWidth", "100")],
            (100, 100),
        ),
        (
            "plain.png",
            &[("resizeWidth", "60"), ("resizeHeight", "60")],
            (60, 40),
        ),
        ("plain.png", &[("resizePreset", "instagram")], (160, 160)),
        ("drawing.svg", &[], (1024, 683)),
        ("drawing.svg", &[("resizePreset", "original")], (1024, 683)),
        ("drawing.svg", &[("resizePreset", "website")], (1920, 1280)),
        (
            "drawing.svg",
            &[("resizePreset", "instagram")],
            (1080, 1080),
        ),
        ("drawing.svg", &[("resizePreset", "linkedin")], (1200, 627)),
        (
            "drawing.svg",
            &[("resizePreset", "ecommerce")],
            (2048, 2048),
        ),
        ("drawing.svg", &width("300"), (300, 200)),
    ];
    for (source, preset, size) in cases {
        let fields: Vec<_> = [("format", "png")].iter().chain(preset).copied().collect();
        let (case, image) = converted(&api, source, &fields).await?;
        assert_eq!(image.size(), size, "{case}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drawing_becomes_each_raster_format() -> Result<(), Failure> {
    if !available("a_drawing_becomes_each_raster_format")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    for (target, format) in TARGETS {
        let fields = [("format", target), ("resizeWidth", "240")];
        let (case, image) = converted(&api, "drawing.svg", &fields).await?;
        assert_eq!(image.format, format, "{case}");
        assert_eq!(image.size(), (WIDTH, HEIGHT), "{case}");
        // The drawing has flat colours; the raster images are a little darker.
        expect(&case, image.check_corners(UPRIGHT, 34))?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn photographs_keep_their_looks() -> Result<(), Failure> {
    if !available("photographs_keep_their_looks")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    for path in photographs(3)? {
        let bytes = std::fs::read(&path)?;
        for target in ["jpg", "webp", "avif"] {
            let case = format!("{} → {target}", path.display());
            let fields = [("format", target), ("resizeWidth", "640")];
            let (_, result) = expect(&case, api.convert("photo.jpg", &bytes, &fields).await)?;
            let away = crate::support::images::difference(&bytes, &result).await?;
            assert!(away < 6.0, "{case}: {away} of 255 away");
            assert!(result.len() < bytes.len(), "{case}: {} bytes", result.len());
        }
    }
    Ok(())
}
