-- The role viewer, and who may see what concerns the whole installation. A CHECK cannot be changed, so that the table is made again.
CREATE TABLE users_with_viewers (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    username TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL CHECK (role IN ('admin', 'member', 'viewer')),
    is_operator INTEGER NOT NULL CHECK (is_operator IN (0, 1)),
    password_hash TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
INSERT INTO users_with_viewers
    SELECT id, account_id, username, role, id = (SELECT id FROM users ORDER BY created_at, id LIMIT 1),
        password_hash, created_at, updated_at
    FROM users;
DROP TABLE users;
ALTER TABLE users_with_viewers RENAME TO users;
CREATE INDEX users_by_account ON users (account_id);

-- Sessions get an id by which their user may end them, and what tells them apart.
CREATE TABLE sessions_with_ids (
    token_hash TEXT PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    user_id BLOB NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    csrf_hash TEXT NOT NULL,
    -- Network of the client and its User-Agent at the sign-in, shortened.
    network TEXT,
    user_agent TEXT,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
INSERT INTO sessions_with_ids
    SELECT token_hash, randomblob(16), user_id, csrf_hash, NULL, NULL, created_at, created_at, expires_at
    FROM sessions;
DROP TABLE sessions;
ALTER TABLE sessions_with_ids RENAME TO sessions;
CREATE INDEX sessions_by_user ON sessions (user_id, last_used_at);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);
