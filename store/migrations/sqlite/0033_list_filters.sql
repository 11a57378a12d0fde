-- Filters and the order by name of lists of files, each decided in an index (store/src/file/file_list.rs).

-- The family of the media type, as `FileType` of store/src/file/file_filter.rs decides it.
ALTER TABLE files ADD COLUMN file_type TEXT NOT NULL DEFAULT 'other';
UPDATE files SET file_type = CASE
    WHEN mime_type LIKE 'image/%' THEN 'image'
    WHEN mime_type LIKE 'video/%' THEN 'video'
    WHEN mime_type LIKE 'audio/%' THEN 'audio'
    WHEN mime_type LIKE 'text/%'
        OR mime_type LIKE 'application/vnd.openxmlformats-officedocument.%'
        OR mime_type LIKE 'application/vnd.oasis.opendocument.%'
        OR mime_type LIKE 'application/vnd.ms-%'
        OR lower(mime_type) IN ('application/pdf', 'application/json', 'application/xml', 'application/yaml',
            'application/rtf', 'application/msword', 'application/epub+zip', 'application/x-subrip')
        THEN 'document'
    WHEN lower(mime_type) IN ('application/zip', 'application/gzip', 'application/x-tar', 'application/x-7z-compressed')
        THEN 'archive'
    ELSE 'other'
END;

-- Keys of the order by name (store/src/file/name_key.rs). The service writes those of earlier rows at its next start.
ALTER TABLE files ADD COLUMN name_key TEXT NOT NULL DEFAULT '';
ALTER TABLE folders ADD COLUMN name_key TEXT NOT NULL DEFAULT '';
CREATE INDEX files_without_name_key ON files (id) WHERE name_key = '';
CREATE INDEX folders_without_name_key ON folders (id) WHERE name_key = '';
DROP INDEX folders_without_search_name;

-- Each order of files with what is searched and filtered at its end, so that rows are read only where they match.
DROP INDEX files_by_account;
DROP INDEX files_by_account_name;
DROP INDEX files_by_account_size;
DROP INDEX files_by_folder;
DROP INDEX files_by_folder_name;
DROP INDEX files_by_folder_size;
DROP INDEX files_by_name;
CREATE INDEX files_by_account ON files (account_id, created_at, id, file_type);
CREATE INDEX files_by_account_name ON files (account_id, name_key, id, file_type, search_name);
CREATE INDEX files_by_account_size ON files (account_id, size_bytes, id, file_type);
CREATE INDEX files_by_folder ON files (account_id, folder_id, created_at, id, file_type);
CREATE INDEX files_by_folder_name ON files (account_id, folder_id, name_key, id, file_type, search_name);
CREATE INDEX files_by_folder_size ON files (account_id, folder_id, size_bytes, id, file_type);
CREATE INDEX files_by_name ON files (account_id, created_at, id, file_type, search_name);

DROP INDEX folders_by_place_name;
DROP INDEX folders_by_account_name;
CREATE INDEX folders_by_place_name ON folders (account_id, parent_id, name_key, id, search_name);
CREATE INDEX folders_by_account_name ON folders (account_id, name_key, id, search_name);

-- The tags of files, each with what a list of a tag's files is ordered and filtered by. Kept by the triggers below.
CREATE TABLE file_tags (
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    tag TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    file_id BLOB NOT NULL,
    folder_id BLOB,
    size_bytes INTEGER NOT NULL,
    file_type TEXT NOT NULL,
    name_key TEXT NOT NULL,
    PRIMARY KEY (account_id, tag, created_at, file_id)
) STRICT, WITHOUT ROWID;
INSERT INTO file_tags (account_id, tag, created_at, file_id, folder_id, size_bytes, file_type, name_key)
SELECT DISTINCT f.account_id, j.value, f.created_at, f.id, f.folder_id, f.size_bytes, f.file_type, f.name_key
FROM files f CROSS JOIN json_each(f.tags) j WHERE f.tags <> '[]';

CREATE TRIGGER file_tags_added AFTER INSERT ON files WHEN NEW.tags <> '[]' BEGIN
    INSERT INTO file_tags (account_id, tag, created_at, file_id, folder_id, size_bytes, file_type, name_key)
    SELECT DISTINCT NEW.account_id, value, NEW.created_at, NEW.id, NEW.folder_id, NEW.size_bytes, NEW.file_type, NEW.name_key
    FROM json_each(NEW.tags);
END;
CREATE TRIGGER file_tags_removed AFTER DELETE ON files WHEN OLD.tags <> '[]' BEGIN
    DELETE FROM file_tags
    WHERE account_id = OLD.account_id AND tag IN (SELECT value FROM json_each(OLD.tags))
        AND created_at = OLD.created_at AND file_id = OLD.id;
END;
CREATE TRIGGER file_tags_changed AFTER UPDATE OF tags, created_at, folder_id, size_bytes, file_type, name_key ON files
WHEN (OLD.tags <> '[]' OR NEW.tags <> '[]')
    AND (OLD.tags, OLD.created_at, OLD.folder_id, OLD.size_bytes, OLD.file_type, OLD.name_key)
        IS NOT (NEW.tags, NEW.created_at, NEW.folder_id, NEW.size_bytes, NEW.file_type, NEW.name_key)
BEGIN
    DELETE FROM file_tags
    WHERE account_id = OLD.account_id AND tag IN (SELECT value FROM json_each(OLD.tags))
        AND created_at = OLD.created_at AND file_id = OLD.id;
    INSERT INTO file_tags (account_id, tag, created_at, file_id, folder_id, size_bytes, file_type, name_key)
    SELECT DISTINCT NEW.account_id, value, NEW.created_at, NEW.id, NEW.folder_id, NEW.size_bytes, NEW.file_type, NEW.name_key
    FROM json_each(NEW.tags);
END;
