//! Lines of caption files: numbered, ended by CR, LF or both, in blocks between empty ones.

/// The lines of a text that end with CR, LF or both, numbered from 1.
pub(super) struct Lines<'a> {
    rest: Option<&'a str>,
    number: usize,
}

/// A line and its number.
pub(super) type Line<'a> = (usize, &'a str);

impl<'a> Lines<'a> {
    pub fn of(text: &'a str) -> Self {
        Self {
            rest: Some(text),
            number: 0,
        }
    }

    /// The next lines that are not empty, up to one that is or the end; `None` when there are none.
    pub fn block(&mut self) -> Option<Vec<Line<'a>>> {
        let is_blank = |line: &Line<'_>| line.1.trim().is_empty();
        let first = self.find(|line| !is_blank(line))?;
        let mut block = vec![first];
        block.extend(self.by_ref().take_while(|line| !is_blank(line)));
        Some(block)
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.filter(|rest| !rest.is_empty())?;
        self.number += 1;
        let line = match rest.find(['\r', '\n']) {
            Some(end) => {
                let after = &rest[end..];
                let after = after.strip_prefix("\r\n").unwrap_or(&after[1..]);
                self.rest = Some(after);
                &rest[..end]
            }
            None => {
                self.rest = None;
                rest
            }
        };
        Some((self.number, line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_line_ends_count_once() {
        let lines: Vec<Line<'_>> = Lines::of("a\r\nb\rc\n\nd").collect();
        assert_eq!(lines, [(1, "a"), (2, "b"), (3, "c"), (4, ""), (5, "d")]);
        assert_eq!(Lines::of("").next(), None);
    }

    #[test]
    fn blocks_come_between_blank_lines() {
        let mut lines = Lines::of("\n \na\nb\n\t\n\nc");
        assert_eq!(lines.block(), Some(vec![(3, "a"), (4, "b")]));
        assert_eq!(lines.block(), Some(vec![(7, "c")]));
        assert_eq!(lines.block(), None);
    }
}
