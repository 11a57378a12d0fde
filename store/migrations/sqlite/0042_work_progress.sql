-- Progress of work under a lease, which nodes of a cluster write each moment for the other nodes; a cluster has its rows on
-- PostgreSQL, and here it is always null.
ALTER TABLE work ADD COLUMN share INTEGER;
ALTER TABLE work ADD COLUMN queue_place INTEGER;
