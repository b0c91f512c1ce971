//! What ranks issue, on threads and in the host's memory: the calls go to a library of our own that has NCCL's symbols,
//! and sees what NCCL demands (`kernels/tests/nccl/nccl.c`).

mod broken;
mod library;
mod programs;
mod steps;
mod world;
