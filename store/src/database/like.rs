//! Patterns of `LIKE`.

/// Returns the pattern for a text anywhere, for `LIKE … ESCAPE '\'`.
pub(crate) fn anywhere(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 2);
    pattern.push('%');
    for character in text.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_no_pattern() {
        for (text, expected) in [
            ("", "%%"),
            ("main", "%main%"),
            ("50%_a\\b", "%50\\%\\_a\\\\b%"),
        ] {
            assert_eq!(anywhere(text), expected);
        }
    }
}
