//! The worker's loop: takes a job, performs it, answers; ends when its socket closes.
