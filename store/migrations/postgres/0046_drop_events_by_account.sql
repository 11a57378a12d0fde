-- events_in_order has its columns.
DROP INDEX events_by_account;
