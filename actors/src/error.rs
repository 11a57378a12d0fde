//! Errors of this crate's handles, by what a caller can do about them: busy, gone, input and output, store.

/// Errors of the handles this crate gives out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The actor's mailbox is full or it does not answer in time: try again shortly.
    #[error("{0} is busy")]
    Busy(&'static str),
    /// The actor is gone; only a restart of its component or of the service brings it back.
    #[error("{0} has stopped")]
    Gone(&'static str),
    /// A folder, socket or file could not be used.
    #[error("{what}: {source}")]
    Io {
        what: String,
        source: std::io::Error,
    },
    #[error(transparent)]
    Store(#[from] sluice_store::Error),
}

impl Error {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
