-- Results that last a while, and results of two files: a storyboard comes with its map.
ALTER TABLE job_files ADD COLUMN duration_ms INTEGER;
ALTER TABLE job_files ADD COLUMN attachment_blob BLOB REFERENCES blobs (hash);
ALTER TABLE job_files ADD COLUMN attachment_name TEXT;
ALTER TABLE job_files ADD COLUMN attachment_mime TEXT;
ALTER TABLE job_files ADD COLUMN attachment_size INTEGER;
-- What it was stored as.
ALTER TABLE job_files ADD COLUMN attachment_file_id BLOB REFERENCES files (id) ON DELETE SET NULL;
CREATE INDEX job_files_by_attachment ON job_files (attachment_blob) WHERE attachment_blob IS NOT NULL;
CREATE INDEX job_files_by_attachment_file ON job_files (attachment_file_id) WHERE attachment_file_id IS NOT NULL;
