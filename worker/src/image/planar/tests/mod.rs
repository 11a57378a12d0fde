//! The planar path against libvips on the same images, on bytes that are wrong, and on requests that are not for it.

mod material;
mod paths;
mod rejections;
