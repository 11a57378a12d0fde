-- Each connection has a row of its own: two encoders of one input that reach two nodes, before each knows of the other, are two.
-- A wider key, since programs before run beside this schema: they insert without ON CONFLICT and delete by `input_id`.
ALTER TABLE live_connections DROP CONSTRAINT live_connections_pkey, ADD PRIMARY KEY (input_id, id);
