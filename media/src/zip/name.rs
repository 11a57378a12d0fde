//! Safe file names in archives: characters and device names that Windows reserves, numbers for equal names, 255 bytes.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use unicode_normalization::UnicodeNormalization as _;

/// The longest name of one file or folder, in bytes of UTF-8: what file systems take.
const MAX_BYTES: usize = 255;
/// The longest extension that a number is put before.
const MAX_EXTENSION_BYTES: usize = 16;
/// The longest number, with the space and the brackets around it.
const MAX_SUFFIX_BYTES: usize = " (4294967295)".len();
/// Replaces what cannot be in a name.
const SUBSTITUTE: char = '_';

/// Returns a component of a path, in NFC, that means the same on Linux, macOS and Windows: no separators, nothing that
/// Windows reserves (the device names included) or strips, no control characters and no marks of writing direction, 1
/// to 255 bytes.
pub(super) fn safe(given: &str) -> String {
    let visible = given.nfc().filter(|&c| !turns_direction(c));
    let mut name: String = visible
        .map(|c| if is_reserved(c) { SUBSTITUTE } else { c })
        .collect();
    if is_device(&name) {
        name.insert(0, SUBSTITUTE);
    }
    if name.len() > MAX_BYTES {
        let (stem, extension) = split(&name);
        let end = stem.floor_char_boundary(MAX_BYTES - extension.len());
        name = format!("{}{extension}", &stem[..end]);
    }
    // Windows strips them, also those of `.` and `..`.
    if name.ends_with(['.', ' ']) {
        name.pop();
        name.push(SUBSTITUTE);
    }
    if name.is_empty() {
        name.push(SUBSTITUTE);
    }
    name
}

/// Returns the name with ` (2)` or another number before its extension, at most 255 bytes. A long name is cut where any
/// number has room, so that one name's numbers all follow the same stem.
pub(super) fn numbered(name: &str, number: u32, is_folder: bool) -> String {
    let (stem, extension) = if is_folder { (name, "") } else { split(name) };
    let end = stem.floor_char_boundary(MAX_BYTES - MAX_SUFFIX_BYTES - extension.len());
    format!("{} ({number}){extension}", &stem[..end])
}

/// Returns a key that names share which become equal with a number, whichever it is: they are counted together. Counted
/// each for itself, they would try one another's numbers again and again. Numbered names that are equal come from at
/// most two keys, as their number is at their end or before an extension, so that the number of attempts is in
/// proportion to the names.
pub(super) fn counter_key(parent: u32, name: &str, is_folder: bool) -> u64 {
    folded(parent, &numbered(name, 0, is_folder))
}

/// Returns a number that names share when some file system takes them for one: by case, by normalisation. Equal in
/// every run of one build; unlike names that share it are numbered needlessly, which does no harm.
pub(super) fn folded(parent: u32, name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    parent.hash(&mut hasher);
    // Upper case first: some letters have the same one without having the same lower case.
    let upper = name.nfd().flat_map(char::to_uppercase);
    for c in upper.flat_map(char::to_lowercase).nfd() {
        c.hash(&mut hasher);
    }
    hasher.finish()
}

/// Stem and extension with its dot; what begins with its only dot has none.
fn split(name: &str) -> (&str, &str) {
    match name.rfind('.') {
        Some(dot) if dot > 0 && name.len() - dot <= MAX_EXTENSION_BYTES => name.split_at(dot),
        _ => (name, ""),
    }
}

/// Returns whether Windows forbids it in names (`:` begins a stream beside the file there), or it separates lines and
/// paragraphs.
fn is_reserved(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '/' | '\\' | '<' | '>' | ':' | '"' | '|' | '?' | '*' | '\u{2028}' | '\u{2029}'
        )
}

fn turns_direction(c: char) -> bool {
    matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

/// Devices of Windows, whatever follows their first dot.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end();
    let stem = stem.to_uppercase();
    let numbered = |prefix| {
        stem.strip_prefix(prefix).is_some_and(|rest| {
            let mut rest = rest.chars();
            let digit = rest.next();
            digit.is_some_and(|c| matches!(c, '0'..='9' | '¹' | '²' | '³')) && rest.next().is_none()
        })
    };
    let is_named = matches!(
        stem.as_str(),
        "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$"
    );
    is_named || numbered("COM") || numbered("LPT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_such_that_every_system_takes_them() {
        let cases = [
            ("a.jpg", "a.jpg"),
            ("../../etc/passwd", ".._.._etc_passwd"),
            ("/etc/passwd", "_etc_passwd"),
            ("C:\\x.txt", "C__x.txt"),
            ("\\\\server\\share", "__server_share"),
            ("..", "._"),
            (".", "_"),
            ("", "_"),
            ("\u{202E}", "_"),
            ("a. ", "a._"),
            (".htaccess", ".htaccess"),
            ("CON", "_CON"),
            ("nul.tar.gz", "_nul.tar.gz"),
            ("aux .txt", "_aux .txt"),
            ("com1", "_com1"),
            ("LPT³.x", "_LPT³.x"),
            ("com10", "com10"),
            ("conan.txt", "conan.txt"),
            ("invoice\u{202E}gpj.exe", "invoicegpj.exe"),
            ("what?<>|*\".txt", "what______.txt"),
            ("a\0b\nc", "a_b_c"),
            ("e\u{301}te\u{301}.png", "été.png"),
            ("שלום.png", "שלום.png"),
        ];
        for (given, expected) in cases {
            assert_eq!(safe(given), expected, "{given:?}");
            assert_eq!(safe(expected), expected, "once is enough for {given:?}");
        }
        let long = safe(&format!("{}.jpeg", "ü".repeat(200)));
        assert!(
            long.len() <= 255 && long.len() > 250 && long.ends_with("ü.jpeg"),
            "{long}"
        );
    }

    #[test]
    fn numbers_come_before_the_extension() {
        let long = "x".repeat(255);
        let cases = [
            ("a.jpg", false, "a (2).jpg".to_owned()),
            ("a", false, "a (2)".to_owned()),
            (".htaccess", false, ".htaccess (2)".to_owned()),
            ("v1.2", true, "v1.2 (2)".to_owned()),
            (
                "a.this is no extension",
                false,
                "a.this is no extension (2)".to_owned(),
            ),
            (&long, false, format!("{} (2)", &long[..242])),
            (
                &format!("{}.jpg", &long[..251]),
                false,
                format!("{} (2).jpg", &long[..238]),
            ),
        ];
        for (given, is_folder, expected) in cases {
            assert_eq!(numbered(given, 2, is_folder), expected);
        }
        assert_eq!(numbered(&"ü".repeat(127), u32::MAX, false).len(), 255);
    }

    #[test]
    fn names_that_a_file_system_confuses_share_a_number() {
        for (one, other) in [
            ("A.jpg", "a.JPG"),
            ("é", "e\u{301}"),
            ("É", "e\u{301}"),
            ("ſ", "s"),
            ("Σ", "ς"),
            ("straße", "STRASSE"),
        ] {
            assert_eq!(folded(1, one), folded(1, other), "{one} {other}");
        }
        assert_ne!(folded(1, "a"), folded(2, "a"));
        assert_ne!(folded(1, "a"), folded(1, "b"));
    }
}
