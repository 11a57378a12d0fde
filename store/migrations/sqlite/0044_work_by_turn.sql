-- As on PostgreSQL, where many rows that are due at one time were sorted by their ids at each claim.
DROP INDEX work_by_turn;
CREATE INDEX work_by_turn ON work (kind, lane, due_at, id);
