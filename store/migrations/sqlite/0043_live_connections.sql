-- Each connection has a row of its own: two encoders of one input that reach two nodes, before each knows of the other, are two.
CREATE TABLE live_connections_anew (
    -- The input itself may be gone by then.
    input_id BLOB NOT NULL CHECK (length(input_id) = 16),
    id BLOB NOT NULL CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    broadcast_id TEXT NOT NULL,
    -- The payload of the connection event, as JSON.
    told TEXT NOT NULL,
    PRIMARY KEY (input_id, id)
) STRICT, WITHOUT ROWID;
INSERT INTO live_connections_anew (input_id, id, account_id, broadcast_id, told)
    SELECT input_id, id, account_id, broadcast_id, told FROM live_connections;
DROP TABLE live_connections;
ALTER TABLE live_connections_anew RENAME TO live_connections;
CREATE INDEX live_connections_by_account ON live_connections (account_id);
