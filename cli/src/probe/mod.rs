//! `roundelay probe`: the slow link between hosts, found and named.
//!
//! pairings (the pairs of hosts that are measured at once) -> blame (the ends that explain bad directions) -> facts (of a host,
//! without traffic) -> prober (the ranks that take part, and what they measure) -> survey (all that was measured, and its
//! findings) -> `probe_report`. Rank 0 leads: it decides on the next round, and the others follow its orders.

mod blame;
mod facts;
mod pairings;
mod probe_report;
mod prober;
mod survey;

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use roundelay::{Options, World};
use roundelay_core::diagnostics::Code;
use roundelay_core::topology::Topology;
use roundelay_simulate::Machine;

use crate::flags::TopologyFlags;
use crate::output;
use crate::report::{Failure, coded};
use crate::topology;
use crate::values::duration;
use prober::{ProbeOrder, Prober};
use survey::Survey;

#[derive(Args)]
pub(crate) struct ProbeFlags {
    #[command(flatten)]
    topology: TopologyFlags,
    /// Measure every pair of hosts: one round less than there are hosts
    #[arg(long)]
    all_pairs: bool,
    /// How long a round of pairs goes on
    #[arg(long, value_name = "TIME", default_value = "300ms", value_parser = duration)]
    time: Duration,
    /// How long to wait for a rank: until it has come, and for each of its messages
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    deadline: Duration,
    /// Write the topology of the hosts as it was measured, with slow ends and pairs, as a list of links; - for standard output
    #[arg(long, value_name = "FILE")]
    write: Option<String>,
    /// Print one document, for programs
    #[arg(long)]
    json: bool,
}

/// Returns the failure of a call of the world.
fn failure(error: &roundelay::Error) -> Failure {
    coded(error.code(), &error.to_string()).into()
}

/// Takes part as a rank of the job, and returns the exit code, which is that of rank 0 on all ranks.
pub(crate) fn main(flags: &ProbeFlags) -> Result<u8, Failure> {
    let options = Options::new().measure(false).deadline(flags.deadline);
    let world = World::from_env_with(options).map_err(|error| failure(&error))?;
    let job = Prober::new(&world, flags.time);
    if world.rank().id() > 0 {
        return job.follow();
    }
    let outcome = lead(&job, flags);
    let code = match &outcome {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(_) => 2,
    };
    // After a failure of the world the others have an error of their own.
    let told = job.lead(&ProbeOrder::End(code));
    outcome.and(told).map(|_| code)
}

/// Leads the job through the rounds, and prints what was found; returns whether all is well.
fn lead(job: &Prober<'_>, flags: &ProbeFlags) -> Result<bool, Failure> {
    output::reserve(&[("--write", flags.write.as_deref())], flags.json)?;
    let hosts = job.hosts();
    if hosts < 2 {
        let title = "all ranks are on one host, and a probe measures links between hosts";
        return Err(Failure::usage(Code::BadCall, title).with_help(
            "start a rank on each host: `roundelay launch --hosts HOST,HOST,… -- roundelay probe`",
        ));
    }
    let given = topology::given(&flags.topology)?;
    let machine = given.map(|given| machine(job, given.topology)).transpose()?;
    let first = pairings::first(hosts, flags.all_pairs);
    // Each host is in one of the first two.
    for pairs in first.iter().take(2) {
        job.lead(&ProbeOrder::Greet(pairs.clone()))?;
    }
    let mut survey = Survey::new(job, machine)?;
    if !flags.json {
        probe_report::before(&survey);
    }
    for pairs in &first {
        survey.measure(pairs)?;
    }
    while let Some(pairs) = survey.naming_round() {
        survey.measure(&pairs)?;
    }
    // A pair may have been slow only beside the others of its round.
    if let Some(pairs) = survey.alone() {
        survey.measure(&pairs)?;
    }
    survey.settle()?;
    let findings = survey.findings();
    if let Some(path) = &flags.write {
        output::write(path, &probe_report::links(&survey, &findings))?;
    }
    probe_report::show(&survey, &findings, flags.json);
    Ok(findings.is_empty())
}

/// Returns the machine whose bounds the links are held against.
///
/// # Errors
/// E0604 for a topology of another number of ranks than there are hosts, or ranks of the job; E0601 for one without
/// bandwidths.
fn machine(job: &Prober<'_>, topology: Arc<Topology>) -> Result<(Machine, Vec<u32>), Failure> {
    let (given, hosts) = (topology.nranks(), job.hosts());
    if topology.is_relative() {
        let title = format!("`{}` has no bandwidths to measure against", topology.name());
        return Err(Failure::usage(Code::BadTopology, title)
            .with_help("give them in bytes a second, such as `crossbar(8, 12.5GB/s, 5us)`"));
    }
    let ranks = if given as usize == hosts {
        (0..given).collect()
    } else if given == job.nranks() {
        job.firsts().to_vec()
    } else {
        let title = format!(
            "`{}` has {given} ranks, and the job has {} on {hosts} hosts",
            topology.name(),
            job.nranks()
        );
        return Err(Failure::usage(Code::TopologyTooSmall, title)
            .with_help("give a topology with a rank for each host, or for each rank of the job"));
    };
    Ok((Machine::new(topology), ranks))
}
