-- The order in which events and work are read is in their indexes. Each index of SQLite ends with the number of its row; here it does
-- not, and a feed was read by a walk over the events of every account, or by a sort of all events of one.
DROP INDEX events_by_account;
CREATE INDEX events_by_account ON events (account_id, is_listed, seq);

-- Many rows may be due at one time: a claim then sorted all of them by their ids.
DROP INDEX work_by_turn;
CREATE INDEX work_by_turn ON work (kind, lane, due_at, id);
