//! The service's handle of one worker process: spawn, one job at a time, deadline, kill.
