-- Progress of work under a lease, which its node writes each moment for the other nodes: null on a node that is alone.
ALTER TABLE work ADD COLUMN share BIGINT;
ALTER TABLE work ADD COLUMN queue_place BIGINT;
