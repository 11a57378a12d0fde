-- Bytes of video streams in an object store (store/src/video/objects.rs): the objects v/{stream_id}/{object}.
CREATE TABLE video_objects (
    -- A stream of video_streams, or of video_discarded.
    stream_id BLOB NOT NULL CHECK (length(stream_id) = 16),
    -- Name of the file in the stream's folder.
    file TEXT NOT NULL,
    -- Bytes of the file.
    offset INTEGER NOT NULL,
    length INTEGER NOT NULL CHECK (length > 0),
    object BLOB NOT NULL UNIQUE CHECK (length(object) = 16),
    -- The first bytes of the SHA-256.
    hash BLOB NOT NULL CHECK (length(hash) = 16),
    PRIMARY KEY (stream_id, file, offset)
) STRICT, WITHOUT ROWID;
