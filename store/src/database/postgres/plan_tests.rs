//! Rows that hot statements read in tables of 100 000 rows on PostgreSQL, which chooses its plans by itself: none reads a whole
//! table. Where the rows are on SQLite, the test ends at once.

use std::time::Duration;

use uuid::Uuid;

use super::follow::DELETE_OLD;
use crate::{
    Direction, Error, Page, Store, StoreSettings, Tx, accounts, blobs, events,
    file_filter::{Filter, Place},
    file_list::{self, Order, Slice},
    folder_list::{self, FolderOrder, FolderQuery},
    folder_totals, folders, jobs, shares,
    statement::{query, query_scalar},
    webhooks::{self, ClaimRequest, DeliveryFilter, DeliveryStatus, What},
    work::{self, Room},
    write_tx,
};

const ROWS: i64 = 100_000;
/// A unit of work has a bound in time.
const PER_UNIT: i64 = 20_000;
/// Runs of a statement, behind which its plan no longer depends on its values.
const RUNS: usize = 8;
/// Rows that one run of a verb may read.
const MOST_READ: i64 = 1_500;
const NOW: i64 = 1_795_000_000_000;
const LEASE: Duration = Duration::from_secs(30);

/// Rows by their numbers, from `$1` up to `$2`, of the account `$3`; a few are another account's, `$4`. Triggers, which take most
/// of the time, are off.
const FILL: [&str; 7] = [
    "INSERT INTO blobs (hash, size_bytes, crc32, created_at)
     SELECT decode(md5(n::text) || md5('blob' || n), 'hex'), 1, 0, n FROM generate_series($1, $2) n
     WHERE $3 <> $4",
    "INSERT INTO folders (id, account_id, name, search_name, name_key, parent_id, created_at, updated_at)
     SELECT lpad(to_hex(n), 32, '0')::uuid, CASE WHEN n > 0 THEN $3 ELSE $4 END, 'f' || n, 'f' || n, 'f' || n,
         CASE WHEN n > 1 THEN lpad(to_hex((n - 2) / 20 + 1), 32, '0')::uuid END, n, 0
     FROM generate_series($1, $2) n WHERE n <= 20000",
    "INSERT INTO shares (id, account_id, folder_id, token_hash, allow_download, created_at)
     SELECT id, account_id, id, id::text, TRUE, 0 FROM folders WHERE created_at BETWEEN $1 AND $2 AND $3 <> $4",
    "INSERT INTO files (id, account_id, folder_id, filename, search_name, name_key, mime_type, size_bytes, blob_hash, role,
         created_at, updated_at)
     SELECT lpad(to_hex(n), 32, '0')::uuid, CASE WHEN n % 20 = 0 THEN $4 ELSE $3 END,
         CASE WHEN n > 5 AND n % 20 <> 0 THEN lpad(to_hex(1 + n % 20000), 32, '0')::uuid END, 'img' || n, 'img' || n, 'img' || n, 'image/jpeg', 1,
         decode(md5(n::text) || md5('blob' || n), 'hex'), 'uploaded', n, 0
     FROM generate_series($1, $2) n",
    "INSERT INTO events (seq, id, account_id, event_type, is_listed, deliveries, created_at, body)
     SELECT n, lpad(to_hex(n), 32, '0')::uuid, CASE WHEN n % 20 = 0 THEN $4 ELSE $3 END, 'a', TRUE, 1, n, '{}'
     FROM generate_series($1, $2) n",
    "INSERT INTO webhook_deliveries (id, account_id, endpoint_id, event_seq, event_type, status, due_at, created_at, ended_at)
     SELECT lpad(to_hex(n), 32, '0')::uuid, CASE WHEN n % 20 = 0 THEN $4 ELSE $3 END, lpad(to_hex(1 + n % 5), 32, '0')::uuid, n, 'a',
         CASE WHEN n % 500 = 1 THEN 'pending' WHEN n % 500 = 2 THEN 'failed' ELSE 'delivered' END, n, n,
         CASE WHEN n % 500 <> 1 THEN n END
     FROM generate_series($1, $2) n",
    "INSERT INTO jobs (id, account_id, job_type, tool, state, lane, saves, archives, allowance, month, total_files, created_at,
         completed_at, expires_at)
     SELECT lpad(to_hex(n), 32, '0')::uuid, CASE WHEN n % 20 = 0 THEN $4 ELSE $3 END, 'tool', 'a', 'completed', 1, FALSE, FALSE,
         '{}', 202611, 1, n, n, n
     FROM generate_series($1, $2) n",
];
/// All due at one time, as after a long stop.
const WORK: &str = "INSERT INTO work (kind, id, account_id, lane, due_at)
     SELECT 'job', lpad(to_hex(n), 32, '0')::uuid, CASE WHEN n % 20 = 0 THEN $4 ELSE $3 END, 1, 0 FROM generate_series($1, $2) n";
const CHANGES: &str = "INSERT INTO changes (account_id, kind, id, action)
     SELECT CASE WHEN n % 20 = 0 THEN $4 ELSE $3 END, 'file', lpad(to_hex(n), 32, '0')::uuid, 'changed'
     FROM generate_series($1, $2) n";
const ENDPOINTS: &str = "INSERT INTO webhook_endpoints (id, account_id, url, event_types, status, secret, created_at, updated_at)
     SELECT lpad(to_hex(n), 32, '0')::uuid, $1, 'http://a', '[]', 'active', '', 0, 0 FROM generate_series(1, 5) n";
const TOTALS: &str = "INSERT INTO folder_totals (account_id, folder_id, files, bytes)
     SELECT account_id, folder_id, count(*), count(*) FROM files WHERE folder_id IS NOT NULL GROUP BY account_id, folder_id";
const TRIGGERS_OFF: [&str; 6] = [
    "ALTER TABLE folders DISABLE TRIGGER USER",
    "ALTER TABLE shares DISABLE TRIGGER USER",
    "ALTER TABLE files DISABLE TRIGGER USER",
    "ALTER TABLE events DISABLE TRIGGER USER",
    "ALTER TABLE webhook_deliveries DISABLE TRIGGER USER",
    "ALTER TABLE jobs DISABLE TRIGGER USER",
];
const ANALYZE: &str = "ANALYZE blobs, folders, folder_totals, shares, files, events, webhook_endpoints, webhook_deliveries, jobs, work,
     changes";

/// Makes an account with most of the rows, and one with few.
async fn fill(store: &Store) -> Result<[Uuid; 2], Error> {
    let accounts = write_tx!(store, |tx| {
        for statement in TRIGGERS_OFF {
            query(statement).execute(tx).await?;
        }
        let large = accounts::create(tx, "large", NOW).await?.id;
        let small = accounts::create(tx, "small", NOW).await?.id;
        query(ENDPOINTS).bind(large).execute(tx).await?;
        Ok([large, small])
    })?;
    let [large, small] = accounts;
    for statement in FILL.into_iter().chain([WORK, CHANGES]) {
        for from in (1..=ROWS).step_by(PER_UNIT as usize) {
            write_tx!(store, |tx| {
                query(statement)
                    .bind(from)
                    .bind(from + PER_UNIT - 1)
                    .bind(large)
                    .bind(small)
                    .execute(tx)
                    .await?;
                Ok(())
            })?;
        }
    }
    write_tx!(store, |tx| {
        query(TOTALS).execute(tx).await?;
        query(ANALYZE).execute(tx).await?;
        Ok(())
    })?;
    Ok(accounts)
}

/// Returns how many rows of tables the connection has read, of which the server counts those of its transaction at once.
async fn rows_read(tx: &mut Tx<'_>) -> Result<i64, Error> {
    Ok(query_scalar(
        "SELECT coalesce(sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)), 0)::bigint
         FROM pg_stat_xact_user_tables WHERE schemaname = current_schema()",
    )
    .fetch_one(tx)
    .await?)
}

/// Checks that no run of a verb reads many rows.
macro_rules! reads_few {
    ($store:expr, $what:literal, |$tx:ident| $verb:expr) => {
        let most = write_tx!($store, |$tx| {
            let mut most = 0_i64;
            for _ in 0..RUNS {
                let before = rows_read($tx).await?;
                $verb?;
                most = most.max(rows_read($tx).await? - before);
            }
            Ok(most)
        });
        let most = most.unwrap();
        assert!(most < MOST_READ, "{} reads {most} rows", $what);
    };
}

#[tokio::test]
async fn hot_statements_read_no_whole_table() {
    let folder = tempfile::tempdir().unwrap();
    let settings = StoreSettings::without_reserve(folder.path());
    if !settings.is_on_postgres() {
        return;
    }
    let store = Store::open(&settings).await.unwrap();
    let [large, small] = fill(&store).await.unwrap();
    let owner = Uuid::from_u128(1);
    let leaf = Uuid::from_u128(20_000);

    reads_few!(store, "a look for work", |tx| {
        work::is_due(tx, "job", Room::for_any(8), NOW).await
    });
    reads_few!(store, "a claim of work", |tx| {
        work::claim_beside(tx, "job", owner, Room::for_any(8), None, LEASE, NOW).await
    });
    reads_few!(store, "a look for deliveries", |tx| {
        webhooks::lanes(tx, &[]).await
    });
    reads_few!(store, "a claim of deliveries", |tx| {
        let wanted = [1, 2].map(|endpoint| ClaimRequest {
            endpoint_id: Uuid::from_u128(endpoint),
            rows: 4,
            what: What::Due,
        });
        webhooks::claim(tx, owner, &wanted, LEASE, NOW + 1, NOW).await
    });
    reads_few!(store, "a list of deliveries", |tx| {
        webhooks::deliveries(tx, large, &DeliveryFilter::default(), Page::first(50)).await
    });
    reads_few!(store, "a list of failed deliveries", |tx| {
        let filter = DeliveryFilter {
            status: Some(DeliveryStatus::Failed),
            ..DeliveryFilter::default()
        };
        webhooks::deliveries(tx, large, &filter, Page::first(50)).await
    });
    reads_few!(store, "a feed from its start", |tx| {
        events::after(tx, small, 0, 100).await
    });
    reads_few!(store, "the end of a feed", |tx| {
        events::before(tx, large, None, 100).await
    });
    reads_few!(store, "a list of the files at the top", |tx| {
        let slice = Slice {
            order: Order::Name,
            direction: Direction::Ascending,
            limit: 50,
            after: None,
            skip: 0,
        };
        file_list::list(tx, large, &Filter::at(Place::In(None)), &slice).await
    });
    reads_few!(store, "a list of the files below a folder", |tx| {
        let slice = Slice::from(Page::first(50));
        file_list::list(tx, large, &Filter::at(Place::Below(leaf)), &slice).await
    });
    reads_few!(store, "a list of the folders at the top", |tx| {
        let wanted = FolderQuery {
            order: FolderOrder::Name,
            ..FolderQuery::newest(Some(None), Page::first(50))
        };
        folder_list::list(tx, large, &wanted).await
    });
    reads_few!(store, "the marks of folders", |tx| {
        folder_list::marks(tx, &[leaf], NOW).await
    });
    reads_few!(store, "the totals of a folder", |tx| {
        folder_totals::tree(tx, large, leaf, 1_000).await
    });
    reads_few!(store, "the totals of a share", |tx| {
        shares::totals(tx, leaf, 1_000).await
    });
    reads_few!(store, "a search for blobs without a name", |tx| {
        blobs::unmarked_after(tx, None).await
    });
    reads_few!(store, "a search for expired results", |tx| {
        jobs::expire_results(tx, 0, 100).await
    });
    reads_few!(store, "a search for old jobs", |tx| {
        jobs::delete_ended_before(tx, 0, 100).await
    });
    reads_few!(store, "a search for old changes", |tx| {
        query(DELETE_OLD).bind(3_600_000_i64).execute(tx).await
    });
    reads_few!(store, "a part of a folder's deletion", |tx| {
        folders::delete_turn(tx, large, Uuid::from_u128(1_000), 5).await
    });
    store.close().await;
}
