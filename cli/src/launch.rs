//! `roundelay launch`: one program as several processes, each of them a rank. A terminal's keys reach the launcher alone,
//! which forwards the signals.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use roundelay_core::diagnostics::Code;
use roundelay_core::schedule::RANK_LIMIT;
use roundelay_runner::launch::{self, HostRanks, JobHosts, LaunchedProgram, PartOfJob};

use crate::report::Failure;
use crate::self_call;
use crate::streams::say;
use crate::values::{RefusedValue, duration, process_count};

#[derive(Args)]
#[command(
    override_usage = "roundelay launch [OPTIONS] -n <RANKS> -- <PROGRAM> [ARGS]...\n       roundelay launch [OPTIONS] --hosts <HOSTS> -- <PROGRAM> [ARGS]..."
)]
pub(crate) struct LaunchFlags {
    /// Processes to start, one for each rank, up to 1024
    #[arg(short = 'n', long, value_name = "RANKS", value_parser = process_count, required_unless_present = "hosts")]
    nranks: Option<u32>,
    /// How long the job may take, such as 90s; then it is ended, and the exit code is 124
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// How long ranks may go on after another failed or after they were told to end, such as 500ms or 0
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    grace: Duration,
    /// Wait for the other ranks where one failed, however long they take
    #[arg(long)]
    keep_going: bool,
    /// Begin each line that rank 3 prints with [3], as srun does with --label and mpirun with --tag-output
    #[arg(long)]
    prefix: bool,
    /// Start ranks on several hosts, each with its number of ranks, as in a:4,b:4
    #[arg(long, value_name = "HOSTS", value_parser = hosts, conflicts_with_all = ["nranks", "root"])]
    hosts: Option<HostList>,
    /// The command that runs a line on a host, both of which are its last arguments; by default `ROUNDELAY_AGENT`, else ssh -o BatchMode=yes
    #[arg(long, value_name = "COMMAND", conflicts_with = "nranks")]
    agent: Option<String>,
    /// A port of the first host at which all ranks meet, if not a port that is drawn
    #[arg(long, value_name = "PORT", conflicts_with = "nranks", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// A variable that ranks on all hosts get, with its value here or with this value; repeatable
    #[arg(long, value_name = "NAME[=VALUE]", conflicts_with = "nranks")]
    env: Vec<String>,
    /// Where ranks of several hosts meet, as HOST:PORT: rank 0 listens there, and each host has its own launch
    #[arg(long, value_name = "HOST:PORT", requires_all = ["first", "of"])]
    root: Option<String>,
    /// The number of this host's first rank
    #[arg(long, value_name = "RANK", requires = "root")]
    first: Option<u32>,
    /// The number of ranks of all hosts
    #[arg(long, value_name = "RANKS", requires = "root")]
    of: Option<u32>,
    /// Whether a launcher on another host started this one, and writes the key of the job and signals to it
    #[arg(long, hide = true, requires = "root")]
    led: bool,
    /// The program that each rank runs, and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// Runs the job, and returns its exit code.
pub(crate) fn main(flags: &LaunchFlags) -> Result<u8, Failure> {
    if flags.timeout.is_some_and(|timeout| timeout.is_zero()) {
        let failure = Failure::usage(Code::BadFlag, "--timeout 0 leaves a job no time");
        return Err(failure.with_help("a job without the flag may take any time"));
    }
    let (part, hosts) = (flags.part()?, flags.hosts()?);
    self_call::alone()?;
    let nranks = hosts.as_ref().map_or(0, |job| job.hosts.len() as u32);
    Ok(launch::run(&LaunchedProgram {
        nranks: flags.nranks.unwrap_or(nranks),
        part,
        hosts,
        timeout: flags.timeout,
        grace: flags.grace,
        keep_going: flags.keep_going,
        prefix: flags.prefix,
        command: flags.command.clone(),
        say: |line| say(line),
    })?)
}

impl LaunchFlags {
    /// Returns the place of this host's ranks, if there are more on other hosts.
    fn part(&self) -> Result<Option<PartOfJob>, Failure> {
        let (Some(root), Some(first), Some(of)) = (&self.root, self.first, self.of) else {
            return Ok(None);
        };
        let (nranks, led) = (self.nranks.unwrap_or(1), self.led);
        let wrong = |title: String, help: &str| {
            Err(Failure::usage(Code::BadFlag, title).with_help(help.to_owned()))
        };
        let port = root.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        if port.is_none_or(|port| port == 0) {
            return wrong(
                format!("`--root {root}` names no port"),
                "name a host and a port of it that is free, such as node1:7000",
            );
        }
        if first.checked_add(nranks).is_none_or(|end| end > of) {
            let last = u64::from(first) + u64::from(nranks) - 1;
            return wrong(
                format!("`--of {of}` has no ranks {first} to {last}"),
                "ranks count from 0, and --of is the number of all of them",
            );
        }
        if !led
            && std::env::var_os("ROUNDELAY_KEY_FILE").is_none()
            && std::env::var_os("ROUNDELAY_KEY").is_none()
        {
            return wrong(
                "ranks of several hosts need the key of their job, and ROUNDELAY_KEY_FILE is not set".to_owned(),
                "write 64 hexadecimal digits into a file that you alone can read (`openssl rand -hex 32`), on every host, and name it; or start all hosts by --hosts, which gives them a key",
            );
        }
        Ok(Some(PartOfJob { root: root.clone(), first, of, led }))
    }

    /// Returns the hosts of the job, if it has several.
    fn hosts(&self) -> Result<Option<JobHosts>, Failure> {
        let Some(HostList(hosts)) = &self.hosts else { return Ok(None) };
        let named = self.agent.clone().or_else(|| std::env::var(AGENT).ok());
        let agent = named.unwrap_or_else(|| "ssh -o BatchMode=yes".to_owned());
        let agent: Vec<String> = agent.split_whitespace().map(str::to_owned).collect();
        if agent.is_empty() {
            return Err(Failure::usage(Code::BadFlag, "the agent of the hosts has no name")
                .with_help(format!("--agent or {AGENT} is a command such as ssh")));
        }
        let variables = self.env.iter().map(|variable| {
            let (name, value) = match variable.split_once('=') {
                Some((name, value)) => (name, Some(value.into())),
                None => (&**variable, std::env::var_os(variable)),
            };
            let is_letter = |c: char| c == '_' || c.is_ascii_alphanumeric();
            if name.is_empty()
                || name.starts_with(|c: char| c.is_ascii_digit())
                || !name.chars().all(is_letter)
            {
                let title = format!("`--env {variable}` names no variable");
                return Err(Failure::usage(Code::BadFlag, title)
                    .with_help("a variable is such as LD_LIBRARY_PATH or OMP_NUM_THREADS=4"));
            }
            let Some(value) = value else {
                let title = format!("`--env {variable}`: it has no value here");
                return Err(Failure::usage(Code::BadFlag, title)
                    .with_help(format!("write {name}=VALUE, or export it")));
            };
            Ok((name.to_owned(), value))
        });
        let variables = variables.collect::<Result<_, _>>()?;
        Ok(Some(JobHosts { hosts: hosts.clone(), agent, port: self.port, variables }))
    }
}

/// The variable with the command that starts a line of a shell on a host.
const AGENT: &str = "ROUNDELAY_AGENT";

/// The hosts of a job, in the order of their ranks.
#[derive(Clone, Debug)]
struct HostList(Vec<HostRanks>);

/// Reads hosts with their numbers of ranks.
fn hosts(text: &str) -> Result<HostList, RefusedValue> {
    let host = |text: &str| {
        let (name, count) = match text.rsplit_once(':') {
            // An address of IPv6 without its number of ranks.
            Some(_) if text.ends_with(']') => (text, None),
            Some((name, count)) => (name, Some(count)),
            None => (text, None),
        };
        let nranks = count.map_or(Ok(1), process_count)?;
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        let wrong = |c: char| c.is_whitespace() || c.is_control();
        let name = bare.unwrap_or(name);
        // An agent would take it for one of its options.
        if name.is_empty() || name.starts_with('-') || name.contains(wrong) {
            return Err(RefusedValue::new(format!("has no host `{name}`")));
        }
        if bare.is_none() && name.contains(':') {
            return Err(RefusedValue::new(format!("has no host `{name}`"))
                .help("an address of IPv6 is in brackets, as in [fd00::1]:4"));
        }
        Ok(HostRanks { name: name.to_owned(), nranks })
    };
    let help = "hosts are such as a:4,b:4: names, and the ranks of each";
    let hosts = text.split(',').map(host).collect::<Result<Vec<_>, _>>();
    let hosts = hosts
        .map_err(|refused| if refused.help.is_none() { refused.help(help) } else { refused })?;
    match hosts.iter().map(|host| u64::from(host.nranks)).sum::<u64>() {
        all if all > u64::from(RANK_LIMIT) => Err(RefusedValue::new(format!("has {all} ranks"))
            .help(format!("a job has at most {RANK_LIMIT} ranks"))),
        _ => Ok(HostList(hosts)),
    }
}
