-- The schema as the migrations 0001 to 0036 of SQLite leave it (store/migrations/sqlite). Later migrations stand in both folders.
--
-- Times are milliseconds since 1970 UTC, secrets stand here only as hashes, JSON is text. Texts sort by their bytes. Everything
-- lies in the connection's current schema.

-- Functions of SQLite that the statements call.

-- The value of the condition's branch; NULL is false.
CREATE FUNCTION iif(BOOLEAN, anycompatible, anycompatible) RETURNS anycompatible
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT CASE WHEN $1 THEN $2 ELSE $3 END $$;

-- The largest and the smallest of numbers; NULL if one is.
CREATE FUNCTION max(BIGINT, BIGINT) RETURNS BIGINT
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN greatest($1, $2) END $$;
CREATE FUNCTION min(BIGINT, BIGINT) RETURNS BIGINT
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN least($1, $2) END $$;
CREATE FUNCTION max(BIGINT, BIGINT, BIGINT) RETURNS BIGINT
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL AND $3 IS NOT NULL THEN greatest($1, $2, $3) END
$$;

-- The id of 32 hexadecimal digits; NULL for any other text.
CREATE FUNCTION unhex(TEXT) RETURNS UUID
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT CASE WHEN $1 ~ '^[0-9A-Fa-f]{32}$' THEN $1::uuid END $$;
-- The same, without certain characters.
CREATE FUNCTION unhex(TEXT, TEXT) RETURNS UUID
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN translate($1, $2, '') ~ '^[0-9A-Fa-f]{32}$' THEN translate($1, $2, '')::uuid END
$$;

-- The id as 32 upper-case hexadecimal digits.
CREATE FUNCTION hex(UUID) RETURNS TEXT
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT upper(replace($1::text, '-', '')) COLLATE "C" $$;

-- Where the second text begins in the first, from 1; 0: nowhere.
CREATE FUNCTION instr(TEXT, TEXT) RETURNS BIGINT
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT strpos($1, $2)::bigint $$;

-- The driver's numbers are BIGINT.
CREATE FUNCTION substr(TEXT, BIGINT, BIGINT) RETURNS TEXT
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT pg_catalog.substr($1, $2::integer, $3::integer) $$;

-- The elements of a JSON array in its order. Strings are their text, all else is its JSON, but null is NULL.
CREATE FUNCTION json_each(TEXT) RETURNS TABLE (key BIGINT, value TEXT)
    LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 100 AS $$
    SELECT place - 1, element COLLATE "C" FROM json_array_elements_text($1::json) WITH ORDINALITY AS e (element, place)
$$;

-- A member of a JSON object, and an element of a JSON array, as text: `CAST` makes it a number.
CREATE FUNCTION json_member(TEXT, TEXT) RETURNS TEXT
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT ($1::json OPERATOR(pg_catalog.->>) $2) COLLATE "C" $$;
CREATE FUNCTION json_element(TEXT, INTEGER) RETURNS TEXT
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT ($1::json OPERATOR(pg_catalog.->>) $2) COLLATE "C" $$;
CREATE OPERATOR ->> (LEFTARG = TEXT, RIGHTARG = TEXT, FUNCTION = json_member);
CREATE OPERATOR ->> (LEFTARG = TEXT, RIGHTARG = INTEGER, FUNCTION = json_element);

-- The least and the greatest id.
CREATE FUNCTION smaller_id(UUID, UUID) RETURNS UUID
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT least($1, $2) $$;
CREATE FUNCTION larger_id(UUID, UUID) RETURNS UUID
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT greatest($1, $2) $$;
CREATE AGGREGATE min(UUID) (SFUNC = smaller_id, STYPE = UUID, COMBINEFUNC = smaller_id, SORTOP = <, PARALLEL = SAFE);
CREATE AGGREGATE max(UUID) (SFUNC = larger_id, STYPE = UUID, COMBINEFUNC = larger_id, SORTOP = >, PARALLEL = SAFE);

-- What changed, for the other nodes. The program makes the triggers that fill it (store/src/changes).
CREATE TABLE changes (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    xid XID8 NOT NULL DEFAULT pg_current_xact_id(),
    at BIGINT NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
    account_id UUID,
    kind TEXT COLLATE "C" NOT NULL,
    id UUID,
    action TEXT COLLATE "C" NOT NULL
);
CREATE INDEX changes_by_transaction ON changes (xid, seq);

CREATE TABLE installation (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    key BYTEA NOT NULL CHECK (length(key) = 32),
    created_at BIGINT NOT NULL
);

CREATE TABLE accounts (
    id UUID PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    plan TEXT COLLATE "C" NOT NULL DEFAULT 'unlimited',
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- When the operator suspended the account; null while it is in force.
    suspended_at BIGINT
);
CREATE INDEX accounts_suspended ON accounts (id) WHERE suspended_at IS NOT NULL;

-- Who signs in, and who may see what concerns the whole installation.
CREATE TABLE users (
    id UUID PRIMARY KEY,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    username TEXT COLLATE "C" NOT NULL UNIQUE,
    role TEXT COLLATE "C" NOT NULL CHECK (role IN ('admin', 'member', 'viewer')),
    is_operator BOOLEAN NOT NULL,
    password_hash TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- When the user was last seen, exact to five minutes; unknown for users who did not come back since.
    last_seen_at BIGINT
);
CREATE INDEX users_by_account ON users (account_id);

-- Sessions have an id by which their user may end them, and what tells them apart.
CREATE TABLE sessions (
    token_hash TEXT COLLATE "C" PRIMARY KEY,
    id UUID NOT NULL UNIQUE,
    user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    csrf_hash TEXT COLLATE "C" NOT NULL,
    -- Network of the client and its User-Agent at the sign-in, shortened.
    network TEXT COLLATE "C",
    user_agent TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX sessions_by_user ON sessions (user_id, last_used_at);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

CREATE TABLE api_keys (
    id UUID PRIMARY KEY,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT COLLATE "C" NOT NULL,
    scope TEXT COLLATE "C" NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    key_hash TEXT COLLATE "C" NOT NULL UNIQUE,
    key_prefix TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT,
    revoked_at BIGINT
);
CREATE INDEX api_keys_by_account ON api_keys (account_id, created_at, id);

CREATE TABLE live_inputs (
    id UUID PRIMARY KEY,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT COLLATE "C" NOT NULL,
    input_slug TEXT COLLATE "C" NOT NULL UNIQUE,
    playback_id TEXT COLLATE "C" NOT NULL UNIQUE,
    enabled BOOLEAN NOT NULL DEFAULT TRUE,
    reconnect_window_s BIGINT NOT NULL CHECK (reconnect_window_s BETWEEN 0 AND 1800),
    require_signed_playback BOOLEAN NOT NULL DEFAULT FALSE,
    allowed_domains TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    record_mode TEXT COLLATE "C" NOT NULL CHECK (record_mode IN ('off', 'automatic')),
    latency TEXT COLLATE "C" NOT NULL CHECK (latency IN ('standard', 'low')),
    pull_url TEXT COLLATE "C",
    stream_key_hash TEXT COLLATE "C" NOT NULL,
    stream_key_prefix TEXT COLLATE "C" NOT NULL,
    last_target_duration_s BIGINT,
    last_started_at BIGINT,
    last_ended_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- Rises whenever an owner takes the input over; writes of an older owner are refused by it.
    fence BIGINT NOT NULL DEFAULT 0,
    -- The id that a stream key is derived from, another one at each rotation. NULL: the key was drawn at random by an earlier
    -- version, which kept its hash only.
    stream_key_id UUID
);
CREATE INDEX live_inputs_by_account ON live_inputs (account_id, created_at, id);
CREATE INDEX live_inputs_by_stream_key ON live_inputs (stream_key_hash);

CREATE TABLE broadcasts (
    id TEXT COLLATE "C" PRIMARY KEY,
    input_id UUID NOT NULL REFERENCES live_inputs (id) ON DELETE CASCADE,
    state TEXT COLLATE "C" NOT NULL CHECK (state IN ('live', 'ended')),
    started_at BIGINT NOT NULL,
    ended_at BIGINT,
    fence BIGINT NOT NULL,
    -- Media bytes received.
    bytes BIGINT NOT NULL DEFAULT 0,
    -- The most viewers at a time; NULL: not counted.
    peak_viewers BIGINT,
    -- When it was last seen on air.
    seen_at BIGINT
);
CREATE INDEX broadcasts_by_input ON broadcasts (input_id, started_at);
CREATE INDEX broadcasts_by_end ON broadcasts (ended_at);

-- One row for each file under {data_dir}/blobs. A row that no other table names is marked, and deleted later.
CREATE TABLE blobs (
    hash BYTEA PRIMARY KEY CHECK (length(hash) = 32),
    size_bytes BIGINT NOT NULL,
    crc32 BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    marked_at BIGINT
);
CREATE INDEX blobs_by_mark ON blobs (marked_at) WHERE marked_at IS NOT NULL;

CREATE TABLE folders (
    id UUID PRIMARY KEY,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT COLLATE "C" NOT NULL,
    color TEXT COLLATE "C",
    -- NULL: at the top.
    parent_id UUID REFERENCES folders (id),
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- The name in lower case, for searching.
    search_name TEXT COLLATE "C" NOT NULL DEFAULT '',
    -- Key of the order by name (store/src/file/name_key.rs).
    name_key TEXT COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX folders_by_account ON folders (account_id, created_at, id);
CREATE INDEX folders_by_place ON folders (account_id, parent_id, created_at, id);
CREATE INDEX folders_by_parent ON folders (parent_id, id);
CREATE INDEX folders_without_name_key ON folders (id) WHERE name_key = '';
CREATE INDEX folders_by_place_name ON folders (account_id, parent_id, name_key, id, search_name);
CREATE INDEX folders_by_account_name ON folders (account_id, name_key, id, search_name);

CREATE TABLE files (
    id UUID PRIMARY KEY,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    -- NULL: at the top.
    folder_id UUID REFERENCES folders (id),
    filename TEXT COLLATE "C" NOT NULL,
    -- The name in lower case, for searching: SQLite folds ASCII only.
    search_name TEXT COLLATE "C" NOT NULL,
    mime_type TEXT COLLATE "C" NOT NULL,
    size_bytes BIGINT NOT NULL,
    blob_hash BYTEA NOT NULL REFERENCES blobs (hash),
    role TEXT COLLATE "C" NOT NULL CHECK (role IN ('uploaded', 'converted', 'recording')),
    width BIGINT,
    height BIGINT,
    duration_ms BIGINT,
    focal_x DOUBLE PRECISION,
    focal_y DOUBLE PRECISION,
    description TEXT COLLATE "C",
    tags TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- How many runs stand between the file and an upload; 0: it is an upload or a conversion.
    generation BIGINT NOT NULL DEFAULT 0,
    -- The family of the media type, as `FileType` of store/src/file/file_filter.rs decides it.
    file_type TEXT COLLATE "C" NOT NULL DEFAULT 'other',
    -- Key of the order by name (store/src/file/name_key.rs).
    name_key TEXT COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX files_by_blob ON files (blob_hash);
CREATE INDEX files_of_folder ON files (folder_id, size_bytes);
CREATE INDEX files_without_name_key ON files (id) WHERE name_key = '';
CREATE INDEX files_by_account ON files (account_id, created_at, id, file_type);
CREATE INDEX files_by_account_name ON files (account_id, name_key, id, file_type, search_name);
CREATE INDEX files_by_account_size ON files (account_id, size_bytes, id, file_type);
CREATE INDEX files_by_folder ON files (account_id, folder_id, created_at, id, file_type);
CREATE INDEX files_by_folder_name ON files (account_id, folder_id, name_key, id, file_type, search_name);
CREATE INDEX files_by_folder_size ON files (account_id, folder_id, size_bytes, id, file_type);
-- Names are searched in the index alone, in the order of a list, without a look at each row.
CREATE INDEX files_by_name ON files (account_id, created_at, id, file_type, search_name);

-- Sums over an account's files, kept by every change of them.
CREATE TABLE storage_totals (
    account_id UUID PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
    files BIGINT NOT NULL,
    bytes BIGINT NOT NULL
);

-- Direct uploads: made, filled by a signed PUT, completed as a file.
CREATE TABLE uploads (
    id UUID PRIMARY KEY,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    folder_id UUID REFERENCES folders (id) ON DELETE SET NULL,
    filename TEXT COLLATE "C" NOT NULL,
    content_type TEXT COLLATE "C" NOT NULL,
    size_bytes BIGINT NOT NULL,
    state TEXT COLLATE "C" NOT NULL CHECK (state IN ('pending', 'received', 'completed')),
    -- Rises with every PUT; an older one's bytes are refused by it.
    attempt BIGINT NOT NULL DEFAULT 0,
    blob_hash BYTEA REFERENCES blobs (hash),
    mime_type TEXT COLLATE "C",
    file_id UUID REFERENCES files (id) ON DELETE SET NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX uploads_by_account ON uploads (account_id);
CREATE INDEX uploads_by_folder ON uploads (folder_id);
CREATE INDEX uploads_by_blob ON uploads (blob_hash);
CREATE INDEX uploads_by_file ON uploads (file_id);
CREATE INDEX uploads_by_expiry ON uploads (expires_at);
-- Direct uploads whose bytes are there.
CREATE INDEX uploads_received ON uploads (account_id, expires_at, size_bytes, id) WHERE state = 'received';
CREATE INDEX uploads_unfinished ON uploads (account_id, created_at, id) WHERE state <> 'completed';

-- What was made from which file, by which operation. A derived object of several sources has a row for each.
CREATE TABLE lineage (
    -- The order in which the rows were made.
    rowid BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    derived_kind TEXT COLLATE "C" NOT NULL CHECK (derived_kind IN ('file', 'conversion', 'variant', 'recording', 'rendition', 'run_output')),
    derived_id TEXT COLLATE "C" NOT NULL,
    -- NULL: never stored, or deleted since.
    source_file_id UUID REFERENCES files (id) ON DELETE SET NULL,
    operation TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX lineage_by_derived ON lineage (derived_kind, derived_id);
CREATE INDEX lineage_by_source ON lineage (source_file_id);

-- Unfinished durable work of any kind, and who holds it; the one leasing mechanism (store/src/work.rs).
CREATE TABLE work (
    kind TEXT COLLATE "C" NOT NULL,
    id UUID NOT NULL,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    lane BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    -- Claims without an end or progress.
    begins BIGINT NOT NULL DEFAULT 0,
    -- Times it was given back, for the pause before the next try.
    retries BIGINT NOT NULL DEFAULT 0,
    -- Rises with every claim; writes of an older owner are refused by it.
    fence BIGINT NOT NULL DEFAULT 0,
    lease_owner UUID,
    lease_expires_at BIGINT,
    -- Work under the present lease has begun to run.
    is_begun BOOLEAN NOT NULL DEFAULT FALSE,
    -- It was running when the service died: of such rows one at a time is leased.
    is_suspect BOOLEAN NOT NULL DEFAULT FALSE,
    PRIMARY KEY (kind, id)
);
CREATE INDEX work_by_turn ON work (kind, lane, due_at);
CREATE INDEX work_by_owner ON work (lease_owner);
CREATE INDEX work_by_account ON work (account_id);
CREATE INDEX work_suspects ON work (kind, lane, due_at) WHERE is_suspect = TRUE;

-- Files processed, by account and calendar month in UTC (year × 100 + month).
CREATE TABLE operation_months (
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    month BIGINT NOT NULL,
    operations BIGINT NOT NULL CHECK (operations >= 0),
    PRIMARY KEY (account_id, month)
);

CREATE TABLE jobs (
    id UUID PRIMARY KEY,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    job_type TEXT COLLATE "C" NOT NULL CHECK (job_type IN ('convert', 'compress', 'tool')),
    -- The row of the operation table.
    tool TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL CHECK (state IN ('pending', 'processing', 'completed', 'failed', 'cancelled')),
    lane BIGINT NOT NULL,
    -- Results become files, in that folder.
    saves BOOLEAN NOT NULL,
    folder_id UUID REFERENCES folders (id) ON DELETE SET NULL,
    -- Results are packed into one archive.
    archives BOOLEAN NOT NULL,
    -- What the plan allowed when the job was made.
    allowance TEXT COLLATE "C" NOT NULL,
    -- The month that was charged.
    month BIGINT NOT NULL,
    total_files BIGINT NOT NULL,
    completed_files BIGINT NOT NULL DEFAULT 0,
    failed_files BIGINT NOT NULL DEFAULT 0,
    archive_blob BYTEA REFERENCES blobs (hash),
    archive_size BIGINT,
    error TEXT COLLATE "C",
    error_code TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    completed_at BIGINT,
    -- Until then results can be downloaded; null until the job ends, and once they are gone.
    expires_at BIGINT,
    -- The first file's name at the time of the request, which an opened archive has no row for.
    filename TEXT COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX jobs_by_account ON jobs (account_id, created_at, id);
CREATE INDEX jobs_by_state ON jobs (state);
CREATE INDEX jobs_by_account_and_state ON jobs (account_id, state, created_at, id);
CREATE INDEX jobs_by_expiry ON jobs (expires_at);
CREATE INDEX jobs_by_end ON jobs (completed_at);
CREATE INDEX jobs_by_archive ON jobs (archive_blob) WHERE archive_blob IS NOT NULL;
CREATE INDEX jobs_by_folder ON jobs (folder_id) WHERE folder_id IS NOT NULL;
CREATE INDEX jobs_by_type ON jobs (account_id, job_type, created_at, id);

-- One operation and its one result.
CREATE TABLE job_files (
    id UUID PRIMARY KEY,
    job_id UUID NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    operation TEXT COLLATE "C" NOT NULL,
    -- What was charged for it.
    operations BIGINT NOT NULL,
    state TEXT COLLATE "C" NOT NULL CHECK (state IN ('pending', 'completed', 'failed', 'cancelled')),
    original_name TEXT COLLATE "C" NOT NULL,
    original_size BIGINT NOT NULL,
    -- The stored file it was made from.
    source_file_id UUID REFERENCES files (id) ON DELETE SET NULL,
    result_blob BYTEA REFERENCES blobs (hash),
    result_name TEXT COLLATE "C",
    result_size BIGINT,
    mime_type TEXT COLLATE "C",
    width BIGINT,
    height BIGINT,
    applied_quality BIGINT,
    -- What an inspection found.
    facts TEXT COLLATE "C",
    stored_file_id UUID REFERENCES files (id) ON DELETE SET NULL,
    error TEXT COLLATE "C",
    error_code TEXT COLLATE "C",
    duration_ms BIGINT,
    -- The second file of a result of two: a storyboard comes with its map.
    attachment_blob BYTEA REFERENCES blobs (hash),
    attachment_name TEXT COLLATE "C",
    attachment_mime TEXT COLLATE "C",
    attachment_size BIGINT,
    -- What it was stored as.
    attachment_file_id UUID REFERENCES files (id) ON DELETE SET NULL,
    UNIQUE (job_id, position)
);
CREATE INDEX job_files_by_result ON job_files (result_blob) WHERE result_blob IS NOT NULL;
CREATE INDEX job_files_by_source ON job_files (source_file_id) WHERE source_file_id IS NOT NULL;
CREATE INDEX job_files_by_stored ON job_files (stored_file_id) WHERE stored_file_id IS NOT NULL;
CREATE INDEX job_files_by_attachment ON job_files (attachment_blob) WHERE attachment_blob IS NOT NULL;
CREATE INDEX job_files_by_attachment_file ON job_files (attachment_file_id) WHERE attachment_file_id IS NOT NULL;

-- What an operation reads; gone once the job has ended.
CREATE TABLE job_inputs (
    job_file_id UUID NOT NULL REFERENCES job_files (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    blob BYTEA NOT NULL REFERENCES blobs (hash),
    filename TEXT COLLATE "C" NOT NULL,
    size BIGINT NOT NULL,
    -- The member of that number of the archive in `blob`.
    member BIGINT,
    PRIMARY KEY (job_file_id, number)
);
CREATE INDEX job_inputs_by_blob ON job_inputs (blob);

CREATE TABLE video_streams (
    id UUID PRIMARY KEY,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    -- The stored file that it is made of.
    source_file_id UUID REFERENCES files (id) ON DELETE SET NULL,
    -- Its bytes; null once it is ready or has failed.
    source_blob BYTEA REFERENCES blobs (hash),
    source_filename TEXT COLLATE "C" NOT NULL,
    title TEXT COLLATE "C" NOT NULL,
    playback_id TEXT COLLATE "C" NOT NULL UNIQUE,
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('pending', 'processing', 'ready', 'failed')),
    -- Of 100, as of the last change.
    progress BIGINT NOT NULL DEFAULT 0,
    playable BOOLEAN NOT NULL DEFAULT FALSE,
    profile TEXT COLLATE "C" NOT NULL,
    -- JSON; what a custom profile consists of.
    custom_renditions TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    segment_duration_s BIGINT NOT NULL,
    access TEXT COLLATE "C" NOT NULL CHECK (access IN ('public', 'signed')),
    -- Of tokens for which nothing else is asked.
    token_ttl_s BIGINT,
    allowed_domains TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    duration_ms BIGINT,
    -- As shown, in pixels.
    width BIGINT,
    height BIGINT,
    has_poster BOOLEAN NOT NULL DEFAULT FALSE,
    has_storyboard BOOLEAN NOT NULL DEFAULT FALSE,
    -- Of everything in its folder, as it counts into the account's storage.
    size_bytes BIGINT NOT NULL DEFAULT 0,
    -- What the plan allowed when it was made.
    allowance TEXT COLLATE "C" NOT NULL,
    -- The month that was charged.
    month BIGINT NOT NULL,
    error TEXT COLLATE "C",
    error_code TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    started_at BIGINT,
    ready_at BIGINT,
    CHECK ((status IN ('pending', 'processing')) = (source_blob IS NOT NULL))
);
CREATE INDEX video_streams_by_account ON video_streams (account_id, created_at, id);
CREATE INDEX video_streams_by_source ON video_streams (source_file_id) WHERE source_file_id IS NOT NULL;
CREATE INDEX video_streams_by_blob ON video_streams (source_blob) WHERE source_blob IS NOT NULL;
CREATE INDEX video_streams_unfinished ON video_streams (status) WHERE status IN ('pending', 'processing');

-- Idempotency keys stand for a job or for a video stream; both share an account's keys.
CREATE TABLE idempotency_keys (
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    key TEXT COLLATE "C" NOT NULL,
    -- SHA-256 of the request's parameters and files.
    fingerprint BYTEA NOT NULL CHECK (length(fingerprint) = 32),
    job_id UUID REFERENCES jobs (id) ON DELETE CASCADE,
    stream_id UUID REFERENCES video_streams (id) ON DELETE CASCADE,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, key),
    CHECK ((job_id IS NULL) <> (stream_id IS NULL))
);
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);
CREATE INDEX idempotency_keys_by_job ON idempotency_keys (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX idempotency_keys_by_stream ON idempotency_keys (stream_id) WHERE stream_id IS NOT NULL;

CREATE TABLE delivery_keys (
    id UUID PRIMARY KEY,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT COLLATE "C" NOT NULL,
    -- Stands in addresses in place of the key; given up when the key is revoked.
    delivery_alias TEXT COLLATE "C" UNIQUE,
    presets_only BOOLEAN NOT NULL DEFAULT FALSE,
    key_hash TEXT COLLATE "C" NOT NULL UNIQUE,
    key_prefix TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT,
    revoked_at BIGINT
);
CREATE INDEX delivery_keys_by_account ON delivery_keys (account_id, created_at, id);

CREATE TABLE cdn_presets (
    id UUID PRIMARY KEY,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT COLLATE "C" NOT NULL,
    -- A canonical query string.
    params TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (account_id, name)
);

-- Deliveries taken from a month's cap: delivered, or in a block that the service holds in memory.
CREATE TABLE delivery_months (
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    -- 202611 for November 2026 (UTC).
    month BIGINT NOT NULL,
    taken BIGINT NOT NULL CHECK (taken >= 0),
    PRIMARY KEY (account_id, month)
);

CREATE TABLE delivery_days (
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    -- Days since 1970 (UTC).
    day BIGINT NOT NULL,
    hits BIGINT NOT NULL,
    misses BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (account_id, day)
);

-- What happened, for webhooks and for the feed. An event goes once no delivery names it and its time is over.
CREATE TABLE events (
    -- The order of the commits: there is one writer, and no number is given twice.
    seq BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    id UUID NOT NULL,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    event_type TEXT COLLATE "C" NOT NULL,
    -- In the account's feed; what was made for one endpoint alone is not.
    is_listed BOOLEAN NOT NULL,
    -- Deliveries that name it.
    deliveries BIGINT NOT NULL CHECK (deliveries >= 0),
    created_at BIGINT NOT NULL,
    -- The envelope, byte for byte as every attempt sends it.
    body TEXT COLLATE "C" NOT NULL
);
CREATE INDEX events_by_account ON events (account_id, is_listed);
CREATE INDEX events_unnamed ON events (created_at) WHERE deliveries = 0;
-- An event by its id, as webhooks show it.
CREATE INDEX events_by_id ON events (id);

-- The number of the last event about a resource, while there may be another one.
CREATE TABLE event_sequences (
    resource TEXT COLLATE "C" PRIMARY KEY,
    last BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX event_sequences_by_time ON event_sequences (updated_at);

-- How far back each account's feed has been cut.
CREATE TABLE event_feeds (
    account_id UUID PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
    dropped_up_to BIGINT NOT NULL
);

-- Bytes that events, deliveries and attempts take, about, in parts: transactions at a time write to different ones. A part may be
-- negative. Kept by the triggers below.
CREATE TABLE event_storage_parts (
    part BIGINT PRIMARY KEY,
    bytes BIGINT NOT NULL
);
CREATE VIEW event_storage AS SELECT coalesce(sum(bytes), 0)::bigint AS bytes FROM event_storage_parts;

CREATE TABLE workflows (
    id UUID PRIMARY KEY,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT COLLATE "C" NOT NULL,
    is_active BOOLEAN NOT NULL,
    -- The current one.
    version BIGINT NOT NULL,
    -- The short form that the definition was made from.
    template TEXT COLLATE "C",
    output_format TEXT COLLATE "C",
    -- JSON: a word or a number.
    compression_mode TEXT COLLATE "C",
    -- Every file stored there by upload runs it.
    trigger_folder_id UUID REFERENCES folders (id) ON DELETE SET NULL,
    -- Readable, since it signs.
    webhook_secret TEXT COLLATE "C" NOT NULL,
    -- Runs that were ever made, which numbers them.
    run_count BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    last_run_at BIGINT,
    -- Its rows are removed by the sweep.
    deleted_at BIGINT
);
CREATE INDEX workflows_by_account ON workflows (account_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX workflows_by_trigger ON workflows (trigger_folder_id) WHERE trigger_folder_id IS NOT NULL;
CREATE INDEX workflows_deleted ON workflows (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE webhook_endpoints (
    id UUID PRIMARY KEY,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    url TEXT COLLATE "C" NOT NULL,
    -- A JSON array, as its owner gave it.
    event_types TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C",
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('active', 'suspended', 'paused')),
    is_active BOOLEAN NOT NULL GENERATED ALWAYS AS (status <> 'paused') STORED,
    status_reason TEXT COLLATE "C",
    -- Readable, since it signs.
    secret TEXT COLLATE "C" NOT NULL,
    -- Signs too, until its time.
    old_secret TEXT COLLATE "C",
    old_secret_until BIGINT,
    consecutive_failures BIGINT NOT NULL DEFAULT 0,
    -- Of the failures in a row.
    first_failure_at BIGINT,
    last_success_at BIGINT,
    last_failure_at BIGINT,
    -- Of a suspended endpoint.
    next_probe_at BIGINT,
    -- What waited while it was suspended or paused is being put back into the order of the events.
    is_releasing BOOLEAN NOT NULL DEFAULT FALSE,
    -- Rises when the owner decides about its health, so that what attempts found before does not undo that.
    revision BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- Its deliveries stay for a while.
    deleted_at BIGINT,
    -- An address of a workflow's own: no row of /api/webhooks, and without subscriptions.
    workflow_id UUID REFERENCES workflows (id) ON DELETE SET NULL,
    -- Since when it has its status.
    status_since BIGINT NOT NULL DEFAULT 0,
    -- When its URL or its secret was last changed; null: not since it was made.
    request_changed_at BIGINT
);
CREATE INDEX webhook_endpoints_by_account ON webhook_endpoints (account_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX webhook_endpoints_releasing ON webhook_endpoints (id) WHERE is_releasing = TRUE;
CREATE INDEX webhook_endpoints_deleted ON webhook_endpoints (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE UNIQUE INDEX webhook_endpoints_by_workflow ON webhook_endpoints (workflow_id, url)
    WHERE workflow_id IS NOT NULL AND deleted_at IS NULL;

-- The event types of endpoints that are not deleted, by what an event looks for.
CREATE TABLE webhook_subscriptions (
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    -- Or `*`.
    event_type TEXT COLLATE "C" NOT NULL,
    endpoint_id UUID NOT NULL REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
    PRIMARY KEY (account_id, event_type, endpoint_id)
);
CREATE INDEX webhook_subscriptions_by_endpoint ON webhook_subscriptions (endpoint_id);

-- One event on its way to one endpoint. Leased in place (docs/decisions/0013): a row that is `delivering` is held by
-- `lease_owner` under its fence.
CREATE TABLE webhook_deliveries (
    seq BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    id UUID NOT NULL UNIQUE,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    endpoint_id UUID NOT NULL REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
    event_seq BIGINT NOT NULL REFERENCES events (seq),
    event_type TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('pending', 'delivering', 'retrying', 'delivered', 'failed')),
    http_status BIGINT,
    response_preview TEXT COLLATE "C",
    error TEXT COLLATE "C",
    -- Attempts of any kind, those that were cut short among them.
    attempts BIGINT NOT NULL DEFAULT 0,
    -- Attempts that failed and count: the place on the retry ladder.
    failures BIGINT NOT NULL DEFAULT 0,
    -- Asked for by the owner: one attempt, whatever the endpoint's state.
    is_replay BOOLEAN NOT NULL DEFAULT FALSE,
    due_at BIGINT NOT NULL,
    -- Rises with every claim; writes of an older owner are refused by it.
    fence BIGINT NOT NULL DEFAULT 0,
    lease_owner UUID,
    lease_expires_at BIGINT,
    created_at BIGINT NOT NULL,
    last_attempt_at BIGINT,
    delivered_at BIGINT,
    -- When it was delivered or given up; null while it is open.
    ended_at BIGINT,
    CHECK ((status = 'delivering') = (lease_owner IS NOT NULL)),
    CHECK ((status IN ('delivered', 'failed')) = (ended_at IS NOT NULL)),
    UNIQUE (event_seq, endpoint_id)
);
-- What waits, by turn, and in the order of the events.
CREATE INDEX webhook_deliveries_by_turn ON webhook_deliveries (endpoint_id, is_replay, due_at, event_seq)
    WHERE status IN ('pending', 'retrying');
CREATE INDEX webhook_deliveries_by_event ON webhook_deliveries (endpoint_id, is_replay, event_seq)
    WHERE status IN ('pending', 'retrying');
-- What waits out of the order of the events.
CREATE INDEX webhook_deliveries_to_rewind ON webhook_deliveries (endpoint_id, event_seq)
    WHERE status = 'retrying' AND is_replay = FALSE AND due_at > created_at;
CREATE INDEX webhook_deliveries_in_flight ON webhook_deliveries (lease_owner, lease_expires_at)
    WHERE status = 'delivering';
-- What can go, by age.
CREATE INDEX webhook_deliveries_by_end ON webhook_deliveries (status, ended_at) WHERE ended_at IS NOT NULL;
-- Lists. Statuses stand first where they can: what is open then shares a few pages, however many endpoints there are.
CREATE INDEX webhook_deliveries_by_account ON webhook_deliveries (account_id, created_at, id);
CREATE INDEX webhook_deliveries_by_status ON webhook_deliveries (account_id, status, created_at, id);
CREATE INDEX webhook_deliveries_by_type ON webhook_deliveries (account_id, event_type, created_at, id);
CREATE INDEX webhook_deliveries_by_endpoint ON webhook_deliveries (endpoint_id, created_at, id);
CREATE INDEX webhook_deliveries_by_endpoint_and_status ON webhook_deliveries (status, endpoint_id, created_at, id)
    WHERE status <> 'delivered';
-- Lists by the last answer; the endpoint is in it so that a filter by it reads no row.
CREATE INDEX webhook_deliveries_by_http_status ON webhook_deliveries (account_id, http_status, created_at, id, endpoint_id)
    WHERE http_status IS NOT NULL;

-- One request to an endpoint; committed before its first byte goes out.
CREATE TABLE webhook_attempts (
    delivery_seq BIGINT NOT NULL REFERENCES webhook_deliveries (seq) ON DELETE CASCADE,
    -- From 1.
    number BIGINT NOT NULL,
    -- `interrupted`: the service ended before the answer came.
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('running', 'delivered', 'failed', 'interrupted')),
    -- Whether it asked a suspended endpoint for a sign of life.
    is_probe BOOLEAN NOT NULL,
    http_status BIGINT,
    error TEXT COLLATE "C",
    started_at BIGINT NOT NULL,
    ended_at BIGINT,
    -- The time that the attempt's headers name, in milliseconds; null until it has ended.
    signed_at BIGINT,
    PRIMARY KEY (delivery_seq, number)
);

-- Publishers whose connection was told and whose end was not: at most one for each live input. The input itself may be
-- gone by then.
CREATE TABLE live_connections (
    input_id UUID PRIMARY KEY,
    id UUID NOT NULL,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    broadcast_id TEXT COLLATE "C" NOT NULL,
    -- The payload that was told, as JSON.
    told TEXT COLLATE "C" NOT NULL
);
CREATE INDEX live_connections_by_account ON live_connections (account_id);

-- What was saved, as it was sent; never changed.
CREATE TABLE workflow_versions (
    workflow_id UUID NOT NULL REFERENCES workflows (id) ON DELETE CASCADE,
    version BIGINT NOT NULL,
    -- JSON.
    definition TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workflow_id, version)
);

CREATE TABLE workflow_runs (
    id UUID PRIMARY KEY,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    workflow_id UUID NOT NULL REFERENCES workflows (id) ON DELETE CASCADE,
    -- As it was when the run was made.
    workflow_name TEXT COLLATE "C" NOT NULL,
    workflow_version BIGINT NOT NULL,
    -- Of the workflow's runs, from 1.
    number BIGINT NOT NULL,
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('queued', 'processing', 'completed', 'failed', 'cancelled')),
    gate BOOLEAN,
    "trigger" TEXT COLLATE "C" NOT NULL CHECK ("trigger" IN ('api', 'file', 'folder', 'mcp')),
    lane BIGINT NOT NULL,
    -- Has a row in `work`; a queued run without one waits for another of its workflow to end.
    is_admitted BOOLEAN NOT NULL,
    -- Times it was queued again: the leases of each time have fences above those before.
    retries BIGINT NOT NULL DEFAULT 0,
    generation BIGINT NOT NULL,
    upload_source TEXT COLLATE "C" NOT NULL,
    -- Null once it has expired.
    input_blob BYTEA REFERENCES blobs (hash),
    input_filename TEXT COLLATE "C" NOT NULL,
    input_size BIGINT NOT NULL,
    input_mime TEXT COLLATE "C" NOT NULL,
    -- The stored file that it works on.
    source_file_id UUID REFERENCES files (id) ON DELETE SET NULL,
    -- What the plan allowed when the run was made.
    allowance TEXT COLLATE "C" NOT NULL,
    -- The month that was charged.
    month BIGINT NOT NULL,
    -- The last buffer of a run that stored none.
    output_blob BYTEA REFERENCES blobs (hash),
    output_name TEXT COLLATE "C",
    output_mime TEXT COLLATE "C",
    output_size BIGINT,
    width BIGINT,
    height BIGINT,
    error TEXT COLLATE "C",
    error_node TEXT COLLATE "C",
    error_code TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    -- When it was queued last.
    queued_at BIGINT NOT NULL,
    started_at BIGINT,
    completed_at BIGINT,
    -- Until then its input and output are kept; null until the run ends, and once they are gone.
    expires_at BIGINT,
    -- The run of which this one is a repetition, whether that one is still kept or not.
    rerun_of UUID,
    FOREIGN KEY (workflow_id, workflow_version) REFERENCES workflow_versions (workflow_id, version),
    CHECK ((status IN ('queued', 'processing')) = (completed_at IS NULL)),
    CHECK (completed_at IS NOT NULL OR input_blob IS NOT NULL),
    CHECK (completed_at IS NULL OR NOT is_admitted)
);
CREATE INDEX workflow_runs_by_version ON workflow_runs (workflow_id, workflow_version);
CREATE INDEX workflow_runs_admitted ON workflow_runs (workflow_id, status) WHERE is_admitted = TRUE;
CREATE INDEX workflow_runs_by_turn ON workflow_runs (workflow_id, lane, queued_at, id)
    WHERE status = 'queued' AND is_admitted = FALSE;
CREATE INDEX workflow_runs_waiting ON workflow_runs (account_id) WHERE status = 'queued' AND is_admitted = FALSE;
CREATE INDEX workflow_runs_by_input ON workflow_runs (input_blob) WHERE input_blob IS NOT NULL;
CREATE INDEX workflow_runs_by_output ON workflow_runs (output_blob) WHERE output_blob IS NOT NULL;
CREATE INDEX workflow_runs_by_source ON workflow_runs (source_file_id) WHERE source_file_id IS NOT NULL;
CREATE INDEX workflow_runs_by_expiry ON workflow_runs (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX workflow_runs_by_end ON workflow_runs (completed_at) WHERE completed_at IS NOT NULL;
CREATE INDEX workflow_runs_by_account ON workflow_runs (account_id, created_at, id, workflow_id, status, "trigger", input_filename);
CREATE INDEX workflow_runs_by_workflow ON workflow_runs (workflow_id, created_at, id, status, "trigger", input_filename);
CREATE INDEX workflow_runs_by_status ON workflow_runs (account_id, status, created_at, id);
CREATE INDEX workflow_runs_by_duration
    ON workflow_runs (account_id, coalesce(completed_at - started_at, -1), id, workflow_id, status, "trigger", input_filename);

-- What a run did at the nodes of its path, and which nodes it did not come to.
CREATE TABLE workflow_steps (
    run_id UUID NOT NULL REFERENCES workflow_runs (id) ON DELETE CASCADE,
    -- On the path, from 0; what was skipped comes after it.
    position BIGINT NOT NULL,
    node_id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    title TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('completed', 'skipped', 'failed')),
    branch BOOLEAN,
    message TEXT COLLATE "C" NOT NULL,
    -- What an inspection found, as JSON.
    facts TEXT COLLATE "C",
    started_at BIGINT,
    finished_at BIGINT,
    bytes_in BIGINT,
    bytes_out BIGINT,
    -- Where the buffer is that the step made: a file of the run's scratch folder, or a blob. It may be gone, or differ.
    output_place TEXT COLLATE "C" CHECK (output_place IN ('scratch', 'blob')),
    output_sha256 BYTEA CHECK (length(output_sha256) = 32),
    output_length BIGINT,
    output_name TEXT COLLATE "C",
    output_mime TEXT COLLATE "C",
    output_width BIGINT,
    output_height BIGINT,
    stored_file_id UUID REFERENCES files (id) ON DELETE SET NULL,
    -- Why it was skipped, and the branch or the failed step because of which.
    skip_reason TEXT COLLATE "C" CHECK (skip_reason IN ('gate', 'otherPath', 'failure', 'stopped', 'noPath')),
    skipped_by TEXT COLLATE "C",
    PRIMARY KEY (run_id, position)
);
CREATE INDEX workflow_steps_by_stored ON workflow_steps (stored_file_id) WHERE stored_file_id IS NOT NULL;

-- One file each, {data_dir}/video/{stream}/{name}.mp4: an init section, then the segments.
CREATE TABLE video_renditions (
    stream_id UUID NOT NULL REFERENCES video_streams (id) ON DELETE CASCADE,
    -- Of the stream's, video first, from 0.
    number BIGINT NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('video', 'audio')),
    width BIGINT,
    height BIGINT,
    -- Aimed at, in bits per second.
    bitrate BIGINT NOT NULL,
    max_bitrate BIGINT NOT NULL,
    -- The source's own pictures or sound, as they are coded.
    is_copy BOOLEAN NOT NULL,
    -- Known with the init section.
    codecs TEXT COLLATE "C",
    frame_rate DOUBLE PRECISION,
    init_length BIGINT,
    -- Sums over its segments; size_bytes has the init section in it.
    segment_count BIGINT NOT NULL DEFAULT 0,
    size_bytes BIGINT NOT NULL DEFAULT 0,
    duration_90k BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (stream_id, number)
);

CREATE TABLE video_segments (
    -- A stream of video_streams, or of video_discarded.
    stream_id UUID NOT NULL,
    rendition BIGINT NOT NULL,
    -- From 0.
    number BIGINT NOT NULL,
    -- Bytes of the rendition's file.
    "offset" BIGINT NOT NULL,
    length BIGINT NOT NULL,
    start_90k BIGINT NOT NULL,
    duration_90k BIGINT NOT NULL,
    -- Bytes from the offset on that hold the first picture; 0 for audio.
    key_length BIGINT NOT NULL,
    PRIMARY KEY (stream_id, rendition, number)
);

CREATE TABLE video_captions (
    id UUID PRIMARY KEY,
    stream_id UUID NOT NULL REFERENCES video_streams (id) ON DELETE CASCADE,
    -- BCP 47.
    language TEXT COLLATE "C" NOT NULL,
    label TEXT COLLATE "C" NOT NULL,
    is_default BOOLEAN NOT NULL,
    -- WebVTT.
    blob BYTEA NOT NULL REFERENCES blobs (hash),
    size_bytes BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX video_captions_by_stream ON video_captions (stream_id, created_at, id);
CREATE INDEX video_captions_by_blob ON video_captions (blob);

-- Streams that are gone or have failed, and whose segments have not been swept.
CREATE TABLE video_discarded (
    stream_id UUID PRIMARY KEY
);

CREATE TABLE recordings (
    id UUID PRIMARY KEY,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    -- Recordings outlive their input.
    input_id UUID NOT NULL,
    input_name TEXT COLLATE "C" NOT NULL,
    -- Of the input.
    playback_id TEXT COLLATE "C" NOT NULL,
    -- Lower-case hexadecimal; also the name of its folder below {data_dir}/recordings.
    broadcast TEXT COLLATE "C" NOT NULL UNIQUE,
    -- As the input had them at the beginning: they count when it is deleted.
    is_signed BOOLEAN NOT NULL,
    allowed_domains TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('recording', 'processing', 'ready', 'failed')),
    -- Why nothing more was recorded before the broadcast's end.
    stopped_reason TEXT COLLATE "C",
    error TEXT COLLATE "C",
    error_code TEXT COLLATE "C",
    -- All files are stored; their streams may still be made.
    is_stored BOOLEAN NOT NULL DEFAULT FALSE,
    started_at BIGINT NOT NULL,
    ended_at BIGINT,
    ready_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX recordings_by_input ON recordings (account_id, input_id, created_at, id);
CREATE INDEX recordings_unfinished ON recordings (status) WHERE status IN ('recording', 'processing');

CREATE TABLE recording_files (
    recording_id UUID NOT NULL REFERENCES recordings (id) ON DELETE CASCADE,
    -- From 0; a codec change begins another.
    number BIGINT NOT NULL,
    file_id UUID REFERENCES files (id) ON DELETE SET NULL,
    stream_id UUID REFERENCES video_streams (id) ON DELETE SET NULL,
    filename TEXT COLLATE "C" NOT NULL,
    size_bytes BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL,
    width BIGINT,
    height BIGINT,
    -- Nothing is waited for any more: its stream has ended, or there is none.
    is_settled BOOLEAN NOT NULL,
    PRIMARY KEY (recording_id, number)
);
CREATE INDEX recording_files_by_file ON recording_files (file_id) WHERE file_id IS NOT NULL;
CREATE INDEX recording_files_by_stream ON recording_files (stream_id) WHERE stream_id IS NOT NULL;

-- Keys with which an account mints playback tokens itself. The secrets are derived from the installation's key.
CREATE TABLE playback_keys (
    id UUID PRIMARY KEY,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX playback_keys_by_account ON playback_keys (account_id, created_at, id);

-- Where live inputs go on to (store/src/outputs.rs).
CREATE TABLE live_outputs (
    id UUID PRIMARY KEY,
    input_id UUID NOT NULL REFERENCES live_inputs (id) ON DELETE CASCADE,
    -- With the target's stream key.
    url TEXT COLLATE "C" NOT NULL,
    enabled BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX live_outputs_by_input ON live_outputs (input_id, created_at, id);

-- Links by which whoever has one looks through a folder (store/src/shares.rs).
CREATE TABLE shares (
    id UUID PRIMARY KEY,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    -- One link for each folder; it goes with the folder.
    folder_id UUID NOT NULL UNIQUE REFERENCES folders (id) ON DELETE CASCADE,
    -- SHA-256 of the token, which is derived from the id.
    token_hash TEXT COLLATE "C" NOT NULL UNIQUE,
    -- Argon2id.
    password_hash TEXT COLLATE "C",
    -- NULL: no bound.
    download_limit BIGINT CHECK (download_limit > 0),
    allow_download BOOLEAN NOT NULL,
    view_count BIGINT NOT NULL DEFAULT 0,
    download_count BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    -- NULL: never.
    expires_at BIGINT
);
CREATE INDEX shares_by_expiry ON shares (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX shares_by_account ON shares (account_id, created_at, id);

-- Uploads by tus (store/src/tus.rs): made, filled by any number of requests, a file with the last byte.
CREATE TABLE tus_uploads (
    id UUID PRIMARY KEY,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    folder_id UUID REFERENCES folders (id) ON DELETE SET NULL,
    filename TEXT COLLATE "C" NOT NULL,
    -- Upload-Metadata, as the client wrote it.
    metadata TEXT COLLATE "C" NOT NULL,
    -- NULL: to be declared by a later request.
    length_bytes BIGINT,
    -- So many bytes are on the disk. It reaches the length in the transaction that makes the file, never before.
    offset_bytes BIGINT NOT NULL DEFAULT 0,
    -- Checksums of these bytes: CRC-32, and SHA-256 in the midst of its work.
    crc32 BIGINT NOT NULL DEFAULT 0,
    sha256_state BYTEA NOT NULL DEFAULT '',
    -- Rises with every request that brings bytes; an older one is refused by it.
    attempt BIGINT NOT NULL DEFAULT 0,
    completed_at BIGINT,
    -- NULL: not completed, or the file was deleted since.
    file_id UUID REFERENCES files (id) ON DELETE SET NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- Never less than the offset: what a request that is under way may still bring counts before it comes.
    held_bytes BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX tus_uploads_by_account ON tus_uploads (account_id);
CREATE INDEX tus_uploads_by_folder ON tus_uploads (folder_id);
CREATE INDEX tus_uploads_by_file ON tus_uploads (file_id);
CREATE INDEX tus_uploads_by_expiry ON tus_uploads (expires_at);
CREATE INDEX tus_uploads_unfinished ON tus_uploads (account_id, expires_at, held_bytes, id) WHERE completed_at IS NULL;
CREATE INDEX tus_uploads_by_time ON tus_uploads (account_id, created_at, id) WHERE completed_at IS NULL;

-- What the first start made, until it has been shown: a start that finds this row replaces the secrets and shows the new ones.
CREATE TABLE first_credentials (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    api_key_id UUID NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,
    live_input_id UUID NOT NULL REFERENCES live_inputs (id) ON DELETE CASCADE,
    made_at BIGINT NOT NULL
);

-- One-time codes with which a user chooses a password, one for a user at most; deleted by their use.
CREATE TABLE welcome_codes (
    user_id UUID PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    -- SHA-256, hexadecimal.
    code_hash TEXT COLLATE "C" NOT NULL UNIQUE,
    expires_at BIGINT NOT NULL
);

-- Media operations by the day (since 1970, UTC) on which they were asked for, and by kind: a tool, `workflow` or `stream`.
CREATE TABLE operation_days (
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    day BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    operations BIGINT NOT NULL CHECK (operations >= 0),
    PRIMARY KEY (account_id, day, kind)
);

-- Deliveries of a day by key. Keys stay as rows when they are revoked.
CREATE TABLE delivery_key_days (
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    day BIGINT NOT NULL,
    key_id UUID NOT NULL,
    hits BIGINT NOT NULL,
    misses BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (account_id, day, key_id)
);

-- Changes that a user or an API key made and that its account may have to account for (store/src/identity/audit.rs).
CREATE TABLE audit (
    id UUID PRIMARY KEY,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    -- `user` or `key`.
    actor_kind TEXT COLLATE "C" NOT NULL,
    -- May be deleted.
    actor_id UUID NOT NULL,
    -- As it was called then.
    actor_name TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    target_kind TEXT COLLATE "C",
    target_id TEXT COLLATE "C",
    target_name TEXT COLLATE "C",
    -- Of the client: an IPv4 address, or an IPv6 /64.
    network TEXT COLLATE "C",
    detail TEXT COLLATE "C",
    created_at BIGINT NOT NULL
);
CREATE INDEX audit_by_account ON audit (account_id, created_at, id);
CREATE INDEX audit_by_age ON audit (created_at);

-- Publishers of a live input, now and before.
CREATE TABLE publisher_connections (
    id UUID PRIMARY KEY,
    input_id UUID NOT NULL REFERENCES live_inputs (id) ON DELETE CASCADE,
    broadcast_id TEXT COLLATE "C" NOT NULL,
    protocol TEXT COLLATE "C" NOT NULL,
    remote_address TEXT COLLATE "C" NOT NULL,
    -- The name that the encoder gave itself.
    encoder TEXT COLLATE "C",
    connected_at BIGINT NOT NULL,
    -- NULL: it is connected.
    disconnected_at BIGINT,
    reason TEXT COLLATE "C"
);
CREATE INDEX publisher_connections_by_input ON publisher_connections (input_id, connected_at, id);
CREATE INDEX publisher_connections_by_end ON publisher_connections (disconnected_at);

-- Sums over the files that lie in a folder, without those in its subfolders. The nil id is the top.
CREATE TABLE folder_totals (
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    folder_id UUID NOT NULL,
    files BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (account_id, folder_id)
);

-- What an inspection found in the bytes of a file, as the tool `inspect` answers it (store/src/file/file_facts.rs).
CREATE TABLE file_facts (
    file_id UUID PRIMARY KEY REFERENCES files (id) ON DELETE CASCADE,
    -- JSON; NULL: the bytes cannot be read.
    facts TEXT COLLATE "C",
    -- Whether an image can be made of it: a song without a cover has none.
    has_picture BOOLEAN NOT NULL
);

-- Files and folders chosen to be downloaded as one archive (store/src/file/selections.rs).
CREATE TABLE archive_selections (
    id UUID PRIMARY KEY,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    -- The archive's name.
    name TEXT COLLATE "C" NOT NULL,
    -- Ids, 16 bytes each.
    files BYTEA NOT NULL,
    folders BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX archive_selections_by_account ON archive_selections (account_id, created_at, id);
CREATE INDEX archive_selections_by_expiry ON archive_selections (expires_at);

-- The tags of files, each with what a list of a tag's files is ordered and filtered by. Kept by the triggers below.
CREATE TABLE file_tags (
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    tag TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    file_id UUID NOT NULL,
    folder_id UUID,
    size_bytes BIGINT NOT NULL,
    file_type TEXT COLLATE "C" NOT NULL,
    name_key TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, tag, created_at, file_id)
);

-- One-time links with which a person becomes a user of an account (store/src/identity/invitations.rs).
CREATE TABLE invitations (
    id UUID PRIMARY KEY,
    account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    role TEXT COLLATE "C" NOT NULL CHECK (role IN ('admin', 'member', 'viewer')),
    -- For whom it is, in the words of its maker.
    note TEXT COLLATE "C",
    -- SHA-256, hexadecimal.
    code_hash TEXT COLLATE "C" NOT NULL UNIQUE,
    -- The user or API key that made it, as it was called then.
    created_by TEXT COLLATE "C" NOT NULL,
    -- The same user: without them, and once they are no admin, it is no longer valid. Null for an API key.
    created_by_user UUID REFERENCES users (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- Set together, once.
    used_at BIGINT,
    used_by TEXT COLLATE "C"
);
CREATE INDEX invitations_by_account ON invitations (account_id, created_at, id);
CREATE INDEX invitations_by_user ON invitations (created_by_user);
CREATE INDEX invitations_by_expiry ON invitations (expires_at);

-- Triggers.

-- Adds to the bytes of events. No two connections at a time have the same part, but by a rare chance.
CREATE FUNCTION add_event_storage(added BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    IF added <> 0 THEN
        INSERT INTO event_storage_parts (part, bytes) VALUES (pg_backend_pid() % 4096, added)
        ON CONFLICT (part) DO UPDATE SET bytes = event_storage_parts.bytes + excluded.bytes;
    END IF;
END
$$;

-- A row's share of the indexes is counted with it, as a constant.
CREATE FUNCTION events_added() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_event_storage((SELECT coalesce(sum(160 + octet_length(body)), 0)::bigint FROM added));
    RETURN NULL;
END
$$;
CREATE TRIGGER events_added AFTER INSERT ON events REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION events_added();

CREATE FUNCTION events_removed() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_event_storage((SELECT coalesce(-sum(160 + octet_length(body)), 0)::bigint FROM removed));
    INSERT INTO event_feeds (account_id, dropped_up_to)
    SELECT account_id, max(seq) FROM removed
    WHERE is_listed AND EXISTS (SELECT 1 FROM accounts WHERE id = removed.account_id)
    GROUP BY account_id ORDER BY account_id
    ON CONFLICT (account_id) DO UPDATE SET dropped_up_to = greatest(event_feeds.dropped_up_to, excluded.dropped_up_to);
    RETURN NULL;
END
$$;
CREATE TRIGGER events_removed AFTER DELETE ON events REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION events_removed();

CREATE FUNCTION webhook_deliveries_added() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_event_storage((SELECT count(*) * 640 FROM added));
    RETURN NULL;
END
$$;
CREATE TRIGGER webhook_deliveries_added AFTER INSERT ON webhook_deliveries REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION webhook_deliveries_added();

CREATE FUNCTION webhook_deliveries_answered() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_event_storage(
        coalesce(octet_length(NEW.response_preview), 0) + coalesce(octet_length(NEW.error), 0)
        - coalesce(octet_length(OLD.response_preview), 0) - coalesce(octet_length(OLD.error), 0));
    RETURN NULL;
END
$$;
CREATE TRIGGER webhook_deliveries_answered AFTER UPDATE OF response_preview, error ON webhook_deliveries FOR EACH ROW
    WHEN ((OLD.response_preview, OLD.error) IS DISTINCT FROM (NEW.response_preview, NEW.error))
    EXECUTE FUNCTION webhook_deliveries_answered();

CREATE FUNCTION webhook_deliveries_removed() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_event_storage((
        SELECT coalesce(-sum(640 + coalesce(octet_length(response_preview), 0) + coalesce(octet_length(error), 0)), 0)::bigint
        FROM removed));
    UPDATE events SET deliveries = events.deliveries - named.number
    FROM (SELECT event_seq, count(*) AS number FROM removed GROUP BY event_seq) named
    WHERE events.seq = named.event_seq;
    RETURN NULL;
END
$$;
CREATE TRIGGER webhook_deliveries_removed AFTER DELETE ON webhook_deliveries REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION webhook_deliveries_removed();

CREATE FUNCTION webhook_attempts_added() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_event_storage((SELECT count(*) * 64 FROM added));
    RETURN NULL;
END
$$;
CREATE TRIGGER webhook_attempts_added AFTER INSERT ON webhook_attempts REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION webhook_attempts_added();

CREATE FUNCTION webhook_attempts_ended() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_event_storage(coalesce(octet_length(NEW.error), 0) - coalesce(octet_length(OLD.error), 0));
    RETURN NULL;
END
$$;
CREATE TRIGGER webhook_attempts_ended AFTER UPDATE OF error ON webhook_attempts FOR EACH ROW
    WHEN (OLD.error IS DISTINCT FROM NEW.error) EXECUTE FUNCTION webhook_attempts_ended();

CREATE FUNCTION webhook_attempts_removed() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_event_storage((SELECT coalesce(-sum(64 + coalesce(octet_length(error), 0)), 0)::bigint FROM removed));
    RETURN NULL;
END
$$;
CREATE TRIGGER webhook_attempts_removed AFTER DELETE ON webhook_attempts REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION webhook_attempts_removed();

-- The sums of folders. The nil id is the top.
CREATE FUNCTION add_to_folder(account UUID, folder UUID, size BIGINT) RETURNS VOID LANGUAGE sql AS $$
    INSERT INTO folder_totals (account_id, folder_id, files, bytes)
    VALUES (account, coalesce(folder, '00000000-0000-0000-0000-000000000000'), 1, size)
    ON CONFLICT (account_id, folder_id)
        DO UPDATE SET files = folder_totals.files + 1, bytes = folder_totals.bytes + excluded.bytes
$$;
CREATE FUNCTION take_from_folder(account UUID, folder UUID, size BIGINT) RETURNS VOID LANGUAGE sql AS $$
    UPDATE folder_totals SET files = files - 1, bytes = bytes - size
    WHERE account_id = account AND folder_id = coalesce(folder, '00000000-0000-0000-0000-000000000000');
    DELETE FROM folder_totals
    WHERE account_id = account AND folder_id = coalesce(folder, '00000000-0000-0000-0000-000000000000') AND files <= 0
$$;
CREATE FUNCTION files_in_folders() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM take_from_folder(OLD.account_id, OLD.folder_id, OLD.size_bytes);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM add_to_folder(NEW.account_id, NEW.folder_id, NEW.size_bytes);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER files_added AFTER INSERT ON files FOR EACH ROW EXECUTE FUNCTION files_in_folders();
CREATE TRIGGER files_removed AFTER DELETE ON files FOR EACH ROW EXECUTE FUNCTION files_in_folders();
CREATE TRIGGER files_moved AFTER UPDATE OF folder_id ON files FOR EACH ROW
    WHEN (OLD.folder_id IS DISTINCT FROM NEW.folder_id) EXECUTE FUNCTION files_in_folders();

-- The tags of files.
CREATE FUNCTION tags_of_files() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM file_tags
        -- As an array: PostgreSQL would expect a thousand tags of a function, and read the whole account's.
        WHERE account_id = OLD.account_id AND tag = ANY (ARRAY(SELECT value FROM json_each(OLD.tags)))
            AND created_at = OLD.created_at AND file_id = OLD.id;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO file_tags (account_id, tag, created_at, file_id, folder_id, size_bytes, file_type, name_key)
        SELECT DISTINCT
            NEW.account_id, value, NEW.created_at, NEW.id, NEW.folder_id, NEW.size_bytes, NEW.file_type, NEW.name_key
        FROM json_each(NEW.tags);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER file_tags_added AFTER INSERT ON files FOR EACH ROW
    WHEN (NEW.tags <> '[]') EXECUTE FUNCTION tags_of_files();
CREATE TRIGGER file_tags_removed AFTER DELETE ON files FOR EACH ROW
    WHEN (OLD.tags <> '[]') EXECUTE FUNCTION tags_of_files();
CREATE TRIGGER file_tags_changed AFTER UPDATE OF tags, created_at, folder_id, size_bytes, file_type, name_key ON files FOR EACH ROW
    WHEN (
        (OLD.tags <> '[]' OR NEW.tags <> '[]')
        AND (OLD.tags, OLD.created_at, OLD.folder_id, OLD.size_bytes, OLD.file_type, OLD.name_key)
            IS DISTINCT FROM (NEW.tags, NEW.created_at, NEW.folder_id, NEW.size_bytes, NEW.file_type, NEW.name_key))
    EXECUTE FUNCTION tags_of_files();

-- Streams whose segments are to be swept.
CREATE FUNCTION discard_video() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO video_discarded (stream_id) VALUES (OLD.id) ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
CREATE TRIGGER video_streams_deleted AFTER DELETE ON video_streams FOR EACH ROW EXECUTE FUNCTION discard_video();
CREATE TRIGGER video_streams_failed AFTER UPDATE OF status ON video_streams FOR EACH ROW
    WHEN (NEW.status = 'failed') EXECUTE FUNCTION discard_video();
