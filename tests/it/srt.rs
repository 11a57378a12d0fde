//! SRT as an encoder's user meets it: the pasted address, what a rejection shows, and a line or a peer that misbehaves.

mod gateway;
mod hostile;
mod loss;
mod publish;
mod rejections;
mod transmit;
mod wire;
