//! `POST /api/media/{tool}`: each image tool does what its name says.

use reqwest::StatusCode;

use crate::{
    images::{LOSSY, UPRIGHT, check_upright, expect},
    support::{
        Failure,
        images::{BLUE, DecodedImage, GREEN, RED, YELLOW, available, difference, drawn, look},
        server::{Api, Form, Server},
    },
};

async fn through(
    api: &Api,
    tool: &str,
    source: &str,
    fields: &[(&str, &str)],
) -> Result<(Vec<u8>, DecodedImage), Failure> {
    let case = format!("{tool} {source} {fields:?}");
    let (_, bytes) = expect(&case, api.tool(tool, source, &drawn(source)?, fields).await)?;
    let image = expect(&case, look(&bytes).await)?;
    Ok((bytes.into(), image))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_that_shape_an_image() -> Result<(), Failure> {
    if !available("tools_that_shape_an_image")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    type Case<'a> = (
        &'a str,
        &'a [(&'a str, &'a str)],
        &'a str,
        (u32, u32),
        [[u8; 4]; 4],
    );
    let quarter = [("rotate", "90"), ("format", "png")];
    let crop = [
        ("cropLeft", "120"),
        ("cropTop", "0"),
        ("cropWidth", "120"),
        ("cropHeight", "80"),
        ("format", "png"),
    ];
    let cases: [Case; 9] = [
        ("resize", &[("resizeWidth", "60")], "PNG", (60, 40), UPRIGHT),
        (
            "thumbnail",
            &[("width", "100"), ("height", "100")],
            "JPEG",
            (100, 100),
            UPRIGHT,
        ),
        (
            "thumbnail",
            &[
                ("width", "100"),
                ("height", "100"),
                ("fit", "inside"),
                ("format", "webp"),
            ],
            "WEBP",
            (100, 67),
            UPRIGHT,
        ),
        (
            "transform",
            &quarter,
            "PNG",
            (160, 240),
            [BLUE, RED, YELLOW, GREEN],
        ),
        (
            "transform",
            &[("flip", "true"), ("format", "png")],
            "PNG",
            (240, 160),
            [BLUE, YELLOW, RED, GREEN],
        ),
        (
            "transform",
            &[("flop", "true"), ("format", "png")],
            "PNG",
            (240, 160),
            [GREEN, RED, YELLOW, BLUE],
        ),
        ("transform", &crop, "PNG", (120, 80), [GREEN; 4]),
        (
            "transform",
            &[
                ("width", "50"),
                ("height", "90"),
                ("fit", "fill"),
                ("format", "jpg"),
            ],
            "JPEG",
            (50, 90),
            UPRIGHT,
        ),
        ("adjust", &[("brightness", "1")], "PNG", (240, 160), UPRIGHT),
    ];
    for (tool, fields, format, size, corners) in cases {
        let (_, image) = through(&api, tool, "plain.png", fields).await?;
        let case = format!("{tool} {fields:?}");
        assert_eq!(image.format, format, "{case}");
        assert_eq!(image.size(), size, "{case}");
        // A crop of one quadrant has its gradient from edge to edge.
        expect(&case, image.check_corners(corners, 20))?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adjusting_changes_colours_as_named() -> Result<(), Failure> {
    if !available("adjusting_changes_colours_as_named")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    let (_, grey) = through(&api, "adjust", "plain.png", &[("grayscale", "true")]).await?;
    for [red, green, blue, _] in grey.corners() {
        assert!(
            red.abs_diff(green) <= 2 && green.abs_diff(blue) <= 2,
            "{red} {green} {blue}"
        );
    }
    let (_, negative) = through(&api, "adjust", "plain.png", &[("invert", "true")]).await?;
    let inverted =
        UPRIGHT.map(|[red, green, blue, alpha]| [255 - red, 255 - green, 255 - blue, alpha]);
    negative.check_corners(inverted, LOSSY)?;
    let (_, brighter) = through(&api, "adjust", "plain.png", &[("brightness", "1.3")]).await?;
    assert!(
        brighter.corners()[0][0] > RED[0] + 20,
        "{:?}",
        brighter.corners()
    );
    let (_, paler) = through(&api, "adjust", "plain.png", &[("saturation", "0.3")]).await?;
    let [red, green, _, _] = paler.corners()[0];
    assert!(red.abs_diff(green) < 80, "{:?}", paler.corners());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watermark_changes_its_corner_and_nothing_else() -> Result<(), Failure> {
    if !available("a_watermark_changes_its_corner_and_nothing_else")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    let plain = drawn("plain.png")?;
    let text = [
        ("text", "Sluice ©"),
        ("position", "9"),
        ("margin", "8"),
        ("opacity", "1"),
    ];
    let (marked, image) = through(&api, "watermark", "plain.png", &text).await?;
    assert_eq!(image.size(), (240, 160));
    let away = difference(&plain, &marked).await?;
    assert!((0.05..20.0).contains(&away), "{away} of 255 away");
    image.check_corners([RED, GREEN, BLUE, image.corners()[3]], LOSSY)?;

    let form = Form::new()
        .file("file", "plain.png", &plain)
        .file("watermarkFile", "mark.png", &drawn("plain.bmp")?)
        .fields(&[
            ("position", "1"),
            ("opacity", "1"),
            ("margin", "0"),
            ("watermarkWidth", "60"),
        ]);
    let (_, marked) = api.result_of("/api/media/watermark", form).await?;
    let image = look(&marked).await?;
    // A small copy of the image is in the red quadrant: its mean there is no more plain red.
    assert!(
        image.check_corners(UPRIGHT, 20).is_err(),
        "{:?}",
        image.corners()
    );
    let [_, right, below, last] = image.corners();
    image.check_corners([image.corners()[0], GREEN, BLUE, YELLOW], LOSSY)?;
    assert_eq!([right[3], below[3], last[3]], [255; 3]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metadata_goes_and_the_image_stays() -> Result<(), Failure> {
    if !available("metadata_goes_and_the_image_stays")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    for orientation in [1, 3, 6, 8] {
        let source = format!("orientation-{orientation}.jpg");
        let (_, stripped) = through(&api, "strip-metadata", &source, &[]).await?;
        assert_eq!(stripped.format, "JPEG");
        assert_eq!(stripped.exif_tags, 0, "{source}");
        assert_eq!(stripped.size(), (240, 160), "{source}");
        check_upright(&source, &stripped)?;
    }
    let form = Form::new().file("file", "a.jpg", &drawn("orientation-6.jpg")?);
    let answer = api
        .post_form("/api/media/inspect", form)
        .await?
        .expect(200)?;
    let text = String::from_utf8_lossy(&answer.bytes).into_owned();
    assert!(text.contains("Sluice test camera"), "{text}");
    assert!(text.contains("\"orientation\":6"), "{text}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_and_drawings() -> Result<(), Failure> {
    if !available("documents_and_drawings")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    // Each page of the drawn document has the image's quadrants rotated by one more step.
    let second = [("page", "2"), ("width", "120"), ("format", "png")];
    let (_, page) = through(&api, "pdf-preview", "pages.pdf", &second).await?;
    assert_eq!(page.size(), (120, 80));
    // Each quadrant is darker at its top, so that colours move a little with their places.
    page.check_corners([GREEN, BLUE, YELLOW, RED], 2 * LOSSY)?;

    let form = Form::new()
        .file("files", "1.jpg", &drawn("orientation-6.jpg")?)
        .file("files", "2.png", &drawn("hole.png")?);
    let (record, document) = api.result_of("/api/media/image-to-pdf", form).await?;
    assert_eq!(record["mimeType"], "application/pdf");
    assert!(document.starts_with(b"%PDF-"));
    let first = [("page", "1"), ("width", "240"), ("format", "png")];
    let (_, preview) = api
        .tool("pdf-preview", "made.pdf", &document, &first)
        .await?;
    let preview = look(&preview).await?;
    assert_eq!(preview.size(), (240, 160));
    preview.check_corners(UPRIGHT, LOSSY)?;
    let third = Form::new()
        .file("file", "made.pdf", &document)
        .field("page", "3");
    let refused = api.post_form("/api/media/pdf-preview", third).await?;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);

    let (record, traced) = api
        .tool("vectorize", "plain.png", &drawn("plain.png")?, &[])
        .await?;
    assert_eq!(record["mimeType"], "image/svg+xml");
    let (_, rendered) = api
        .convert(
            "traced.svg",
            &traced,
            &[("format", "png"), ("resizeWidth", "240")],
        )
        .await?;
    look(&rendered).await?.check_corners(UPRIGHT, 24)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compression_keeps_to_its_target() -> Result<(), Failure> {
    if !available("compression_keeps_to_its_target")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    let photograph = drawn("photograph.jpg")?;
    let fields = [("mode", "target-size"), ("targetBytes", "60000")];
    let form = Form::new()
        .file("files", "photograph.jpg", &photograph)
        .fields(&fields);
    let (record, small) = api.result_of("/api/compress", form).await?;
    assert!(small.len() <= 60_000, "{} bytes: {record}", small.len());
    assert!(record["appliedQuality"].as_u64().is_some(), "{record}");
    let image = look(&small).await?;
    assert_eq!(
        (image.format.as_str(), image.size()),
        ("JPEG", (1600, 1067))
    );
    Ok(())
}
