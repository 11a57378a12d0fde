//! `sluice doctor` on PostgreSQL (`store.database_url`): server, schema, service that has it, connections, replicas; nothing on
//! SQLite.

use std::time::Duration;

use sluice_store::{
    ServerReport, StoreSettings,
    cluster::{MOST_CLOCK_OFFSET, Node},
    examine_server, schema_version,
};
use tokio::{runtime::Builder, time::timeout};

use super::finding::Finding;
use crate::causes::WithCauses;

/// Longest time for the whole examination.
const PATIENCE: Duration = Duration::from_secs(20);
/// Connections of a service beside its readers and writers: the hold, two for the log of changes, one that asks what became of a
/// commit.
const OTHER_CONNECTIONS: i64 = 4;

/// Examines the server. `service` is the process that has the data folder.
pub(super) fn check(settings: &StoreSettings, service: Option<u32>) -> Vec<Finding> {
    if !settings.is_on_postgres() {
        return Vec::new();
    }
    match examine(settings) {
        Ok(report) => judge(settings, &report, service.is_some()),
        Err(reason) => vec![rejected(reason)],
    }
}

fn examine(settings: &StoreSettings) -> Result<ServerReport, String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start a runtime: {error}"))?;
    let examined = runtime.block_on(async { timeout(PATIENCE, examine_server(settings)).await });
    match examined {
        Ok(report) => report.map_err(|error| WithCauses(&error).to_string()),
        Err(_) => Err("store.database_url: the server does not answer in time".to_owned()),
    }
}

fn judge(settings: &StoreSettings, report: &ServerReport, is_running: bool) -> Vec<Finding> {
    let mut findings = vec![
        judge_server(report),
        judge_schema(settings, report),
        judge_holder(settings, report, is_running),
        judge_connections(settings, report),
    ];
    findings.extend(judge_replicas(report));
    findings.extend(judge_nodes(report));
    findings.extend(judge_clock(report));
    findings
}

fn rejected(reason: impl Into<String>) -> Finding {
    Finding::fail(
        "database",
        reason,
        "the service does not start before that is mended; docs/guide/cluster.md says what a server needs",
    )
}

fn judge_server(report: &ServerReport) -> Finding {
    if let Some(reason) = &report.rejection {
        return rejected(reason);
    }
    let tls = if report.has_tls { "by" } else { "without" };
    let (version, commit) = (&report.version, &report.synchronous_commit);
    let found = format!(
        "PostgreSQL {version}, reached {tls} TLS; synchronous_commit is {commit}, the encoding {}, and locks hold",
        report.encoding
    );
    Finding::ok("database", found)
}

fn judge_schema(settings: &StoreSettings, report: &ServerReport) -> Finding {
    const CHECK: &str = "schema";
    let (name, known) = (&settings.database_schema, schema_version());
    match report.schema_version {
        Some(found) if found > known && report.schema_floor.is_some_and(|floor| floor <= known) => {
            Finding::warn(
                CHECK,
                format!(
                    "{name} is at {found}, of a newer program; this one knows up to {known}, and may still run beside it"
                ),
                "replace this program by the newer one",
            )
        }
        Some(found) if found > known => Finding::fail(
            CHECK,
            format!("{name} is at {found}, of a newer program; this one knows up to {known}"),
            "start the newer program, or restore a dump that was made before it",
        ),
        Some(found) if found == known => Finding::ok(CHECK, format!("{name} is at {found}")),
        _ if !report.may_create => Finding::fail(
            CHECK,
            format!("the user may not make tables in the schema {name}, nor the schema"),
            format!(
                "as a superuser: CREATE SCHEMA IF NOT EXISTS {name}; ALTER SCHEMA {name} OWNER TO the user of store.database_url"
            ),
        ),
        Some(found) => Finding::ok(
            CHECK,
            format!("{name} is at {found}; the next start of this program brings it to {known}"),
        ),
        None => Finding::ok(
            CHECK,
            format!("{name} has no tables yet; the first start makes them"),
        ),
    }
}

fn judge_holder(settings: &StoreSettings, report: &ServerReport, is_running: bool) -> Finding {
    const CHECK: &str = "schema lock";
    let name = &settings.database_schema;
    match (report.holder.as_deref(), is_running) {
        (Some(_), false) if !report.nodes.is_empty() => Finding::ok(
            CHECK,
            format!("the nodes of a cluster share the schema {name}"),
        ),
        (Some(holder), true) => Finding::ok(
            CHECK,
            format!("{holder} has the schema {name}: the service is running"),
        ),
        (Some(holder), false) => Finding::fail(
            CHECK,
            format!(
                "{holder} has the schema {name}, and the service of this data folder is not running: another service uses it"
            ),
            "stop that service, or choose another schema with store.database_schema",
        ),
        (None, true) => Finding::warn(
            CHECK,
            format!("the service of this data folder is running, and none has the schema {name}"),
            "it starts just now, has lost its connection (see /readyz), or runs with other settings",
        ),
        (None, false) => Finding::ok(CHECK, format!("no service uses the schema {name}")),
    }
}

fn judge_connections(settings: &StoreSettings, report: &ServerReport) -> Finding {
    const CHECK: &str = "connections";
    let of_node = i64::from(!report.nodes.is_empty());
    let service =
        i64::from(settings.readers) + i64::from(settings.writers) + OTHER_CONNECTIONS + of_node;
    let own = match report.holder {
        Some(_) => report.own_connections.min(service),
        None => 0,
    };
    let (used, most) = (report.connections, report.max_connections);
    let advice = "raise the bound, or lower store.readers and store.writers";
    match report.connection_limit {
        Some(limit) if limit < service => Finding::warn(
            CHECK,
            format!(
                "the user or the database may have {limit} at a time, and the service uses up to {service}"
            ),
            advice,
        ),
        _ if used + service - own > most => Finding::warn(
            CHECK,
            format!(
                "{used} of {most} are in use, and the service uses up to {service}, of which it has {own}"
            ),
            advice,
        ),
        _ => Finding::ok(
            CHECK,
            format!("{used} of {most} are in use; the service uses up to {service}"),
        ),
    }
}

/// Returns nothing for a server without replicas.
fn judge_replicas(report: &ServerReport) -> Option<Finding> {
    const CHECK: &str = "replicas";
    match (report.replicas, report.is_synchronous) {
        (0, false) => None,
        (0, true) => Some(Finding::warn(
            CHECK,
            "synchronous_standby_names is set, and no replica follows: commits wait for one",
            "start the replica, or empty synchronous_standby_names",
        )),
        (count, false) => Some(Finding::warn(
            CHECK,
            format!(
                "{count} follow, and no commit waits for them: a failover may lose rows that were acknowledged"
            ),
            "name one in synchronous_standby_names, unless that may be",
        )),
        (count, true) => Some(Finding::ok(
            CHECK,
            format!("{count} follow, and commits wait for one"),
        )),
    }
}

/// Returns nothing when no node lives.
fn judge_nodes(report: &ServerReport) -> Option<Finding> {
    const CHECK: &str = "nodes";
    if report.nodes.is_empty() {
        return None;
    }
    let describe =
        |node: &Node| format!("{} ({}, {})", node.name, node.state.as_str(), node.version);
    let nodes: Vec<String> = report.nodes.iter().map(describe).collect();
    let found = format!("{} live: {}", nodes.len(), nodes.join(", "));
    let wrong = report.nodes.iter().filter(|node| node.has_wrong_clock());
    let wrong: Vec<String> = wrong
        .map(|node| format!("{} by {} ms", node.name, node.clock_offset_ms))
        .collect();
    Some(match wrong.is_empty() {
        true => Finding::ok(CHECK, found),
        false => Finding::warn(
            CHECK,
            format!(
                "{found}; clocks differ from the database's: {}",
                wrong.join(", ")
            ),
            "set the clocks of these machines, by NTP for instance",
        ),
    })
}

/// Returns nothing when the clocks agree.
fn judge_clock(report: &ServerReport) -> Option<Finding> {
    let offset_ms = report.clock_offset_ms;
    let is_wrong = u128::from(offset_ms.unsigned_abs()) > MOST_CLOCK_OFFSET.as_millis();
    is_wrong.then(|| {
        Finding::warn(
            "clock",
            format!("the server's clock is {offset_ms} ms ahead of this machine's"),
            "set both clocks, by NTP for instance; nodes of a cluster take the server's",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{
        super::finding::Level::{self, Fail, Ok, Warn},
        *,
    };

    fn well() -> ServerReport {
        ServerReport {
            version: "15.18".into(),
            synchronous_commit: "on".into(),
            encoding: "UTF8".into(),
            schema_version: Some(schema_version()),
            may_create: true,
            connections: 10,
            max_connections: 97,
            ..ServerReport::default()
        }
    }

    fn levels(report: &ServerReport, is_running: bool) -> Vec<Level> {
        let findings = judge(&StoreSettings::default(), report, is_running);
        for finding in &findings {
            assert_eq!(finding.advice.is_none(), finding.level == Ok, "{finding:?}");
            assert!(finding.check.len() <= 13, "{finding:?}");
        }
        findings.iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn each_fact_is_judged() {
        type Change = fn(&mut ServerReport);
        let cases: [(Change, bool, &[Level]); 17] = [
            (|_| {}, false, &[Ok, Ok, Ok, Ok]),
            (
                |it| it.rejection = Some("x".into()),
                false,
                &[Fail, Ok, Ok, Ok],
            ),
            (
                |it| it.schema_version = Some(9_999),
                false,
                &[Ok, Fail, Ok, Ok],
            ),
            (
                |it| (it.schema_version, it.schema_floor) = (Some(9_999), Some(40)),
                false,
                &[Ok, Warn, Ok, Ok],
            ),
            (|it| it.schema_version = Some(1), false, &[Ok, Ok, Ok, Ok]),
            (|it| it.schema_version = None, false, &[Ok, Ok, Ok, Ok]),
            (
                |it| (it.schema_version, it.may_create) = (None, false),
                false,
                &[Ok, Fail, Ok, Ok],
            ),
            (|it| it.may_create = false, false, &[Ok, Ok, Ok, Ok]),
            (
                |it| it.holder = Some("x".into()),
                false,
                &[Ok, Ok, Fail, Ok],
            ),
            (|it| it.holder = Some("x".into()), true, &[Ok, Ok, Ok, Ok]),
            (|_| {}, true, &[Ok, Ok, Warn, Ok]),
            (|it| it.connections = 90, false, &[Ok, Ok, Ok, Warn]),
            (
                |it| {
                    it.holder = Some("x".into());
                    (it.connections, it.own_connections) = (90, 12);
                },
                true,
                &[Ok, Ok, Ok, Ok],
            ),
            (
                |it| it.connection_limit = Some(10),
                false,
                &[Ok, Ok, Ok, Warn],
            ),
            (|it| it.replicas = 1, false, &[Ok, Ok, Ok, Ok, Warn]),
            (
                |it| it.is_synchronous = true,
                false,
                &[Ok, Ok, Ok, Ok, Warn],
            ),
            (
                |it| it.clock_offset_ms = -5_001,
                false,
                &[Ok, Ok, Ok, Ok, Warn],
            ),
        ];
        for (number, (change, is_running, expected)) in cases.into_iter().enumerate() {
            let mut report = well();
            change(&mut report);
            assert_eq!(levels(&report, is_running), expected, "case {number}");
        }
    }

    #[test]
    fn sqlite_has_no_server_and_an_unreachable_one_fails() {
        assert!(check(&StoreSettings::default(), None).is_empty());
        let settings = StoreSettings {
            database_url: "postgres://sluice:swordfish@127.0.0.1:1/sluice".into(),
            ..StoreSettings::default()
        };
        let found = check(&settings, None);
        assert_eq!((found.len(), found[0].level), (1, Fail));
        assert!(!format!("{found:?}").contains("swordfish"), "{found:?}");
    }
}
