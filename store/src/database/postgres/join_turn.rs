//! Turn of a node from the claim of the object store to its row in `nodes`, one node at a time: a live row means a claim that was
//! made, so that the next node is rejected on another object store.

use std::time::Duration;

use sqlx::{Connection as _, PgConnection};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{Server, examine};
use crate::{Error, Tx, serial::Serial};

/// Interval in which a node tries to have the turn.
const TRY_EVERY: Duration = Duration::from_millis(100);
/// Longest wait for the nodes before: longer than some requests to an object store that does not answer.
const WAIT: Duration = Duration::from_secs(120);

/// The turn, an advisory lock of a session. It ends with this.
pub(crate) struct JoinTurn {
    connection: PgConnection,
    lock: i64,
}

impl JoinTurn {
    /// `Error::Busy` when other nodes are starting for too long.
    async fn take(server: &Server) -> Result<Self, Error> {
        let mut connection = server.connect().await?;
        let lock = server.key("join", Uuid::nil());
        let since = Instant::now();
        loop {
            let is_taken: bool = sqlx::query_scalar("SELECT pg_try_advisory_lock($1)")
                .bind(lock)
                .fetch_one(&mut connection)
                .await?;
            if is_taken {
                return Ok(Self { connection, lock });
            }
            if since.elapsed() >= WAIT {
                return Err(Error::Busy(
                    "another node is starting: start again when it has, or has ended".into(),
                ));
            }
            sleep(TRY_EVERY).await;
        }
    }

    /// Returns the connection for statements, each a transaction of its own.
    pub(crate) fn tx(&mut self) -> Tx<'_> {
        Tx::postgres(&mut self.connection, Serial::Nothing)
    }

    /// Returns the name of a node whose lease is not over; `None` when there is none.
    pub(crate) async fn live_node(&mut self) -> Result<Option<String>, Error> {
        live_node(&mut self.connection).await
    }

    /// Ends the turn. An error when it was lost before: another node may have had it, too.
    pub(crate) async fn end(mut self) -> Result<(), Error> {
        let was_held: bool = sqlx::query_scalar("SELECT pg_advisory_unlock($1)")
            .bind(self.lock)
            .fetch_one(&mut self.connection)
            .await?;
        self.connection.close().await?;
        match was_held {
            true => Ok(()),
            false => Err(Error::Busy("the turn of this node to join was lost".into())),
        }
    }
}

impl Server {
    /// Waits until no other node joins.
    pub(crate) async fn turn_to_join(&self) -> Result<JoinTurn, Error> {
        JoinTurn::take(self).await
    }
}

/// Returns the name of a node whose lease is not over; `None` when there is none.
pub(crate) async fn live_node(connection: &mut PgConnection) -> Result<Option<String>, Error> {
    let nodes = examine::live_nodes(connection).await?;
    Ok(nodes.into_iter().next().map(|node| node.name))
}
