-- The segments of a stream outlast it until a sweep has removed them: a day's stream has more than one turn of the writer
-- may delete (store/src/video/sweep.rs).

CREATE TABLE video_segments_anew (
    -- A stream of video_streams, or of video_discarded.
    stream_id BLOB NOT NULL,
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
INSERT INTO video_segments_anew SELECT * FROM video_segments;
DROP TABLE video_segments;
ALTER TABLE video_segments_anew RENAME TO video_segments;

-- Streams that are gone or have failed, and whose segments have not been swept.
CREATE TABLE video_discarded (
    stream_id BLOB PRIMARY KEY CHECK (length(stream_id) = 16)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER video_streams_deleted AFTER DELETE ON video_streams BEGIN
    INSERT OR IGNORE INTO video_discarded (stream_id) VALUES (OLD.id);
END;

CREATE TRIGGER video_streams_failed AFTER UPDATE OF status ON video_streams WHEN NEW.status = 'failed' BEGIN
    INSERT OR IGNORE INTO video_discarded (stream_id) VALUES (NEW.id);
END;
