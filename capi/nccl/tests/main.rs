//! Programs that call NCCL through the library: before the real NCCL of the wheel, which `cargo xtask nccl` installs
//! below `target/nccl`, and before stand-ins. No test needs a GPU.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod alone;
#[path = "../../../tests/driver/variables.rs"]
mod driver;
mod echo;
mod fuzz;
mod jobs;
mod loaders;
mod made;
mod names;
mod over;
mod python;
mod rows;
mod stand_in;
