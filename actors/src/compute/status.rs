//! State of image, video and audio workers for `/readyz`, `sluice doctor` and `/metrics` (`image_workers`,
//! `image_tasks_waiting`, `video_tasks`).

use std::time::{Duration, Instant};

use sluice_worker::protocol::Layers;

use crate::metric::{Metric, Sample};

/// State of the workers at one moment: of the image workers, but for `video`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolStatus {
    /// Processes that are up.
    pub workers: usize,
    /// Processes by the settings.
    pub most: usize,
    /// Tasks that run.
    pub busy: usize,
    /// Tasks that wait for a worker, over both lanes.
    pub waiting: usize,
    /// Time for which the first of them has waited.
    pub oldest_wait: Duration,
    /// Tasks that have ended since the service started, in any way.
    pub ended: u64,
    /// Processes that were started in place of another since the service started.
    pub replaced: u64,
    /// Processes that were killed for a deadline or because no caller waited any more.
    pub killed: u64,
    /// Processes that ended without an explanation since the service started.
    pub died: u64,
    pub last_death: Option<WorkerDeath>,
    /// The sandbox of the workers; nothing before the first is up.
    pub layers: Layers,
    /// Reason why no work is done, or why it keeps failing, in words for the operator.
    pub refused: Option<String>,
    pub video: VideoStatus,
}

impl PoolStatus {
    pub(super) fn metrics(&self) -> Vec<Metric> {
        let video = &self.video;
        let tasks = [("short", video.short), ("long", video.long)];
        let tasks = tasks.into_iter().flat_map(|(queue, of)| {
            [("running", of.running), ("waiting", of.waiting)].map(|(state, number)| {
                Sample::new(
                    vec![("queue", queue.into()), ("state", state.into())],
                    number,
                )
            })
        });
        vec![
            Metric::by_label(
                "image_workers",
                "Processes that decode images, by what they do now",
                "state",
                [
                    ("idle", self.workers.saturating_sub(self.busy)),
                    ("busy", self.busy),
                ],
            ),
            Metric::gauge(
                "image_tasks_waiting",
                "Tasks that wait for a worker",
                self.waiting,
            ),
            Metric::gauge(
                "image_workers_replaced",
                "Workers started in place of another",
                self.replaced,
            ),
            Metric::gauge(
                "image_workers_killed",
                "Workers killed for a deadline or because no caller waited any more",
                self.killed,
            ),
            Metric::samples(
                "video_tasks",
                "Work on video and audio, by queue and by what it does now",
                tasks.collect(),
            ),
            Metric::gauge(
                "video_tasks_ended",
                "Work on video and audio that has ended in any way since the start",
                video.ended,
            ),
            Metric::gauge(
                "video_tasks_killed",
                "Of it, what was killed for a deadline, a silence or because no caller waited any more",
                video.killed,
            ),
            Metric::gauge(
                "video_tasks_retried",
                "Work on video and audio that was tried again after its process died",
                video.retried,
            ),
        ]
    }
}

/// State of the video and audio workers at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VideoStatus {
    pub short: QueueStatus,
    pub long: QueueStatus,
    /// Tasks of the short queue that may run at a time.
    pub most_short: usize,
    pub most_long: usize,
    /// Tasks that have ended since the service started, in any way.
    pub ended: u64,
    /// Reports of tasks since the service started.
    pub reports: u64,
    /// Tasks that were tried again after their process died.
    pub retried: u64,
    /// Processes that were killed for a deadline, a silence or because no caller waited any more.
    pub killed: u64,
    /// Processes that ended without an explanation.
    pub died: u64,
    pub last_death: Option<WorkerDeath>,
    /// The sandbox of the processes; nothing before the first was up.
    pub layers: Layers,
    /// Reason why no work is done, or why it keeps failing, in words for the operator.
    pub refused: Option<String>,
}

/// State of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStatus {
    pub running: usize,
    pub waiting: usize,
    /// Time for which the first of them has waited.
    pub oldest_wait: Duration,
}

/// End of a process without an explanation, such as a signal from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerDeath {
    pub at: Instant,
    /// Reason, in words for the operator.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::MetricValue;

    #[test]
    fn idle_workers_and_each_queue_are_shown() {
        let status = PoolStatus {
            workers: 2,
            busy: 1,
            video: VideoStatus {
                long: QueueStatus {
                    running: 1,
                    waiting: 7,
                    ..QueueStatus::default()
                },
                ..VideoStatus::default()
            },
            ..PoolStatus::default()
        };
        let metrics = status.metrics();
        let samples = |name: &str| -> Vec<(String, f64)> {
            let metric = metrics.iter().find(|it| it.name == name).unwrap();
            let MetricValue::Gauge(samples) = &metric.value else {
                panic!("{name} is a gauge");
            };
            let labels = |sample: &Sample| -> Vec<String> {
                let values = sample.labels.iter().map(|(_, value)| value.to_string());
                values.collect()
            };
            let samples = samples.iter().map(|it| (labels(it).join(" "), it.value));
            samples.collect()
        };
        let workers = [("idle".to_owned(), 1.0), ("busy".to_owned(), 1.0)];
        assert_eq!(samples("image_workers"), workers);
        let tasks = [
            ("short running".to_owned(), 0.0),
            ("short waiting".to_owned(), 0.0),
            ("long running".to_owned(), 1.0),
            ("long waiting".to_owned(), 7.0),
        ];
        assert_eq!(samples("video_tasks"), tasks);
    }
}
