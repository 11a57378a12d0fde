//! Checks of a call of another node: version, time, node, signature, first use; signature of the answer.

use sluice_store::{cluster::Cluster, duration_ms, now_ms};
use uuid::Uuid;

use super::{
    nonces::{self, Nonces, NotTaken},
    signature::{CallHeader, MOST_SKEW, OLDEST_PROTOCOL, PROTOCOL, PeerCall, PeerKey},
};

/// Reason why a call is not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallRejection {
    #[error(
        "only nodes of the cluster are answered here: the header sluice-peer is missing or has another form"
    )]
    NoSignature,
    #[error(
        "calls of version {0} are not answered, only {oldest} to {newest}: nodes may run versions of the program that follow one another",
        oldest = OLDEST_PROTOCOL,
        newest = PROTOCOL
    )]
    Protocol(u32),
    #[error(
        "the call's time is {0} ms off, at most 30000 ms are accepted: does its node reach the database?"
    )]
    Time(i64),
    #[error("node {0} is not live: a node has to have renewed its lease within the last seconds")]
    UnknownNode(Uuid),
    #[error(
        "the signature is wrong: nodes have to share one database, and address each other by cluster.advertise"
    )]
    Signature,
    #[error("the same call was made before")]
    Repeated,
    /// To be answered with 503.
    #[error("too many calls of other nodes within a minute")]
    TooMany,
}

/// A node whose call was accepted.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    pub node: Uuid,
    nonce: u128,
}

/// Checks calls to this node.
pub struct CallChecks {
    cluster: Cluster,
    key: PeerKey,
    nonces: Nonces,
}

impl CallChecks {
    pub(super) fn new(cluster: Cluster, key: PeerKey) -> Self {
        Self {
            cluster,
            key,
            nonces: Nonces::new(nonces::MOST),
        }
    }

    /// Checks a call with this header. A call that is accepted once is not accepted again.
    pub fn check(&self, header: &str, call: PeerCall<'_>) -> Result<Caller, CallRejection> {
        let header = CallHeader::parse(header).ok_or(CallRejection::NoSignature)?;
        if !(OLDEST_PROTOCOL..=PROTOCOL).contains(&header.protocol) {
            return Err(CallRejection::Protocol(header.protocol));
        }
        let now_ms = now_ms();
        let skew_ms = now_ms.saturating_sub(header.at_ms).saturating_abs();
        if skew_ms > duration_ms(MOST_SKEW) {
            return Err(CallRejection::Time(skew_ms));
        }
        let nodes = self.cluster.nodes();
        if !nodes.iter().any(|node| node.id == header.from) {
            return Err(CallRejection::UnknownNode(header.from));
        }
        if !self.key.accepts(&header, self.cluster.node_id(), call) {
            return Err(CallRejection::Signature);
        }
        match self.nonces.take(header.nonce, now_ms) {
            Ok(()) => Ok(Caller {
                node: header.from,
                nonce: header.nonce,
            }),
            Err(NotTaken::Repeated) => Err(CallRejection::Repeated),
            Err(NotTaken::Full) => Err(CallRejection::TooMany),
        }
    }

    /// Makes the header of the answer to a call.
    pub fn sign_answer(&self, caller: Caller, status: u16, body: &[u8]) -> String {
        let from = self.cluster.node_id();
        self.key.sign_answer(from, caller.nonce, status, body)
    }
}
