-- The list of runs over all workflows (store/src/workflows/run_list.rs): each order of runs with what is filtered at its end, so
-- that rows are read only where they match. SQLite evaluates the duration of a run as the list does: -1 for one without.
DROP INDEX workflow_runs_by_account;
DROP INDEX workflow_runs_by_workflow;
CREATE INDEX workflow_runs_by_account ON workflow_runs (account_id, created_at, id, workflow_id, status, "trigger", input_filename);
CREATE INDEX workflow_runs_by_workflow ON workflow_runs (workflow_id, created_at, id, status, "trigger", input_filename);
CREATE INDEX workflow_runs_by_status ON workflow_runs (account_id, status, created_at, id);
CREATE INDEX workflow_runs_by_duration
    ON workflow_runs (account_id, coalesce(completed_at - started_at, -1), id, workflow_id, status, "trigger", input_filename);

-- The run of which this one is a repetition, whether that one is still kept or not.
ALTER TABLE workflow_runs ADD COLUMN rerun_of BLOB CHECK (length(rerun_of) = 16);

-- Why a step was skipped, and the branch or the failed step because of which; null for steps of earlier versions.
ALTER TABLE workflow_steps ADD COLUMN skip_reason TEXT
    CHECK (skip_reason IN ('gate', 'otherPath', 'failure', 'stopped', 'noPath'));
ALTER TABLE workflow_steps ADD COLUMN skipped_by TEXT;
