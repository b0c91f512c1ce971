//! The place of the CUDA engine: one cooperative kernel per plan, specialised by NVRTC. Nothing is here yet.
