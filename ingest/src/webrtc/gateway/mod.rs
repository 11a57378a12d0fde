//! The gateway's side of the socket: ICE, DTLS, SRTP and session descriptions of strangers.

pub mod crypto;
