//! The `roundelay` command as a person or a program meets it: exit codes, JSON, bad input, pipes.

#[path = "command/bad_input.rs"]
mod bad_input;
#[path = "command/bench.rs"]
mod bench;
#[path = "command/call.rs"]
pub(crate) mod call;
#[path = "command/cases.rs"]
mod cases;
#[path = "command/certificates.rs"]
mod certificates;
#[path = "command/constants.rs"]
mod constants;
#[path = "command/cuda.rs"]
mod cuda;
#[path = "command/curves.rs"]
mod curves;
#[path = "command/device.rs"]
mod device;
#[path = "command/editing.rs"]
mod editing;
#[path = "command/emit_coll.rs"]
mod emit_coll;
#[path = "command/endless.rs"]
mod endless;
#[path = "command/executor.rs"]
mod executor;
#[path = "command/executor_found.rs"]
mod executor_found;
#[path = "command/flags.rs"]
mod flags;
#[path = "command/habits.rs"]
mod habits;
#[path = "command/json.rs"]
mod json;
#[path = "command/kernel_judge.rs"]
mod kernel_judge;
#[path = "command/kernel_pairs.rs"]
mod kernel_pairs;
#[cfg(target_os = "linux")]
#[path = "command/launch.rs"]
mod launch;
#[cfg(target_os = "linux")]
#[path = "command/limits.rs"]
mod limits;
#[path = "command/list.rs"]
mod list;
#[path = "command/memory.rs"]
mod memory;
#[path = "command/messages.rs"]
mod messages;
#[path = "command/mpirun.rs"]
mod mpirun;
#[path = "command/msccl.rs"]
mod msccl;
mod mscclpp;
#[path = "command/ncclrun.rs"]
mod ncclrun;
#[path = "command/outputs.rs"]
mod outputs;
#[cfg(target_os = "linux")]
#[path = "command/probe.rs"]
mod probe;
#[cfg(target_os = "linux")]
#[path = "command/processes.rs"]
mod processes;
#[path = "command/ptx.rs"]
mod ptx;
#[path = "command/select.rs"]
mod select;
#[path = "command/simulate.rs"]
mod simulate;
#[path = "command/subcommands.rs"]
mod subcommands;
#[path = "command/synthesize.rs"]
mod synthesize;
#[path = "command/synthesized_forms.rs"]
mod synthesized_forms;
#[path = "command/topologies.rs"]
mod topologies;
#[path = "command/trace.rs"]
mod trace;
#[path = "command/warnings.rs"]
mod warnings;
