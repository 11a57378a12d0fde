//! Connections of publishers: events `live.input.connected` and `.disconnected`, rows of an input's history. Written by the
//! ledger, never on the live path.
//!
//! A connection whose begin event was sent is in the store until its end event, so that each has exactly one: an end
//! that a killed process could not report is reported by the next one, when the input's next connection begins or its
//! broadcast ends. Connections of one input to two nodes are two, and neither ends the other.

use std::net::IpAddr;

use sluice_store::{
    Error as StoreError, Store, Tx,
    broadcasts::Lost,
    live_connections::{self, LiveConnection},
    live_inputs,
    publisher_connections::{self, End, PublisherConnection},
};
use uuid::Uuid;

use super::unix_ms;
use crate::events::{self, Event, LiveInputConnected, LiveInputDisconnected, Parting};

/// A publisher that was admitted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Connection {
    pub id: Uuid,
    pub input_id: Uuid,
    pub broadcast: String,
    pub protocol: &'static str,
    pub remote: IpAddr,
    /// The name that the encoder has given itself so far.
    pub encoder: Option<String>,
    pub connected_ms: i64,
}

/// End of a publisher, as its input saw it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Disconnection {
    pub input_id: Uuid,
    pub connection_id: Uuid,
    pub reason: Parting,
    /// The name that the encoder gave itself.
    pub encoder: Option<String>,
    pub at_ms: i64,
}

/// End of a publisher whose disconnection was not observed.
const UNSEEN: End<'static> = End {
    reason: Parting::Interrupted.as_str(),
    encoder: None,
    at_ms: None,
};

/// Emits that a publisher has begun, and first the ends of those that were lost; what is on air on other nodes goes on. Nothing
/// when the input is gone. `node` is this process in a cluster.
pub(super) async fn emit_connected(
    tx: &mut Tx<'_>,
    connection: &Connection,
    node: Option<Uuid>,
) -> Result<(), StoreError> {
    for lost in live_connections::take_followed(tx, connection.input_id, node).await? {
        emit_end(tx, lost, Parting::Interrupted, UNSEEN).await?;
    }
    let Some(input) = live_inputs::by_id(tx, connection.input_id).await? else {
        return Ok(());
    };
    let remote_address = connection.remote.to_canonical().to_string();
    let row = PublisherConnection {
        id: connection.id,
        input_id: input.id,
        broadcast_id: connection.broadcast.clone(),
        protocol: connection.protocol.to_owned(),
        remote_address: remote_address.clone(),
        encoder: connection.encoder.clone(),
        connected_at: connection.connected_ms,
        disconnected_at: None,
        reason: None,
    };
    publisher_connections::open(tx, &row).await?;
    let connected = LiveInputConnected {
        live_input_id: input.id,
        name: input.name,
        playback_id: input.playback_id,
        broadcast_id: connection.broadcast.clone(),
        protocol: connection.protocol.to_owned(),
        remote_address: Some(remote_address),
    };
    let open = LiveConnection {
        input_id: input.id,
        id: connection.id,
        account_id: input.account_id,
        broadcast_id: connection.broadcast.clone(),
        payload: serde_json::to_value(&connected).map_err(not_json)?,
    };
    live_connections::open(tx, &open).await?;
    let event = Event::LiveInputConnected(connected);
    events::emit(tx, input.account_id, &event, unix_ms()).await?;
    Ok(())
}

/// Emits that a publisher is gone; nothing when its beginning was never reported, or its end was already.
pub(super) async fn emit_disconnected(
    tx: &mut Tx<'_>,
    gone: &Disconnection,
) -> Result<(), StoreError> {
    let end = End {
        reason: gone.reason.as_str(),
        encoder: gone.encoder.as_deref(),
        at_ms: Some(gone.at_ms),
    };
    match live_connections::take_this(tx, gone.input_id, gone.connection_id).await? {
        Some(connection) => emit_end(tx, connection, gone.reason, end).await,
        None => Ok(()),
    }
}

/// Emits the end of a publisher whose disconnection was not observed, now that its broadcast is over.
pub(super) async fn emit_broadcast_over(
    tx: &mut Tx<'_>,
    input_id: Uuid,
    broadcast: &str,
) -> Result<(), StoreError> {
    for connection in live_connections::take_of_broadcast(tx, input_id, broadcast).await? {
        emit_end(tx, connection, Parting::Interrupted, UNSEEN).await?;
    }
    Ok(())
}

/// Emits the ends of publishers that a process left which has ended, and whose broadcasts are not among `recovered`.
pub(super) async fn emit_lost(
    store: &Store,
    of: Lost,
    recovered: &[String],
) -> Result<(), StoreError> {
    loop {
        let keep = recovered.to_vec();
        let ended = store
            .write(move |tx| {
                Box::pin(async move {
                    let lost = live_connections::take_lost(tx, of, &keep).await?;
                    let count = lost.len();
                    for connection in lost {
                        emit_end(tx, connection, Parting::Interrupted, UNSEEN).await?;
                    }
                    Ok(count)
                })
            })
            .await?;
        if ended == 0 {
            return Ok(());
        }
    }
}

async fn emit_end(
    tx: &mut Tx<'_>,
    connection: LiveConnection,
    reason: Parting,
    end: End<'_>,
) -> Result<(), StoreError> {
    publisher_connections::close(tx, connection.id, end, unix_ms()).await?;
    let disconnected = LiveInputDisconnected {
        connection: serde_json::from_value(connection.payload).map_err(not_json)?,
        reason,
    };
    let event = Event::LiveInputDisconnected(disconnected);
    events::emit(tx, connection.account_id, &event, unix_ms()).await?;
    Ok(())
}

fn not_json(error: serde_json::Error) -> StoreError {
    StoreError::Internal(format!("a stored connection is no JSON: {error}"))
}
