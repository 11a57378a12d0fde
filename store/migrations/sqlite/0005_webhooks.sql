-- What happened, for webhooks and for the feed. An event goes once no delivery names it and its time is over.
CREATE TABLE events (
    -- The order of the commits: there is one writer, and no number is given twice.
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    event_type TEXT NOT NULL,
    -- In the account's feed; what was made for one endpoint alone is not.
    is_listed INTEGER NOT NULL CHECK (is_listed IN (0, 1)),
    -- Deliveries that name it.
    deliveries INTEGER NOT NULL CHECK (deliveries >= 0),
    created_at INTEGER NOT NULL,
    -- The envelope, byte for byte as every attempt sends it.
    body TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_account ON events (account_id, is_listed);
CREATE INDEX events_unnamed ON events (created_at) WHERE deliveries = 0;

-- The number of the last event about a resource, while there may be another one.
CREATE TABLE event_sequences (
    resource TEXT PRIMARY KEY,
    last INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX event_sequences_by_time ON event_sequences (updated_at);

-- How far back each account's feed has been cut.
CREATE TABLE event_feeds (
    account_id BLOB PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
    dropped_up_to INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Bytes that events, deliveries and attempts take, about; kept by the triggers below.
CREATE TABLE event_storage (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    bytes INTEGER NOT NULL
) STRICT;
INSERT INTO event_storage (only_row, bytes) VALUES (1, 0);

CREATE TABLE webhook_endpoints (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    url TEXT NOT NULL,
    -- A JSON array, as its owner gave it.
    event_types TEXT NOT NULL,
    description TEXT,
    status TEXT NOT NULL CHECK (status IN ('active', 'suspended', 'paused')),
    is_active INTEGER NOT NULL GENERATED ALWAYS AS (status <> 'paused') VIRTUAL,
    status_reason TEXT,
    -- Readable, since it signs.
    secret TEXT NOT NULL,
    -- Signs too, until its time.
    old_secret TEXT,
    old_secret_until INTEGER,
    consecutive_failures INTEGER NOT NULL DEFAULT 0,
    -- Of the failures in a row.
    first_failure_at INTEGER,
    last_success_at INTEGER,
    last_failure_at INTEGER,
    -- Of a suspended endpoint.
    next_probe_at INTEGER,
    -- What waited while it was suspended or paused is being put back into the order of the events.
    is_releasing INTEGER NOT NULL DEFAULT 0 CHECK (is_releasing IN (0, 1)),
    -- Rises when the owner decides about its health, so that what attempts found before does not undo that.
    revision INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- Its deliveries stay for a while.
    deleted_at INTEGER
) STRICT;
CREATE INDEX webhook_endpoints_by_account ON webhook_endpoints (account_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX webhook_endpoints_releasing ON webhook_endpoints (id) WHERE is_releasing = 1;
CREATE INDEX webhook_endpoints_deleted ON webhook_endpoints (deleted_at) WHERE deleted_at IS NOT NULL;

-- The event types of endpoints that are not deleted, by what an event looks for.
CREATE TABLE webhook_subscriptions (
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    -- Or `*`.
    event_type TEXT NOT NULL,
    endpoint_id BLOB NOT NULL REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
    PRIMARY KEY (account_id, event_type, endpoint_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_subscriptions_by_endpoint ON webhook_subscriptions (endpoint_id);

-- One event on its way to one endpoint. Leased in place (docs/decisions/0013): a row that is `delivering` is held by
-- `lease_owner` under its fence.
CREATE TABLE webhook_deliveries (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    endpoint_id BLOB NOT NULL REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
    event_seq INTEGER NOT NULL REFERENCES events (seq),
    event_type TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'delivering', 'retrying', 'delivered', 'failed')),
    http_status INTEGER,
    response_preview TEXT,
    error TEXT,
    -- Attempts of any kind, those that were cut short among them.
    attempts INTEGER NOT NULL DEFAULT 0,
    -- Attempts that failed and count: the place on the retry ladder.
    failures INTEGER NOT NULL DEFAULT 0,
    -- Asked for by the owner: one attempt, whatever the endpoint's state.
    is_replay INTEGER NOT NULL DEFAULT 0 CHECK (is_replay IN (0, 1)),
    due_at INTEGER NOT NULL,
    -- Rises with every claim; writes of an older owner are refused by it.
    fence INTEGER NOT NULL DEFAULT 0,
    lease_owner BLOB,
    lease_expires_at INTEGER,
    created_at INTEGER NOT NULL,
    last_attempt_at INTEGER,
    delivered_at INTEGER,
    -- When it was delivered or given up; null while it is open.
    ended_at INTEGER,
    CHECK ((status = 'delivering') = (lease_owner IS NOT NULL)),
    CHECK ((status IN ('delivered', 'failed')) = (ended_at IS NOT NULL)),
    UNIQUE (event_seq, endpoint_id)
) STRICT;
-- What waits, by turn, and in the order of the events.
CREATE INDEX webhook_deliveries_by_turn ON webhook_deliveries (endpoint_id, is_replay, due_at, event_seq)
    WHERE status IN ('pending', 'retrying');
CREATE INDEX webhook_deliveries_by_event ON webhook_deliveries (endpoint_id, is_replay, event_seq)
    WHERE status IN ('pending', 'retrying');
-- What waits out of the order of the events.
CREATE INDEX webhook_deliveries_to_rewind ON webhook_deliveries (endpoint_id, event_seq)
    WHERE status = 'retrying' AND is_replay = 0 AND due_at > created_at;
CREATE INDEX webhook_deliveries_in_flight ON webhook_deliveries (lease_owner, lease_expires_at)
    WHERE status = 'delivering';
-- What can go, by age.
CREATE INDEX webhook_deliveries_by_end ON webhook_deliveries (status, ended_at) WHERE ended_at IS NOT NULL;
-- Lists. Statuses stand first where they can: what is open then shares a few pages, however many endpoints there are.
CREATE INDEX webhook_deliveries_by_account ON webhook_deliveries (account_id, created_at, id);
CREATE INDEX webhook_deliveries_by_status ON webhook_deliveries (account_id, status, created_at, id);
CREATE INDEX webhook_deliveries_by_type ON webhook_deliveries (account_id, event_type, created_at, id);
CREATE INDEX webhook_deliveries_by_endpoint ON webhook_deliveries (endpoint_id, created_at, id);
CREATE INDEX webhook_deliveries_by_endpoint_and_status ON webhook_deliveries (status, endpoint_id, created_at, id)
    WHERE status <> 'delivered';

-- One request to an endpoint; committed before its first byte goes out.
CREATE TABLE webhook_attempts (
    delivery_seq INTEGER NOT NULL REFERENCES webhook_deliveries (seq) ON DELETE CASCADE,
    -- From 1.
    number INTEGER NOT NULL,
    -- `interrupted`: the service ended before the answer came.
    status TEXT NOT NULL CHECK (status IN ('running', 'delivered', 'failed', 'interrupted')),
    -- Whether it asked a suspended endpoint for a sign of life.
    is_probe INTEGER NOT NULL CHECK (is_probe IN (0, 1)),
    http_status INTEGER,
    error TEXT,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    PRIMARY KEY (delivery_seq, number)
) STRICT, WITHOUT ROWID;

-- A row's share of the indexes is counted with it, as a constant.
CREATE TRIGGER events_added AFTER INSERT ON events BEGIN
    UPDATE event_storage SET bytes = bytes + 160 + octet_length(NEW.body);
END;
CREATE TRIGGER events_removed AFTER DELETE ON events BEGIN
    UPDATE event_storage SET bytes = bytes - 160 - octet_length(OLD.body);
    INSERT INTO event_feeds (account_id, dropped_up_to)
        SELECT OLD.account_id, OLD.seq WHERE OLD.is_listed = 1 AND EXISTS (SELECT 1 FROM accounts WHERE id = OLD.account_id)
        ON CONFLICT (account_id) DO UPDATE SET dropped_up_to = max(dropped_up_to, excluded.dropped_up_to);
END;
CREATE TRIGGER webhook_deliveries_added AFTER INSERT ON webhook_deliveries BEGIN
    UPDATE event_storage SET bytes = bytes + 640;
END;
CREATE TRIGGER webhook_deliveries_answered AFTER UPDATE OF response_preview, error ON webhook_deliveries BEGIN
    UPDATE event_storage SET bytes = bytes
        + coalesce(octet_length(NEW.response_preview), 0) + coalesce(octet_length(NEW.error), 0)
        - coalesce(octet_length(OLD.response_preview), 0) - coalesce(octet_length(OLD.error), 0);
END;
CREATE TRIGGER webhook_deliveries_removed AFTER DELETE ON webhook_deliveries BEGIN
    UPDATE event_storage SET bytes = bytes - 640
        - coalesce(octet_length(OLD.response_preview), 0) - coalesce(octet_length(OLD.error), 0);
    UPDATE events SET deliveries = deliveries - 1 WHERE seq = OLD.event_seq;
END;
CREATE TRIGGER webhook_attempts_added AFTER INSERT ON webhook_attempts BEGIN
    UPDATE event_storage SET bytes = bytes + 64;
END;
CREATE TRIGGER webhook_attempts_ended AFTER UPDATE OF error ON webhook_attempts BEGIN
    UPDATE event_storage SET bytes = bytes
        + coalesce(octet_length(NEW.error), 0) - coalesce(octet_length(OLD.error), 0);
END;
CREATE TRIGGER webhook_attempts_removed AFTER DELETE ON webhook_attempts BEGIN
    UPDATE event_storage SET bytes = bytes - 64 - coalesce(octet_length(OLD.error), 0);
END;
