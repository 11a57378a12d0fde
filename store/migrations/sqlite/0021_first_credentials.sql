-- When the operator suspended the account; null while it is in force.
ALTER TABLE accounts ADD COLUMN suspended_at INTEGER;
CREATE INDEX accounts_suspended ON accounts (id) WHERE suspended_at IS NOT NULL;

-- What the first start made, until it has been shown: a start that finds this row replaces the secrets and shows the new ones.
CREATE TABLE first_credentials (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    user_id BLOB NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    api_key_id BLOB NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,
    live_input_id BLOB NOT NULL REFERENCES live_inputs (id) ON DELETE CASCADE,
    made_at INTEGER NOT NULL
) STRICT;
