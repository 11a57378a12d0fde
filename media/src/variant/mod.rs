//! Delivery URLs as canonical requests (decisions.md §5).
