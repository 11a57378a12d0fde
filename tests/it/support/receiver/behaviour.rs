//! Behaviour of a receiver on a request.

use std::{fmt, sync::Arc, time::Duration};

use super::Request;

/// From well-behaved to hostile. All but the plain replies hold until the client leaves, or close the connection.
#[derive(Clone)]
pub enum Behaviour {
    Reply(Reply),
    /// Waits, then behaves so.
    After(Duration, Box<Behaviour>),
    /// Reads the request and says nothing.
    Hang,
    /// A byte of the head every so often, without end.
    DripHead(Duration),
    /// A whole head with this status, then a byte of the body every so often, without end.
    DripBody(u16, Duration),
    /// A body without length or end, as fast as it is taken.
    EndlessBody(u16),
    /// Some MiB of gzip that unpack to hundreds of times as much.
    GzipBomb(u16),
    /// A head of 1 MB.
    HugeHead(u16),
    /// RST instead of an answer.
    Reset,
    /// Closes in the middle of the answer's body.
    CutShort(u16),
    /// An answer that is not HTTP.
    Garbage,
    /// Decides for each request; it may not answer with another script.
    Script(Arc<dyn Fn(&Request) -> Behaviour + Send + Sync>),
}

/// An answer as HTTP asks for it.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Behaviour {
    /// A plain answer.
    pub fn status(status: u16) -> Self {
        Self::Reply(Reply {
            status,
            headers: Vec::new(),
            body: Vec::new(),
        })
    }

    pub fn with_body(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::Reply(Reply {
            status,
            headers: Vec::new(),
            body: body.into(),
        })
    }

    /// `Retry-After` as given: `-1`, `99999999`, `2`, an HTTP date or nonsense.
    pub fn retry_after(status: u16, value: &str) -> Self {
        Self::with_header(status, "Retry-After", value)
    }

    /// 302 to another receiver, or to anywhere.
    pub fn redirect(location: &str) -> Self {
        Self::with_header(302, "Location", location)
    }

    pub fn with_header(status: u16, name: &str, value: &str) -> Self {
        Self::Reply(Reply {
            status,
            headers: vec![(name.to_owned(), value.to_owned())],
            body: Vec::new(),
        })
    }

    pub fn script(script: impl Fn(&Request) -> Self + Send + Sync + 'static) -> Self {
        Self::Script(Arc::new(script))
    }

    /// `status` for the first requests of this receiver, 200 afterwards.
    pub fn fail_first(requests: usize, status: u16) -> Self {
        Self::script(move |request| {
            Self::status(if request.number < requests {
                status
            } else {
                200
            })
        })
    }

    pub fn after(pause: Duration, then: Self) -> Self {
        Self::After(pause, Box::new(then))
    }
}

impl fmt::Debug for Behaviour {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reply(reply) => write!(formatter, "Reply({})", reply.status),
            Self::After(pause, then) => write!(formatter, "After({pause:?}, {then:?})"),
            Self::Hang => formatter.write_str("Hang"),
            Self::DripHead(_) => formatter.write_str("DripHead"),
            Self::DripBody(status, _) => write!(formatter, "DripBody({status})"),
            Self::EndlessBody(status) => write!(formatter, "EndlessBody({status})"),
            Self::GzipBomb(status) => write!(formatter, "GzipBomb({status})"),
            Self::HugeHead(status) => write!(formatter, "HugeHead({status})"),
            Self::Reset => formatter.write_str("Reset"),
            Self::CutShort(status) => write!(formatter, "CutShort({status})"),
            Self::Garbage => formatter.write_str("Garbage"),
            Self::Script(_) => formatter.write_str("Script"),
        }
    }
}
