//! Cache of parsed image queries for each HTTP worker: most queries, longest query.

use std::{cell::RefCell, collections::HashMap, sync::Arc};

use sluice_actors::cdn::ImageSource;
use sluice_media::variant::{AcceptClass, VariantRequest, VariantSettings};

use crate::application::error::ApiError;

/// Most queries that each HTTP worker remembers.
const MAX_QUERIES: usize = 1024;
/// Longest query that is remembered.
const MAX_QUERY_BYTES: usize = 256;

/// A request, and the keys of its variants for every class of clients.
#[derive(Clone)]
pub(super) struct Parsed {
    pub request: Arc<VariantRequest>,
    /// Cache keys by [`index`].
    keys: [Arc<str>; 4],
    /// The same without its time, where it has one.
    timeless: Option<Arc<Parsed>>,
}

thread_local! {
    static KNOWN: RefCell<HashMap<String, Parsed>> = RefCell::default();
}

impl Parsed {
    /// Parses a query, or finds it; 400 names the parameter and its range.
    pub fn of(query: &str, settings: &VariantSettings) -> Result<Self, ApiError> {
        if let Some(known) = KNOWN.with_borrow(|known| known.get(query).cloned()) {
            return Ok(known);
        }
        let parsed = Self::read(query, settings)?;
        if query.len() <= MAX_QUERY_BYTES {
            KNOWN.with_borrow_mut(|known| {
                if known.len() >= MAX_QUERIES {
                    known.clear();
                }
                known.insert(query.to_owned(), parsed.clone());
            });
        }
        Ok(parsed)
    }

    fn read(query: &str, settings: &VariantSettings) -> Result<Self, ApiError> {
        let request = VariantRequest::parse(query, settings)
            .map_err(|error| ApiError::Invalid(error.message))?;
        let timeless = request
            .timeless()
            .map(|still| Arc::new(Self::new(still, None)));
        Ok(Self::new(request, timeless))
    }

    fn new(request: VariantRequest, timeless: Option<Arc<Self>>) -> Self {
        let keys = [(false, false), (true, false), (false, true), (true, true)]
            .map(|(webp, avif)| request.cache_key(AcceptClass { webp, avif }).into());
        Self {
            request: Arc::new(request),
            keys,
            timeless,
        }
    }

    /// Returns the request for this source: without time one variant serves all times.
    pub fn on(&self, source: &ImageSource) -> &Self {
        match &self.timeless {
            Some(timeless) if !source.is_video() => timeless,
            _ => self,
        }
    }

    pub fn cache_key(&self, accept: AcceptClass) -> &Arc<str> {
        &self.keys[index(accept)]
    }
}

fn index(accept: AcceptClass) -> usize {
    usize::from(accept.webp) + 2 * usize::from(accept.avif)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remembered_query_is_the_one_that_was_read() {
        let settings = VariantSettings { avif_in_auto: true };
        for query in ["w=100", "w=100&v=2", "", "format=png&w=5"] {
            let fresh = VariantRequest::parse(query, &settings).unwrap();
            for _ in 0..2 {
                let parsed = Parsed::of(query, &settings).unwrap();
                assert_eq!(*parsed.request, fresh);
                for (webp, avif) in [(false, false), (true, false), (false, true), (true, true)] {
                    let accept = AcceptClass { webp, avif };
                    assert_eq!(**parsed.cache_key(accept), fresh.cache_key(accept));
                }
            }
        }
        for query in ["w=0", "w=0", "q=101"] {
            assert!(Parsed::of(query, &settings).is_err(), "{query}");
        }
        for number in 0..2 * MAX_QUERIES {
            assert!(Parsed::of(&format!("w=1&v={number}"), &settings).is_ok());
        }
        assert!(KNOWN.with_borrow(HashMap::len) <= MAX_QUERIES);
    }
}
