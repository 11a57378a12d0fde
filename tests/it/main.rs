//! The whole service as a user meets it: the real binary, real encoders, strict viewers.

mod hostile;
mod publish;
mod operations;
mod smoke;
mod support;
