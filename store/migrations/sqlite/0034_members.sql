-- When a user was last seen, exact to five minutes; unknown for users who did not come back since.
ALTER TABLE users ADD COLUMN last_seen_at INTEGER;
UPDATE users SET last_seen_at = (SELECT max(last_used_at) FROM sessions WHERE user_id = users.id);

-- One-time links with which a person becomes a user of an account (store/src/identity/invitations.rs).
CREATE TABLE invitations (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    role TEXT NOT NULL CHECK (role IN ('admin', 'member', 'viewer')),
    -- For whom it is, in the words of its maker.
    note TEXT,
    -- SHA-256, hexadecimal.
    code_hash TEXT NOT NULL UNIQUE,
    -- The user or API key that made it, as it was called then.
    created_by TEXT NOT NULL,
    -- The same user: without them, and once they are no admin, it is no longer valid. Null for an API key.
    created_by_user BLOB REFERENCES users (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    -- Set together, once.
    used_at INTEGER,
    used_by TEXT
) STRICT;
CREATE INDEX invitations_by_account ON invitations (account_id, created_at, id);
CREATE INDEX invitations_by_user ON invitations (created_by_user);
CREATE INDEX invitations_by_expiry ON invitations (expires_at);
