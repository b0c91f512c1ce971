//! Kernels without a GPU: NVRTC compiles them, and their texts run on CPU threads, where they must do exactly the
//! proved ops and leave the host engine's bits.

mod choice;
mod compile;
mod counts;
mod data;
mod emitter;
mod litmus;
mod ptx;
mod runs;
mod sass;
mod splits;
mod sweep;
mod trace;
mod walks;
