CREATE TABLE delivery_keys (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    -- Stands in addresses in place of the key; given up when the key is revoked.
    delivery_alias TEXT UNIQUE,
    presets_only INTEGER NOT NULL DEFAULT 0 CHECK (presets_only IN (0, 1)),
    key_hash TEXT NOT NULL UNIQUE,
    key_prefix TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
) STRICT;
CREATE INDEX delivery_keys_by_account ON delivery_keys (account_id, created_at, id);

CREATE TABLE cdn_presets (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    -- A canonical query string.
    params TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (account_id, name)
) STRICT;

-- Deliveries taken from a month's cap: delivered, or in a block that the service holds in memory.
CREATE TABLE delivery_months (
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    -- 202611 for November 2026 (UTC).
    month INTEGER NOT NULL,
    taken INTEGER NOT NULL CHECK (taken >= 0),
    PRIMARY KEY (account_id, month)
) STRICT, WITHOUT ROWID;

CREATE TABLE delivery_days (
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    -- Days since 1970 (UTC).
    day INTEGER NOT NULL,
    hits INTEGER NOT NULL,
    misses INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (account_id, day)
) STRICT, WITHOUT ROWID;

-- The lineage of rendered variants that are kept: which file, and the canonical request that made each.
CREATE TABLE variants (
    file_id BLOB NOT NULL REFERENCES files (id) ON DELETE CASCADE,
    -- What the cache calls it: a hash of the request.
    name BLOB NOT NULL CHECK (length(name) = 16),
    request TEXT NOT NULL,
    content_type TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    rendered_at INTEGER NOT NULL,
    PRIMARY KEY (file_id, name)
) STRICT, WITHOUT ROWID;
