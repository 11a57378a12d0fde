-- What an inspection found in the bytes of a file, as the tool `inspect` answers it (store/src/file/file_facts.rs).
CREATE TABLE file_facts (
    file_id BLOB PRIMARY KEY REFERENCES files (id) ON DELETE CASCADE,
    -- JSON; NULL: the bytes cannot be read.
    facts TEXT,
    -- Whether an image can be made of it: a song without a cover has none.
    has_picture INTEGER NOT NULL CHECK (has_picture IN (0, 1))
) STRICT, WITHOUT ROWID;

-- Files and folders chosen to be downloaded as one archive (store/src/file/selections.rs).
CREATE TABLE archive_selections (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    -- The archive's name.
    name TEXT NOT NULL,
    -- Ids, 16 bytes each.
    files BLOB NOT NULL,
    folders BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX archive_selections_by_account ON archive_selections (account_id, created_at, id);
CREATE INDEX archive_selections_by_expiry ON archive_selections (expires_at);
