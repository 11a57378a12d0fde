//! The table of deliveries as plain vectors: what the store's verbs promise, done in the most obvious way.

use std::sync::Arc;

use sluice_store::{
    Secret,
    webhooks::{
        Attempted, ClaimRequest, Claimed, Endpoint, EndpointHealth, EndpointStatus, Lane, Next,
        What,
    },
};
use uuid::Uuid;

/// A delivery, and everything that was done about it.
#[derive(Debug)]
pub struct Row {
    pub id: Uuid,
    /// Index of the endpoint.
    pub of: usize,
    /// Sequence number of its event.
    pub seq: usize,
    pub status: Status,
    pub due_at: i64,
    pub created_at: i64,
    pub failures: u32,
    pub fence: i64,
    pub is_replay: bool,
    pub attempts: Vec<Made>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Waiting,
    Delivering,
    Delivered,
    Failed,
}

/// The row of an attempt.
#[derive(Clone, Debug)]
pub struct Made {
    /// By the scheduler's clock.
    pub began_at: i64,
    /// Among all attempts of the run.
    pub order: usize,
    pub what: What,
    pub end: Option<End>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum End {
    Recorded { ended_at: i64, next: Next },
    Interrupted,
}

#[derive(Debug, Default)]
pub struct Table {
    pub endpoints: Vec<Endpoint>,
    pub rows: Vec<Row>,
    pub attempts: usize,
}

impl Table {
    pub fn add_endpoint(&mut self) -> usize {
        let index = self.endpoints.len();
        self.endpoints.push(Endpoint {
            id: Uuid::from_u128(index as u128),
            account_id: Uuid::nil(),
            url: format!("http://receiver-{index}.test/"),
            event_types: vec!["*".into()],
            description: None,
            is_active: true,
            status: EndpointStatus::Active,
            status_reason: None,
            secret: Secret::new("whsec_simulated"),
            old_secret: None,
            old_secret_until: None,
            consecutive_failures: 0,
            first_failure_at: None,
            last_success_at: None,
            last_failure_at: None,
            next_probe_at: None,
            is_releasing: false,
            revision: 0,
            status_since: 0,
            request_changed_at: None,
            created_at: 0,
            updated_at: 0,
        });
        index
    }

    /// An event for one endpoint; nothing when that is paused.
    pub fn add_event(&mut self, of: usize, now_ms: i64) {
        if self.endpoints[of].status == EndpointStatus::Paused {
            return;
        }
        let seq = self.rows.len();
        self.rows.push(Row {
            id: Uuid::from_u128(1_000_000 + seq as u128),
            of,
            seq,
            status: Status::Waiting,
            due_at: now_ms,
            created_at: now_ms,
            failures: 0,
            fence: 0,
            is_replay: false,
            attempts: Vec::new(),
        });
    }

    pub fn lanes(&self, also: &[Uuid]) -> Vec<Lane> {
        let lane = |(index, endpoint): (usize, &Endpoint)| {
            let first = |is_replay| {
                let waiting = self.waiting(index, is_replay);
                waiting.map(|row| row.due_at).min()
            };
            let lane = Lane {
                endpoint: endpoint.clone(),
                next_due_at: first(false),
                replay_due_at: first(true),
            };
            let is_open = lane.next_due_at.is_some() || lane.replay_due_at.is_some();
            (is_open || endpoint.is_releasing || also.contains(&endpoint.id)).then_some(lane)
        };
        self.endpoints.iter().enumerate().filter_map(lane).collect()
    }

    fn waiting(&self, of: usize, is_replay: bool) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| {
            row.of == of && row.status == Status::Waiting && row.is_replay == is_replay
        })
    }

    pub fn claim(&mut self, wanted: &[ClaimRequest], horizon_ms: i64, now_ms: i64) -> Vec<Claimed> {
        let mut claimed = Vec::new();
        for one in wanted {
            let of = self.index_of(one.endpoint_id);
            let endpoint = &self.endpoints[of];
            let is_due = |row: &&Row| row.due_at <= now_ms || row.due_at > now_ms.max(horizon_ms);
            let mut rows: Vec<&Row> = match one.what {
                What::Due if endpoint.status != EndpointStatus::Active => Vec::new(),
                What::Due if endpoint.is_releasing => Vec::new(),
                What::Due => self.waiting(of, false).filter(is_due).collect(),
                What::Probe if endpoint.status != EndpointStatus::Suspended => Vec::new(),
                What::Probe => self.waiting(of, false).collect(),
                What::Replay => self.waiting(of, true).filter(is_due).collect(),
            };
            match one.what {
                What::Probe => rows.sort_by_key(|row| row.seq),
                _ => rows.sort_by_key(|row| (row.due_at > now_ms, row.due_at, row.seq)),
            }
            rows.truncate(one.rows as usize);
            let rows: Vec<usize> = rows.iter().map(|row| row.seq).collect();
            claimed.extend(rows.iter().map(|row| self.take(*row, one.what, now_ms)));
        }
        claimed
    }

    fn take(&mut self, row: usize, what: What, now_ms: i64) -> Claimed {
        let row = &mut self.rows[row];
        row.status = Status::Delivering;
        row.fence += 1;
        self.attempts += 1;
        row.attempts.push(Made {
            began_at: now_ms,
            order: self.attempts,
            what,
            end: None,
        });
        Claimed {
            delivery_id: row.id,
            endpoint_id: self.endpoints[row.of].id,
            fence: row.fence,
            number: row.attempts.len() as u32,
            failures: row.failures,
            is_replay: row.is_replay,
            is_probe: what == What::Probe,
            event_id: Uuid::from_u128(row.seq as u128),
            event_type: "file.uploaded".into(),
            body: Arc::from("{}"),
            created_at: row.created_at,
        }
    }

    /// Returns the rows that were recorded.
    pub fn record(&mut self, attempted: &[Attempted]) -> Vec<usize> {
        let mut recorded = Vec::new();
        for one in attempted {
            let row = self.rows.iter_mut().find(|row| row.id == one.delivery_id);
            let row = row.expect("nothing is deleted");
            if row.fence != one.fence || row.status != Status::Delivering {
                continue;
            }
            row.attempts[one.number as usize - 1].end = Some(End::Recorded {
                ended_at: one.ended_at,
                next: one.next,
            });
            row.status = match one.next {
                Next::Delivered => Status::Delivered,
                Next::Failed => Status::Failed,
                Next::RetryAt(_) | Next::Wait => Status::Waiting,
            };
            if let Next::RetryAt(at) = one.next {
                row.due_at = at;
            }
            row.failures += u32::from(matches!(one.next, Next::RetryAt(_) | Next::Failed));
            row.is_replay &= row.status == Status::Waiting;
            recorded.push(row.seq);
        }
        recorded
    }

    pub fn set_health(&mut self, endpoint_id: Uuid, health: &EndpointHealth) {
        let index = self.index_of(endpoint_id);
        let endpoint = &mut self.endpoints[index];
        endpoint.last_success_at = health.last_success_at;
        endpoint.last_failure_at = health.last_failure_at;
        if endpoint.status == EndpointStatus::Paused || endpoint.revision != health.revision {
            return;
        }
        endpoint.status = health.status;
        endpoint.status_reason = health.status_reason.clone();
        endpoint.consecutive_failures = health.consecutive_failures;
        endpoint.first_failure_at = health.first_failure_at;
        endpoint.next_probe_at = health.next_probe_at;
        endpoint.is_releasing = health.is_releasing;
    }

    /// Puts all that waits back into the order of the events.
    pub fn release(&mut self, endpoint_id: Uuid) {
        let of = self.index_of(endpoint_id);
        for row in self.rows.iter_mut().filter(|row| row.of == of) {
            if row.status == Status::Waiting && !row.is_replay {
                row.due_at = row.due_at.min(row.created_at);
            }
        }
        self.endpoints[of].is_releasing = false;
    }

    pub fn interrupt(&mut self) {
        for row in &mut self.rows {
            if row.status == Status::Delivering {
                row.status = Status::Waiting;
                let last = row.attempts.last_mut().expect("it is being attempted");
                last.end = Some(End::Interrupted);
            }
        }
    }

    /// Replays a delivery that has ended, or brings the next attempt of another forward.
    pub fn replay(&mut self, row: usize, now_ms: i64) {
        let row = &mut self.rows[row];
        match row.status {
            Status::Delivering => {}
            Status::Waiting => row.due_at = row.due_at.min(now_ms),
            Status::Delivered | Status::Failed => {
                row.status = Status::Waiting;
                row.is_replay = true;
                row.due_at = now_ms;
            }
        }
    }

    /// Its owner resumes an endpoint.
    pub fn resume(&mut self, of: usize) {
        let endpoint = &mut self.endpoints[of];
        endpoint.status = EndpointStatus::Active;
        endpoint.consecutive_failures = 0;
        endpoint.first_failure_at = None;
        endpoint.is_releasing = true;
        endpoint.revision += 1;
    }

    pub fn index_of(&self, endpoint_id: Uuid) -> usize {
        endpoint_id.as_u128() as usize
    }

    pub fn row_of(&self, delivery_id: Uuid) -> usize {
        (delivery_id.as_u128() - 1_000_000) as usize
    }
}
