//! `roundelay mpirun`: an unchanged MPI program, whose ranks preload the library that takes over collectives.

mod mpirun_flags;

use std::process::Command;

use roundelay_runner::mpirun::{Flavour, RENDEZVOUS, Rendezvous, are_one};
use roundelay_runner::preload::{library, list_with, run};

use crate::report::Failure;
use crate::self_call;
use crate::streams::say;
pub(crate) use mpirun_flags::MpirunFlags;

/// Runs the launcher, and returns its exit code.
pub(crate) fn main(flags: &MpirunFlags) -> Result<u8, Failure> {
    self_call::alone()?;
    let library = library(flags.library.as_deref(), "roundelay-mpi")?;
    let (flavour, version) = Flavour::ask(&flags.launcher)?;
    let rendezvous = Rendezvous::open(are_one(&flags.launcher, &flags.command))?;
    let mut variables = vec![
        ("LD_PRELOAD", list_with(&library, "LD_PRELOAD")),
        ("ROUNDELAY_MPI", flags.mode.name().to_owned()),
    ];
    if flags.all {
        variables.push(("ROUNDELAY_MPI_TAKE", "all".to_owned()));
    }
    if flags.report {
        variables.push(("ROUNDELAY_REPORT", "1".to_owned()));
    }
    if let Some(text) = &flags.algorithm {
        variables.push(("ROUNDELAY_ALGORITHM", text.clone()));
    }
    say(format!("roundelay: {} is {version}", flags.launcher.display()));
    let meeting = rendezvous.text();
    // The secret word is not printed.
    let shown = (RENDEZVOUS, meeting.split(' ').next().unwrap_or_default().to_owned());
    for (name, value) in variables.iter().chain([&shown]) {
        say(format!("roundelay: ranks have {name}={value}"));
    }
    let mut command = Command::new(&flags.launcher);
    flavour.set(&mut command, &variables);
    flavour.entrust(&mut command, (RENDEZVOUS, meeting), &flags.command);
    rendezvous.serve()?;
    Ok(run(command)?)
}
