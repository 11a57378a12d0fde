//! Terminal output of `sluice webhooks listen`: lines for people, bodies with `--print-json`, escaped control characters.

use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{self, IsTerminal as _, Write},
};

use super::super::Error;

/// The terminal. With bodies on standard output, everything else goes to standard error, so that the bodies can be piped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Screen {
    pub(super) shows_bodies: bool,
}

impl Screen {
    /// Writes a line for people.
    pub(super) fn say(self, line: &str) -> Result<(), Error> {
        if self.shows_bodies {
            write(io::stderr().lock(), line.as_bytes())
        } else {
            write(io::stdout().lock(), line.as_bytes())
        }
    }

    /// Writes an event's bytes, which are one line; to a terminal without what could steer it.
    pub(super) fn body(self, body: &[u8]) -> Result<(), Error> {
        let output = io::stdout().lock();
        match (self.shows_bodies, output.is_terminal()) {
            (false, _) => Ok(()),
            (true, false) => write(output, body),
            (true, true) => write(output, escaped(&String::from_utf8_lossy(body)).as_bytes()),
        }
    }
}

/// JSON with its control characters escaped. It has those that are left to escape in strings alone, where it means the same.
fn escaped(json: &str) -> Cow<'_, str> {
    if !json.contains(char::is_control) {
        return json.into();
    }
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        match character.is_control() {
            true => write!(escaped, "\\u{:04x}", u32::from(character)).expect("a String takes all"),
            false => escaped.push(character),
        }
    }
    escaped.into()
}

fn write(mut output: impl Write, line: &[u8]) -> Result<(), Error> {
    output
        .write_all(line)
        .and_then(|()| output.write_all(b"\n"))
        .and_then(|()| output.flush())
        .map_err(|source| Error::Io {
            action: "cannot show events",
            source,
        })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_could_steer_a_terminal_is_escaped_and_means_the_same() {
        let event = json!({"data": {"error": "\u{9b}31m \u{7f} \u{1b}[2J \n é \u{10fffd}"}});
        let shown = escaped(&event.to_string()).into_owned();
        assert!(!shown.contains(char::is_control), "{shown:?}");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), event);
    }
}
