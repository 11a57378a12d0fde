//! File names from clients: cleaning (paths, control and bidirectional characters, NFC), longest name and extension, default `file`
//! (RFC 6266).
//!
//! A name is shown to people, written into headers and joined to folders by downloaders. So cleaning removes what could
//! mislead any of them, and answers encode the name; any script is accepted.

use unicode_normalization::UnicodeNormalization as _;

use crate::application::error::ApiError;

/// Longest name, in bytes of UTF-8: the limit of common file systems.
const MAX_BYTES: usize = 255;
/// The longest extension that a shortened name keeps.
const MAX_EXTENSION_BYTES: usize = 16;
/// Name of a file when nothing is left of its own.
const DEFAULT_NAME: &str = "file";

/// Makes a safe name out of any text: the last component of a path, in NFC, without control and bidirectional
/// formatting characters, at most 255 bytes with its extension kept; `file` when nothing is left.
pub fn clean(given: &str) -> String {
    // NFC comes last: a removed character may have separated a letter from its accent.
    let name: String = last_component(given)
        .chars()
        .filter(|&c| !is_rejected(c))
        .nfc()
        .collect();
    // Checked after shortening, which may leave dots only.
    let name = shorten(name.trim_matches(|c: char| c.is_whitespace()));
    match name.chars().all(|c| c == '.') {
        true => DEFAULT_NAME.to_owned(),
        false => name,
    }
}

/// Checks a name that a person chose: rejected rather than repaired where it differs from its [`clean`] form.
pub fn checked(field: &str, given: &str) -> Result<String, ApiError> {
    let name: String = given.trim().nfc().collect();
    if !(1..=MAX_BYTES).contains(&name.len()) {
        return Err(invalid!(
            "{field} must have 1 to {MAX_BYTES} bytes, got {}",
            name.len()
        ));
    }
    if name
        .chars()
        .any(|c| is_rejected(c) || c == '/' || c == '\\')
    {
        return Err(invalid!(
            "{field} must not hold path separators, control characters or marks of writing direction"
        ));
    }
    if name == "." || name == ".." {
        return Err(invalid!("{field} must be a name, got `{name}`"));
    }
    Ok(name)
}

fn last_component(path: &str) -> &str {
    let is_separator = |c| c == '/' || c == '\\';
    path.trim_end_matches(is_separator)
        .rsplit(is_separator)
        .next()
        .unwrap_or_default()
}

/// Returns whether a character is rejected: control characters, line and paragraph separators, marks that change the
/// direction of writing, byte order marks.
fn is_rejected(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{FEFF}'
            | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Shortens the stem, never inside a character, and without a space at its end.
fn shorten(name: &str) -> String {
    if name.len() <= MAX_BYTES {
        return name.to_owned();
    }
    let extension = match name.rfind('.') {
        Some(dot) if name.len() - dot <= MAX_EXTENSION_BYTES => &name[dot..],
        _ => "",
    };
    let stem = &name[..name.len() - extension.len()];
    let end = stem.floor_char_boundary(MAX_BYTES - extension.len());
    format!("{}{extension}", stem[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_misleads_and_keep_their_script() {
        let long = "ü".repeat(200);
        let cases: [(&str, &str); 22] = [
            ("w\u{1A}\u{301}", "\u{1E83}"),
            ("", "file"),
            ("..", "file"),
            (". .", ". ."),
            ("/", "file"),
            ("../../etc/passwd", "passwd"),
            ("C:\\photos\\summer.jpg", "summer.jpg"),
            ("a/b/", "b"),
            ("..\\..\\", "file"),
            ("a\r\nSet-Cookie: x=1.png", "aSet-Cookie: x=1.png"),
            ("nul\0byte.gif", "nulbyte.gif"),
            ("\"quoted\".svg", "\"quoted\".svg"),
            ("invoice\u{202E}gpj.exe", "invoicegpj.exe"),
            ("\u{2067}مرحبا\u{2069}.jpg", "مرحبا.jpg"),
            ("شعر.webp", "شعر.webp"),
            ("写真 1.heic", "写真 1.heic"),
            ("e\u{301}te\u{301}.png", "été.png"),
            ("👨\u{200D}👩\u{200D}👧.png", "👨\u{200D}👩\u{200D}👧.png"),
            ("  spaced.txt \t", "spaced.txt"),
            ("\u{2028}\u{FEFF}", "file"),
            (".htaccess", ".htaccess"),
            ("100%.txt", "100%.txt"),
        ];
        for (given, expected) in cases {
            assert_eq!(clean(given), expected, "{given:?}");
            assert_eq!(clean(expected), expected, "once is enough for {given:?}");
        }
        let cut = clean(&format!("{long}.jpeg"));
        assert!(
            cut.len() <= 255 && cut.len() > 250 && cut.ends_with("ü.jpeg"),
            "{cut}"
        );
        assert!(clean(&format!("a.{long}")).len() <= 255);
        assert_eq!(clean(&format!("{}{long}", ".".repeat(300))), "file");
    }

    #[test]
    fn chosen_names_are_rejected_not_repaired() {
        assert_eq!(checked("name", " Ferien ’26 ").unwrap(), "Ferien ’26");
        for odd in [
            "",
            " ",
            "a/b",
            "a\\b",
            "a\nb",
            "..",
            ".",
            "\u{202E}x",
            &"ü".repeat(128),
        ] {
            let rejection = checked("name", odd).unwrap_err().to_string();
            assert!(rejection.starts_with("name must"), "{odd:?}: {rejection}");
        }
    }
}
