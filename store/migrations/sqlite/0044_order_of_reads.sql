-- Many rows may be due at one time: a claim then sorted all of them by their ids. (PostgreSQL has another index of events, too.)
DROP INDEX work_by_turn;
CREATE INDEX work_by_turn ON work (kind, lane, due_at, id);
