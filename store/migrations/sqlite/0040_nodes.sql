-- Processes that share this database (store/src/cluster); on SQLite there is one, and the table stays empty.
CREATE TABLE nodes (
    -- Made at each start.
    id BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    -- Where other nodes reach it, http://HOST:PORT.
    address TEXT NOT NULL,
    -- JSON, a list of texts.
    roles TEXT NOT NULL,
    version TEXT NOT NULL,
    -- The last migration that its program knows.
    "schema" INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('starting', 'up', 'draining', 'dead')),
    started_at INTEGER NOT NULL,
    renewed_at INTEGER NOT NULL,
    -- It counts as live until then. Equal to `renewed_at`: it has left by itself.
    lease_until INTEGER NOT NULL,
    clock_offset_ms INTEGER NOT NULL
) STRICT;

-- The oldest program that may run on these tables, by the last migration that it knows.
CREATE TABLE schema_floor (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    floor INTEGER NOT NULL
) STRICT;

-- The process on which a broadcast is on air, which also has its publisher's connection and its recording.
ALTER TABLE broadcasts ADD COLUMN node_id BLOB;
CREATE INDEX broadcasts_live ON broadcasts (node_id) WHERE state = 'live';

-- The process that serves or served the last request with bytes.
ALTER TABLE tus_uploads ADD COLUMN node_id BLOB;

-- The process that shows them.
ALTER TABLE first_credentials ADD COLUMN node_id BLOB;
