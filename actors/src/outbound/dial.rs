//! Connects to a receiver: name lookup, check of every address, several addresses in turn (RFC 8305), TLS,
//! `outbound.connect_timeout`.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::{sleep, timeout},
};
use tokio_rustls::TlsConnector;
use url::Host;

use super::{
    Error, OutboundSettings, Rejection, SetupError, Target, address,
    resolver::{LookupError, Resolve, Resolver},
    tls,
};

/// Most addresses of one name that are tried.
const MOST_TRIED: usize = 8;
/// Time for which an address is tried before the next is tried beside it (RFC 8305 §5).
const HEAD_START: Duration = Duration::from_millis(250);

/// A byte stream to a receiver, with TLS or without.
pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

pub(super) struct Dialler {
    settings: Arc<OutboundSettings>,
    resolver: Resolver,
    tls: TlsConnector,
}

impl Dialler {
    pub(super) fn new(
        settings: Arc<OutboundSettings>,
        port: Arc<dyn Resolve>,
    ) -> Result<Self, SetupError> {
        Ok(Self {
            resolver: Resolver::new(port, settings.max_lookups, settings.resolve_timeout),
            tls: tls::connector(&settings.ca_file)?,
            settings,
        })
    }

    /// Makes a new connection, ready for HTTP/1.1.
    pub(super) async fn dial(&self, target: &Target) -> Result<Box<dyn Io>, Error> {
        let addresses = self.addresses(target).await?;
        let after = self.settings.connect_timeout;
        let connected = timeout(after, self.connect(target, &addresses)).await;
        connected.unwrap_or_else(|_| {
            Err(Error::Timeout {
                what: "connecting",
                after,
            })
        })
    }

    /// Returns the addresses of the host, all of them checked: a rejected address rejects the host.
    pub(super) async fn addresses(&self, target: &Target) -> Result<Vec<IpAddr>, Error> {
        let found = match target.host() {
            Host::Domain(name) => self.lookup(name).await?,
            Host::Ipv4(_) | Host::Ipv6(_) => target.literal().into_iter().collect(),
        };
        for &address in &found {
            self.check(target, address)?;
        }
        Ok(found)
    }

    /// Checks whether an address of the host may be dialled.
    pub(super) fn check(&self, target: &Target, address: IpAddr) -> Result<(), Rejection> {
        match address::rejection(address, &self.settings.allow) {
            None => Ok(()),
            Some(verdict) => Err(Rejection::Address {
                host: target.host().to_string(),
                address,
                verdict,
            }),
        }
    }

    async fn lookup(&self, name: &str) -> Result<Vec<IpAddr>, Error> {
        match self.resolver.resolve(name).await {
            Ok(found) => Ok(found.iter().map(IpAddr::to_canonical).collect()),
            Err(LookupError::Busy) => Err(Error::Busy("lookups of names")),
            Err(LookupError::Slow) => Err(Error::Timeout {
                what: "resolving the name",
                after: self.settings.resolve_timeout,
            }),
            Err(LookupError::Failed(reason)) => Err(Error::Resolve {
                host: name.to_owned(),
                reason,
            }),
        }
    }

    async fn connect(&self, target: &Target, found: &[IpAddr]) -> Result<Box<dyn Io>, Error> {
        let addresses = alternating(found)
            .into_iter()
            .map(|address| SocketAddr::new(address, target.port()));
        let tcp = first_to_accept(addresses.collect())
            .await
            .map_err(|error| Error::Connect {
                target: target.to_string(),
                reason: error.to_string(),
            })?;
        if !target.is_tls() {
            return Ok(Box::new(tcp));
        }
        let no_tls = |reason: String| Error::Tls {
            target: target.to_string(),
            reason,
        };
        let name = tls::server_name(target.host()).map_err(|error| no_tls(error.to_string()))?;
        let stream = self.tls.connect(name, tcp).await;
        Ok(Box::new(
            stream.map_err(|error| no_tls(tls::explain(&error)))?,
        ))
    }
}

/// Orders addresses by both families in turn, each in the resolver's order, beginning with the first one's (RFC 8305 §4).
fn alternating(found: &[IpAddr]) -> Vec<IpAddr> {
    let Some(first) = found.first() else {
        return Vec::new();
    };
    let (mut same, mut other): (Vec<_>, Vec<_>) =
        (found.iter().copied()).partition(|address| address.is_ipv4() == first.is_ipv4());
    same.reverse();
    other.reverse();
    let mut order = Vec::new();
    while order.len() < MOST_TRIED && !(same.is_empty() && other.is_empty()) {
        order.extend(same.pop());
        order.extend(other.pop());
    }
    order.truncate(MOST_TRIED);
    order
}

/// Tries one address after the other: the next one when the last has failed, or is slow.
async fn first_to_accept(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut untried = addresses.into_iter();
    let mut tries = FuturesUnordered::new();
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        match untried.next() {
            Some(address) => tries.push(TcpStream::connect(address)),
            None if tries.is_empty() => return Err(failure),
            None => {}
        }
        tokio::select! {
            Some(tried) = tries.next() => match tried {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(stream);
                }
                Err(error) => failure = error,
            },
            () = sleep(HEAD_START), if untried.len() > 0 => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_are_tried_in_turn() {
        let addresses = |texts: &[&str]| -> Vec<IpAddr> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        for (found, order) in [
            (&[][..], &[][..]),
            (&["1.1.1.1"], &["1.1.1.1"]),
            (
                &["2600::1", "2600::2", "1.1.1.1"],
                &["2600::1", "1.1.1.1", "2600::2"],
            ),
            (
                &["1.1.1.1", "2600::1", "2600::2"],
                &["1.1.1.1", "2600::1", "2600::2"],
            ),
        ] {
            assert_eq!(
                alternating(&addresses(found)),
                addresses(order),
                "{found:?}"
            );
        }
        let many: Vec<IpAddr> = (0..100).map(|n| IpAddr::from([1, 1, 1, n])).collect();
        assert_eq!(alternating(&many), many[..MOST_TRIED]);
    }

    #[tokio::test]
    async fn the_next_address_is_tried_when_one_fails() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = listener.local_addr().unwrap();
        let closed = SocketAddr::new([127, 0, 0, 2].into(), open.port());
        let stream = first_to_accept(vec![closed, open])
            .await
            .expect("connected");
        assert_eq!(stream.peer_addr().unwrap(), open);
        assert!(stream.nodelay().unwrap());
        assert!(first_to_accept(vec![closed]).await.is_err());
        assert!(first_to_accept(Vec::new()).await.is_err());
    }
}
