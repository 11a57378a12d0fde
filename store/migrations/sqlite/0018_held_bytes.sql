-- What uploads hold of an account's storage before they are files (store/src/storage.rs).

-- Never less than the offset: what a request that is under way may still bring counts before it comes.
ALTER TABLE tus_uploads ADD COLUMN held_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE tus_uploads SET held_bytes = offset_bytes;
DROP INDEX tus_uploads_unfinished;
CREATE INDEX tus_uploads_unfinished ON tus_uploads (account_id, expires_at, held_bytes, id) WHERE completed_at IS NULL;

-- Direct uploads whose bytes are there.
CREATE INDEX uploads_received ON uploads (account_id, expires_at, size_bytes, id) WHERE state = 'received';
