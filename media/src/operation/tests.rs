//! Requests and the operations of them, with the odd ones first.

mod timed;

use serde_json::{Value, json};

use super::*;
use crate::task::{Crop, Encode, FailureCode, Fit, PageSize, Render};

fn read(tool: &str, fields: Value) -> Result<Operation, FieldError> {
    parse(
        tool,
        &Params::from_json(fields.as_object().expect("an object")),
    )
}

fn operation(tool: &str, fields: Value) -> Operation {
    read(tool, fields).expect("good fields")
}

fn task(tool: &str, fields: Value, source: Format) -> Result<Task, FailureCode> {
    operation(tool, fields)
        .task(&[OperationInput::new(source, "a")])
        .map_err(|failure| failure.code)
}

fn render(tool: &str, fields: Value, source: Format) -> Render {
    match task(tool, fields, source) {
        Ok(Task::Render(render)) => *render,
        other => panic!("no render: {other:?}"),
    }
}

#[test]
fn bad_values_are_refused_by_field_value_and_range() {
    let cases = [
        ("convert", json!({}), "format is missing: give one of jpg"),
        (
            "convert",
            json!({"format": "exe"}),
            "format must be one of jpg",
        ),
        ("convert", json!({"format": "bmp"}), "got `bmp`"),
        ("convert", json!({"format": ["png"]}), "got `a list"),
        (
            "convert",
            json!({"format": "png", "compression": 0}),
            "compression must be a whole number from 1 to 100, got `0`",
        ),
        (
            "convert",
            json!({"format": "png", "compression": 82.5}),
            "got `82.5`",
        ),
        (
            "convert",
            json!({"format": "png", "compression": "99999999999999999999"}),
            "got `99999999999999999999`",
        ),
        (
            "convert",
            json!({"format": "png", "autoOrient": "yes"}),
            "autoOrient must be true or false, got `yes`",
        ),
        (
            "convert",
            json!({"format": "png", "resize": "huge"}),
            "resizePreset must be one of original",
        ),
        (
            "convert",
            json!({"format": "png", "resizePreset": "width"}),
            "resizePreset width needs resizeWidth",
        ),
        (
            "convert",
            json!({"format": "png", "resize_width": 16384}),
            "resizeWidth must be a whole number from 1 to 16383",
        ),
        (
            "compress",
            json!({"mode": "target-size"}),
            "needs targetBytes",
        ),
        (
            "compress",
            json!({"targetBytes": 10, "lossless": true}),
            "give it or targetBytes",
        ),
        ("resize", json!({}), "resize needs resizePreset"),
        (
            "thumbnail",
            json!({"fit": "fill"}),
            "fit must be one of cover, contain, inside, got `fill`",
        ),
        (
            "thumbnail",
            json!({"format": "gif"}),
            "format must be one of",
        ),
        ("transform", json!({"cropLeft": 0}), "needs cropWidth"),
        (
            "transform",
            json!({"cropWidth": 5}),
            "needs cropWidth and cropHeight",
        ),
        (
            "transform",
            json!({"rotate": 361}),
            "from -360 to 360, got `361`",
        ),
        (
            "adjust",
            json!({"brightness": "NaN"}),
            "from 0 to 10, got `NaN`",
        ),
        (
            "adjust",
            json!({"hue": "inf"}),
            "from -360 to 360, got `inf`",
        ),
        ("watermark", json!({}), "needs text or watermarkFile"),
        ("watermark", json!({"text": "x".repeat(501)}), "at most 500"),
        (
            "watermark",
            json!({"text": "x", "position": 10}),
            "position must be a whole number from 1 to 9, or one of top-left, top",
        ),
        (
            "watermark",
            json!({"text": "x", "position": "top-top"}),
            "bottom-right, got `top-top`",
        ),
        (
            "image-to-pdf",
            json!({"pageSize": "a5"}),
            "auto, letter, a4",
        ),
        ("teleport", json!({}), "tool must be one of convert"),
    ];
    for (tool, fields, expected) in cases {
        let error = read(tool, fields.clone()).expect_err("a bad field");
        assert!(
            error.message.contains(expected),
            "{tool} {fields}: {}",
            error.message
        );
        assert!(!error.field.is_empty());
    }
}

#[test]
fn forms_and_json_in_both_spellings_mean_the_same() {
    let form = Params::from_form([
        ("format", "JPEG"),
        ("resize", "Square"),
        ("resize_width", " 300 "),
        ("compression", ""),
        ("mono", "False"),
        ("somethingElse", "[1"),
    ]);
    let expected = Operation::Convert(Convert {
        format: Format::Jpg,
        sizing: Sizing::Cover {
            width: 300,
            height: 300,
        },
        quality: 82,
        again: false,
        auto_orient: true,
        mono: false,
    });
    assert_eq!(parse("convert", &form).as_ref(), Ok(&expected));
    let fields = json!({"outputFormat": ".jpg", "resizePreset": "square", "resizeWidth": 300.0});
    assert_eq!(operation("convert", fields), expected);
}

#[test]
fn presets_have_their_geometry() {
    let sizes = [
        (json!({}), None),
        (json!({"resizePreset": "original", "resizeWidth": 5}), None),
        (
            json!({"resizeHeight": 9}),
            Some((None, Some(9), Fit::Inside)),
        ),
        (
            json!({"resizeWidth": 5, "resizeHeight": 9}),
            Some((Some(5), Some(9), Fit::Inside)),
        ),
        (
            json!({"resize": "website"}),
            Some((Some(1920), None, Fit::Inside)),
        ),
        (
            json!({"resize": "email"}),
            Some((Some(1200), None, Fit::Inside)),
        ),
        (
            json!({"resize": "instagram"}),
            Some((Some(1080), Some(1080), Fit::Cover)),
        ),
        (
            json!({"resize": "linkedin"}),
            Some((Some(1200), Some(627), Fit::Cover)),
        ),
        (
            json!({"resize": "ecommerce"}),
            Some((Some(2048), Some(2048), Fit::Contain)),
        ),
        (
            json!({"resize": "square"}),
            Some((Some(1080), Some(1080), Fit::Cover)),
        ),
        (
            json!({"resize": "width", "resizeWidth": 7, "resizeHeight": 8}),
            Some((Some(7), None, Fit::Inside)),
        ),
        (
            json!({"resize": "height", "resizeHeight": 8}),
            Some((None, Some(8), Fit::Inside)),
        ),
    ];
    for (mut fields, expected) in sizes {
        fields["format"] = json!("webp");
        let resize = render("convert", fields.clone(), Format::Png).resize;
        let found = resize.map(|resize| (resize.width, resize.height, resize.fit));
        assert_eq!(found, expected, "{fields}");
        assert!(resize.is_none_or(|resize| !resize.enlarge));
    }
}

#[test]
fn the_source_decides_what_a_conversion_is() {
    let to =
        |format: &str, source| task("convert", json!({"format": format, "mono": true}), source);
    assert!(matches!(to("png", Format::Svg), Ok(Task::Render(_))));
    assert!(matches!(to("avif", Format::Pdf), Ok(Task::Render(_))));
    assert_eq!(
        to("svg", Format::Jpg),
        Ok(Task::Vectorize {
            source: Format::Jpg,
            mono: true
        })
    );
    assert_eq!(
        to("pdf", Format::Svg),
        Ok(Task::ImagesToPdf {
            sources: vec![Format::Svg],
            page_size: PageSize::Auto
        })
    );
    for (format, source, code) in [
        ("svg", Format::Svg, FailureCode::Impossible),
        ("svg", Format::Pdf, FailureCode::Impossible),
        ("pdf", Format::Pdf, FailureCode::Impossible),
        ("mp4", Format::Gif, FailureCode::UnsupportedType),
        ("mp3", Format::Pdf, FailureCode::UnsupportedType),
        ("jpg", Format::Mp3, FailureCode::UnsupportedType),
        ("svg", Format::Mp4, FailureCode::UnsupportedType),
        ("pdf", Format::Mov, FailureCode::UnsupportedType),
        ("jpg", Format::Zip, FailureCode::UnsupportedType),
    ] {
        assert_eq!(
            to(format, source),
            Err(code),
            "{} to {format}",
            source.name()
        );
    }
    assert!(operation("convert", json!({"format": "zip"})).is_packing());
    assert!(operation("convert", json!({"format": "png"})).opens_archives());
    assert!(!operation("inspect", json!({})).opens_archives());
}

#[test]
fn compression_keeps_the_format_and_says_where_it_cannot() {
    let plain = render("compress", json!({}), Format::Webp);
    assert_eq!(plain.output, Encode::new(Format::Webp, 82));
    assert!(plain.keep_metadata);
    let aimed = render(
        "compress",
        json!({"targetBytes": "50000", "stripMetadata": "true"}),
        Format::Jpg,
    );
    assert_eq!(aimed.output.target_bytes, Some(50_000));
    assert_eq!(aimed.output.quality, 95);
    assert!(!aimed.keep_metadata);
    let by_quality = json!({"mode": "quality", "targetBytes": 50_000});
    assert_eq!(
        render("compress", by_quality, Format::Jpg)
            .output
            .target_bytes,
        None
    );
    for (fields, source, code) in [
        (
            json!({"lossless": true}),
            Format::Jpg,
            FailureCode::Impossible,
        ),
        (json!({}), Format::Ico, FailureCode::UnsupportedType),
        (json!({}), Format::Svg, FailureCode::UnsupportedType),
    ] {
        assert_eq!(task("compress", fields, source), Err(code));
    }
}

#[test]
fn tools_keep_the_format_where_it_can_be_written() {
    for (tool, fields, source, output) in [
        ("resize", json!({"resizeWidth": 5}), Format::Gif, "a.gif"),
        ("resize", json!({"resizeWidth": 5}), Format::Svg, "a.png"),
        ("adjust", json!({"invert": true}), Format::Bmp, "a.png"),
        ("transform", json!({"flip": true}), Format::Heif, "a.heif"),
        (
            "transform",
            json!({"format": "tif"}),
            Format::Heif,
            "a.tiff",
        ),
        ("thumbnail", json!({}), Format::Pdf, "a.jpg"),
        ("pdf-preview", json!({}), Format::Pdf, "a.jpg"),
        ("watermark", json!({"text": "©"}), Format::Jpg, "a.jpg"),
        ("vectorize", json!({}), Format::Tga, "a.svg"),
        ("image-to-pdf", json!({}), Format::Tga, "a.pdf"),
        ("strip-metadata", json!({}), Format::Png, "a.png"),
    ] {
        let operation = operation(tool, fields);
        let source = OperationInput::new(source, "a");
        assert_eq!(operation.output(&source).0, output, "{tool}");
        let task = operation.task(&[source]).expect("a task");
        if let Task::Render(render) = task {
            assert_eq!(render.output.format.extension(), &output[2..], "{tool}");
        }
    }
    assert_eq!(
        operation("inspect", json!({})).output_format(Format::Jpg),
        None
    );
}

#[test]
fn several_files_go_into_one_operation_where_its_row_says_so() {
    let pdf = operation("image_to_pdf", json!({"pageSize": "A4"}));
    let sources = [
        OperationInput::new(Format::Jpg, "b.jpg"),
        OperationInput::new(Format::Svg, "a.svg"),
    ];
    assert_eq!(
        pdf.task(&sources),
        Ok(Task::ImagesToPdf {
            sources: vec![Format::Jpg, Format::Svg],
            page_size: PageSize::A4
        })
    );
    let movie = [sources[0].clone(), OperationInput::new(Format::Mov, "c")];
    assert_eq!(
        pdf.task(&movie).map_err(|failure| failure.code),
        Err(FailureCode::UnsupportedType)
    );

    for (given, position) in [
        (json!(1), 1),
        (json!("9"), 9),
        (json!("top-left"), 1),
        (json!("Top"), 2),
        (json!("top_right"), 3),
        (json!("left"), 4),
        (json!("centre"), 5),
        (json!(null), 5),
        (json!("right"), 6),
        (json!("bottom left"), 7),
        (json!("bottom-center"), 8),
        (json!("bottom-right"), 9),
    ] {
        let fields = json!({"text": "x", "position": given});
        let Ok(Task::Render(render)) = operation("watermark", fields).task(&sources) else {
            panic!("a watermark is a render");
        };
        let placed = render.watermark.expect("a watermark").position;
        assert_eq!(placed, position, "{given}");
    }
    let mark = operation(
        "watermark",
        json!({"watermarkFile": "logo.png", "position": 9}),
    );
    let Ok(Task::Render(render)) = mark.task(&sources) else {
        panic!("a watermark is a render");
    };
    let watermark = render.watermark.expect("a watermark");
    assert_eq!(
        (watermark.image, watermark.position),
        (Some(Format::Svg), 9)
    );
    assert_eq!(
        mark.task(&sources[..1]).map_err(|failure| failure.code),
        Err(FailureCode::Impossible)
    );
}

#[test]
fn a_crop_starts_at_the_corner_unless_given() {
    let crop = |fields| render("transform", fields, Format::Png).crop;
    assert_eq!(
        crop(json!({"cropWidth": 7, "cropHeight": 8, "cropTop": 3})),
        Some(Crop {
            left: 0,
            top: 3,
            width: 7,
            height: 8
        })
    );
    assert_eq!(crop(json!({})), None);
}

#[test]
fn lists_give_one_value_per_file() {
    let each = |fields: Value, files| {
        parse_each(
            "convert",
            &Params::from_json(fields.as_object().expect("an object")),
            files,
        )
    };
    let fields = json!({
        "formats": "[\"png\", \"webp\", null]",
        "format": "jpg",
        "compressions": [10, 20, 30],
        "resize_presets": [null, "email", null],
    });
    let operations = each(fields.clone(), 3).expect("good lists");
    let seen: Vec<(Format, u8, Sizing)> = operations
        .iter()
        .map(|operation| match operation {
            Operation::Convert(convert) => (convert.format, convert.quality, convert.sizing),
            other => panic!("{other:?}"),
        })
        .collect();
    let email = Sizing::Inside {
        width: Some(1200),
        height: None,
    };
    assert_eq!(
        seen,
        [
            (Format::Png, 10, Sizing::Original),
            (Format::Webp, 20, email),
            (Format::Jpg, 30, Sizing::Original),
        ]
    );

    let error = each(fields, 2).expect_err("three values for two files");
    assert_eq!(error.field, "formats");
    assert!(error.message.contains("2 files, got 3"), "{error}");
    let error = each(json!({"formats": "png"}), 1).expect_err("no list");
    assert!(error.message.contains("JSON array"), "{error}");
    assert_eq!(
        each(json!({"format": "png"}), 4).map(|all| all.len()),
        Ok(4)
    );
}

#[test]
fn fields_whose_plural_is_the_same_word_take_both() {
    let each = |targets: Value| {
        let fields = json!({"targetBytes": targets});
        parse_each(
            "compress",
            &Params::from_json(fields.as_object().expect("an object")),
            2,
        )
    };
    assert!(each(json!(5000)).is_ok());
    assert!(each(json!([5000, 6000])).is_ok());
    assert!(each(json!([5000])).is_err());
}

#[test]
fn operations_survive_being_stored() {
    for (tool, fields) in [
        ("convert", json!({"format": "webp", "resize": "ecommerce"})),
        ("compress", json!({"targetBytes": 9})),
        ("resize", json!({"resizeHeight": 4})),
        ("thumbnail", json!({})),
        ("transform", json!({"cropWidth": 1, "cropHeight": 2})),
        ("adjust", json!({"contrast": 1.5})),
        ("watermark", json!({"text": "\"'\n"})),
        ("strip-metadata", json!({})),
        ("inspect", json!({})),
        ("pdf-preview", json!({"page": 3})),
        ("image-to-pdf", json!({})),
        ("vectorize", json!({"mono": true})),
    ] {
        let before = operation(tool, fields);
        assert_eq!(before.tool(), tool);
        let stored = serde_json::to_string(&before).expect("it serialises");
        let after: Operation = serde_json::from_str(&stored).expect("it comes back");
        assert_eq!(before, after, "{stored}");
    }
}

/// An operation of each row, with as few fields as it takes.
fn one_of_each() -> impl Iterator<Item = (&'static Row, Operation)> {
    TABLE.iter().map(|row| {
        let mut fields = json!({"resizePreset": "square", "text": "x"});
        if let Some(Field {
            default: None,
            kind: Kind::Format(formats),
            ..
        }) = row.field("format")
        {
            fields["format"] = json!(formats[0].name());
        }
        (row, operation(row.tool, fields))
    })
}

#[test]
fn operations_are_stored_under_the_names_of_their_rows() {
    for (row, operation) in one_of_each() {
        assert_eq!(operation.tool(), row.tool);
        let stored = serde_json::to_value(&operation).expect("plain data");
        assert_eq!(stored["tool"], row.tool);
        let read: Operation = serde_json::from_value(stored).expect("what was stored");
        assert_eq!(read, operation);
    }
    // Of versions in which these two had no type of their own.
    for tool in ["inspect", "strip-metadata"] {
        let stored: Operation = serde_json::from_value(json!({"tool": tool})).expect("stored");
        assert_eq!(stored, operation(tool, json!({})));
    }
}

#[test]
fn the_example_has_its_row_and_its_url() {
    let faded = render("fade", json!({"amount": 100}), Format::Jpg);
    assert_eq!((faded.adjust.saturation, faded.adjust.contrast), (0.0, 0.5));
    let paper = operation("fade", json!({})).task(&[OperationInput::new(Format::Pdf, "a")]);
    assert!(paper.is_err_and(|failure| failure.message.contains("fade takes")));
    assert!(effects().any(|effect| effect.parameter == "fade"));
}

#[test]
fn every_row_is_consistent() {
    for row in TABLE {
        assert!(row.min_files <= row.max_files, "{}", row.tool);
        if let Some(node) = row.node {
            assert_eq!(node, row.tool.replace('-', "_"));
        }
        let mut names = std::collections::BTreeSet::new();
        for field in row.fields {
            assert!(names.insert(field.name), "{}.{}", row.tool, field.name);
            assert!(!field.allowed().is_empty());
            if let Some(default) = field.default {
                let given = Params::from_form([(field.name, default)]);
                let refused =
                    parse(row.tool, &given).is_err_and(|error| error.message.contains("must be"));
                assert!(!refused, "the default of {}.{}", row.tool, field.name);
            }
        }
    }
}

proptest::proptest! {
    #[test]
    fn any_fields_are_read_without_a_panic(
        row in 0..TABLE.len(),
        values in proptest::collection::vec("[-0-9a-z.\\[\\]\", ]{0,12}", 16),
        files in 0usize..4,
    ) {
        let row = &TABLE[row];
        let mut params = Params::default();
        for (field, value) in row.fields.iter().zip(&values) {
            params.set(field.name, value.as_str());
            params.set(&field.plural(), values[15].as_str());
        }
        let _ = parse_each(row.tool, &params, files);
        let _ = parse(row.tool, &params);
    }
}
