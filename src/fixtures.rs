//! Fixtures of this crate's tests: workers that render by writing down the task.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use futures_util::future::{BoxFuture, FutureExt as _};
use sluice_actors::{
    compute::{Assignment, Error, Finished, Lane},
    convert::Workers,
};
use sluice_media::task::{Done, Failure, FailureCode, Limits, Task};

use crate::config::Config;

/// Workers that answer with the task's words, and count the tasks of all clones; a JPEG of quality 1 does not decode.
#[derive(Clone, Default)]
pub(crate) struct Painter(Arc<AtomicUsize>);

impl Painter {
    pub(crate) fn tasks(&self) -> usize {
        self.0.load(SeqCst)
    }
}

impl Workers for Painter {
    fn run(&self, _: Lane, assignment: Assignment) -> BoxFuture<'_, Result<Finished, Error>> {
        self.0.fetch_add(1, SeqCst);
        async move {
            if let Task::Render(render) = &assignment.task
                && render.output.quality == 1
            {
                let failure = Failure::new(FailureCode::Undecodable, "the file does not decode");
                return Err(Error::Failed(failure));
            }
            Ok(Finished {
                done: Done::default(),
                bytes: vec![format!("{:?}", assignment.task).into()],
            })
        }
        .boxed()
    }

    fn limits(&self) -> Limits {
        Config::default().image_workers.limits()
    }

    fn width(&self) -> usize {
        1
    }

    fn signs(&self) -> u64 {
        0
    }

    fn refused(&self) -> Option<String> {
        None
    }
}
