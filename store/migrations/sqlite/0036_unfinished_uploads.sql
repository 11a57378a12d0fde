-- The list of unfinished uploads (store/src/file/unfinished_uploads.rs), newest first.
CREATE INDEX uploads_unfinished ON uploads (account_id, created_at, id) WHERE state <> 'completed';
CREATE INDEX tus_uploads_by_time ON tus_uploads (account_id, created_at, id) WHERE completed_at IS NULL;
