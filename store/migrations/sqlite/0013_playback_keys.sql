-- Keys with which an account mints playback tokens itself. The secrets are derived from the installation's key.
CREATE TABLE playback_keys (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX playback_keys_by_account ON playback_keys (account_id, created_at, id);
