-- Lists of files by name and by size, of an account and of a folder, in the order of an index (store/src/file/file_list.rs).
CREATE INDEX files_by_account_name ON files (account_id, search_name, id);
CREATE INDEX files_by_account_size ON files (account_id, size_bytes, id);
CREATE INDEX files_by_folder_name ON files (account_id, folder_id, search_name, id);
CREATE INDEX files_by_folder_size ON files (account_id, folder_id, size_bytes, id);

-- Sums over the files that lie in a folder, without those in its subfolders. x'' is the top.
CREATE TABLE folder_totals (
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    folder_id BLOB NOT NULL,
    files INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (account_id, folder_id)
) STRICT, WITHOUT ROWID;
INSERT INTO folder_totals (account_id, folder_id, files, bytes)
SELECT account_id, coalesce(folder_id, x''), count(*), sum(size_bytes) FROM files GROUP BY account_id, folder_id;

CREATE TRIGGER files_added AFTER INSERT ON files BEGIN
    INSERT INTO folder_totals (account_id, folder_id, files, bytes)
    VALUES (NEW.account_id, coalesce(NEW.folder_id, x''), 1, NEW.size_bytes)
    ON CONFLICT (account_id, folder_id) DO UPDATE SET files = files + 1, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER files_removed AFTER DELETE ON files BEGIN
    UPDATE folder_totals SET files = files - 1, bytes = bytes - OLD.size_bytes
    WHERE account_id = OLD.account_id AND folder_id = coalesce(OLD.folder_id, x'');
    DELETE FROM folder_totals
    WHERE account_id = OLD.account_id AND folder_id = coalesce(OLD.folder_id, x'') AND files <= 0;
END;
CREATE TRIGGER files_moved AFTER UPDATE OF folder_id ON files WHEN OLD.folder_id IS NOT NEW.folder_id BEGIN
    UPDATE folder_totals SET files = files - 1, bytes = bytes - OLD.size_bytes
    WHERE account_id = OLD.account_id AND folder_id = coalesce(OLD.folder_id, x'');
    DELETE FROM folder_totals
    WHERE account_id = OLD.account_id AND folder_id = coalesce(OLD.folder_id, x'') AND files <= 0;
    INSERT INTO folder_totals (account_id, folder_id, files, bytes)
    VALUES (NEW.account_id, coalesce(NEW.folder_id, x''), 1, NEW.size_bytes)
    ON CONFLICT (account_id, folder_id) DO UPDATE SET files = files + 1, bytes = bytes + excluded.bytes;
END;

-- The name of a folder in lower case, for searching and sorting. SQLite folds ASCII only: the service writes these at its next start.
ALTER TABLE folders ADD COLUMN search_name TEXT NOT NULL DEFAULT '';
CREATE INDEX folders_without_search_name ON folders (id) WHERE search_name = '';
CREATE INDEX folders_by_place_name ON folders (account_id, parent_id, search_name, id);
CREATE INDEX folders_by_account_name ON folders (account_id, search_name, id);

-- All links of an account, newest first.
DROP INDEX shares_by_account;
CREATE INDEX shares_by_account ON shares (account_id, created_at, id);
