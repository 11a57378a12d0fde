-- Bytes in an object store (store/src/blob/pieces.rs).
-- NULL: the bytes are the file in {data_dir}/blobs. Else they are the objects b/{base}/{number}-{hash}.
ALTER TABLE blobs ADD COLUMN base UUID;
-- The first 16 bytes of the SHA-256 of each piece, one after the other.
ALTER TABLE blobs ADD COLUMN piece_hashes BYTEA CHECK ((base IS NULL) = (piece_hashes IS NULL));
CREATE UNIQUE INDEX blobs_by_base ON blobs (base) WHERE base IS NOT NULL;

-- As of blobs, until the upload is a file; only of complete pieces.
ALTER TABLE tus_uploads ADD COLUMN base UUID;
ALTER TABLE tus_uploads ADD COLUMN piece_hashes BYTEA;
-- Number of the object b/{base}/t{tail} with the bytes after the last complete piece; 0: there are none.
ALTER TABLE tus_uploads ADD COLUMN tail BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tus_uploads ADD COLUMN tail_hash BYTEA CHECK (tail_hash IS NULL OR length(tail_hash) = 16);
CREATE UNIQUE INDEX tus_uploads_by_base ON tus_uploads (base) WHERE base IS NOT NULL;
