-- Counts that the nodes of a cluster have together until a time: requests of a minute, failed attempts. Empty on SQLite.
CREATE TABLE counters (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    used INTEGER NOT NULL CHECK (used >= 0),
    ends_at INTEGER NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX counters_by_end ON counters (ends_at);
