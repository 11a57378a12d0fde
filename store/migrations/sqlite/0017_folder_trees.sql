-- The folders below a folder are walked in the index alone.
DROP INDEX folders_by_parent;
CREATE INDEX folders_by_parent ON folders (parent_id, id);
