//! Reading and writing the files that tensors come from and go to.
//!
//! Every reader takes files from outside: a bad one gives a typed error, and no reader allocates more than a small
//! multiple of what the file holds.

pub mod audio;
pub mod image;
pub mod literal;
pub mod npy;
pub mod npz;
