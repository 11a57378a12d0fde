-- Since when an endpoint has its status.
ALTER TABLE webhook_endpoints ADD COLUMN status_since INTEGER NOT NULL DEFAULT 0;
UPDATE webhook_endpoints SET status_since = updated_at;
-- When its URL or its secret was last changed; null: not since it was made.
ALTER TABLE webhook_endpoints ADD COLUMN request_changed_at INTEGER;

-- The time that the attempt's headers name, in milliseconds; null until it has ended.
ALTER TABLE webhook_attempts ADD COLUMN signed_at INTEGER;

-- An event by its id, as webhooks show it.
CREATE INDEX events_by_id ON events (id);
-- Lists by the last answer; the endpoint is in it so that a filter by it reads no row.
CREATE INDEX webhook_deliveries_by_http_status ON webhook_deliveries (account_id, http_status, created_at, id, endpoint_id)
    WHERE http_status IS NOT NULL;

CREATE INDEX jobs_by_type ON jobs (account_id, job_type, created_at, id);
