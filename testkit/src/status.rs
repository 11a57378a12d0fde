//! Reads a server's `onStatus` and `_error` answers to a test publisher.

/// The information object of a status event (RTMP 1.0, section 7.2.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    pub level: String,
    /// Status code, for instance `NetStream.Publish.BadName`.
    pub code: String,
    pub description: String,
}

impl Status {
    /// Reads a command; `None` for one that carries no status code.
    pub fn parse(command: &[u8]) -> Option<Self> {
        Some(Self {
            level: property(command, "level").unwrap_or_default(),
            code: property(command, "code")?,
            description: property(command, "description").unwrap_or_default(),
        })
    }

    pub fn is_error(&self) -> bool {
        self.level == "error"
    }
}

/// The text of an AMF0 object's member: length, name, marker 2, length, text.
fn property(bytes: &[u8], name: &str) -> Option<String> {
    let length = u16::try_from(name.len()).ok()?;
    let key = [&length.to_be_bytes()[..], name.as_bytes(), &[2]].concat();
    let at = bytes.windows(key.len()).position(|window| window == key)?;
    let (length, text) = bytes.get(at + key.len()..)?.split_first_chunk()?;
    let text = text.get(..u16::from_be_bytes(*length).into())?;
    Some(String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_found_in_its_command() {
        let command = b"\x02\x00\x08onStatus\0\0\0\0\0\0\0\0\0\x05\x03\x00\x05level\x02\x00\x05error\
            \x00\x04code\x02\x00\x19NetStream.Publish.BadName\x00\x0bdescription\x02\x00\x02no\0\0\x09";
        let status = Status::parse(command).unwrap();
        assert!(status.is_error());
        assert_eq!(status.code, "NetStream.Publish.BadName");
        assert_eq!(status.description, "no");
        assert_eq!(
            Status::parse(b"\x02\x00\x07_result\0\0\0\0\0\0\0\0\0\x05"),
            None
        );
        assert_eq!(Status::parse(&command[..50]), None);
    }
}
