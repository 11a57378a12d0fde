-- Totals of a broadcast for its input's history: media bytes received, the most viewers at a time (NULL: not counted), and
-- when it was last seen on air.
ALTER TABLE broadcasts ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE broadcasts ADD COLUMN peak_viewers INTEGER;
ALTER TABLE broadcasts ADD COLUMN seen_at INTEGER;
