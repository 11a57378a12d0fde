-- Links by which whoever has one looks through a folder (store/src/shares.rs).
CREATE TABLE shares (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    -- One link for each folder; it goes with the folder.
    folder_id BLOB NOT NULL UNIQUE REFERENCES folders (id) ON DELETE CASCADE,
    -- SHA-256 of the token, which is derived from the id.
    token_hash TEXT NOT NULL UNIQUE,
    -- Argon2id.
    password_hash TEXT,
    -- NULL: no bound.
    download_limit INTEGER CHECK (download_limit > 0),
    allow_download INTEGER NOT NULL CHECK (allow_download IN (0, 1)),
    view_count INTEGER NOT NULL DEFAULT 0,
    download_count INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    -- NULL: never.
    expires_at INTEGER
) STRICT;
CREATE INDEX shares_by_account ON shares (account_id);
CREATE INDEX shares_by_expiry ON shares (expires_at) WHERE expires_at IS NOT NULL;

-- The sizes of a folder's files are summed from the index alone.
DROP INDEX files_of_folder;
CREATE INDEX files_of_folder ON files (folder_id, size_bytes);
