-- Unfinished durable work of any kind, and who holds it; the one leasing mechanism (store/src/work.rs).
CREATE TABLE work (
    kind TEXT NOT NULL,
    id BLOB NOT NULL CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    lane INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    -- Claims without an end or progress.
    claims INTEGER NOT NULL DEFAULT 0,
    -- Times it was given back, for the pause before the next try.
    retries INTEGER NOT NULL DEFAULT 0,
    -- Rises with every claim; writes of an older owner are refused by it.
    fence INTEGER NOT NULL DEFAULT 0,
    lease_owner BLOB,
    lease_expires_at INTEGER,
    PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX work_by_turn ON work (kind, lane, due_at);
CREATE INDEX work_by_owner ON work (lease_owner);
CREATE INDEX work_by_account ON work (account_id);

-- Files processed, by account and calendar month in UTC (year × 100 + month).
CREATE TABLE operation_months (
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    month INTEGER NOT NULL,
    operations INTEGER NOT NULL CHECK (operations >= 0),
    PRIMARY KEY (account_id, month)
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    job_type TEXT NOT NULL CHECK (job_type IN ('convert', 'compress', 'tool')),
    -- The row of the operation table.
    tool TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'processing', 'completed', 'failed', 'cancelled')),
    lane INTEGER NOT NULL,
    -- Results become files, in that folder.
    saves INTEGER NOT NULL CHECK (saves IN (0, 1)),
    folder_id BLOB REFERENCES folders (id) ON DELETE SET NULL,
    -- Results are packed into one archive.
    archives INTEGER NOT NULL CHECK (archives IN (0, 1)),
    -- What the plan allowed when the job was made.
    allowance TEXT NOT NULL,
    -- The month that was charged.
    month INTEGER NOT NULL,
    total_files INTEGER NOT NULL,
    completed_files INTEGER NOT NULL DEFAULT 0,
    failed_files INTEGER NOT NULL DEFAULT 0,
    archive_blob BLOB REFERENCES blobs (hash),
    archive_size INTEGER,
    error TEXT,
    error_code TEXT,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    completed_at INTEGER,
    -- Until then results can be downloaded; null until the job ends, and once they are gone.
    expires_at INTEGER
) STRICT;
CREATE INDEX jobs_by_account ON jobs (account_id, created_at, id);
CREATE INDEX jobs_by_state ON jobs (state);
CREATE INDEX jobs_by_account_and_state ON jobs (account_id, state, created_at, id);
CREATE INDEX jobs_by_expiry ON jobs (expires_at);
CREATE INDEX jobs_by_end ON jobs (completed_at);
CREATE INDEX jobs_by_archive ON jobs (archive_blob) WHERE archive_blob IS NOT NULL;
CREATE INDEX jobs_by_folder ON jobs (folder_id) WHERE folder_id IS NOT NULL;

-- One operation and its one result.
CREATE TABLE job_files (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    job_id BLOB NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    operation TEXT NOT NULL,
    -- What was charged for it.
    operations INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'completed', 'failed', 'cancelled')),
    original_name TEXT NOT NULL,
    original_size INTEGER NOT NULL,
    -- The stored file it was made from.
    source_file_id BLOB REFERENCES files (id) ON DELETE SET NULL,
    result_blob BLOB REFERENCES blobs (hash),
    result_name TEXT,
    result_size INTEGER,
    mime_type TEXT,
    width INTEGER,
    height INTEGER,
    applied_quality INTEGER,
    -- What an inspection found.
    facts TEXT,
    stored_file_id BLOB REFERENCES files (id) ON DELETE SET NULL,
    error TEXT,
    error_code TEXT,
    UNIQUE (job_id, position)
) STRICT;
CREATE INDEX job_files_by_result ON job_files (result_blob) WHERE result_blob IS NOT NULL;
CREATE INDEX job_files_by_source ON job_files (source_file_id) WHERE source_file_id IS NOT NULL;
CREATE INDEX job_files_by_stored ON job_files (stored_file_id) WHERE stored_file_id IS NOT NULL;

-- What an operation reads; gone once the job has ended.
CREATE TABLE job_inputs (
    job_file_id BLOB NOT NULL REFERENCES job_files (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    blob BLOB NOT NULL REFERENCES blobs (hash),
    filename TEXT NOT NULL,
    size INTEGER NOT NULL,
    -- The member of that number of the archive in `blob`.
    member INTEGER,
    PRIMARY KEY (job_file_id, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_inputs_by_blob ON job_inputs (blob);

CREATE TABLE idempotency_keys (
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    -- SHA-256 of the request's parameters and files.
    fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 32),
    job_id BLOB NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);
CREATE INDEX idempotency_keys_by_job ON idempotency_keys (job_id);
