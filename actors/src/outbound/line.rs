//! Connections without HTTP (RTMP and SRT outputs, RTSP pulls) under the same checks of addresses.

use std::net::IpAddr;

use tokio::io::{AsyncRead, AsyncWrite};

use super::{Error, Outbound, Rejection, Target, address};

impl Outbound {
    /// Checks a host and a port as [`Outbound::check_url`] does; `is_tls` where the connection is to be encrypted.
    pub fn check_peer(&self, host: &str, port: u16, is_tls: bool) -> Result<Target, Rejection> {
        let scheme = if is_tls { "https" } else { "http" };
        self.check_url(&format!("{scheme}://{host}:{port}/"))
    }

    /// See [`Outbound::probe_url`].
    pub async fn probe_peer(&self, target: &Target) -> Result<(), Rejection> {
        self.probe_url(target.as_str()).await
    }

    /// Returns the present addresses of the host; every one is checked.
    pub async fn addresses_of(&self, target: &Target) -> Result<Vec<IpAddr>, Error> {
        self.parts.dialler.addresses(target).await
    }

    /// Makes a new connection.
    pub async fn connect_to(
        &self,
        target: &Target,
    ) -> Result<impl AsyncRead + AsyncWrite + Send + Unpin + use<>, Error> {
        self.parts.dialler.dial(target).await
    }

    /// Returns whether the address may be dialled only because the operator named it.
    pub fn is_named(&self, address: IpAddr) -> bool {
        address::rejection(address, &[]).is_some()
            && address::rejection(address, &self.settings().allow).is_none()
    }
}
