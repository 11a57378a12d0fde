//! Short forms.

use serde_json::{Value, json};

use super::{super::*, check, codes, valid};
use crate::{format::Format, operation::Operation};

fn short(template: Option<&str>, format: Option<&str>, mode: Value) -> Short {
    Short {
        template: template.map(|text| Template::parse(text).expect("a template")),
        output_format: format.map(str::to_owned),
        compression_mode: Some(mode).filter(|mode| !mode.is_null()),
    }
}

/// The steps after the upload, with what decides of them.
fn steps(short: &Short) -> Vec<String> {
    let definition = generate(short).unwrap_or_else(|problem| panic!("{}", problem.message));
    assert_eq!(
        codes(&check(&definition)),
        [Code::WebhookWithoutUrl],
        "{definition}"
    );
    let definition = valid(&definition);
    let mut at = definition.upload();
    let mut steps = Vec::new();
    while let Some(node) = definition.next(&at.id, None) {
        steps.push(match &node.kind {
            Kind::Operation(Operation::Convert(convert)) => {
                format!("convert {} {}", convert.format.name(), convert.quality)
            }
            Kind::Operation(Operation::Compress(compress)) => {
                format!("compress {}", compress.quality)
            }
            kind => kind.name().to_owned(),
        });
        at = node;
    }
    steps
}

#[test]
fn short_forms_expand_to_chains_of_nodes() {
    let nul = Value::Null;
    for (template, format, mode, expected) in [
        (
            Some("convert-post"),
            Some("webp"),
            nul.clone(),
            vec!["convert webp 82"],
        ),
        (
            Some("convert_post"),
            Some(" JPEG "),
            json!("ultra"),
            vec!["convert jpg 55"],
        ),
        (
            Some("compress-post"),
            None,
            nul.clone(),
            vec!["compress 82"],
        ),
        (
            Some("Compress-Post"),
            Some("webp"),
            json!("high"),
            vec!["compress 70"],
        ),
        (
            Some("convert-compress-post"),
            Some("avif"),
            json!(33),
            vec!["convert avif 82", "compress 33"],
        ),
        (
            Some("convert-compress-post"),
            Some("avif"),
            nul.clone(),
            vec!["convert avif 82", "compress 82"],
        ),
        (None, Some("pdf"), nul.clone(), vec!["convert pdf 82"]),
        (
            Some("convert-compress-post"),
            Some("mp4"),
            nul.clone(),
            vec!["convert mp4 82", "compress 82"],
        ),
        (None, None, json!("balanced"), vec!["compress 82"]),
        (None, None, json!("100"), vec!["compress 100"]),
        (
            None,
            Some("png"),
            json!("Ultra"),
            vec!["convert png 82", "compress 55"],
        ),
    ] {
        let mut expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        expected.push("webhook".to_owned());
        assert_eq!(steps(&short(template, format, mode)), expected);
    }
    assert_eq!(Format::parse("JPEG"), Some(Format::Jpg));
}

#[test]
fn what_a_short_form_lacks_is_named() {
    let nul = Value::Null;
    for (short, field) in [
        (Short::default(), "definition"),
        (
            short(Some("convert-post"), None, nul.clone()),
            "outputFormat",
        ),
        (
            short(Some("convert-post"), Some(" "), nul.clone()),
            "outputFormat",
        ),
        (
            short(Some("convert-compress-post"), Some("pdf"), nul.clone()),
            "outputFormat",
        ),
        (
            short(Some("convert-compress-post"), Some("wav"), nul.clone()),
            "outputFormat",
        ),
        (short(None, None, json!("hard")), "compressionMode"),
        (short(None, None, json!(0)), "compressionMode"),
        (short(None, None, json!(101)), "compressionMode"),
        (short(None, None, json!(50.5)), "compressionMode"),
        (short(None, None, json!(["high"])), "compressionMode"),
    ] {
        let problem = generate(&short).expect_err("refused");
        assert_eq!(problem.field.as_deref(), Some(field), "{}", problem.message);
        assert_eq!(problem.code, Code::InvalidShortForm);
        assert!(problem.message.contains(field), "{}", problem.message);
    }
    let problem = Template::parse("post").expect_err("refused");
    assert!(
        problem.message.contains("convert-post, compress-post"),
        "{}",
        problem.message
    );
    let format = generate(&short(None, Some("wepb"), nul))
        .expect("the format is checked with the definition");
    let checked = check(&format);
    assert_eq!(
        checked.error().map(|error| error.code),
        Some(Code::InvalidConfig)
    );
}
