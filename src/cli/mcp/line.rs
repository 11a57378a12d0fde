//! Lines of standard input of a bounded length, one JSON-RPC message each (MCP, "stdio").

use std::io::{self, BufRead};

/// A line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    /// It was longer than the bound and has been skipped.
    TooLong,
}

/// The next line; `None` at the end of the input. What comes after the last line feed is a line too.
pub(super) fn next_line(input: &mut impl BufRead, max_bytes: usize) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    let mut is_begun = false;
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(is_begun.then(|| ended(line, is_too_long)));
        }
        is_begun = true;
        let end = buffer.iter().position(|&byte| byte == b'\n');
        let piece = &buffer[..end.unwrap_or(buffer.len())];
        is_too_long |= line.len() + piece.len() > max_bytes;
        if is_too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(piece);
        }
        let taken = end.map_or(buffer.len(), |end| end + 1);
        input.consume(taken);
        if end.is_some() {
            return Ok(Some(ended(line, is_too_long)));
        }
    }
}

fn ended(mut line: Vec<u8>, is_too_long: bool) -> Line {
    if is_too_long {
        return Line::TooLong;
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Line::Whole(line)
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn lines_are_taken_however_they_come() {
        for (input, lines) in [
            ("", &[][..]),
            ("\n", &[Some("")]),
            ("a\nbc\n", &[Some("a"), Some("bc")]),
            ("a\r\nb", &[Some("a"), Some("b")]),
            ("123456\n12345678\n", &[Some("123456"), Some("12345678")]),
            ("123456789\nab\n", &[None, Some("ab")]),
            ("ab\n1234567890123456789", &[Some("ab"), None]),
        ] {
            for capacity in [1, 3, 64] {
                let mut reader = BufReader::with_capacity(capacity, input.as_bytes());
                let mut read = Vec::new();
                while let Some(line) = next_line(&mut reader, 8).unwrap() {
                    read.push(line);
                }
                let expected = lines.iter().map(|line| match line {
                    Some(text) => Line::Whole(text.as_bytes().to_vec()),
                    None => Line::TooLong,
                });
                assert_eq!(
                    read,
                    expected.collect::<Vec<_>>(),
                    "{input:?} by {capacity}"
                );
            }
        }
    }
}
