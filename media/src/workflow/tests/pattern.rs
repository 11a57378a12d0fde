//! Rename patterns.

use super::super::{Names, Pattern};

fn applied(pattern: &str, extension: &str) -> String {
    let names = Names {
        original_stem: "Mr. Smith",
        extension,
        date: "2026-11-21",
        width: Some(1600),
        height: None,
        n: 7,
    };
    let pattern = Pattern::parse(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    pattern.apply(&names)
}

#[test]
fn names_are_made_and_end_in_the_extension_once() {
    for (pattern, extension, expected) in [
        ("{original}-{format}", "webp", "Mr. Smith-webp.webp"),
        ("{original}.{format}", "webp", "Mr. Smith.webp"),
        ("{original}", "webp", "Mr. Smith.webp"),
        ("{original}.WEBP", "webp", "Mr. Smith.WEBP"),
        ("{original}.jpeg", "jpg", "Mr. Smith.jpeg"),
        ("{original}.jpg", "webp", "Mr. Smith.jpg.webp"),
        ("webp", "webp", "webp.webp"),
        (
            "{date}_{n}_{width}x{height}",
            "png",
            "2026-11-21_7_1600x0.png",
        ),
        ("{ Original }{N}", "png", "Mr. Smith7.png"),
        ("plain", "", "plain"),
        ("a.b", "", "a.b"),
        ("}{n}}", "csv", "}7}.csv"),
        ("写真 {n}", "png", "写真 7.png"),
        ("../{original}", "png", "../Mr. Smith.png"),
    ] {
        assert_eq!(applied(pattern, extension), expected, "{pattern}");
    }
}

#[test]
fn what_is_no_pattern_is_refused_with_what_may_be_in_one() {
    for (pattern, part) in [
        ("", "1 to 255 characters"),
        ("  ", "1 to 255 characters"),
        (&"a".repeat(256), "1 to 255 characters"),
        (
            "{title}",
            "no `{title}`: use {original}, {format}, {date}, {width}, {height}, {n}",
        ),
        ("{}", "no `{}`"),
        ("{original", "unclosed `{`"),
        ("{{n}}", "no `{{n}`"),
    ] {
        let error = Pattern::parse(pattern).expect_err(pattern);
        assert_eq!(error.field, "pattern");
        assert!(error.message.contains(part), "{}", error.message);
    }
    assert!(Pattern::parse(&"ä".repeat(255)).is_ok());
}

#[test]
fn only_sizes_need_an_inspection() {
    for (pattern, expected) in [
        ("{original}{n}{date}{format}", false),
        ("{width}", true),
        ("x{height}", true),
    ] {
        let pattern = Pattern::parse(pattern).expect("a pattern");
        assert_eq!(pattern.needs_dimensions(), expected);
    }
}
