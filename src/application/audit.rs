//! Audit log, `GET /api/audit`: its entries and filters (`actor`, `action`, `since`), the author of a change and the client's
//! network.

use serde::Serialize;
use sluice_actors::network::client_network;
use sluice_store::audit::{Actor, Entry, Filter, NewEntry, Target};
use url::form_urlencoded;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{
    answer::Timestamp, caller::Caller, error::ApiError, field, object::camel_case, reached::Reached,
};

/// Longest `action` of a query, in characters.
const MAX_ACTION: usize = 100;

/// The credential behind a change, and where the client is.
#[derive(Clone, Debug)]
pub(crate) struct Author {
    account_id: Uuid,
    actor: Actor,
    network: Option<String>,
}

impl Author {
    pub(crate) fn of<S>(caller: &Caller<S>, reached: &Reached) -> Self {
        Self {
            account_id: caller.account_id(),
            actor: caller.actor(),
            network: reached.client.map(network_text),
        }
    }

    /// Makes the entry of a change, to be written in its transaction.
    pub(crate) fn entry(&self, action: &'static str, target: Target) -> NewEntry {
        NewEntry {
            account_id: self.account_id,
            actor: self.actor,
            action,
            target: Some(target),
            network: self.network.clone(),
            detail: None,
        }
    }
}

/// The network of a client: an IPv4 address, or an IPv6 /64.
pub(crate) fn network_text(client: std::net::IpAddr) -> String {
    match client_network(client) {
        network if network.is_ipv6() => format!("{network}/64"),
        network => network.to_string(),
    }
}

/// A change that was made.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    id: Uuid,
    time: Timestamp,
    /// For instance `live.input.key_rotated`.
    action: String,
    actor: AuditActor,
    target: Option<AuditTarget>,
    /// Network of the client: an IPv4 address, or an IPv6 /64.
    network: Option<String>,
    detail: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct AuditActor {
    /// `user` (a dashboard session) or `key` (an API key).
    kind: String,
    id: Uuid,
    /// Its name at that time.
    name: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct AuditTarget {
    /// For instance `liveInput`.
    kind: String,
    id: String,
    /// Its name at that time.
    name: Option<String>,
}

impl From<Entry> for AuditEntry {
    fn from(entry: Entry) -> Self {
        let target = entry.target_kind.zip(entry.target_id);
        Self {
            id: entry.id,
            time: Timestamp(entry.created_at),
            action: entry.action,
            actor: AuditActor {
                kind: entry.actor_kind,
                id: entry.actor_id,
                name: entry.actor_name,
            },
            target: target.map(|(kind, id)| AuditTarget {
                kind,
                id,
                name: entry.target_name,
            }),
            network: entry.network,
            detail: entry.detail,
        }
    }
}

/// Reads the query of a list; an error names the parameter and what is allowed.
pub(crate) fn filter(query: &str) -> Result<Filter, ApiError> {
    let mut filter = Filter::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if value.is_empty() {
            continue;
        }
        match &*camel_case(&name) {
            "actor" => {
                filter.actor = Some(field::id(
                    "actor",
                    "the id of a user or an API key",
                    &value,
                )?)
            }
            "action" => filter.action = Some(action(&value)?),
            "since" => filter.since = Some(time(&value)?),
            _ => {}
        }
    }
    Ok(filter)
}

fn action(text: &str) -> Result<String, ApiError> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_');
    match text.len() <= MAX_ACTION && text.bytes().all(is_word) {
        true => Ok(text.to_owned()),
        false => Err(field::wrong(
            "action",
            "an action such as live.input.key_rotated, or the beginning of some such as live.",
            text,
        )),
    }
}

fn time(text: &str) -> Result<i64, ApiError> {
    text.parse::<jiff::Timestamp>()
        .map(|time| time.as_millisecond())
        .map_err(|_| field::wrong("since", "a time such as 2026-11-18T11:06:40Z", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_named_by_its_network() {
        for (address, expected) in [
            ("203.0.113.7", "203.0.113.7"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ] {
            assert_eq!(network_text(address.parse().unwrap()), expected);
        }
    }

    #[test]
    fn a_filter_is_read_and_wrong_values_are_named() {
        let id = Uuid::now_v7();
        let given = format!("actor={id}&action=live.&since=1970-01-01T00:00:01Z&limit=5&cursor=");
        let read = filter(&given).unwrap();
        assert_eq!(
            (read.actor, read.action.as_deref(), read.since),
            (Some(id), Some("live."), Some(1_000))
        );
        let nothing = filter("actor=&action=&since=").unwrap();
        assert!(nothing.actor.is_none() && nothing.action.is_none() && nothing.since.is_none());
        for (query, name) in [
            ("actor=me", "actor"),
            ("action=%25", "action"),
            ("since=7", "since"),
        ] {
            let message = filter(query).unwrap_err().to_string();
            assert!(
                message.starts_with(name) && message.contains("got `"),
                "{message}"
            );
        }
    }
}
