-- Uploads by tus (store/src/tus.rs): made, filled by any number of requests, a file with the last byte.
CREATE TABLE tus_uploads (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    folder_id BLOB REFERENCES folders (id) ON DELETE SET NULL,
    filename TEXT NOT NULL,
    -- Upload-Metadata, as the client wrote it.
    metadata TEXT NOT NULL,
    -- NULL: to be declared by a later request.
    length_bytes INTEGER,
    -- So many bytes are on the disk. It reaches the length in the transaction that makes the file, never before.
    offset_bytes INTEGER NOT NULL DEFAULT 0,
    -- Checksums of these bytes: CRC-32, and SHA-256 in the midst of its work.
    crc32 INTEGER NOT NULL DEFAULT 0,
    sha256_state BLOB NOT NULL DEFAULT x'',
    -- Rises with every request that brings bytes; an older one is refused by it.
    attempt INTEGER NOT NULL DEFAULT 0,
    completed_at INTEGER,
    -- NULL: not completed, or the file was deleted since.
    file_id BLOB REFERENCES files (id) ON DELETE SET NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX tus_uploads_unfinished ON tus_uploads (account_id, expires_at, offset_bytes) WHERE completed_at IS NULL;
CREATE INDEX tus_uploads_by_account ON tus_uploads (account_id);
CREATE INDEX tus_uploads_by_folder ON tus_uploads (folder_id);
CREATE INDEX tus_uploads_by_file ON tus_uploads (file_id);
CREATE INDEX tus_uploads_by_expiry ON tus_uploads (expires_at);
