-- PostgreSQL alone needs it: each index of SQLite ends with the number of its row.
SELECT 1;
