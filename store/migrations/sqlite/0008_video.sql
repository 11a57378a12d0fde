-- Video streams: HLS assets, their renditions, segments and captions (store/src/video).

CREATE TABLE video_streams (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    -- The stored file that it is made of.
    source_file_id BLOB REFERENCES files (id) ON DELETE SET NULL,
    -- Its bytes; null once it is ready or has failed.
    source_blob BLOB REFERENCES blobs (hash),
    source_filename TEXT NOT NULL,
    title TEXT NOT NULL,
    playback_id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'ready', 'failed')),
    -- Of 100, as of the last change.
    progress INTEGER NOT NULL DEFAULT 0,
    playable INTEGER NOT NULL DEFAULT 0 CHECK (playable IN (0, 1)),
    profile TEXT NOT NULL,
    -- JSON; what a custom profile consists of.
    custom_renditions TEXT NOT NULL DEFAULT '[]',
    segment_duration_s INTEGER NOT NULL,
    access TEXT NOT NULL CHECK (access IN ('public', 'signed')),
    -- Of tokens for which nothing else is asked.
    token_ttl_s INTEGER,
    allowed_domains TEXT NOT NULL DEFAULT '[]',
    duration_ms INTEGER,
    -- As shown, in pixels.
    width INTEGER,
    height INTEGER,
    has_poster INTEGER NOT NULL DEFAULT 0 CHECK (has_poster IN (0, 1)),
    has_storyboard INTEGER NOT NULL DEFAULT 0 CHECK (has_storyboard IN (0, 1)),
    -- Of everything in its folder, as it counts into the account's storage.
    size_bytes INTEGER NOT NULL DEFAULT 0,
    -- What the plan allowed when it was made.
    allowance TEXT NOT NULL,
    -- The month that was charged.
    month INTEGER NOT NULL,
    error TEXT,
    error_code TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    started_at INTEGER,
    ready_at INTEGER,
    CHECK ((status IN ('pending', 'processing')) = (source_blob IS NOT NULL))
) STRICT;
CREATE INDEX video_streams_by_account ON video_streams (account_id, created_at, id);
CREATE INDEX video_streams_by_source ON video_streams (source_file_id) WHERE source_file_id IS NOT NULL;
CREATE INDEX video_streams_by_blob ON video_streams (source_blob) WHERE source_blob IS NOT NULL;
CREATE INDEX video_streams_unfinished ON video_streams (status) WHERE status IN ('pending', 'processing');

-- One file each, {data_dir}/video/{stream}/{name}.mp4: an init section, then the segments.
CREATE TABLE video_renditions (
    stream_id BLOB NOT NULL REFERENCES video_streams (id) ON DELETE CASCADE,
    -- Of the stream's, video first, from 0.
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('video', 'audio')),
    width INTEGER,
    height INTEGER,
    -- Aimed at, in bits per second.
    bitrate INTEGER NOT NULL,
    max_bitrate INTEGER NOT NULL,
    -- The source's own pictures or sound, as they are coded.
    is_copy INTEGER NOT NULL CHECK (is_copy IN (0, 1)),
    -- Known with the init section.
    codecs TEXT,
    frame_rate REAL,
    init_length INTEGER,
    -- Sums over its segments; size_bytes has the init section in it.
    segment_count INTEGER NOT NULL DEFAULT 0,
    size_bytes INTEGER NOT NULL DEFAULT 0,
    duration_90k INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (stream_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE video_segments (
    stream_id BLOB NOT NULL REFERENCES video_streams (id) ON DELETE CASCADE,
    rendition INTEGER NOT NULL,
    -- From 0.
    number INTEGER NOT NULL,
    -- Bytes of the rendition's file.
    offset INTEGER NOT NULL,
    length INTEGER NOT NULL,
    start_90k INTEGER NOT NULL,
    duration_90k INTEGER NOT NULL,
    -- Bytes from the offset on that hold the first picture; 0 for audio.
    key_length INTEGER NOT NULL,
    PRIMARY KEY (stream_id, rendition, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE video_captions (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    stream_id BLOB NOT NULL REFERENCES video_streams (id) ON DELETE CASCADE,
    -- BCP 47.
    language TEXT NOT NULL,
    label TEXT NOT NULL,
    is_default INTEGER NOT NULL CHECK (is_default IN (0, 1)),
    -- WebVTT.
    blob BLOB NOT NULL REFERENCES blobs (hash),
    size_bytes INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX video_captions_by_stream ON video_captions (stream_id, created_at, id);
CREATE INDEX video_captions_by_blob ON video_captions (blob);
