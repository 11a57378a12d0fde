//! Errors with their causes on one line, for logs and the terminal (`WithCauses`).

use std::{
    error::Error,
    fmt::{self, Display, Formatter},
};

/// An error followed by its sources, such as `cannot create the folder /srv/sluice: Permission denied (os error 13)`.
///
/// A source that the text before it ends with is left out: some errors name their source themselves.
#[derive(Debug)]
pub struct WithCauses<'a>(pub &'a (dyn Error + 'a));

impl Display for WithCauses<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut text = self.0.to_string();
        let mut next = self.0.source();
        while let Some(cause) = next {
            let cause_text = cause.to_string();
            if !text.ends_with(&cause_text) {
                text = format!("{text}: {cause_text}");
            }
            next = cause.source();
        }
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn the_systems_reason_is_named_once() {
        let of_store = sluice_store::Error::File {
            action: "cannot create the folder",
            path: "/srv/sluice".into(),
            source: Errno::ACCESS.into(),
        };
        let of_socket = sluice_actors::Error::Io {
            what: "rtmp.listen: 127.0.0.1:1935 cannot be used".into(),
            source: Errno::ADDRINUSE.into(),
        };
        let texts = [(
            of_store,
            "cannot create the folder /srv/sluice: Permission denied (os error 13)",
        )];
        for (error, expected) in texts {
            assert_eq!(
                WithCauses(&crate::app::Error::from(error)).to_string(),
                expected
            );
        }
        assert_eq!(
            WithCauses(&crate::app::Error::from(of_socket)).to_string(),
            "rtmp.listen: 127.0.0.1:1935 cannot be used: Address already in use (os error 98)"
        );
    }
}
