//! Progress of a stream while it waits in the queue of the workers.

use sluice_media::{
    av::{AvTask, Report},
    task::Task,
};
use tokio::sync::Semaphore;

use super::*;
use crate::{
    compute::{Assignment, Error, Finished},
    fixtures::Performer,
};

/// The workers of a site, behind a line in which posters wait until a test lets them through.
struct Line {
    workers: Arc<Fake>,
    turns: Semaphore,
}

impl Performer for Line {
    async fn perform(&self, assignment: Assignment) -> Result<Finished, Error> {
        let is_poster =
            matches!(&assignment.task, Task::Av(task) if matches!(**task, AvTask::Still(_)));
        if is_poster {
            let waiting = Report::Waiting { place: 2 };
            assignment.follow.report_from_async(waiting).await;
            self.turns.acquire().await.unwrap().forget();
        }
        self.workers.perform(assignment).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_shows_its_place_while_its_frames_wait() {
    let mut site = Site::open().await;
    let line = Arc::new(Line {
        workers: site.workers.clone(),
        turns: Semaphore::new(0),
    });
    site.kill().await;
    site.start_with(line.clone()).await;
    let stream = site.create().await;
    let place = || site.streams.progress(&stream).queue_place;
    until("its place is shown", async || place() == Some(2)).await;
    line.turns.add_permits(1);
    until("it waits no longer", async || place().is_none()).await;
    site.workers.play(SEGMENTS as usize);
    site.until_status(stream.id, StreamStatus::Ready).await;
    site.check_whole(stream.id, SEGMENTS).await;
}
