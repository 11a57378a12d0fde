-- Processes that share this database (store/src/cluster). Times are of the database's clock.
CREATE TABLE nodes (
    -- Made at each start.
    id UUID PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    -- Where other nodes reach it, http://HOST:PORT.
    address TEXT COLLATE "C" NOT NULL,
    -- JSON, a list of texts.
    roles TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    -- The last migration that its program knows.
    "schema" BIGINT NOT NULL,
    state TEXT COLLATE "C" NOT NULL CHECK (state IN ('starting', 'up', 'draining', 'dead')),
    started_at BIGINT NOT NULL,
    renewed_at BIGINT NOT NULL,
    -- It counts as live until then. Equal to `renewed_at`: it has left by itself.
    lease_until BIGINT NOT NULL,
    clock_offset_ms BIGINT NOT NULL
);

-- The oldest program that may run on these tables, by the last migration that it knows.
CREATE TABLE schema_floor (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    floor BIGINT NOT NULL
);

-- The process on which a broadcast is on air, which also has its publisher's connection and its recording.
ALTER TABLE broadcasts ADD COLUMN node_id UUID;
CREATE INDEX broadcasts_live ON broadcasts (node_id) WHERE state = 'live';

-- The process that serves or served the last request with bytes.
ALTER TABLE tus_uploads ADD COLUMN node_id UUID;

-- The process that shows them.
ALTER TABLE first_credentials ADD COLUMN node_id UUID;
