//! Dynamic children of one kind of durable work: claim by lease, run, forget.
