-- Tries are counted when work on a row begins to run, not when the row is claimed (docs/decisions/0036).

ALTER TABLE work RENAME COLUMN claims TO begins;
-- What was counted so far were claims, waiting ones among them.
UPDATE work SET begins = 0;
-- Work under the present lease has begun to run.
ALTER TABLE work ADD COLUMN is_begun INTEGER NOT NULL DEFAULT 0 CHECK (is_begun IN (0, 1));
-- It was running when the service died: of such rows one at a time is leased.
ALTER TABLE work ADD COLUMN is_suspect INTEGER NOT NULL DEFAULT 0 CHECK (is_suspect IN (0, 1));
CREATE INDEX work_suspects ON work (kind, lane, due_at) WHERE is_suspect = 1;
