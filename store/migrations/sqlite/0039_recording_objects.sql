-- Media of recorded broadcasts in an object store, until the recording is stored as files (store/src/live/live_segments.rs).
CREATE TABLE live_segments (
    -- Lower-case hexadecimal, as in recordings; the row of the recording may come later.
    broadcast TEXT NOT NULL,
    -- Of the file in the folder of the recording: {msn}.m4s, or init{number}.mp4.
    name TEXT NOT NULL,
    -- Its line of the recording's index, in JSON.
    entry TEXT NOT NULL,
    -- Of the owner of the broadcast.
    fence INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    -- As of blobs.
    base BLOB NOT NULL CHECK (length(base) = 16),
    piece_hashes BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (broadcast, name)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX live_segments_by_base ON live_segments (base);
