-- Media operations by the day (since 1970, UTC) on which they were asked for, and by kind: a tool, `workflow` or `stream`.
CREATE TABLE operation_days (
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    day INTEGER NOT NULL,
    kind TEXT NOT NULL,
    operations INTEGER NOT NULL CHECK (operations >= 0),
    PRIMARY KEY (account_id, day, kind)
) STRICT, WITHOUT ROWID;

-- Deliveries of a day by key. Keys stay as rows when they are revoked.
CREATE TABLE delivery_key_days (
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    day INTEGER NOT NULL,
    key_id BLOB NOT NULL,
    hits INTEGER NOT NULL,
    misses INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (account_id, day, key_id)
) STRICT, WITHOUT ROWID;
