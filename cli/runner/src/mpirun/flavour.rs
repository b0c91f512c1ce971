//! The launchers of MPI libraries, and how each gives its ranks a variable.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use roundelay_core::diagnostics::Code;

use crate::error::RunError;

/// The maker of the launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Open MPI's.
    OpenMpi,
    /// MPICH's, and all that are made of it.
    Hydra,
}

impl Flavour {
    /// Returns the flavour that a launcher reports, and the line of the report.
    pub fn ask(launcher: &Path) -> Result<(Self, String), RunError> {
        let name = launcher.display();
        let said = Command::new(launcher).arg("--version").output().map_err(|error| {
            RunError::usage(Code::BadCall, format!("{name} cannot be started: {error}"))
                .with_help("--launcher says where the `mpirun` of your MPI library is")
        })?;
        let said = [said.stdout, said.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        let known = read(&said).ok_or_else(|| {
            let first = said.lines().next().unwrap_or_default();
            RunError::usage(Code::BadCall, format!("{name} is no launcher that is known here: `{first}`"))
                .with_help("Open MPI's, MPICH's and Intel MPI's are; with another set LD_PRELOAD for the ranks by hand")
        })?;
        Ok(known)
    }

    /// Has the launcher give its ranks these variables.
    pub fn set(self, command: &mut Command, variables: &[(&str, String)]) {
        for (name, value) in variables {
            match self {
                Self::OpenMpi => command.args(["-x", &format!("{name}={value}")]),
                Self::Hydra => command.args(["-genv", name, value]),
            };
        }
    }

    /// Has the launcher, with the arguments of the user, give its ranks a secret variable. Arguments can be read by all
    /// users of the host, so the launcher is told only its name, and has its value in the environment.
    pub fn entrust(self, command: &mut Command, (name, value): (&str, String), args: &[OsString]) {
        command.env(name, value);
        match self {
            Self::OpenMpi => command.args(["-x", name]).args(args),
            Self::Hydra => command.args(listing(name, args)),
        };
    }
}

/// Returns the user's arguments for Hydra, which passes its whole environment on unless these list what is passed: then
/// with the name in the list.
fn listing(name: &str, args: &[OsString]) -> Vec<OsString> {
    let mut listing = Vec::new();
    let mut rest = args;
    while let [option, after @ ..] = rest
        && let Some(word) = option.to_str().and_then(|option| option.strip_prefix('-'))
    {
        let word = word.strip_prefix('-').unwrap_or(word);
        let is_value = |next: &OsString| !next.as_encoded_bytes().starts_with(b"-");
        let values = match word {
            "genvnone" | "envnone" => {
                listing.extend([format!("-{}", word.replace("none", "list")).into(), name.into()]);
                rest = after;
                continue;
            }
            "genv" | "env" => 2,
            // The name of the program can be taken for a value, which does no harm.
            _ => usize::from(after.first().is_some_and(is_value)),
        };
        let (values, next) = after.split_at(values.min(after.len()));
        listing.push(option.clone());
        listing.extend_from_slice(values);
        if matches!(word, "genvlist" | "envlist") && !values.is_empty() {
            listing.last_mut().expect("the value").push(format!(",{name}"));
        }
        rest = next;
    }
    listing.extend_from_slice(rest);
    listing
}

fn read(said: &str) -> Option<(Flavour, String)> {
    let line = |word: &str| said.lines().find(|line| line.contains(word)).map(str::trim);
    if let Some(line) = line("(Open MPI)").or_else(|| line("(OpenRTE)")) {
        return Some((Flavour::OpenMpi, line.to_owned()));
    }
    if let Some(line) = line("Intel(R) MPI") {
        return Some((Flavour::Hydra, line.to_owned()));
    }
    line("HYDRA")?;
    let version = line("Version:").and_then(|line| line.split_once(':'));
    let version = version.map_or("", |(_, version)| version.trim());
    Some((Flavour::Hydra, format!("MPICH's (Hydra {version})")))
}

#[cfg(test)]
mod tests {
    use super::{Flavour, listing, read};

    #[test]
    fn launchers_are_known_by_what_they_say() {
        let hydra = "HYDRA build details:\n    Version:                                 5.0.2\n";
        let told = [
            ("mpirun (Open MPI) 5.0.11\n\nReport bugs to x\n", Flavour::OpenMpi, "5.0.11"),
            ("mpiexec (OpenRTE) 4.1.4\n", Flavour::OpenMpi, "4.1.4"),
            (hydra, Flavour::Hydra, "5.0.2"),
            (
                "Intel(R) MPI Library for Linux* OS, Version 2021.18 Build 2\n",
                Flavour::Hydra,
                "2021.18",
            ),
        ];
        for (said, flavour, version) in told {
            let (known, line) = read(said).expect("a launcher");
            assert!(known == flavour && line.contains(version), "{line}");
        }
        assert_eq!(read("srun 23.02"), None);
    }

    #[test]
    fn a_list_of_what_hydra_passes_gets_the_name() {
        let of = |args: &str| {
            let args: Vec<_> = args.split(' ').map(Into::into).collect();
            let listed = listing("OURS", &args);
            listed
                .into_iter()
                .map(|arg| arg.into_string().expect("text"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        for (args, listed) in [
            ("-n 2 ./a -genvnone", "-n 2 ./a -genvnone"),
            ("-n 2 -genvnone ./a", "-n 2 -genvlist OURS ./a"),
            ("-genvlist A,B -n 2 ./a -envnone", "-genvlist A,B,OURS -n 2 ./a -envnone"),
            ("-l -genv X -genvnone -envlist A ./a", "-l -genv X -genvnone -envlist A,OURS ./a"),
            ("-genvall -hosts a,b ./a", "-genvall -hosts a,b ./a"),
            ("-genvlist", "-genvlist"),
        ] {
            assert_eq!(of(args), listed, "{args}");
        }
    }
}
