//! A request as it came: nothing is decoded, so that signatures can be checked on the raw bytes.

use std::{
    sync::OnceLock,
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::Failure;

/// A whole request.
#[derive(Clone, Debug)]
pub struct Request {
    /// At this receiver, from 0.
    pub number: usize,
    /// The connection it came on, from 1.
    pub connection: usize,
    pub method: String,
    /// With the query.
    pub path: String,
    /// In their order; names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    /// Arrival of the first byte.
    pub arrived: Instant,
    /// The same by the wall clock.
    pub arrived_at: SystemTime,
    /// The status of the whole answer that was sent, if one was.
    pub answered: OnceLock<u16>,
}

impl Request {
    /// The first one of this name, given in lower case; empty when there is none.
    pub fn header(&self, name: &str) -> &str {
        let header = self.headers.iter().find(|(own, _)| own == name);
        header.map_or("", |(_, value)| value)
    }

    /// The envelope.
    pub fn json(&self) -> Result<Value, Failure> {
        Ok(serde_json::from_slice(&self.body)?)
    }

    /// The event's id, `evt_…`, as the Standard Webhooks header has it.
    pub fn event_id(&self) -> &str {
        self.header("webhook-id")
    }

    pub(super) fn ledger_line(&self) -> String {
        let arrived_at = self.arrived_at.duration_since(UNIX_EPOCH);
        let line = json!({
            "arrivedAtMs": arrived_at.unwrap_or_default().as_millis() as u64,
            "number": self.number,
            "connection": self.connection,
            "method": self.method,
            "path": self.path,
            "headers": self.headers,
            "body": String::from_utf8_lossy(&self.body),
        });
        format!("{line}\n")
    }
}
