//! HTML escaping for pages that the service writes, and numbers in them: markup is in the program, all else is escaped.

use std::fmt::{self, Display, Write as _};

/// HTML document under construction.
#[derive(Debug, Default)]
pub struct Html(String);

impl Html {
    /// Adds `markup`, which the program holds, each `{}` of it replaced by the next of `values`, escaped for text and for quoted
    /// attributes.
    pub fn put(&mut self, markup: &'static str, values: &[&dyn Display]) -> &mut Self {
        let mut values = values.iter();
        let mut pieces = markup.split("{}");
        self.0.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            let value = values.next().expect("a value for each {}");
            write!(Escaped(&mut self.0), "{value}").expect("writing to a string");
            self.0.push_str(piece);
        }
        debug_assert!(values.next().is_none(), "a {{}} for each value: {markup}");
        self
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

/// Writes a number from 0 in groups of three digits, such as `17,000`.
pub(super) fn grouped(number: impl Display, separator: char) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(separator);
        }
        grouped.push(digit);
    }
    grouped
}

struct Escaped<'a>(&'a mut String);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                // HTML cannot represent these characters, and browsers treat them differently.
                '\0'..='\x08' | '\x0b'..='\x1f' | '\x7f'..='\u{9f}' => self.0.push('\u{fffd}'),
                plain => self.0.push(plain),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_into_markup_stays_text() {
        let cases = [
            ("plain", "plain"),
            (
                "<script>alert(1)</script>",
                "&lt;script&gt;alert(1)&lt;/script&gt;",
            ),
            ("\" onload='x' a=\"", "&quot; onload=&#39;x&#39; a=&quot;"),
            ("&lt;", "&amp;lt;"),
            ("{}", "{}"),
            ("a\0b\u{85}", "a\u{fffd}b\u{fffd}"),
            ("שלום.jpg", "שלום.jpg"),
        ];
        for (text, expected) in cases {
            let mut html = Html::default();
            html.put("<a title=\"{}\">{}</a>", &[&text, &1]);
            let expected = format!("<a title=\"{expected}\">1</a>");
            assert_eq!(html.into_string(), expected, "{text}");
        }
    }
}
