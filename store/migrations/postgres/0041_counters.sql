-- Counts that the nodes of a cluster have together until a time: requests of a minute, failed attempts.
CREATE TABLE counters (
    kind TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    used BIGINT NOT NULL CHECK (used >= 0),
    ends_at BIGINT NOT NULL,
    PRIMARY KEY (kind, name)
);
CREATE INDEX counters_by_end ON counters (ends_at);
