-- Workflows, their versions and runs (store/src/workflows).

-- How many runs stand between the file and an upload; 0: it is an upload or a conversion.
ALTER TABLE files ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;

CREATE TABLE workflows (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    is_active INTEGER NOT NULL CHECK (is_active IN (0, 1)),
    -- The current one.
    version INTEGER NOT NULL,
    -- The short form that the definition was made from.
    template TEXT,
    output_format TEXT,
    -- JSON: a word or a number.
    compression_mode TEXT,
    -- Every file stored there by upload runs it.
    trigger_folder_id BLOB REFERENCES folders (id) ON DELETE SET NULL,
    -- Readable, since it signs.
    webhook_secret TEXT NOT NULL,
    -- Runs that were ever made, which numbers them.
    run_count INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    last_run_at INTEGER,
    -- Its rows are removed by the sweep.
    deleted_at INTEGER
) STRICT;
CREATE INDEX workflows_by_account ON workflows (account_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX workflows_by_trigger ON workflows (trigger_folder_id) WHERE trigger_folder_id IS NOT NULL;
CREATE INDEX workflows_deleted ON workflows (deleted_at) WHERE deleted_at IS NOT NULL;

-- What was saved, as it was sent; never changed.
CREATE TABLE workflow_versions (
    workflow_id BLOB NOT NULL REFERENCES workflows (id) ON DELETE CASCADE,
    version INTEGER NOT NULL,
    -- JSON.
    definition TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (workflow_id, version)
) STRICT;

CREATE TABLE workflow_runs (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    workflow_id BLOB NOT NULL REFERENCES workflows (id) ON DELETE CASCADE,
    -- As it was when the run was made.
    workflow_name TEXT NOT NULL,
    workflow_version INTEGER NOT NULL,
    -- Of the workflow's runs, from 1.
    number INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('queued', 'processing', 'completed', 'failed', 'cancelled')),
    gate INTEGER CHECK (gate IN (0, 1)),
    "trigger" TEXT NOT NULL CHECK ("trigger" IN ('api', 'file', 'folder', 'mcp')),
    lane INTEGER NOT NULL,
    -- Has a row in `work`; a queued run without one waits for another of its workflow to end.
    is_admitted INTEGER NOT NULL CHECK (is_admitted IN (0, 1)),
    -- Times it was queued again: the leases of each time have fences above those before.
    retries INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL,
    upload_source TEXT NOT NULL,
    -- Null once it has expired.
    input_blob BLOB REFERENCES blobs (hash),
    input_filename TEXT NOT NULL,
    input_size INTEGER NOT NULL,
    input_mime TEXT NOT NULL,
    -- The stored file that it works on.
    source_file_id BLOB REFERENCES files (id) ON DELETE SET NULL,
    -- What the plan allowed when the run was made.
    allowance TEXT NOT NULL,
    -- The month that was charged.
    month INTEGER NOT NULL,
    -- The last buffer of a run that stored none.
    output_blob BLOB REFERENCES blobs (hash),
    output_name TEXT,
    output_mime TEXT,
    output_size INTEGER,
    width INTEGER,
    height INTEGER,
    error TEXT,
    error_node TEXT,
    error_code TEXT,
    created_at INTEGER NOT NULL,
    -- When it was queued last.
    queued_at INTEGER NOT NULL,
    started_at INTEGER,
    completed_at INTEGER,
    -- Until then its input and output are kept; null until the run ends, and once they are gone.
    expires_at INTEGER,
    FOREIGN KEY (workflow_id, workflow_version) REFERENCES workflow_versions (workflow_id, version),
    CHECK ((status IN ('queued', 'processing')) = (completed_at IS NULL)),
    CHECK (completed_at IS NOT NULL OR input_blob IS NOT NULL),
    CHECK (completed_at IS NULL OR is_admitted = 0)
) STRICT;
CREATE INDEX workflow_runs_by_workflow ON workflow_runs (workflow_id, created_at, id);
CREATE INDEX workflow_runs_by_version ON workflow_runs (workflow_id, workflow_version);
CREATE INDEX workflow_runs_by_account ON workflow_runs (account_id);
CREATE INDEX workflow_runs_admitted ON workflow_runs (workflow_id, status) WHERE is_admitted = 1;
CREATE INDEX workflow_runs_by_turn ON workflow_runs (workflow_id, lane, queued_at, id)
    WHERE status = 'queued' AND is_admitted = 0;
CREATE INDEX workflow_runs_waiting ON workflow_runs (account_id) WHERE status = 'queued' AND is_admitted = 0;
CREATE INDEX workflow_runs_by_input ON workflow_runs (input_blob) WHERE input_blob IS NOT NULL;
CREATE INDEX workflow_runs_by_output ON workflow_runs (output_blob) WHERE output_blob IS NOT NULL;
CREATE INDEX workflow_runs_by_source ON workflow_runs (source_file_id) WHERE source_file_id IS NOT NULL;
CREATE INDEX workflow_runs_by_expiry ON workflow_runs (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX workflow_runs_by_end ON workflow_runs (completed_at) WHERE completed_at IS NOT NULL;

-- What a run did at the nodes of its path, and which nodes it did not come to.
CREATE TABLE workflow_steps (
    run_id BLOB NOT NULL REFERENCES workflow_runs (id) ON DELETE CASCADE,
    -- On the path, from 0; what was skipped comes after it.
    position INTEGER NOT NULL,
    node_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('completed', 'skipped', 'failed')),
    branch INTEGER CHECK (branch IN (0, 1)),
    message TEXT NOT NULL,
    -- What an inspection found, as JSON.
    facts TEXT,
    started_at INTEGER,
    finished_at INTEGER,
    bytes_in INTEGER,
    bytes_out INTEGER,
    -- Where the buffer is that the step made: a file of the run's scratch folder, or a blob. It may be gone, or differ.
    output_place TEXT CHECK (output_place IN ('scratch', 'blob')),
    output_sha256 BLOB CHECK (length(output_sha256) = 32),
    output_length INTEGER,
    output_name TEXT,
    output_mime TEXT,
    output_width INTEGER,
    output_height INTEGER,
    stored_file_id BLOB REFERENCES files (id) ON DELETE SET NULL,
    PRIMARY KEY (run_id, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX workflow_steps_by_stored ON workflow_steps (stored_file_id) WHERE stored_file_id IS NOT NULL;

-- An address of a workflow's own: no row of /api/webhooks, and without subscriptions.
ALTER TABLE webhook_endpoints ADD COLUMN workflow_id BLOB REFERENCES workflows (id) ON DELETE SET NULL;
CREATE UNIQUE INDEX webhook_endpoints_by_workflow ON webhook_endpoints (workflow_id, url)
    WHERE workflow_id IS NOT NULL AND deleted_at IS NULL;
