-- Times are milliseconds since 1970 UTC, ids are 16-byte UUIDs, secrets stand here only as hashes.

CREATE TABLE installation (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    key BLOB NOT NULL CHECK (length(key) = 32),
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE accounts (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    name TEXT NOT NULL,
    plan TEXT NOT NULL DEFAULT 'unlimited',
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE users (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    username TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL CHECK (role IN ('admin', 'member')),
    password_hash TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX users_by_account ON users (account_id);

CREATE TABLE sessions (
    token_hash TEXT PRIMARY KEY,
    user_id BLOB NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    csrf_hash TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

CREATE TABLE api_keys (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    scope TEXT NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    key_hash TEXT NOT NULL UNIQUE,
    key_prefix TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
) STRICT;
CREATE INDEX api_keys_by_account ON api_keys (account_id, created_at, id);

CREATE TABLE live_inputs (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    input_slug TEXT NOT NULL UNIQUE,
    playback_id TEXT NOT NULL UNIQUE,
    enabled INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
    reconnect_window_s INTEGER NOT NULL CHECK (reconnect_window_s BETWEEN 0 AND 1800),
    require_signed_playback INTEGER NOT NULL DEFAULT 0 CHECK (require_signed_playback IN (0, 1)),
    allowed_domains TEXT NOT NULL DEFAULT '[]',
    record_mode TEXT NOT NULL CHECK (record_mode IN ('off', 'automatic')),
    latency TEXT NOT NULL CHECK (latency IN ('standard', 'low')),
    pull_url TEXT,
    stream_key_hash TEXT NOT NULL,
    stream_key_prefix TEXT NOT NULL,
    last_target_duration_s INTEGER,
    last_started_at INTEGER,
    last_ended_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- Rises whenever an owner takes the input over; writes of an older owner are refused by it.
    fence INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX live_inputs_by_account ON live_inputs (account_id, created_at, id);
CREATE INDEX live_inputs_by_stream_key ON live_inputs (stream_key_hash);

CREATE TABLE broadcasts (
    id TEXT PRIMARY KEY,
    input_id BLOB NOT NULL REFERENCES live_inputs (id) ON DELETE CASCADE,
    state TEXT NOT NULL CHECK (state IN ('live', 'ended')),
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    fence INTEGER NOT NULL
) STRICT;
CREATE INDEX broadcasts_by_input ON broadcasts (input_id, started_at);
CREATE INDEX broadcasts_by_end ON broadcasts (ended_at);

CREATE TABLE live_segments (
    broadcast_id TEXT NOT NULL REFERENCES broadcasts (id) ON DELETE CASCADE,
    msn INTEGER NOT NULL,
    start_90k INTEGER NOT NULL,
    duration_90k INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    PRIMARY KEY (broadcast_id, msn)
) STRICT, WITHOUT ROWID;
