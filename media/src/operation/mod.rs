//! The operation table (decisions.md §3): one row is one operation, for HTTP tools, workflow nodes and agents alike.
