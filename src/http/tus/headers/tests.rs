//! Tests of the tus headers: accepted and rejected values.

use actix_web::http::header::{HeaderName, HeaderValue};
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;

fn map(given: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

fn rejection<T: std::fmt::Debug>(parsed: Result<T, ApiError>) -> String {
    parsed.unwrap_err().to_string()
}

#[test]
fn one_version_is_spoken() {
    assert!(check_version(&map(&[("tus-resumable", "1.0.0")])).is_ok());
    for odd in [
        &[][..],
        &[("tus-resumable", "0.2.2")],
        &[("tus-resumable", "1.0")],
    ] {
        let rejected = check_version(&map(odd)).unwrap_err();
        assert!(matches!(rejected, ApiError::OtherVersion { .. }), "{odd:?}");
    }
}

#[test]
fn numbers_are_digits_that_fit() {
    for (given, expected) in [("0", 0), ("007", 7), ("18446744073709551615", u64::MAX)] {
        let parsed = number(&map(&[("upload-offset", given)]), OFFSET);
        assert_eq!(parsed.unwrap(), Some(expected));
    }
    assert_eq!(number(&map(&[]), OFFSET).unwrap(), None);
    for odd in [
        "",
        "-1",
        "+1",
        "1.0",
        "1 ",
        "0x10",
        "18446744073709551616",
        "9e9",
        "1,2",
    ] {
        let rejected = rejection(number(&map(&[("upload-offset", odd)]), OFFSET));
        assert!(
            rejected.starts_with("upload-offset must be"),
            "{odd:?}: {rejected}"
        );
    }
    let twice = map(&[("upload-offset", "1"), ("upload-offset", "1")]);
    assert!(rejection(number(&twice, OFFSET)).contains("twice"));
}

#[test]
fn a_creation_says_how_much_comes_or_that_it_will() {
    type Given<'a> = &'a [(&'a str, &'a str)];
    let cases: [(Given, Option<Option<u64>>); 7] = [
        (&[("upload-length", "5")], Some(Some(5))),
        (&[("upload-length", "0")], Some(Some(0))),
        (&[("upload-defer-length", "1")], Some(None)),
        (&[], None),
        (&[("upload-defer-length", "0")], None),
        (
            &[("upload-length", "5"), ("upload-defer-length", "1")],
            None,
        ),
        (
            &[("upload-length", "5"), ("upload-concat", "partial")],
            None,
        ),
    ];
    for (given, expected) in cases {
        let parsed = Creation::parse(&map(given)).map(|creation| creation.length);
        assert_eq!(parsed.ok(), expected, "{given:?}");
    }
}

#[test]
fn metadata_names_the_file_and_its_folder() {
    let folder = "0190163d-8694-739b-aea5-966c26f8ad90";
    let in_base64 = |text: &str| STANDARD.encode(text);
    let cases = [
        (String::new(), "file", None),
        (" ".to_owned(), "file", None),
        (format!("filename {}", in_base64("ü.png")), "ü.png", None),
        (format!("name {}", in_base64("a")), "a", None),
        (
            format!("name {},filename {}", in_base64("a"), in_base64("b")),
            "b",
            None,
        ),
        ("filename".to_owned(), "file", None),
        ("filename ".to_owned(), "file", None),
        ("filename YQ".to_owned(), "a", None),
        (
            format!("filename {}", in_base64("../../etc/passwd")),
            "passwd",
            None,
        ),
        (
            format!("is_confidential, folderId {}", in_base64(folder)),
            "file",
            Some(folder),
        ),
        (format!("folder_id {}", in_base64("null")), "file", None),
    ];
    for (given, filename, folder_id) in cases {
        let headers = map(&[("upload-length", "1"), ("upload-metadata", &given)]);
        let creation = Creation::parse(&headers).unwrap_or_else(|e| panic!("{given:?}: {e}"));
        assert_eq!(creation.filename, filename, "{given:?}");
        let folder_id = folder_id.map(|id| id.parse::<Uuid>().unwrap());
        assert_eq!(creation.folder_id, folder_id, "{given:?}");
        assert_eq!(creation.metadata, given);
    }
}

#[test]
fn odd_metadata_is_rejected_by_what_is_wrong_with_it() {
    let not_text = format!("filename {}", STANDARD.encode([0xFF, 0xFE]));
    let too_long = "k ".repeat(MAX_METADATA);
    let cases = [
        (",", "a key is missing"),
        ("a YQ==,", "a key is missing"),
        ("a YQ==, ,b", "a key is missing"),
        ("a YQ==,a Yg==", "twice"),
        ("a Y*==", "Base64"),
        ("a YQ== b", "Base64"),
        (not_text.as_str(), "UTF-8"),
        ("folderId YQ==", "folderId must be"),
        (too_long.as_str(), "at most"),
    ];
    for (given, expected) in cases {
        let headers = map(&[("upload-length", "1"), ("upload-metadata", given)]);
        let rejected = rejection(Creation::parse(&headers));
        assert!(rejected.contains(expected), "{given:?}: {rejected}");
    }
}

#[test]
fn bytes_come_with_their_type_and_offset() {
    let typed = ("content-type", "Application/offset+octet-stream");
    let chunk = Chunk::parse(&map(&[
        typed,
        ("upload-offset", "7"),
        ("content-length", "3"),
    ]))
    .unwrap();
    assert_eq!((chunk.offset, chunk.content_length), (7, Some(3)));
    assert!(rejection(Chunk::parse(&map(&[typed]))).contains("Upload-Offset"));
    let untyped = Chunk::parse(&map(&[("upload-offset", "7")]));
    assert!(matches!(untyped, Err(ApiError::UnsupportedType(_))));

    let created = Creation::parse(&map(&[typed, ("upload-length", "9")])).unwrap();
    assert_eq!(created.chunk.map(|chunk| chunk.offset), Some(0));
    let without = Creation::parse(&map(&[
        ("content-type", "text/plain"),
        ("upload-length", "9"),
    ]));
    assert_eq!(without.unwrap().chunk, None);
    let other = Creation::parse(&map(&[("content-length", "1"), ("upload-length", "9")]));
    assert!(matches!(other, Err(ApiError::UnsupportedType(_))));
}

proptest! {
    #[test]
    fn whatever_comes_is_parsed_or_rejected(
        length in "\\PC{0,24}", metadata in "[ -~]{0,80}", checksum in "[ -~]{0,60}", concat in proptest::option::of("[ -~]{0,9}"),
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in [(LENGTH, Some(length)), (METADATA, Some(metadata)), (CHECKSUM, Some(checksum)), (CONCAT, concat)] {
            if let Some(Ok(value)) = value.map(HeaderValue::try_from) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
        let parsed = Creation::parse(&headers);
        let is_explained = matches!(parsed, Ok(_) | Err(ApiError::Invalid(_)));
        prop_assert!(is_explained, "{parsed:?}");
    }

    #[test]
    fn metadata_that_a_client_wrote_is_read_back(
        pairs in proptest::collection::btree_map("[!-+\\--~]{1,12}", proptest::collection::vec(any::<u8>(), 0..40), 0..8),
    ) {
        let written: Vec<String> = pairs
            .iter()
            .map(|(key, value)| format!("{key} {}", STANDARD.encode(value)))
            .collect();
        let text = written.join(",");
        let read = Metadata::parse(&text).unwrap();
        let expected: Vec<(&str, Vec<u8>)> = pairs
            .iter()
            .map(|(key, value)| (key.as_str(), value.clone()))
            .collect();
        prop_assert_eq!(read.0, expected);
    }
}
