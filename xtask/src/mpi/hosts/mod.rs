//! Programs on several hosts, which are namespaces of this machine: our own, whose results are known, and times.

mod namespaces;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::cells::Cells;
use super::driver::{Driver, Share};
use super::programs::{GRACE, LONGEST, compile, judged, variables};
use super::pypi::{Mpi, MpiKind};
use super::table::MarkdownTable;
use super::{Field, cores};
use crate::command::{brief, within};
use namespaces::{Hosts, NETWORK, missing};

/// Ranks of each host.
const EACH: [u32; 2] = [1, 2];
/// The ranks of a host where times are taken, on two hosts.
const TIMED: u32 = 4;
const SIZES: [u64; 6] = [1 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20, 16 << 20];

pub(super) fn run(field: &Field<'_>) -> Result<(), String> {
    if let Some(why) = missing() {
        println!("skipped: {why}");
        return Ok(());
    }
    let mut table = MarkdownTable::new(&[
        "MPI", "hosts", "ranks", "program", "mode", "result", "taken", "seconds",
    ]);
    let mut failures = 0;
    let able = |mpi: &&Mpi| mpi.kind != MpiKind::Intel;
    for mpi in field.mpis.iter().filter(able) {
        for number in &field.options.hosts {
            for each in EACH {
                let nranks = number * each;
                if !mpi.kind.yields() && nranks > cores() {
                    println!(
                        "{} with {nranks} ranks is left out: they do not leave the core",
                        mpi.kind.name()
                    );
                    continue;
                }
                failures += programs(field, mpi, *number, each, &mut table)?;
                field.keep(&table)?;
            }
        }
    }
    println!("\n{}", table.text());
    let mut cells = Cells::default();
    for mpi in field.mpis.iter().filter(able) {
        times(field, mpi, &mut cells)?;
    }
    if !cells.is_empty() {
        let times = cells.table();
        println!("{}", times.text());
        field.keep_all(&[&table, &times])?;
    }
    failures += cells.failures();
    match failures {
        0 => Ok(()),
        some => Err(format!("{some} launches failed")),
    }
}

/// Runs our programs on the hosts; returns the number of failed launches.
fn programs(
    field: &Field<'_>,
    mpi: &Mpi,
    number: u32,
    each: u32,
    table: &mut MarkdownTable,
) -> Result<usize, String> {
    let seconds = field.options.seconds.unwrap_or(LONGEST);
    let programs = compile(field.root, mpi)?;
    let hosts = Hosts::new(number, field.options.rate.as_deref())?;
    let mut failures = 0;
    for (name, program) in &programs {
        for mode in field.modes() {
            let begun = Instant::now();
            let through = field.preload.command(mode)?;
            let variables = variables(field, mpi, mode);
            let mut line = line(mpi, &hosts, each, through.as_deref(), &variables);
            line.extend([shown(program), "--seconds".to_owned(), seconds.to_string()]);
            let mut command = on(&hosts, mpi, field.root, &line);
            let (result, report) =
                judged(within(&mut command, Duration::from_secs(seconds) + GRACE));
            if let Err(why) = &result {
                failures += 1;
                table.note(&format!(
                    "{}, {number} x {each}, {name}, {mode}: {why}",
                    mpi.kind.name()
                ));
            }
            table.add(&[
                mpi.kind.name().to_owned(),
                number.to_string(),
                (number * each).to_string(),
                (*name).to_owned(),
                mode.to_string(),
                if result.is_ok() { "right" } else { "FAILED" }.to_owned(),
                report.taken.to_string(),
                format!("{:.1}", begun.elapsed().as_secs_f64()),
            ]);
            println!("{}", table.last());
        }
    }
    failures += world(field, mpi, &hosts, each, table)?;
    Ok(failures)
}

/// Runs a program of ours without MPI, whose world finds the library by itself; returns the number of failed launches.
fn world(
    field: &Field<'_>,
    mpi: &Mpi,
    hosts: &Hosts,
    each: u32,
    table: &mut MarkdownTable,
) -> Result<usize, String> {
    const NAME: &str = "processes";
    let begun = Instant::now();
    let program = crate::command::example(field.root, NAME)?;
    let nranks = hosts.number() * each;
    let mut variables = mpi.kind.patience();
    variables.push(("ROUNDELAY_MPI_LIB".to_owned(), shown(&mpi.library())));
    let mut line = line(mpi, hosts, each, None, &variables);
    line.push(shown(&program));
    let printed = within(&mut on(hosts, mpi, field.root, &line), GRACE * 6);
    let right = format!("{nranks} ranks, and the sum of their numbers");
    let failed = match &printed {
        Ok(printed) if printed.stdout.contains(&right) => None,
        Ok(printed) => Some(printed.stderr.clone()),
        Err(why) => Some(why.clone()),
    };
    if let Some(why) = &failed {
        table.note(&format!("{}, {nranks} ranks, a world: {}", mpi.kind.name(), brief(why)));
    }
    table.add(&[
        mpi.kind.name().to_owned(),
        hosts.number().to_string(),
        nranks.to_string(),
        NAME.to_owned(),
        "a world".to_owned(),
        if failed.is_none() { "right" } else { "FAILED" }.to_owned(),
        String::new(),
        format!("{:.1}", begun.elapsed().as_secs_f64()),
    ]);
    println!("{}", table.last());
    Ok(usize::from(failed.is_some()))
}

/// Measures times of AllReduce on two hosts, by turns.
fn times(field: &Field<'_>, mpi: &Mpi, cells: &mut Cells) -> Result<(), String> {
    let sizes = field.options.sizes.clone().unwrap_or_else(|| SIZES.to_vec());
    let hosts = Hosts::new(2, field.options.rate.as_deref())?;
    let driver = Driver::compile(field.root, mpi)?;
    // Ranks that wait without leaving the core have one each, unless the user asks for more.
    let own = if mpi.kind.yields() { TIMED } else { (cores() / hosts.number()).max(1) };
    let asked = field.options.ranks.as_ref().and_then(|all| all.first());
    let each = asked.map_or(own, |nranks| (nranks / hosts.number()).max(1));
    let ranks = format!("{each} + {each}");
    for _ in 0..field.options.launches {
        for mode in field.compared() {
            let mut variables = field.preload.variables(mode, false);
            // There are more ranks than cores, which the launcher is not to know.
            variables.extend(mpi.kind.patience());
            let through = field.preload.command(mode)?;
            let mut line = line(mpi, &hosts, each, through.as_deref(), &variables);
            line.extend(driver.line(Share::Whole, "Allreduce", &sizes));
            let found = driver.times(&mut on(&hosts, mpi, field.root, &line), &sizes);
            cells.add(mpi.kind.name(), "Allreduce", &ranks, &sizes, mode, found);
        }
    }
    Ok(())
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Returns the launcher's command line on the first host.
fn on(hosts: &Hosts, mpi: &Mpi, folder: &Path, line: &[String]) -> Command {
    let mut command = hosts.command(folder, line);
    command.envs(mpi.environment());
    command
}

/// The command's flag for each variable of the library.
const FLAGS: [(&str, &str); 4] = [
    ("LD_PRELOAD", "--library=VALUE"),
    ("ROUNDELAY_MPI", "--mode=VALUE"),
    ("ROUNDELAY_REPORT", "--report"),
    ("ROUNDELAY_MPI_TAKE", "--all"),
];

/// Returns the line of a launch over all hosts, up to the program: through the command that brings hosts together,
/// where ranks preload the library. Other variables are passed as they are.
fn line(
    mpi: &Mpi,
    hosts: &Hosts,
    each: u32,
    through: Option<&Path>,
    variables: &[(String, String)],
) -> Vec<String> {
    let (agent, nranks) = (shown(&hosts.agent()), hosts.number() * each);
    let launcher = shown(&mpi.program("mpiexec"));
    let (ours, others): (Vec<_>, Vec<_>) =
        variables.iter().cloned().partition(|(name, _)| FLAGS.iter().any(|(ours, _)| ours == name));
    let mut line: Vec<String> = match through {
        Some(command) => {
            let mut line = vec![shown(command), "mpirun".to_owned()];
            line.extend(["--launcher".to_owned(), launcher]);
            for (name, value) in &ours {
                let flag = FLAGS.iter().find(|(ours, _)| ours == name).map(|(_, flag)| *flag);
                line.extend(flag.map(|flag| flag.replace("VALUE", value)));
            }
            line.push("--".to_owned());
            line
        }
        None => vec![launcher],
    };
    let words = match mpi.kind {
        MpiKind::OpenMpi | MpiKind::OpenMpi4 => {
            let agent_of =
                if mpi.kind == MpiKind::OpenMpi { "--prtemca plm_ssh" } else { "--mca plm_rsh" };
            let slots: Vec<String> =
                hosts.addresses().iter().map(|address| format!("{address}:{each}")).collect();
            format!(
                "{agent_of}_agent {agent} --host {} --bind-to none --mca pml ob1 \
                 --mca btl tcp,sm,self --mca btl_tcp_if_include {NETWORK}.0/24",
                slots.join(",")
            )
        }
        MpiKind::Mpich | MpiKind::Intel => format!(
            "-launcher ssh -launcher-exec {agent} -hosts {} -ppn {each}",
            hosts.addresses().join(",")
        ),
    };
    line.extend(words.split_whitespace().map(str::to_owned));
    line.extend(mpi.ranks(nranks, &others));
    line
}
