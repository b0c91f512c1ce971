//! `roundelay ncclrun`: an unchanged GPU job, whose calls of NCCL come through a library that its processes preload.

mod ncclrun_flags;

use std::process::Command;

use roundelay_kernels::library_files::ALONE;
use roundelay_runner::ncclrun::{GpuJob, NAMED};
use roundelay_runner::preload::{library, list_with, run};

use crate::report::Failure;
use crate::self_call;
use crate::streams::say;
pub(crate) use ncclrun_flags::NcclrunFlags;

/// Runs the program, and returns its exit code.
pub(crate) fn main(flags: &NcclrunFlags) -> Result<u8, Failure> {
    self_call::alone()?;
    let library = library(flags.library.as_deref(), "roundelay-nccl")?;
    let job = GpuJob::find(&flags.command, &library, flags.nccl.as_deref())?;
    if job.nccl.as_os_str() == ALONE {
        say("roundelay: there is no NCCL: communicators are worlds of their own".to_owned());
    } else {
        say(format!("roundelay: NCCL is {}", job.nccl.display()));
    }
    for note in &job.notes {
        say(format!("roundelay: {note}"));
    }
    let path = library.display().to_string();
    let mut variables = vec![
        ("LD_PRELOAD", list_with(&library, "LD_PRELOAD")),
        ("ROUNDELAY_NCCL", job.nccl.display().to_string()),
    ];
    variables.extend(NAMED.map(|name| (name, path.clone())));
    if flags.audit {
        variables.push(("LD_AUDIT", list_with(&library, "LD_AUDIT")));
    }
    if flags.report {
        variables.push(("ROUNDELAY_REPORT", "1".to_owned()));
    }
    for (name, value) in &variables {
        say(format!("roundelay: processes have {name}={value}"));
    }
    let (program, args) = flags.command.split_first().unwrap_or((&job.program, &[]));
    let mut command = Command::new(program);
    command.args(args).envs(variables);
    Ok(run(command)?)
}
