-- What events about jobs and live inputs need to know (actors/src/events).

-- The first file's name at the time of the request, which an opened archive has no row for.
ALTER TABLE jobs ADD COLUMN filename TEXT NOT NULL DEFAULT '';
UPDATE jobs SET filename = coalesce(
    (SELECT original_name FROM job_files WHERE job_id = jobs.id ORDER BY position LIMIT 1), '');

-- Publishers whose connection was told and whose end was not: at most one for each live input. The input itself may be
-- gone by then.
CREATE TABLE live_connections (
    input_id BLOB PRIMARY KEY CHECK (length(input_id) = 16),
    id BLOB NOT NULL CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    broadcast_id TEXT NOT NULL,
    -- The payload that was told, as JSON.
    told TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX live_connections_by_account ON live_connections (account_id);
