//! Init sections (`ftyp`, `moov`).
