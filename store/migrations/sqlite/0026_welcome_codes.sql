-- One-time codes with which a user chooses a password, one for a user at most; deleted by their use.
CREATE TABLE welcome_codes (
    user_id BLOB PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    -- SHA-256, hexadecimal.
    code_hash TEXT NOT NULL UNIQUE,
    expires_at INTEGER NOT NULL
) STRICT;
