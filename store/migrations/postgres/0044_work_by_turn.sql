-- Many rows may be due at one time: a claim then sorted all of them by their ids. (The table is small: it has what is not done yet.)
DROP INDEX work_by_turn;
CREATE INDEX work_by_turn ON work (kind, lane, due_at, id);
