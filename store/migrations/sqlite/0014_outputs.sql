-- Where live inputs go on to (store/src/outputs.rs).
CREATE TABLE live_outputs (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    input_id BLOB NOT NULL REFERENCES live_inputs (id) ON DELETE CASCADE,
    -- With the target's stream key.
    url TEXT NOT NULL,
    enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX live_outputs_by_input ON live_outputs (input_id, created_at, id);
