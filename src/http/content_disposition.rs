//! `Content-Disposition` of downloads: `filename` in ASCII and `filename*` in UTF-8 (RFC 6266).

use actix_web::http::header::HeaderValue;

/// Makes `{disposition}; filename="…"; filename*=UTF-8''…`: plain ASCII for clients that know only the first form.
pub fn content_disposition(disposition: &str, name: &str) -> HeaderValue {
    let value = format!(
        "{disposition}; filename=\"{}\"; filename*=UTF-8''{}",
        in_ascii(name),
        encoded(name)
    );
    HeaderValue::try_from(value).expect("both forms are visible ASCII")
}

/// Replaces by `_` what is not ASCII, and what ends or escapes a quoted string.
fn in_ascii(name: &str) -> String {
    let plain = |c: char| match c {
        '"' | '\\' | '%' => '_',
        ' '..='~' => c,
        _ => '_',
    };
    name.chars().map(plain).collect()
}

/// Percent-encodes by RFC 8187 §3.2.1: everything but `attr-char` as `%XX` of its UTF-8.
fn encoded(name: &str) -> String {
    let mut text = String::with_capacity(name.len() * 3);
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_carry_any_name() {
        let cases = [
            (
                "a b.png",
                "inline; filename=\"a b.png\"; filename*=UTF-8''a%20b.png",
            ),
            (
                "\"x\\\".png",
                "inline; filename=\"_x__.png\"; filename*=UTF-8''%22x%5C%22.png",
            ),
            (
                "naïve.txt",
                "inline; filename=\"na_ve.txt\"; filename*=UTF-8''na%C3%AFve.txt",
            ),
            (
                "100%;'.txt",
                "inline; filename=\"100_;'.txt\"; filename*=UTF-8''100%25%3B%27.txt",
            ),
        ];
        for (name, expected) in cases {
            assert_eq!(content_disposition("inline", name), expected);
        }
    }
}
