-- Media of recorded broadcasts in an object store, until the recording is stored as files (store/src/live/live_segments.rs).
CREATE TABLE live_segments (
    -- Lower-case hexadecimal, as in recordings; the row of the recording may come later.
    broadcast TEXT COLLATE "C" NOT NULL,
    -- Of the file in the folder of the recording: {msn}.m4s, or init{number}.mp4.
    name TEXT COLLATE "C" NOT NULL,
    -- Its line of the recording's index, in JSON.
    entry TEXT COLLATE "C" NOT NULL,
    -- Of the owner of the broadcast.
    fence BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    -- As of blobs.
    base UUID NOT NULL,
    piece_hashes BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (broadcast, name)
);
CREATE UNIQUE INDEX live_segments_by_base ON live_segments (base);
