//! Bounds the memory that the request heads of one connection may take.

use std::{cell::Cell, rc::Rc};

use http::{request::Parts, StatusCode};

/// Fields that one request may have, as many as an HTTP/1 request.
const MAX_FIELDS: usize = 96;

/// Estimated memory of all request heads of a connection that are being handled.
const MAX_BYTES: usize = 1024 * 1024;

/// Estimated memory of a field in a header map beside its name and value.
const FIELD_BYTES: usize = 256;

/// The request heads of one connection that are being handled, in bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct HeadBudget {
    taken: Rc<Cell<usize>>,
}

/// The share of one request head; given back when dropped.
#[derive(Debug)]
pub(super) struct Share {
    taken: Rc<Cell<usize>>,
    bytes: usize,
}

impl HeadBudget {
    /// Takes what a request head needs.
    ///
    /// # Errors
    ///
    /// Returns the status to answer with: 431 for too many fields, 503 when the other requests of the connection
    /// leave too little room.
    pub(super) fn take(&self, head: &Parts) -> Result<Share, StatusCode> {
        if head.headers.len() > MAX_FIELDS {
            return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        }

        let bytes = head.uri.path_and_query().map_or(0, |path| path.as_str().len())
            + head
                .headers
                .iter()
                .map(|(name, value)| name.as_str().len() + value.len() + FIELD_BYTES)
                .sum::<usize>();

        // The first request is always taken: its size is bounded by the header list's.
        let taken = self.taken.get();
        if taken > 0 && taken + bytes > MAX_BYTES {
            return Err(StatusCode::SERVICE_UNAVAILABLE);
        }

        self.taken.set(taken + bytes);
        Ok(Share {
            taken: Rc::clone(&self.taken),
            bytes,
        })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.taken.set(self.taken.get() - self.bytes);
    }
}
