-- Names are searched in the index alone, in the order of a list, without a look at each row.
CREATE INDEX files_by_name ON files (account_id, created_at, id, search_name);
