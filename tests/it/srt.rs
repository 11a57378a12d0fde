//! SRT as an encoder's user meets it: the pasted address, what a refusal shows, and a line or a peer that misbehaves.

mod gateway;
mod hostile;
mod loss;
mod publish;
mod refusals;
mod transmit;
mod wire;
