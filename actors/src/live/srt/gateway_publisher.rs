//! Sends the SRT gateway the publishers that it may admit: all inputs first, then each change, conflicts, and the orders of
//! sessions.

use std::{collections::HashMap, io, net::IpAddr, time::Duration};

use sluice_ingest::srt::{message::ToGateway, table::Entry};
use sluice_store::live_inputs::LiveInput as InputRow;
use tokio::{
    io::AsyncWriteExt as _,
    net::unix::OwnedWriteHalf,
    sync::{mpsc, watch},
    time::{MissedTickBehavior, interval, timeout},
};
use uuid::Uuid;

use super::{Args, Passphrases};

/// Time after which a gateway that does not read its orders is given up.
const WRITE_WITHIN: Duration = Duration::from_secs(5);
/// Interval at which the inputs are looked up whose displaced encoders may not come back at the moment.
const LOOK_AT_CONFLICTS: Duration = Duration::from_millis(500);

/// Runs until the gateway is gone.
pub(super) async fn run(
    args: Args,
    socket: OwnedWriteHalf,
    mut orders: mpsc::Receiver<ToGateway>,
) -> io::Result<()> {
    let mut publisher = GatewayPublisher {
        changes: args.directory.follow(),
        args,
        socket,
        out: Vec::new(),
        sent: HashMap::new(),
        conflicts: HashMap::new(),
    };
    publisher.send_table();
    ToGateway::Serve.encode(&mut publisher.out);
    let authorizer = publisher.args.authorizer.clone();
    let mut look = interval(LOOK_AT_CONFLICTS);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        publisher.flush().await?;
        tokio::select! {
            order = orders.recv() => match order {
                Some(order) => order.encode(&mut publisher.out),
                None => return Ok(()),
            },
            changed = publisher.changes.changed() => match changed {
                Ok(()) => publisher.send_table(),
                Err(_) => return Ok(()),
            },
            // Dropped at a change: new permissions are sent at once, however long the answer takes.
            contested = async {
                look.tick().await;
                authorizer.contested().await
            } => publisher.send_conflicts(contested),
        }
    }
}

struct GatewayPublisher {
    args: Args,
    changes: watch::Receiver<u64>,
    socket: OwnedWriteHalf,
    out: Vec<u8>,
    /// The facts of each input that the gateway has.
    sent: HashMap<Uuid, Facts>,
    conflicts: HashMap<Uuid, Vec<IpAddr>>,
}

/// Facts of a row that matter to the gateway.
#[derive(PartialEq, Eq)]
struct Facts {
    slug: String,
    key_hash: String,
    enabled: bool,
}

impl GatewayPublisher {
    fn send_table(&mut self) {
        self.changes.mark_unchanged();
        let rows = self.args.directory.rows();
        let gone: Vec<Uuid> = {
            let there: std::collections::HashSet<Uuid> = rows.iter().map(|row| row.id).collect();
            let sent = self.sent.keys();
            sent.filter(|id| !there.contains(id)).copied().collect()
        };
        for id in gone {
            self.sent.remove(&id);
            ToGateway::Remove(id.into_bytes()).encode(&mut self.out);
        }
        for row in rows {
            let facts = Facts {
                slug: row.input_slug.clone(),
                key_hash: row.stream_key_hash.clone(),
                enabled: row.enabled,
            };
            if self.sent.get(&row.id) == Some(&facts) {
                continue;
            }
            if let Some(entry) = entry_of(&row, &self.args.passphrases) {
                ToGateway::Put(entry).encode(&mut self.out);
                self.sent.insert(row.id, facts);
            }
        }
    }

    fn send_conflicts(&mut self, contested: Option<HashMap<Uuid, Vec<IpAddr>>>) {
        let Some(contested) = contested else {
            return;
        };
        let over: Vec<Uuid> = {
            let known = self.conflicts.keys();
            known
                .filter(|id| !contested.contains_key(id))
                .copied()
                .collect()
        };
        for id in over {
            self.conflicts.remove(&id);
            ToGateway::Conflicts(id.into_bytes(), Vec::new()).encode(&mut self.out);
        }
        for (id, addresses) in contested {
            if self.conflicts.get(&id) != Some(&addresses) {
                ToGateway::Conflicts(id.into_bytes(), addresses.clone()).encode(&mut self.out);
                self.conflicts.insert(id, addresses);
            }
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        let written = timeout(WRITE_WITHIN, self.socket.write_all(&self.out)).await;
        written.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        self.out.clear();
        Ok(())
    }
}

fn entry_of(row: &InputRow, passphrases: &Passphrases) -> Option<Entry> {
    Some(Entry {
        id: row.id.into_bytes(),
        slug: row.input_slug.clone(),
        key_hash: bytes_of(&row.stream_key_hash)?,
        passphrase: passphrases.of(row),
        enabled: row.enabled,
    })
}

/// Decodes a hexadecimal SHA-256.
fn bytes_of(hash: &str) -> Option<[u8; 32]> {
    let digits = hash.as_bytes();
    let mut bytes = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_hash_is_one() {
        let hash = "0123456789abcdef".repeat(4);
        assert_eq!(bytes_of(&hash).unwrap()[..3], [0x01, 0x23, 0x45]);
        assert_eq!(bytes_of(&hash[2..]), None);
        assert_eq!(bytes_of(&"zz".repeat(32)), None);
    }
}
