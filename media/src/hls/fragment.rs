//! Movie fragments (`moof`, `mdat`; ISO/IEC 14496-12 §8.8), written by hand: one allocation, one copy of the payload.
