//! Query plans of the statements that run with every step and every end: they use indexes, however many rows exist.

use super::*;
use crate::statement::query_as;
use crate::workflows::{
    admission::{ADMIT, WAITING},
    ending::UNFINISHED,
    run_statistics::{BY_NODE, RECENT_RUNS},
};

#[tokio::test]
async fn no_statement_looks_through_a_table() {
    let bench = Bench::on_sqlite().await;
    let statements = [
        ADMIT,
        WAITING,
        UNFINISHED,
        BY_NODE,
        RECENT_RUNS,
        "SELECT count(*) FROM workflow_runs r WHERE r.workflow_id = $1 AND r.is_admitted = 1",
        "SELECT 1 FROM workflow_runs WHERE account_id = $1 AND status = 'queued' AND is_admitted = 0 LIMIT $2",
        "SELECT id FROM workflow_runs WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2",
        "SELECT id FROM workflow_runs WHERE completed_at < $1 LIMIT 1",
        "SELECT id FROM workflows WHERE trigger_folder_id = $1 AND account_id = $2 AND is_active = 1
             AND deleted_at IS NULL ORDER BY created_at, id",
        "SELECT * FROM workflow_runs WHERE workflow_id = $1 AND account_id = $2 ORDER BY created_at DESC, id DESC LIMIT $3",
        "SELECT id FROM workflow_runs WHERE workflow_id = $1 LIMIT 1",
        "SELECT url, id FROM webhook_endpoints WHERE workflow_id = $1 AND deleted_at IS NULL",
    ];
    let mut reader = bench.world.read().await;
    let listing = run_list::tests::statements();
    let statements = statements.iter().map(|text| (*text).to_owned());
    for statement in statements.chain(listing) {
        let explained = format!("EXPLAIN QUERY PLAN {statement}");
        let plan: Vec<(i64, i64, i64, String)> =
            query_as(explained).fetch_all(&mut reader).await.unwrap();
        for (_, _, _, detail) in plan {
            let is_scan = detail.starts_with("SCAN") && detail != "SCAN waiting";
            // What a part of the statement gives; how it finds that is a line of its own.
            let is_part = detail.starts_with("SCAN (subquery")
                || matches!(detail.as_str(), "SCAN queued" | "SCAN recent");
            // A list of the statement's own, of a bounded length.
            let is_list = detail == "SCAN n" || detail.starts_with("SCAN j VIRTUAL TABLE");
            let is_allowed = !is_scan || is_part || is_list || detail.contains("CONSTANT ROW");
            assert!(is_allowed, "{statement}: {detail}");
        }
    }
}
