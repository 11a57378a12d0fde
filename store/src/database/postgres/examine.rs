//! Examination of a PostgreSQL server for `sluice doctor`: version, settings, rights, schema, service that has it, connections,
//! replicas.

use sqlx::{Connection as _, FromRow, PgConnection};

use super::{Server, hold, migrate, unreachable};
use crate::{
    Error, StoreSettings,
    cluster::{MOST_AHEAD, Node},
    duration_ms, now_ms,
};

/// Facts about the server of `store.database_url` and about the schema of the service.
#[derive(Clone, Debug, Default, PartialEq, Eq, FromRow)]
pub struct ServerReport {
    /// Text of the server, for instance `15.18 (Debian 15.18-0+deb12u1)`.
    pub version: String,
    pub synchronous_commit: String,
    pub encoding: String,
    /// True when the connection is encrypted.
    pub has_tls: bool,
    /// Reason why no service starts on this server; `None` when one does.
    #[sqlx(skip)]
    pub rejection: Option<String>,
    /// Last migration of the schema; `None` when its tables are not made yet.
    #[sqlx(skip)]
    pub schema_version: Option<i64>,
    /// Schema version of the oldest program that may use the schema; `None` before there are nodes.
    #[sqlx(skip)]
    pub schema_floor: Option<i64>,
    /// True when the user may make tables in the schema, or the schema while it is missing.
    pub may_create: bool,
    /// The service that has the schema, by its process in the server and its address; `None` when none has it.
    #[sqlx(skip)]
    pub holder: Option<String>,
    /// Connections of all clients now, this one among them.
    pub connections: i64,
    /// Connections of services and commands of this user to this database, without this one.
    pub own_connections: i64,
    /// Connections that the server gives to ordinary users at a time.
    pub max_connections: i64,
    /// Bound of the user's or of the database's own, the lesser one; `None` without any.
    pub connection_limit: Option<i64>,
    /// Nodes whose lease is not over.
    #[sqlx(skip)]
    pub nodes: Vec<Node>,
    /// Milliseconds by which the server's clock is ahead of this machine's, exact to the time of an answer.
    #[sqlx(skip)]
    pub clock_offset_ms: i64,
    /// Replicas that follow now.
    pub replicas: i64,
    /// True when a commit waits for a replica.
    pub is_synchronous: bool,
}

/// `$1` is the schema. Everything here may be seen by every user.
const FACTS: &str = "SELECT current_setting('server_version') AS version,
         current_setting('synchronous_commit') AS synchronous_commit, current_setting('server_encoding') AS encoding,
         coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false) AS has_tls,
         coalesce((SELECT has_schema_privilege(oid, 'CREATE') AND has_schema_privilege(oid, 'USAGE')
                 FROM pg_namespace WHERE nspname = $1),
             has_database_privilege(current_database(), 'CREATE')) AS may_create,
         (SELECT count(*) FROM pg_stat_activity WHERE datid IS NOT NULL) AS connections,
         (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = current_user
             AND application_name = 'sluice' AND pid <> pg_backend_pid()) AS own_connections,
         current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
             - coalesce(current_setting('reserved_connections', true)::bigint, 0) AS max_connections,
         (SELECT min(bound)::bigint FROM (SELECT datconnlimit FROM pg_database WHERE datname = current_database()
             UNION ALL SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user) bounds (bound)
             WHERE bound >= 0) AS connection_limit,
         (SELECT count(*) FROM pg_stat_replication) AS replicas,
         current_setting('synchronous_standby_names') <> ''
             AND current_setting('synchronous_commit') NOT IN ('off', 'local') AS is_synchronous";

/// Examines the server and changes nothing; beside a running service, too.
///
/// `Error::Invalid` for an address that cannot be read, `Error::Unsupported` when the server cannot be reached or used.
pub async fn examine_server(settings: &StoreSettings) -> Result<ServerReport, Error> {
    let server = Server::new(settings)?;
    let mut connection = server.connect().await.map_err(unreachable)?;
    let mut report: ServerReport = sqlx::query_as(FACTS)
        .bind(&settings.database_schema)
        .fetch_one(&mut connection)
        .await?;
    report.rejection = match server.check(&mut connection).await {
        Ok(()) => None,
        Err(Error::Unsupported(reason)) => Some(reason),
        Err(error) => return Err(error),
    };
    let version = migrate::applied_version(&mut connection).await?;
    report.schema_version = (version > 0).then_some(version);
    report.schema_floor = migrate::floor(&mut connection).await?;
    report.holder = hold::find_holder(&server, &mut connection).await?;
    report.nodes = live_nodes(&mut connection).await?;
    report.clock_offset_ms = clock_offset_ms(&mut connection).await?;
    connection.close().await?;
    Ok(report)
}

/// Returns the nodes whose lease is not over; none on a schema without their table. A lease that ends too far in the future was
/// written before the server's clock was set back ([`MOST_AHEAD`]).
pub(super) async fn live_nodes(connection: &mut PgConnection) -> Result<Vec<Node>, Error> {
    if !migrate::has_table(connection, "nodes").await? {
        return Ok(Vec::new());
    }
    let nodes = sqlx::query_as(
        "SELECT n.* FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now) clock CROSS JOIN nodes n
         WHERE n.state <> 'dead' AND n.lease_until > clock.now AND n.lease_until <= clock.now + $1 ORDER BY n.name, n.id",
    )
    .bind(duration_ms(MOST_AHEAD))
    .fetch_all(connection)
    .await?;
    Ok(nodes)
}

async fn clock_offset_ms(connection: &mut PgConnection) -> Result<i64, Error> {
    let asked = now_ms();
    let server: i64 =
        sqlx::query_scalar("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
            .fetch_one(connection)
            .await?;
    let answered = now_ms();
    Ok(server - (asked + (answered - asked) / 2))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::{Store, schema_version};

    fn at(database_url: &str) -> StoreSettings {
        StoreSettings {
            database_url: database_url.into(),
            ..StoreSettings::default()
        }
    }

    #[tokio::test]
    async fn an_address_without_a_server_is_named_without_its_password() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
        let port = port.unwrap().port();
        for url in [
            format!("postgres://sluice:swordfish@127.0.0.1:{port}/sluice"),
            format!("postgres://127.0.0.1:{port}/sluice?user=sluice&password=swordfish"),
        ] {
            let error = examine_server(&at(&url)).await.unwrap_err();
            assert!(matches!(error, Error::Unsupported(_)), "{error:?}");
            let shown = format!("{error} {error:?}");
            assert!(shown.contains("store.database_url"), "{shown}");
            assert!(!shown.contains("swordfish"), "{shown}");
        }
    }

    #[tokio::test]
    async fn an_address_that_cannot_be_read_is_rejected_without_its_password() {
        for url in [
            "postgres://sluice:swordfish@host:port/sluice",
            "postgres://sluice:sword?fish@host/sluice",
            "postgres://sluice@host/sluice?sslpassword=swordfish",
        ] {
            let error = examine_server(&at(url)).await.unwrap_err();
            assert!(matches!(error, Error::Invalid(_)), "{error:?}");
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("swordfish@"), "{shown}");
            assert!(!shown.contains("=swordfish\""), "{shown}");
            assert!(!shown.contains("fish@"), "{shown}");
        }
    }

    /// With `SLUICE_TEST_POSTGRES`.
    #[tokio::test]
    async fn a_server_is_examined_before_and_beside_a_service() {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings::without_reserve(folder.path());
        if !settings.is_on_postgres() {
            return;
        }
        let before = examine_server(&settings).await.unwrap();
        assert_eq!(before.rejection, None);
        assert_eq!((before.schema_version, before.holder), (None, None));
        assert!(before.may_create && before.connections > 0);
        assert!(before.max_connections > before.connections);

        let store = Store::open(&settings).await.unwrap();
        let beside = examine_server(&settings).await.unwrap();
        assert_eq!(beside.schema_version, Some(schema_version()));
        assert!(beside.holder.is_some() && beside.own_connections > 1);
        store.close().await;
    }
}
