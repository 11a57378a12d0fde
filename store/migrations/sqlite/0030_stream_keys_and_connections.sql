-- The id that a stream key is derived from, another one at each rotation. NULL: the key was drawn at random by an earlier
-- version, which kept its hash only.
ALTER TABLE live_inputs ADD COLUMN stream_key_id BLOB CHECK (length(stream_key_id) = 16);

-- Publishers of a live input, now and before.
CREATE TABLE publisher_connections (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    input_id BLOB NOT NULL REFERENCES live_inputs (id) ON DELETE CASCADE,
    broadcast_id TEXT NOT NULL,
    protocol TEXT NOT NULL,
    remote_address TEXT NOT NULL,
    -- The name that the encoder gave itself.
    encoder TEXT,
    connected_at INTEGER NOT NULL,
    -- NULL: it is connected.
    disconnected_at INTEGER,
    reason TEXT
) STRICT;
CREATE INDEX publisher_connections_by_input ON publisher_connections (input_id, connected_at, id);
CREATE INDEX publisher_connections_by_end ON publisher_connections (disconnected_at);
