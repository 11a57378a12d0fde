//! The service's own address of each HTTP connection ([`LocalAddress`]), noted when it begins.

use std::{any::Any, net::IpAddr};

use actix_web::dev::Extensions;
use tokio::net::TcpStream;

/// The address at which a client connected.
#[derive(Clone, Copy, Debug)]
pub(in crate::http) struct LocalAddress(pub IpAddr);

impl LocalAddress {
    /// Notes the address of a connection.
    pub fn note(socket: &TcpStream, connection: &mut Extensions) {
        if let Ok(address) = socket.local_addr() {
            connection.insert(Self(address.ip()));
        }
    }

    /// Notes the address of a connection without TLS.
    pub fn note_plain(socket: &dyn Any, connection: &mut Extensions) {
        if let Some(socket) = socket.downcast_ref::<TcpStream>() {
            Self::note(socket, connection);
        }
    }
}
