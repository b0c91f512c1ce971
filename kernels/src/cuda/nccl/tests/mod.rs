//! The calls of ranks, on threads and in the host's memory: they go to a library of this project that has NCCL's
//! symbols, and checks NCCL's rules (`kernels/tests/nccl/nccl.c`).

mod broken;
mod library;
mod programs;
mod steps;
mod world;
