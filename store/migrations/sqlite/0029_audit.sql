-- Changes that a user or an API key made and that its account may have to account for (store/src/identity/audit.rs).
CREATE TABLE audit (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    -- `user` or `key`.
    actor_kind TEXT NOT NULL,
    -- May be deleted.
    actor_id BLOB NOT NULL CHECK (length(actor_id) = 16),
    -- As it was called then.
    actor_name TEXT NOT NULL,
    action TEXT NOT NULL,
    target_kind TEXT,
    target_id TEXT,
    target_name TEXT,
    -- Of the client: an IPv4 address, or an IPv6 /64.
    network TEXT,
    detail TEXT,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX audit_by_account ON audit (account_id, created_at, id);
CREATE INDEX audit_by_age ON audit (created_at);
