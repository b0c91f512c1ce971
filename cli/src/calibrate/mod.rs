//! `roundelay calibrate`: the constants of the model of time, measured of the host engine on this machine.

mod world;

use clap::Args;
use roundelay::Options;
use roundelay::select::Costs;
use roundelay_core::diagnostics::Code;
use roundelay_runner::samples::samples;
use roundelay_simulate::cost::{Fit, Sample, fit};
use serde::Serialize;

use crate::build_facts;
use crate::output;
use crate::parallel::cores;
use crate::report::{Failure, Format};
use crate::streams::{print, print_json};
use crate::values::{RankCounts, rank_counts, whole};

#[derive(Args)]
pub(crate) struct CalibrateFlags {
    /// Write the constants to a file, for list --why --costs FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<String>,
    /// Measure the ways of data between processes instead, for the worlds of this host to begin with
    #[arg(long, conflicts_with_all = ["write", "workers"])]
    pub(crate) world: bool,
    /// With --world: rank counts, 4, 2..=8 or a list [default: 2,4,8]
    #[arg(short, long, value_name = "RANKS", requires = "world", value_parser = rank_counts)]
    pub(crate) nranks: Option<RankCounts>,
    /// Worker threads, up to 1024 [default: one a core]
    #[arg(long, value_name = "N", value_parser = whole(1..=Options::MOST_WORKERS))]
    pub(crate) workers: Option<u32>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

/// The number of predictions that are shown: the worst ones.
const SHOWN: usize = 5;

#[derive(Serialize)]
struct CalibrationReport {
    /// The build of this command.
    build: &'static str,
    machine: String,
    cores: u32,
    load_average: Option<f64>,
    samples: usize,
    r2: f64,
    median_error: f64,
    worst: Vec<Worst>,
    constants: Vec<Constant>,
}

/// A sample that the model explains badly.
#[derive(Serialize)]
struct Worst {
    name: String,
    bytes: u64,
    measured_seconds: f64,
    /// Relative to the measured time.
    error: f64,
}

#[derive(Serialize)]
struct Constant {
    name: String,
    measured: String,
    /// The constant that `list --why` uses now.
    known: Option<String>,
}

/// Runs the work of a rank.
pub(crate) fn answer() -> u8 {
    world::answer()
}

pub(crate) fn main(flags: &CalibrateFlags) -> Result<bool, Failure> {
    if flags.world {
        return world::main(flags);
    }
    let cores = flags.workers.unwrap_or_else(cores);
    output::reserve(&[("--write", flags.write.as_deref())], flags.format == Format::Json)?;
    build_facts::warn("calibrate");
    let load_average = load_average();
    let samples = samples(cores)?;
    let name = flags.write.as_deref().unwrap_or("calibrate");
    let Some(found) = fit(name, Some(cores), &samples) else {
        let title = "the clock of this machine is too coarse: runs took no time";
        return Err(Failure::usage(Code::BadFlag, title));
    };
    let report = CalibrationReport::new(&found, &samples, cores, load_average);
    match flags.format {
        Format::Json => print_json(&report),
        Format::Human => report.print(),
    }
    if let Some(path) = &flags.write {
        output::write(path, &report.file(&found.costs))?;
    }
    Ok(true)
}

impl CalibrationReport {
    fn new(found: &Fit, samples: &[Sample], cores: u32, load_average: Option<f64>) -> Self {
        let mut errors: Vec<f64> = found.errors.iter().map(|error| error.abs()).collect();
        errors.sort_by(f64::total_cmp);
        let mut worst: Vec<Worst> = samples
            .iter()
            .zip(&found.errors)
            .map(|(sample, error)| Worst {
                name: sample.name.clone(),
                bytes: sample.bytes,
                measured_seconds: sample.seconds,
                error: *error,
            })
            .collect();
        worst.sort_by(|a, b| b.error.abs().total_cmp(&a.error.abs()));
        worst.truncate(SHOWN);
        let (measured, known) = (found.costs.lines(), Costs::host().lines());
        let known: Vec<_> = known.lines().filter_map(|line| line.split_once(" = ")).collect();
        let constant = |line: &str| {
            let (name, measured) = line.split_once(" = ")?;
            let known = known.iter().find(|(known, _)| *known == name);
            Some(Constant {
                name: name.to_owned(),
                measured: measured.to_owned(),
                known: known.map(|(_, value)| (*value).to_owned()),
            })
        };
        Self {
            build: build_facts::BUILD,
            machine: machine(),
            cores,
            load_average,
            samples: samples.len(),
            r2: found.r2,
            median_error: errors[errors.len() / 2],
            worst,
            constants: measured.lines().filter_map(constant).collect(),
        }
    }

    /// Returns the measured constants, the machine, and how well the model explains the samples.
    fn lines(&self) -> Vec<String> {
        let load = self.load_average.map_or_else(String::new, |load| {
            let shared = if load >= 0.5 { ", shared with other work" } else { "" };
            format!(", load average {load:.2}{shared}")
        });
        let worst = self.worst.first().map_or(0.0, |worst| worst.error);
        vec![
            build_facts::line("calibrate"),
            format!("{}, {} cores{load}", self.machine, self.cores),
            format!(
                "{} samples: R^2 of log time {:.3}, median error {:.0} %, worst {:+.0} %",
                self.samples,
                self.r2,
                100.0 * self.median_error,
                100.0 * worst
            ),
        ]
    }

    fn print(&self) {
        for line in self.lines() {
            print(&line);
        }
        print("\nconstant      measured        known");
        for Constant { name, measured, known } in &self.constants {
            let known = known.as_deref().unwrap_or("-");
            print(&format!("{name:9} {measured:>12} {known:>12}"));
        }
        print("\nworst predictions");
        for Worst { name, bytes, measured_seconds, error } in &self.worst {
            let (time, error) = (measured_seconds * 1e6, 100.0 * error);
            print(&format!("{name:38} {bytes:>9} B  {time:>10.1} us  {error:+.0} %"));
        }
    }

    /// Returns the text of the file that `--costs` reads.
    fn file(&self, costs: &Costs) -> String {
        let mut text = String::from(
            "# What the host engine takes on one machine, as `cargo xtask calibrate --write` measured it.\n\
             # Model and units: the book's page on choosing.\n",
        );
        for line in self.lines() {
            text.push_str("# ");
            text.push_str(&line);
            text.push('\n');
        }
        text + &costs.lines()
    }
}

/// Returns the model of the CPU, where the system says it.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named =
        |line: &str| line.strip_prefix("model name").map(|rest| rest.trim_start().to_owned());
    let model = info.lines().find_map(named);
    let model = model.map(|m| m.trim_start_matches(':').trim().to_owned());
    model.unwrap_or_else(|| format!("a CPU of {}", std::env::consts::ARCH))
}

/// Returns the load average of the last minute.
fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
