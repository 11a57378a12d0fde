//! Addresses in `pullUrl` and in the `url` of outputs: longest address, forbidden characters, text in place of secrets.

use url::Url;

/// Longest address.
pub(super) const MAX_BYTES: usize = 2048;
/// The text that replaces a secret.
pub const MASK: &str = "••••";

/// Error of an address that is rejected before it is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("it must have at most {MAX_BYTES} bytes")]
    TooLong,
    #[error("it must not hold spaces, control characters or backslashes; encode them")]
    Character,
}

/// Reads an address of any scheme; `None` where it is not one.
pub(super) fn read(text: &str) -> Result<Option<Url>, Malformed> {
    if text.len() > MAX_BYTES {
        return Err(Malformed::TooLong);
    }
    if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
        return Err(Malformed::Character);
    }
    Ok(Url::parse(text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_paste_by_mistake_is_distinguished() {
        assert_eq!(read("no address"), Err(Malformed::Character));
        assert_eq!(read("rtmp://h\\live"), Err(Malformed::Character));
        assert_eq!(read("rtmp://h/\u{7}"), Err(Malformed::Character));
        let long = format!("rtmp://h/{}", "a".repeat(MAX_BYTES));
        assert_eq!(read(&long), Err(Malformed::TooLong));
        assert_eq!(read("h/live"), Ok(None));
        assert!(read("rtmp://h/live").unwrap().is_some());
    }
}
