//! What a worker gives up before it reads the first foreign byte.
