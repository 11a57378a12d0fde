-- Recordings of broadcasts, and the files and video streams that they became (store/src/recordings.rs).

CREATE TABLE recordings (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    -- Recordings outlive their input.
    input_id BLOB NOT NULL CHECK (length(input_id) = 16),
    input_name TEXT NOT NULL,
    -- Of the input.
    playback_id TEXT NOT NULL,
    -- Lower-case hexadecimal; also the name of its folder below {data_dir}/recordings.
    broadcast TEXT NOT NULL UNIQUE,
    -- As the input had them at the beginning: they count when it is deleted.
    is_signed INTEGER NOT NULL CHECK (is_signed IN (0, 1)),
    allowed_domains TEXT NOT NULL DEFAULT '[]',
    status TEXT NOT NULL CHECK (status IN ('recording', 'processing', 'ready', 'failed')),
    -- Why nothing more was recorded before the broadcast's end.
    stopped_reason TEXT,
    error TEXT,
    error_code TEXT,
    -- All files are stored; their streams may still be made.
    is_stored INTEGER NOT NULL DEFAULT 0 CHECK (is_stored IN (0, 1)),
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    ready_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX recordings_by_input ON recordings (account_id, input_id, created_at, id);
CREATE INDEX recordings_unfinished ON recordings (status) WHERE status IN ('recording', 'processing');

CREATE TABLE recording_files (
    recording_id BLOB NOT NULL REFERENCES recordings (id) ON DELETE CASCADE,
    -- From 0; a codec change begins another.
    number INTEGER NOT NULL,
    file_id BLOB REFERENCES files (id) ON DELETE SET NULL,
    stream_id BLOB REFERENCES video_streams (id) ON DELETE SET NULL,
    filename TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    width INTEGER,
    height INTEGER,
    -- Nothing is waited for any more: its stream has ended, or there is none.
    is_settled INTEGER NOT NULL CHECK (is_settled IN (0, 1)),
    PRIMARY KEY (recording_id, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX recording_files_by_file ON recording_files (file_id) WHERE file_id IS NOT NULL;
CREATE INDEX recording_files_by_stream ON recording_files (stream_id) WHERE stream_id IS NOT NULL;
