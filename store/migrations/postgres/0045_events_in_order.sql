-- Each index of SQLite ends with the number of its row; here it does not, and a feed was read by a walk over the events of every
-- account, or by a sort of all events of one. Events can be read while it is made; the old index goes in a migration of its own,
-- since a transaction that holds two locks of a large table may wait for one that waits for it.
CREATE INDEX events_in_order ON events (account_id, is_listed, seq);
