//! Parser of server-sent events for `sluice webhooks listen` and `sluice mcp` (WHATWG HTML). Pure: bytes in, events out.
//!
//! Of an event only the data count, and they stay bytes: of an envelope it is the bytes that are signed.

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event has more than {0} bytes")]
pub(crate) struct TooLarge(usize);

/// The part of a stream that has come so far.
#[derive(Debug)]
pub(crate) struct Reader {
    max_event_bytes: usize,
    line: Vec<u8>,
    /// The last line ended in a carriage return: a line feed right after it belongs to that end.
    after_return: bool,
    data: Vec<u8>,
    /// Value of `id` fields; it counts from the end of their event on, so that one that breaks off is requested again.
    id: Option<String>,
    last_id: Option<String>,
}

impl Reader {
    /// `max_event_bytes` bounds the memory that another program can make this one use.
    pub(crate) fn new(max_event_bytes: usize) -> Self {
        Self {
            max_event_bytes,
            line: Vec::new(),
            after_return: false,
            data: Vec::new(),
            id: None,
            last_id: None,
        }
    }

    /// Takes the next bytes; the data of the events that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, TooLarge> {
        let mut complete = Vec::new();
        for &byte in bytes {
            let follows_return = std::mem::take(&mut self.after_return);
            match byte {
                b'\n' if follows_return => {}
                b'\n' | b'\r' => {
                    self.after_return = byte == b'\r';
                    complete.extend(self.end_line());
                }
                _ if self.line.len() + self.data.len() >= self.max_event_bytes => {
                    return Err(TooLarge(self.max_event_bytes));
                }
                _ => self.line.push(byte),
            }
        }
        Ok(complete)
    }

    /// Returns the id that the stream gave last, to continue after a break.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// Takes a whole line; an empty one ends an event, if it has data.
    fn end_line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_field(&line);
            return None;
        }
        self.last_id.clone_from(&self.id);
        let mut data = std::mem::take(&mut self.data);
        // Each data line brought its line feed; the last one is no part of the data.
        data.pop().map(|_| data)
    }

    /// Reads `name: value`, `name:value` or `name`; a comment has no name. Other fields than `data` and `id` are ignored.
    fn take_field(&mut self, line: &[u8]) {
        let (name, value) = match line.iter().position(|&byte| byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"id" if !value.contains(&0) => {
                self.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 8 << 20;

    /// Reads these pieces: the data of each event, and the last id.
    fn read(pieces: &[&[u8]]) -> (Vec<String>, Option<String>) {
        let mut reader = Reader::new(MAX);
        let mut events = Vec::new();
        for piece in pieces {
            events.extend(reader.push(piece).unwrap());
        }
        let events = events.into_iter();
        let texts = events.map(|data| String::from_utf8(data).unwrap());
        (texts.collect(), reader.last_id().map(str::to_owned))
    }

    #[test]
    fn fields_make_events() {
        for (text, events, last_id) in [
            ("", &[][..], None),
            (": still here\n\n", &[], None),
            ("id: 7\nevent: a.b\ndata: {}\n\n", &["{}"], Some("7")),
            ("data:x\n\n", &["x"], None),
            ("data:  x \n\n", &[" x "], None),
            ("data: x\ndata: y\ndata\n\n", &["x\ny\n"], None),
            ("data\n\n", &[""], None),
            ("data: x\n\n\n\ndata: y\n\n", &["x", "y"], None),
            // No data, no event; the id counts all the same.
            ("id: 3\nevent: a\n\n", &[], Some("3")),
            ("id: 3\n\nid\ndata: x\n\n", &["x"], Some("")),
            ("id: 3\n\nid: 4\0\n\n", &[], Some("3")),
            ("retry: 10\nDATA: x\nweird\n: c\ndata: y\n\n", &["y"], None),
            // Not ended yet.
            ("data: x\n", &[], None),
            ("data: x", &[], None),
            ("id: 1\ndata: x\n\nid: 2\ndata: y\n", &["x"], Some("1")),
        ] {
            let events: Vec<String> = events.iter().map(|text| (*text).to_owned()).collect();
            let expected = (events, last_id.map(str::to_owned));
            for line_end in ["\n", "\r\n", "\r"] {
                let text = text.replace('\n', line_end);
                assert_eq!(read(&[text.as_bytes()]), expected, "{text:?}");
                // However the network cuts it.
                let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
                assert_eq!(read(&bytes), expected, "{text:?} byte by byte");
            }
        }
    }

    #[test]
    fn data_are_bytes() {
        let mut reader = Reader::new(MAX);
        let events = reader.push(b"data: \xff\xfe\x00\n\n").unwrap();
        assert_eq!(events, [b"\xff\xfe\x00"]);
    }

    #[test]
    fn an_event_has_a_largest_size() {
        let piece = vec![b'x'; 1 << 20];
        for line_end in ["", "\ndata: "] {
            let mut reader = Reader::new(MAX);
            let mut pushed = 0;
            let rejected = loop {
                pushed += piece.len();
                let line = [line_end.as_bytes(), piece.as_slice()].concat();
                if let Err(error) = reader.push(&line) {
                    break error;
                }
                assert!(pushed <= MAX, "{pushed} bytes were taken");
            };
            assert_eq!(rejected, TooLarge(MAX));
        }
    }
}
