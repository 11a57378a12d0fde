//! Tables whose rows make a change for followers: kind, id, account, columns that make none; the triggers that record
//! them.
//!
//! The triggers are temporary ones of the writer's connection: they are no part of the database, cost nothing while no client
//! follows changes, and roll back with the unit that fired them. A new table needs a line in [`WATCHED`] or [`UNWATCHED`];
//! a test says so.

use std::fmt::Write as _;

use super::{Action, Kind};

/// The table that the triggers write to, in the writer's memory.
pub(super) const LOG: &str = "change_log";

/// A table whose rows are resources, or parts of one. In the expressions `row` is the new row, or the one that is gone.
pub(super) struct Watched {
    pub(super) table: &'static str,
    kind: Kind,
    /// The resource's id; `NULL`: the kind as a whole.
    id: &'static str,
    account: &'static str,
    /// Columns whose changes clients do not see.
    pub(super) quiet: &'static [&'static str],
    rows: Rows,
}

/// Meaning of a table's rows.
enum Rows {
    /// Resources.
    Resources,
    /// Resources that are kept, hidden, once this column is set.
    HiddenBy(&'static str),
    /// Parts of a resource, or counters: the resource changes with them.
    Parts,
    /// Rows that are only ever added, where the condition holds; the expiry of a row is no change.
    Additions(&'static str),
}

const OF_ACCOUNT: &str = "row.account_id";
const OF_INPUT: &str = "(SELECT account_id FROM live_inputs WHERE id = row.input_id)";
const OF_STREAM: &str = "(SELECT account_id FROM video_streams WHERE id = row.stream_id)";

/// Makes a row of [`WATCHED`] for resources with an id and an account.
const fn resources(table: &'static str, kind: Kind) -> Watched {
    Watched {
        table,
        kind,
        id: "row.id",
        account: OF_ACCOUNT,
        quiet: &[],
        rows: Rows::Resources,
    }
}

/// Makes a row of [`WATCHED`] for counted use.
const fn counted(table: &'static str) -> Watched {
    Watched {
        id: "NULL",
        rows: Rows::Parts,
        ..resources(table, Kind::Usage)
    }
}

pub(super) const WATCHED: &[Watched] = &[
    Watched {
        account: "row.id",
        ..resources("accounts", Kind::Account)
    },
    Watched {
        quiet: &["last_seen_at"],
        ..resources("users", Kind::User)
    },
    // The list of users shows them.
    Watched {
        id: "NULL",
        rows: Rows::Parts,
        ..resources("invitations", Kind::User)
    },
    Watched {
        account: "(SELECT account_id FROM users WHERE id = row.user_id)",
        quiet: &["expires_at", "last_used_at"],
        ..resources("sessions", Kind::Session)
    },
    Watched {
        quiet: &["last_used_at"],
        rows: Rows::HiddenBy("revoked_at"),
        ..resources("api_keys", Kind::ApiKey)
    },
    Watched {
        rows: Rows::Additions("TRUE"),
        ..resources("audit", Kind::Audit)
    },
    resources("files", Kind::File),
    resources("folders", Kind::Folder),
    // What lies at the top is in no folder.
    Watched {
        id: "row.folder_id",
        account: "iif(length(row.folder_id) = 16, row.account_id, NULL)",
        rows: Rows::Parts,
        ..resources("folder_totals", Kind::Folder)
    },
    // A link is found by its folder.
    Watched {
        id: "row.folder_id",
        ..resources("shares", Kind::Share)
    },
    Watched {
        quiet: &["attempt"],
        ..resources("uploads", Kind::Upload)
    },
    Watched {
        quiet: &[
            "offset_bytes",
            "held_bytes",
            "crc32",
            "sha256_state",
            "attempt",
            "expires_at",
            "base",
            "piece_hashes",
            "tail",
            "tail_hash",
            "node_id",
        ],
        ..resources("tus_uploads", Kind::Upload)
    },
    Watched {
        quiet: &["fence", "last_target_duration_s"],
        ..resources("live_inputs", Kind::LiveInput)
    },
    Watched {
        id: "row.input_id",
        account: OF_INPUT,
        quiet: &["bytes", "peak_viewers", "seen_at", "fence", "node_id"],
        rows: Rows::Parts,
        ..resources("broadcasts", Kind::LiveInput)
    },
    Watched {
        id: "row.input_id",
        rows: Rows::Parts,
        ..resources("live_connections", Kind::LiveInput)
    },
    Watched {
        id: "row.input_id",
        account: OF_INPUT,
        rows: Rows::Parts,
        ..resources("publisher_connections", Kind::LiveInput)
    },
    Watched {
        account: OF_INPUT,
        ..resources("live_outputs", Kind::Output)
    },
    resources("recordings", Kind::Recording),
    Watched {
        id: "row.recording_id",
        account: "(SELECT account_id FROM recordings WHERE id = row.recording_id)",
        rows: Rows::Parts,
        ..resources("recording_files", Kind::Recording)
    },
    // How far it is, is reported as progress.
    Watched {
        quiet: &["progress", "size_bytes", "updated_at"],
        ..resources("video_streams", Kind::Stream)
    },
    Watched {
        id: "row.stream_id",
        account: OF_STREAM,
        quiet: &["segment_count", "size_bytes", "duration_90k"],
        rows: Rows::Parts,
        ..resources("video_renditions", Kind::Stream)
    },
    Watched {
        id: "row.stream_id",
        account: OF_STREAM,
        rows: Rows::Parts,
        ..resources("video_captions", Kind::Stream)
    },
    resources("jobs", Kind::Job),
    resources("workflow_runs", Kind::Run),
    Watched {
        id: "row.run_id",
        account: "(SELECT account_id FROM workflow_runs WHERE id = row.run_id)",
        rows: Rows::Parts,
        ..resources("workflow_steps", Kind::Run)
    },
    Watched {
        rows: Rows::HiddenBy("deleted_at"),
        ..resources("workflows", Kind::Workflow)
    },
    Watched {
        rows: Rows::HiddenBy("deleted_at"),
        ..resources("webhook_endpoints", Kind::Webhook)
    },
    Watched {
        quiet: &["due_at", "fence", "lease_expires_at"],
        ..resources("webhook_deliveries", Kind::Delivery)
    },
    Watched {
        rows: Rows::Additions("row.is_listed = 1"),
        ..resources("events", Kind::Event)
    },
    Watched {
        quiet: &["last_used_at"],
        rows: Rows::HiddenBy("revoked_at"),
        ..resources("delivery_keys", Kind::DeliveryKey)
    },
    resources("playback_keys", Kind::PlaybackKey),
    resources("cdn_presets", Kind::Preset),
    counted("storage_totals"),
    counted("operation_days"),
    counted("operation_months"),
    counted("delivery_months"),
    counted("delivery_days"),
    counted("delivery_key_days"),
];

/// Tables whose rows no client sees, or only together with another row that changes with them.
#[cfg(test)]
const UNWATCHED: &[&str] = &[
    "_sqlx_migrations",
    "archive_selections",
    "blobs",
    "counters",
    "event_feeds",
    "event_sequences",
    "event_storage",
    "file_facts",
    "file_tags",
    "first_credentials",
    "idempotency_keys",
    "installation",
    "job_files",
    "job_inputs",
    "lineage",
    "live_segments",
    "nodes",
    "schema_floor",
    "sqlite_sequence",
    "video_discarded",
    "video_objects",
    "video_segments",
    "webhook_attempts",
    "webhook_subscriptions",
    "welcome_codes",
    "work",
    "workflow_versions",
];

/// The statements that make the log and the triggers of these tables; `columns` are those of each table.
pub(super) fn install<'c>(columns: impl Fn(&str) -> Vec<&'c str>) -> String {
    let mut script = format!(
        "CREATE TEMP TABLE {LOG} (account_id BLOB, kind INTEGER NOT NULL, id BLOB, action INTEGER NOT NULL);\n"
    );
    for watched in WATCHED {
        let columns = columns(watched.table);
        // A table that is not there must not stop every commit; a test finds it.
        if columns.is_empty() {
            continue;
        }
        for trigger in watched.triggers(&columns) {
            script.push_str(&trigger);
        }
    }
    script
}

/// The statements that make PostgreSQL's triggers, in place of those that are there.
pub(crate) fn postgres_triggers<'c>(columns: impl Fn(&str) -> Vec<&'c str>) -> String {
    let mut script = String::new();
    for watched in WATCHED {
        let columns = columns(watched.table);
        if !columns.is_empty() {
            watched.push_postgres(&columns, &mut script);
        }
    }
    script
}

/// The statements that remove them again.
pub(super) fn remove() -> String {
    let mut script = String::new();
    for watched in WATCHED {
        for operation in ["insert", "update", "delete"] {
            let name = trigger_name(watched.table, operation);
            let _ = writeln!(script, "DROP TRIGGER IF EXISTS temp.{name};");
        }
    }
    let _ = writeln!(script, "DROP TABLE IF EXISTS temp.{LOG};");
    script
}

fn trigger_name(table: &str, operation: &str) -> String {
    format!("{table}_log_{operation}")
}

/// Returns PostgreSQL's text of an expression of [`WATCHED`].
fn in_postgres(expression: &str) -> String {
    // The top has no id: in SQLite that is an empty one, in PostgreSQL's column of UUIDs the nil one.
    expression.replace(
        "length(row.folder_id) = 16",
        "row.folder_id <> '00000000-0000-0000-0000-000000000000'",
    )
}

impl Watched {
    fn triggers(&self, columns: &[&str]) -> Vec<String> {
        let index = |action: Action| (action as u8).to_string();
        let (created, changed, deleted) = (
            index(Action::Created),
            index(Action::Changed),
            index(Action::Deleted),
        );
        let watched: Vec<String> = columns
            .iter()
            .filter(|column| !self.quiet.contains(column))
            .map(|column| format!("\"{column}\""))
            .collect();
        let update = format!("UPDATE OF {}", watched.join(", "));
        match self.rows {
            Rows::Resources => vec![
                self.trigger("insert", "INSERT", "", &created),
                self.trigger("update", &update, "", &changed),
                self.trigger("delete", "DELETE", "", &deleted),
            ],
            Rows::HiddenBy(column) => {
                let hides = format!("iif(NEW.{column} IS NULL, {changed}, {deleted})");
                vec![
                    self.trigger("insert", "INSERT", "", &created),
                    self.trigger("update", &update, "", &hides),
                    self.trigger("delete", "DELETE", "", &deleted),
                ]
            }
            Rows::Parts => vec![
                self.trigger("insert", "INSERT", "", &changed),
                self.trigger("update", &update, "", &changed),
                self.trigger("delete", "DELETE", "", &changed),
            ],
            Rows::Additions(condition) => {
                vec![self.trigger("insert", "INSERT", condition, &created)]
            }
        }
    }

    /// Appends the triggers of the table with their function, which takes the place of an older one.
    fn push_postgres(&self, columns: &[&str], script: &mut String) {
        let (table, kind) = (self.table, self.kind.as_str());
        let (created, changed, deleted) = match self.rows {
            Rows::Parts => ["'changed'"; 3].into(),
            _ => ("'created'", "'changed'", "'deleted'"),
        };
        let insert = |row: &str, condition: &str, action: &str| {
            let of_row = |expression: &str| expression.replace("row.", &format!("{row}."));
            format!(
                "INSERT INTO changes (account_id, kind, id, action) SELECT {account}, '{kind}', {id}, {action} {condition};",
                account = of_row(&in_postgres(self.account)),
                id = of_row(self.id),
                condition = of_row(condition),
            )
        };
        let update = match self.rows {
            Rows::HiddenBy(column) => {
                format!("CASE WHEN NEW.{column} IS NULL THEN {changed} ELSE {deleted} END")
            }
            _ => changed.to_owned(),
        };
        let condition = match self.rows {
            Rows::Additions(condition) => {
                format!("WHERE {}", condition.replace("= 1", "= TRUE"))
            }
            _ => String::new(),
        };
        let _ = writeln!(
            script,
            "CREATE OR REPLACE FUNCTION log_{table}() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN
                 IF TG_OP = 'INSERT' THEN {}
                 ELSIF TG_OP = 'UPDATE' THEN {}
                 ELSE {} END IF;
                 RETURN NULL;
             END $body$;",
            insert("NEW", &condition, created),
            insert("NEW", "", &update),
            insert("OLD", "", deleted),
        );
        let watched: Vec<String> = columns
            .iter()
            .filter(|column| !self.quiet.contains(column))
            .map(|column| format!("\"{column}\""))
            .collect();
        let events = match self.rows {
            Rows::Additions(_) => "INSERT".to_owned(),
            _ => format!("INSERT OR DELETE OR UPDATE OF {}", watched.join(", ")),
        };
        let _ = writeln!(
            script,
            "CREATE OR REPLACE TRIGGER {table}_log AFTER {events} ON {table} FOR EACH ROW EXECUTE FUNCTION log_{table}();"
        );
    }

    fn trigger(&self, operation: &str, event: &str, condition: &str, action: &str) -> String {
        let row = match operation {
            "delete" => "OLD",
            _ => "NEW",
        };
        let of_row = |expression: &str| expression.replace("row.", &format!("{row}."));
        let when = match condition {
            "" => String::new(),
            condition => format!("WHEN {} ", of_row(condition)),
        };
        format!(
            "CREATE TEMP TRIGGER {name} AFTER {event} ON main.{table} {when}BEGIN
                INSERT INTO {LOG} VALUES ({account}, {kind}, {id}, {action});
            END;\n",
            name = trigger_name(self.table, operation),
            table = self.table,
            account = of_row(self.account),
            kind = self.kind as u8,
            id = of_row(self.id),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::statement::query_scalar;

    use super::*;
    use crate::{Store, StoreSettings};

    #[tokio::test]
    async fn every_table_is_watched_or_listed_as_unwatched() {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings::on_sqlite(folder.path());
        let store = Store::open(&settings).await.unwrap();
        let mut db = store.read().await.unwrap();
        let tables: Vec<String> =
            query_scalar("SELECT name FROM sqlite_master WHERE type = 'table'")
                .fetch_all(&mut db)
                .await
                .unwrap();
        let tables: BTreeSet<&str> = tables.iter().map(String::as_str).collect();
        let watched = WATCHED.iter().map(|watched| watched.table);
        let known: BTreeSet<&str> = watched.chain(UNWATCHED.iter().copied()).collect();
        assert_eq!(
            tables, known,
            "each table has a line in WATCHED or UNWATCHED of store/src/changes/tables.rs"
        );
        for watched in WATCHED {
            let columns: Vec<String> = query_scalar("SELECT name FROM pragma_table_info($1)")
                .bind(watched.table)
                .fetch_all(&mut db)
                .await
                .unwrap();
            for quiet in watched.quiet {
                assert!(
                    columns.iter().any(|column| column == quiet),
                    "{}.{quiet} does not exist",
                    watched.table
                );
            }
        }
    }
}
