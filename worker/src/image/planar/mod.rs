//! The planar path: JPEG → planes at a DCT scale → resized planes → JPEG, WebP or AVIF.
