-- Bytes of video streams in an object store (store/src/video/objects.rs): the objects v/{stream_id}/{object}.
CREATE TABLE video_objects (
    -- A stream of video_streams, or of video_discarded.
    stream_id UUID NOT NULL,
    -- Name of the file in the stream's folder.
    file TEXT COLLATE "C" NOT NULL,
    -- Bytes of the file.
    "offset" BIGINT NOT NULL,
    length BIGINT NOT NULL CHECK (length > 0),
    object UUID NOT NULL UNIQUE,
    -- The first bytes of the SHA-256.
    hash BYTEA NOT NULL CHECK (length(hash) = 16),
    PRIMARY KEY (stream_id, file, "offset")
);
