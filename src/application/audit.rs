//! Audit log, `GET /api/audit`: its entries and filters (`actor`, `action`, `since`, `until`), the author of a change and the client's
//! network.

use std::net::IpAddr;

use serde::Serialize;
use sluice_actors::network::client_network;
use sluice_store::{
    Store,
    audit::{self, Actor, Entry, Filter, NewEntry, Target},
    now_ms,
};
use url::form_urlencoded;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{
    answer::Timestamp,
    caller::{Caller, Identity},
    error::ApiError,
    field,
    object::camel_case,
    reached::Reached,
};

/// Longest `action` of a query, in characters.
const MAX_ACTION: usize = 100;
/// `detail` of an entry whose request ended before its answer.
const OUTCOME_UNKNOWN: &str = "the client left before the answer";
/// `detail` of an entry whose change has an unknown outcome.
const COMMIT_UNKNOWN: &str =
    "the database was lost during the commit: the change may not have been made";

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

    /// The author behind an identity, where code is no handler.
    pub(crate) fn behind(identity: &Identity, client: Option<IpAddr>) -> Self {
        Self {
            account_id: identity.account_id,
            actor: identity.actor(),
            network: client.map(network_text),
        }
    }

    /// Makes the entry of a change, to be written in its transaction.
    pub(crate) fn entry(&self, action: &'static str, target: Target) -> NewEntry {
        NewEntry {
            target: Some(target),
            ..self.entry_without_target(action)
        }
    }

    /// Makes the entry of a change that names no resource.
    pub(crate) fn entry_without_target(&self, action: &'static str) -> NewEntry {
        NewEntry {
            account_id: self.account_id,
            actor: self.actor,
            action,
            target: None,
            network: self.network.clone(),
            detail: None,
        }
    }
}

/// A change in progress whose entry is written by [`PendingEntry::write`], or when it is dropped: a client that leaves before the answer
/// must not keep its change out of the log.
pub(crate) struct PendingEntry {
    store: Store,
    entry: Option<NewEntry>,
    /// True for an entry that is dropped silently until its target is known.
    waits_for_target: bool,
}

impl PendingEntry {
    pub(crate) fn new(store: &Store, entry: NewEntry) -> Self {
        Self {
            store: store.clone(),
            entry: Some(entry),
            waits_for_target: false,
        }
    }

    /// Writes nothing unless [`PendingEntry::set_target`] follows.
    pub(crate) fn wait_for_target(&mut self) {
        self.waits_for_target = true;
    }

    /// Drops the entry: nothing was changed.
    pub(crate) fn forget(mut self) {
        self.entry = None;
    }

    /// Writes the entry of a change of which it is not known whether it was made. Does not wait: the database may still be away.
    pub(crate) fn write_unknown(mut self) {
        if let Some(entry) = &mut self.entry {
            entry.detail = Some(COMMIT_UNKNOWN.to_owned());
        }
    }

    /// Gives the target its name, when it has none yet and is there.
    pub(crate) async fn find_name(&mut self) {
        let Some(entry) = &mut self.entry else { return };
        let account_id = entry.account_id;
        let Some(target) = entry.target.as_mut().filter(|it| it.name.is_none()) else {
            return;
        };
        let Ok(id) = Uuid::try_parse(&target.id) else {
            return;
        };
        if let Ok(mut db) = self.store.read().await {
            let found = audit::target_name(&mut db, account_id, target.kind, id).await;
            target.name = found.ok().flatten();
        }
    }

    /// Names the target, whose id is in the answer.
    pub(crate) fn set_target(&mut self, kind: &'static str, id: Uuid) {
        self.waits_for_target = false;
        if let Some(entry) = &mut self.entry {
            entry.target = Some(Target {
                kind,
                id: id.to_string(),
                name: None,
            });
        }
    }

    /// Writes the entry of a change that was made. A failure is in the service's log with all that the entry says: the change is
    /// made, and its answer stays.
    pub(crate) async fn write(mut self) {
        if let Some(entry) = self.entry.take() {
            write(self.store.clone(), entry).await;
        }
    }
}

impl Drop for PendingEntry {
    fn drop(&mut self) {
        let Some(mut entry) = self.entry.take().filter(|_| !self.waits_for_target) else {
            return;
        };
        entry
            .detail
            .get_or_insert_with(|| OUTCOME_UNKNOWN.to_owned());
        // Without a runtime the process ends.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(write(self.store.clone(), entry));
        }
    }
}

async fn write(store: Store, entry: NewEntry) {
    let noted = entry.clone();
    let written = store
        .write_beside(move |tx| Box::pin(async move { audit::append(tx, entry, now_ms()).await }));
    if let Err(error) = written.await {
        tracing::error!(%error, entry = ?noted, "a change could not be written to the audit log");
    }
}

/// The network of a client: an IPv4 address, or an IPv6 /64.
pub(crate) fn network_text(client: IpAddr) -> String {
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
            "since" => filter.since = Some(time("since", &value)?),
            "until" => filter.until = Some(time("until", &value)?),
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

fn time(field: &str, text: &str) -> Result<i64, ApiError> {
    text.parse::<jiff::Timestamp>()
        .map(|time| time.as_millisecond())
        .map_err(|_| field::wrong(field, "a time such as 2026-11-18T11:06:40Z", text))
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
        let given = format!(
            "actor={id}&action=live.&since=1970-01-01T00:00:01Z&until=1970-01-01T00:00:02Z&limit=5&cursor="
        );
        let read = filter(&given).unwrap();
        assert_eq!(
            (read.actor, read.action.as_deref(), (read.since, read.until)),
            (Some(id), Some("live."), (Some(1_000), Some(2_000)))
        );
        let nothing = filter("actor=&action=&since=&until=").unwrap();
        assert!(nothing.actor.is_none() && nothing.action.is_none() && nothing.since.is_none());
        for (query, name) in [
            ("actor=me", "actor"),
            ("action=%25", "action"),
            ("since=7", "since"),
            ("until=7", "until"),
        ] {
            let message = filter(query).unwrap_err().to_string();
            assert!(
                message.starts_with(name) && message.contains("got `"),
                "{message}"
            );
        }
    }
}
