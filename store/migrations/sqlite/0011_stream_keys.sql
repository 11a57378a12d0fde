-- Idempotency keys stand for a job or for a video stream; both share an account's keys.
CREATE TABLE keys_of_both (
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    -- SHA-256 of the request's parameters and files.
    fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 32),
    job_id BLOB REFERENCES jobs (id) ON DELETE CASCADE,
    stream_id BLOB REFERENCES video_streams (id) ON DELETE CASCADE,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, key),
    CHECK ((job_id IS NULL) <> (stream_id IS NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO keys_of_both (account_id, key, fingerprint, job_id, expires_at)
    SELECT account_id, key, fingerprint, job_id, expires_at FROM idempotency_keys;
DROP TABLE idempotency_keys;
ALTER TABLE keys_of_both RENAME TO idempotency_keys;
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);
CREATE INDEX idempotency_keys_by_job ON idempotency_keys (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX idempotency_keys_by_stream ON idempotency_keys (stream_id) WHERE stream_id IS NOT NULL;
