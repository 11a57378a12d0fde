//! Schema migrations: forward only, compiled in, after a copy into `backups/` of a database that is not empty; three
//! copies are kept.

use std::{
    fs,
    path::{Path, PathBuf},
};

use sqlx::{SqliteConnection, migrate::Migrator, query, query_scalar};
use tracing::info;

use crate::{Error, copy, folder};

pub(crate) static MIGRATIONS: Migrator = sqlx::migrate!("migrations/sqlite");

/// Copies of older schemas that are kept.
const KEPT_COPIES: usize = 3;

/// Returns the schema that this program brings the database to: its last migration.
pub fn schema_version() -> i64 {
    known_version(&MIGRATIONS)
}

/// Returns the last migration of a program.
pub(crate) fn known_version(migrator: &Migrator) -> i64 {
    migrator
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap_or(0)
}

/// The last migration that a database has been through, 0 for an empty one.
pub(crate) async fn applied_version(connection: &mut SqliteConnection) -> Result<i64, Error> {
    let is_migrated: bool =
        query_scalar("SELECT count(*) > 0 FROM sqlite_schema WHERE name = '_sqlx_migrations'")
            .fetch_one(&mut *connection)
            .await?;
    if !is_migrated {
        return Ok(0);
    }
    let version: Option<i64> = query_scalar("SELECT max(version) FROM _sqlx_migrations")
        .fetch_one(connection)
        .await?;
    Ok(version.unwrap_or(0))
}

/// `Error::Newer` for a schema of a newer program than this one.
pub(crate) fn check_known(found: i64) -> Result<(), Error> {
    let known = known_version(&MIGRATIONS);
    match found > known {
        true => Err(Error::Newer { found, known }),
        false => Ok(()),
    }
}

/// Migrates the database. `Error::Newer` before anything is changed when a newer program wrote it.
///
/// One upgrade makes one copy, named for its first migration: the older program can return to it. `connection` must
/// not enforce foreign keys, so that a migration can rebuild a table; they are checked at the end.
pub(crate) async fn migrate(
    connection: &mut SqliteConnection,
    migrator: &Migrator,
    data_dir: &Path,
    now_ms: i64,
) -> Result<(), Error> {
    let applied = applied_version(connection).await?;
    let known = known_version(migrator);
    if applied > known {
        return Err(Error::Newer {
            found: applied,
            known,
        });
    }
    let next = migrator
        .iter()
        .map(|migration| migration.version)
        .filter(|version| *version > applied)
        .min();
    if let (Some(next), true) = (next, applied > 0) {
        let copy = copy_before(connection, data_dir, next, now_ms).await?;
        info!(from = applied, to = known, copy = %copy.display(), "migrating the database");
    }
    migrator.run(&mut *connection).await?;
    check_foreign_keys(connection).await
}

async fn copy_before(
    connection: &mut SqliteConnection,
    data_dir: &Path,
    next: i64,
    now_ms: i64,
) -> Result<PathBuf, Error> {
    let copies = folder::copies(data_dir);
    folder::create_private(&copies)?;
    let copy = copies.join(format!(
        "before-{next:04}-{}.db",
        copy::time_in_name(now_ms)
    ));
    copy::database(connection, &copy).await?;
    remove_old_copies(&copies)?;
    Ok(copy)
}

/// Keeps the newest copies; their names sort by schema, then by time.
fn remove_old_copies(copies: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(copies).map_err(Error::file("cannot list", copies))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| is_copy_of_migration(name))
        .collect();
    names.sort();
    for name in names.iter().rev().skip(KEPT_COPIES) {
        let path = copies.join(name);
        fs::remove_file(&path).map_err(Error::file("cannot remove", path))?;
    }
    Ok(())
}

fn is_copy_of_migration(name: &str) -> bool {
    name.strip_prefix("before-")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        && name.ends_with(".db")
}

async fn check_foreign_keys(connection: &mut SqliteConnection) -> Result<(), Error> {
    let dangling = query("PRAGMA foreign_key_check")
        .fetch_all(connection)
        .await?;
    match dangling.len() {
        0 => Ok(()),
        rows => Err(Error::Internal(format!(
            "after migrating, {rows} rows refer to rows that do not exist"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use sqlx::{
        ConnectOptions as _, Connection as _, SqlSafeStr,
        migrate::{Migration, MigrationType},
        raw_sql,
        sqlite::SqliteConnectOptions,
    };
    use tempfile::TempDir;

    use super::*;
    use crate::{
        Store, StoreSettings, accounts, credentials,
        file_filter::FileType,
        live_connections,
        name_key::name_key,
        sessions, statement, store,
        users::{self, Role},
    };

    /// The real migrations and some of a future version.
    fn future(statements: &[(i64, &'static str)]) -> Migrator {
        let later = statements.iter().map(|(version, statement)| {
            Migration::new(
                *version,
                "later".into(),
                MigrationType::Simple,
                statement.into_sql_str(),
                false,
            )
        });
        Migrator::with_migrations(MIGRATIONS.iter().cloned().chain(later).collect())
    }

    const NOTE: (i64, &str) = (9_001, "ALTER TABLE accounts ADD COLUMN note TEXT");

    async fn open(folder: &TempDir, migrator: &Migrator) -> Result<Store, Error> {
        let settings = StoreSettings::on_sqlite(folder.path());
        Store::open_with(&settings, migrator).await
    }

    /// Makes a database with the migrations before one.
    async fn before(folder: &TempDir, version: i64) -> SqliteConnection {
        let earlier = MIGRATIONS.iter().cloned();
        let earlier = earlier.filter(|migration| migration.version < version);
        let earlier = Migrator::with_migrations(earlier.collect());
        let database = SqliteConnectOptions::new().filename(folder::database(folder.path()));
        let mut connection = database.create_if_missing(true).connect().await.unwrap();
        migrate(&mut connection, &earlier, folder.path(), 0)
            .await
            .unwrap();
        connection
    }

    async fn add_account(store: &Store) {
        store
            .write(|tx| Box::pin(async move { accounts::create(tx, "someone", 0).await }))
            .await
            .unwrap();
    }

    fn copies_in(folder: &TempDir) -> Vec<String> {
        let Ok(entries) = fs::read_dir(folder::copies(folder.path())) else {
            return Vec::new();
        };
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn an_upgrade_copies_the_database_first() {
        let folder = tempfile::tempdir().unwrap();
        let first = open(&folder, &MIGRATIONS).await.unwrap();
        add_account(&first).await;
        first.close().await;
        open(&folder, &MIGRATIONS).await.unwrap().close().await;
        assert_eq!(
            copies_in(&folder),
            [""; 0],
            "nothing to migrate, nothing to copy"
        );

        let upgraded = open(&folder, &future(&[NOTE])).await.unwrap();
        assert_eq!(
            accounts::count(&mut upgraded.read().await.unwrap())
                .await
                .unwrap(),
            1
        );
        upgraded.close().await;
        let copies = copies_in(&folder);
        assert_eq!(copies.len(), 1, "{copies:?}");
        assert!(
            copies[0].starts_with("before-9001-") && copies[0].ends_with("Z.db"),
            "{copies:?}"
        );
        let copy = folder::copies(folder.path()).join(&copies[0]);
        let mut connection = store::read_only(&copy).connect().await.unwrap();
        let known = known_version(&MIGRATIONS);
        assert_eq!(
            applied_version(&mut connection).await.unwrap(),
            known,
            "of the old version"
        );
        let accounts: i64 = query_scalar("SELECT count(*) FROM accounts")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert_eq!(accounts, 1);
        connection.close().await.unwrap();
    }

    #[tokio::test]
    async fn a_newer_database_is_rejected_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        open(&folder, &future(&[NOTE])).await.unwrap().close().await;
        let before = fs::read(folder::database(folder.path())).unwrap();
        let error = open(&folder, &MIGRATIONS).await.err().expect("newer");
        assert!(
            matches!(error, Error::Newer { found: 9_001, .. }),
            "{error:?}"
        );
        let message = error.to_string();
        assert!(
            message.contains("newer version") && message.contains("backups"),
            "{message}"
        );
        assert_eq!(fs::read(folder::database(folder.path())).unwrap(), before);
        open(&folder, &future(&[NOTE])).await.unwrap();
    }

    /// Users and sessions from before roles keep what they have; the oldest user is the operator.
    #[tokio::test]
    async fn users_and_sessions_survive_the_change_of_their_tables() {
        const FIRST_WITH_VIEWERS: i64 = 25;
        // Every start fills the keys by which names are sorted and names its node, so that their columns have to be there.
        const FILLED_AT_START: [i64; 3] = [31, 33, 40];
        let folder = tempfile::tempdir().unwrap();
        let earlier = MIGRATIONS.iter().cloned();
        let earlier = earlier.filter(|migration| {
            migration.version < FIRST_WITH_VIEWERS || FILLED_AT_START.contains(&migration.version)
        });
        let earlier = Migrator::with_migrations(earlier.collect());
        let store = open(&folder, &earlier).await.unwrap();
        let token = credentials::session_token();
        let hash = credentials::hash(token.expose());
        let filled = store.write(move |tx| {
            Box::pin(async move {
                let account = accounts::create(tx, "someone", 0).await?;
                for (name, role, at) in [("bo", "member", 2_i64), ("admin", "admin", 1)] {
                    let id = uuid::Uuid::from_u128(at as u128);
                    statement::query("INSERT INTO users VALUES ($1, $2, $3, $4, 'hash', $5, $5)")
                        .bind(id)
                        .bind(account.id)
                        .bind(name)
                        .bind(role)
                        .bind(at)
                        .execute(tx)
                        .await?;
                    statement::query("INSERT INTO sessions VALUES ($1, $2, 'csrf', 7, 1000)")
                        .bind(format!("{hash}{}", &name[..name.len() - 2]))
                        .bind(id)
                        .execute(tx)
                        .await?;
                }
                Ok(account.id)
            })
        });
        let account_id = filled.await.unwrap();
        store.close().await;

        let store = open(&folder, &MIGRATIONS).await.unwrap();
        let mut reader = store.read().await.unwrap();
        let users = users::list(&mut reader).await.unwrap();
        let users: Vec<_> = users
            .iter()
            .map(|user| (user.username.as_str(), user.role, user.is_operator))
            .collect();
        assert_eq!(
            users,
            [("admin", Role::Admin, true), ("bo", Role::Member, false)]
        );
        let found = sessions::authenticate(&mut reader, token.expose(), 999).await;
        let (session, user) = found.unwrap().expect("bo is still signed in");
        assert_eq!(user.username, "bo");
        assert_eq!((session.created_at, session.last_used_at), (7, 7));
        drop(reader);
        // References lead to the new tables.
        let deleted = store.write(move |tx| {
            Box::pin(async move {
                statement::query("DELETE FROM accounts WHERE id = $1")
                    .bind(account_id)
                    .execute(tx)
                    .await?;
                let left = "SELECT (SELECT count(*) FROM users) + (SELECT count(*) FROM sessions)";
                let left: i64 = statement::query_scalar(left).fetch_one(tx).await?;
                Ok(left)
            })
        });
        assert_eq!(deleted.await.unwrap(), 0);
    }

    /// Files and folders from before their lists were filtered in indexes have types, tags and keys after the start.
    #[tokio::test]
    async fn earlier_files_and_folders_are_in_the_indexes_of_lists() {
        const LIST_FILTERS: i64 = 33;
        const MIME_TYPES: [&str; 14] = [
            "image/svg+xml",
            "IMAGE/PNG",
            "video/mp4",
            "audio/x-ms-wma",
            "text/vtt",
            "Application/PDF",
            "application/json",
            "application/x-subrip",
            "application/vnd.ms-excel",
            "application/vnd.oasis.opendocument.text",
            "application/zip",
            "application/x-7z-compressed",
            "application/octet-stream",
            "application/vnd.apple.mpegurl",
        ];
        let folder = tempfile::tempdir().unwrap();
        let mut connection = before(&folder, LIST_FILTERS).await;
        let script = "INSERT INTO accounts (id, name, created_at, updated_at) VALUES (zeroblob(16), 'a', 0, 0);
            INSERT INTO blobs (hash, size_bytes, crc32, created_at) VALUES (zeroblob(32), 1, 0, 0);
            INSERT INTO folders (id, account_id, name, search_name, created_at, updated_at)
            VALUES (zeroblob(16), zeroblob(16), 'Ä2', 'ä2', 0, 0)";
        raw_sql(script).execute(&mut connection).await.unwrap();
        for (number, mime_type) in MIME_TYPES.iter().enumerate() {
            let file = "INSERT INTO files (id, account_id, folder_id, filename, search_name, mime_type, size_bytes, blob_hash,
                     role, tags, created_at, updated_at)
                 VALUES (randomblob(16), zeroblob(16), zeroblob(16), 'IMG' || $1, 'img' || $1, $2, 1, zeroblob(32), 'uploaded',
                     iif($1 = 10, '[\"sea\",\"ü\",\"sea\"]', '[]'), $1, 0)";
            query(file)
                .bind(number as i64)
                .bind(*mime_type)
                .execute(&mut connection)
                .await
                .unwrap();
        }
        connection.close().await.unwrap();

        let store = open(&folder, &MIGRATIONS).await.unwrap();
        let mut reader = store.read().await.unwrap();
        let files: Vec<(String, String)> =
            statement::query_as("SELECT file_type, name_key FROM files ORDER BY created_at")
                .fetch_all(&mut reader)
                .await
                .unwrap();
        let expected = MIME_TYPES.iter().enumerate().map(|(number, mime_type)| {
            let file_type = FileType::of(mime_type).as_str().to_owned();
            (file_type, name_key(&format!("IMG{number}")))
        });
        assert_eq!(files, expected.collect::<Vec<_>>());
        let tags: Vec<(String, String, String)> =
            statement::query_as("SELECT tag, file_type, name_key FROM file_tags")
                .fetch_all(&mut reader)
                .await
                .unwrap();
        let tagged = |tag: &str| (tag.to_owned(), "archive".to_owned(), "img210".to_owned());
        assert_eq!(tags, [tagged("sea"), tagged("ü")]);
        let folder: String = statement::query_scalar("SELECT search_name || name_key FROM folders")
            .fetch_one(&mut reader)
            .await
            .unwrap();
        assert_eq!(folder, "ä2ä12");
    }

    /// A publisher that was connected before its table was made again has its end after it.
    #[tokio::test]
    async fn connections_survive_the_change_of_their_key() {
        const OWN_ROWS: i64 = 43;
        let folder = tempfile::tempdir().unwrap();
        let mut connection = before(&folder, OWN_ROWS).await;
        let script = "INSERT INTO accounts (id, name, created_at, updated_at) VALUES (zeroblob(16), 'a', 0, 0);
            INSERT INTO live_connections VALUES (zeroblob(16), zeroblob(16), zeroblob(16), 'b1', '{}')";
        raw_sql(script).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();

        let store = open(&folder, &MIGRATIONS).await.unwrap();
        let id = uuid::Uuid::nil();
        let taken = store.write(move |tx| Box::pin(live_connections::take_this(tx, id, id)));
        let taken = taken.await.unwrap().expect("its row is there");
        assert_eq!(taken.broadcast_id, "b1");
        assert_eq!(taken.account_id, id);
    }

    #[tokio::test]
    async fn the_last_three_copies_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let statements: Vec<_> = (9_001..9_006)
            .map(|version| (version, "SELECT 1"))
            .collect();
        for known in 0..=statements.len() {
            open(&folder, &future(&statements[..known]))
                .await
                .unwrap()
                .close()
                .await;
            fs::create_dir_all(folder::copies(folder.path())).unwrap();
            fs::write(
                folder::copies(folder.path()).join("before-restore-x.db"),
                "",
            )
            .unwrap();
        }
        let numbers: Vec<_> = copies_in(&folder)
            .iter()
            .map(|name| name[..11].to_owned())
            .collect();
        assert_eq!(
            numbers,
            ["before-9003", "before-9004", "before-9005", "before-rest"]
        );
    }

    #[tokio::test]
    async fn a_failing_migration_stops_the_start_and_changes_nothing() {
        let cases = [
            ("wrong SQL", "ALTER TABLE missing ADD COLUMN note TEXT"),
            (
                "half done",
                "ALTER TABLE accounts ADD COLUMN note TEXT; INSERT INTO missing VALUES (1)",
            ),
        ];
        for (what, statement) in cases {
            let folder = tempfile::tempdir().unwrap();
            let store = open(&folder, &MIGRATIONS).await.unwrap();
            add_account(&store).await;
            store.close().await;
            let failed = open(&folder, &future(&[(9_001, statement)])).await.err();
            assert!(
                matches!(failed, Some(Error::Migration(_))),
                "{what}: {failed:?}"
            );
            let store = open(&folder, &MIGRATIONS).await.expect(what);
            assert_eq!(
                accounts::count(&mut store.read().await.unwrap())
                    .await
                    .unwrap(),
                1,
                "{what}"
            );
            store.close().await;
            open(&folder, &future(&[NOTE]))
                .await
                .expect("the column is not there yet")
                .close()
                .await;
        }
    }
}
