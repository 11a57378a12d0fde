-- Bytes of users, and the files and folders that name them.

-- One row for each file under {data_dir}/blobs. A row that no other table names is marked, and deleted later.
CREATE TABLE blobs (
    hash BLOB PRIMARY KEY CHECK (length(hash) = 32),
    size_bytes INTEGER NOT NULL,
    crc32 INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    marked_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX blobs_by_mark ON blobs (marked_at) WHERE marked_at IS NOT NULL;

CREATE TABLE folders (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    color TEXT,
    -- NULL: at the top.
    parent_id BLOB REFERENCES folders (id),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX folders_by_account ON folders (account_id, created_at, id);
CREATE INDEX folders_by_parent ON folders (parent_id);
CREATE INDEX folders_by_place ON folders (account_id, parent_id, created_at, id);

CREATE TABLE files (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    -- NULL: at the top.
    folder_id BLOB REFERENCES folders (id),
    filename TEXT NOT NULL,
    -- The name in lower case, for searching: SQLite folds ASCII only.
    search_name TEXT NOT NULL,
    mime_type TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    blob_hash BLOB NOT NULL REFERENCES blobs (hash),
    role TEXT NOT NULL CHECK (role IN ('uploaded', 'converted', 'recording')),
    width INTEGER,
    height INTEGER,
    duration_ms INTEGER,
    focal_x REAL,
    focal_y REAL,
    description TEXT,
    tags TEXT NOT NULL DEFAULT '[]',
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX files_by_account ON files (account_id, created_at, id);
CREATE INDEX files_by_folder ON files (account_id, folder_id, created_at, id);
CREATE INDEX files_of_folder ON files (folder_id);
CREATE INDEX files_by_blob ON files (blob_hash);

-- Sums over an account's files, kept by every change of them.
CREATE TABLE storage_totals (
    account_id BLOB PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
    files INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Direct uploads: made, filled by a signed PUT, completed as a file.
CREATE TABLE uploads (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    folder_id BLOB REFERENCES folders (id) ON DELETE SET NULL,
    filename TEXT NOT NULL,
    content_type TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'received', 'completed')),
    -- Rises with every PUT; an older one's bytes are refused by it.
    attempt INTEGER NOT NULL DEFAULT 0,
    blob_hash BLOB REFERENCES blobs (hash),
    mime_type TEXT,
    file_id BLOB REFERENCES files (id) ON DELETE SET NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX uploads_by_account ON uploads (account_id);
CREATE INDEX uploads_by_folder ON uploads (folder_id);
CREATE INDEX uploads_by_blob ON uploads (blob_hash);
CREATE INDEX uploads_by_file ON uploads (file_id);
CREATE INDEX uploads_by_expiry ON uploads (expires_at);

-- What was made from which file, by which operation. A derived object of several sources has a row for each.
CREATE TABLE lineage (
    derived_kind TEXT NOT NULL CHECK (derived_kind IN ('file', 'conversion', 'variant', 'recording', 'rendition', 'run_output')),
    derived_id TEXT NOT NULL,
    -- NULL: never stored, or deleted since.
    source_file_id BLOB REFERENCES files (id) ON DELETE SET NULL,
    operation TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX lineage_by_derived ON lineage (derived_kind, derived_id);
CREATE INDEX lineage_by_source ON lineage (source_file_id);
