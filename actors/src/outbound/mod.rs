//! Guarded connector for every request of the service to another host (webhooks, `sourceUrl`, pulls, outputs): checks of
//! URLs and addresses.
//!
//! A name is resolved, every address is checked, and a checked address is dialled. Nothing comes from the
//! environment: no proxy, no credentials. Nothing is decompressed. Every wait, head and body has a bound.

mod address;
mod body;
mod cidr;
pub(crate) mod connection;
pub(crate) mod dial;
mod error;
mod fetch;
pub(crate) mod filename;
mod line;
pub(crate) mod pool;
mod request;
mod resolver;
mod settings;
mod stream;
mod tls;
mod url;

#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use tokio::sync::Semaphore;

pub use address::Reason;
pub use body::Body;
pub use cidr::Cidr;
pub use error::{Error, Rejection, SetupError};
pub use fetch::{Fetched, Sink};
pub use hyper::{
    Method,
    header::{HeaderMap, HeaderName, HeaderValue},
};
pub use request::{Answer, Post};
pub use settings::OutboundSettings;
pub use stream::{Outgoing, Stream};
pub use tls::count_authorities;
pub use url::Target;

use connection::Connection;
use dial::Dialler;
use pool::Pool;
use resolver::{Resolve, SystemResolver};

/// The handle of the connector. Clones share its connections and its bounds.
#[derive(Clone)]
pub struct Outbound {
    parts: Arc<Parts>,
}

struct Parts {
    settings: Arc<OutboundSettings>,
    dialler: Dialler,
    idle: Pool<Connection>,
    /// Places for fetches.
    fetches: Semaphore,
}

impl Outbound {
    /// Reads the certificates of the system and of `outbound.ca_file`.
    pub fn new(settings: &OutboundSettings) -> Result<Self, SetupError> {
        Self::with_resolver(settings, Arc::new(SystemResolver))
    }

    /// [`Self::new`] with another resolver.
    fn with_resolver(
        settings: &OutboundSettings,
        resolver: Arc<dyn Resolve>,
    ) -> Result<Self, SetupError> {
        let settings = Arc::new(settings.clone());
        Ok(Self {
            parts: Arc::new(Parts {
                dialler: Dialler::new(settings.clone(), resolver)?,
                idle: Pool::new(settings.max_idle, settings.max_idle_per_host),
                fetches: Semaphore::new(settings.max_fetches),
                settings,
            }),
        })
    }

    pub fn settings(&self) -> &OutboundSettings {
        &self.parts.settings
    }

    /// Checks what can be checked without a lookup: http or https, a host, no user information, and an address that is
    /// written in place of a name.
    pub fn check_url(&self, text: &str) -> Result<Target, Rejection> {
        self.checked(Target::parse(text)?)
    }

    /// Checks a URL as [`Outbound::check_url`] does, and every address that its name resolves to now. A name that does not
    /// resolve is accepted: it is checked again at every request.
    pub async fn probe_url(&self, text: &str) -> Result<(), Rejection> {
        let target = self.check_url(text)?;
        match self.parts.dialler.addresses(&target).await {
            Err(Error::Refused(rejection)) => Err(rejection),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn checked(&self, target: Target) -> Result<Target, Rejection> {
        if let Some(address) = target.literal() {
            self.parts.dialler.check(&target, address)?;
        }
        Ok(target)
    }

    fn max_head(&self) -> u64 {
        self.settings().max_head.as_u64()
    }
}

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbound").finish_non_exhaustive()
    }
}
