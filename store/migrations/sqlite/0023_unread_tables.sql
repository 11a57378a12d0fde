-- Rows that nothing read: segments are in the window journal, and rendered variants in the cache.
DROP TABLE live_segments;
DROP TABLE variants;
