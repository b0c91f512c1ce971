//! The table of `roundelay run`, whose lines are printed as soon as they are known.

use std::collections::BTreeMap;

use roundelay_core::certificate::ALWAYS;
use roundelay_core::collective::Collective;
use roundelay_runner::memory::TooMuch;
use serde::Serialize;

use super::RunFlags;
use crate::build_facts;
use crate::parallel::cores;
use crate::report::Format;
use crate::streams::{is_verbose, print, print_json, remark, say};

/// The measured result for one number of ranks.
#[derive(Serialize)]
pub(super) struct RunReport {
    pub(super) ok: bool,
    pub(super) algorithm: String,
    pub(super) nranks: u32,
    /// The root of a rooted collective, for which alone a run is proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) root: Option<u32>,
    /// Elements a unit; of all blocks together where they have a count each.
    pub(super) count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) counts: Option<Vec<u64>>,
    pub(super) dtype: &'static str,
    pub(super) op: &'static str,
    pub(super) in_place: bool,
    pub(super) seed: u64,
    pub(super) iterations: u32,
    /// Elements that were compared: those of all outputs.
    pub(super) elements: u64,
    pub(super) wrong: u64,
    /// The time and the bandwidths; absent for a kernel that was interpreted, whose time says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) time_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) algbw_gbps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) busbw_gbps: Option<f64>,
    /// The counts of all warps; absent where no kernel was interpreted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) counters: Option<BTreeMap<&'static str, u64>>,
    /// The names of the GPUs, or of the machine that was interpreted; absent on the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) device: Option<String>,
}

/// The rows, and the lines above them.
pub(super) struct RunTable<'a> {
    flags: &'a RunFlags,
    /// The title: algorithm and collective.
    title: String,
    pub(super) reports: Vec<RunReport>,
    /// Lines of rank counts that do not run, until one runs.
    above: Vec<String>,
}

impl<'a> RunTable<'a> {
    pub(super) fn new(flags: &'a RunFlags, name: &str, collective: Collective) -> Self {
        let title = format!("{name} ({collective})");
        Self { flags, title, reports: Vec::new(), above: Vec::new() }
    }

    pub(super) fn add(&mut self, report: RunReport) {
        if self.flags.format == Format::Human {
            if self.reports.is_empty() {
                self.head(&report);
            }
            print(&row(&report));
        }
        self.reports.push(report);
    }

    fn head(&mut self, first: &RunReport) {
        let Self { flags, title, above, .. } = self;
        above.drain(..).for_each(|line| print(&line));
        let counts = match flags.nranks.as_ref().map_or(1, |given| given.counts.len()) {
            1 => format!("nranks {}", first.nranks),
            _ => "each nranks below".to_owned(),
        };
        let root = first.root.map_or_else(String::new, |root| format!(", root {root}"));
        print(&format!("\x1b[1;92mproved\x1b[0m {title} for {counts}{root}:"));
        print(&format!("       {}", ALWAYS.join(", ")));
        let place = if flags.in_place { "in place" } else { "out of place" };
        let runs = match first.counters {
            None => format!("mean of {} runs", first.iterations),
            Some(_) => format!("{} launches", first.iterations),
        };
        print(&format!(
            "{title}, {} {}, {place}, seed {}, {runs}",
            flags.dtype, flags.op, flags.seed
        ));
        if is_verbose() && first.device.is_none() {
            let workers = flags.engine.workers.unwrap_or_else(cores);
            let (callers, level) = (flags.callers.callers.name(), flags.engine.level);
            let reassociate = if flags.engine.reassociate { ", reassociated" } else { "" };
            print(&format!(
                "engine: {workers} workers, callers {callers}, optimization {level}{reassociate}; {}",
                build_facts::line("run")
            ));
        }
        let device = first.device.as_deref().unwrap_or_default();
        if first.counters.is_some() {
            print(&format!(
                "on the {device}, interpreted: no race, no stuck wait, no access out of bounds"
            ));
            let columns = COUNTED.map(|(name, _)| format!("{name:>12}")).join(" ");
            print(&format!("{:>7} {:>12} {columns} {:>8}", "nranks", "count", "#wrong"));
            return;
        }
        if first.device.is_some() {
            print(&format!(
                "on {device}; ranks share a GPU's memory, so bandwidths are not those of links"
            ));
        }
        let head = ["nranks", "count", "time (us)", "algbw (GB/s)", "busbw (GB/s)", "#wrong"];
        print(&format!(
            "{:>7} {:>12} {:>12} {:>13} {:>13} {:>8}",
            head[0], head[1], head[2], head[3], head[4], head[5]
        ));
    }

    /// Prints a number of ranks that the algorithm does not take.
    pub(super) fn refused(&mut self, why: &str) {
        if self.flags.format == Format::Human {
            self.aside(format!("  \x1b[1;93mrefused\x1b[0m {why}"));
        }
    }

    /// Prints a number of ranks that there is no memory for.
    pub(super) fn left_out(&mut self, nranks: u32, much: &TooMuch) {
        let line = format!("\x1b[1;93mleft out\x1b[0m {nranks} ranks: the run {much}");
        match self.flags.format {
            // JSON holds the counts that ran.
            Format::Json => say(line),
            Format::Human => self.aside(format!("  {line}")),
        }
    }

    fn aside(&mut self, line: String) {
        if self.reports.is_empty() {
            self.above.push(line);
        } else {
            print(&line);
        }
    }

    /// Prints the report that is not printed line by line, and tells whether a count ran and all results are right.
    pub(super) fn end(self) -> bool {
        let Self { flags, reports, .. } = self;
        if flags.format == Format::Human && !reports.is_empty() {
            let sum = |of: fn(&RunReport) -> u64| reports.iter().map(of).sum();
            let [wrong, all] = [sum(|report| report.wrong), sum(|report| report.elements)];
            let color = if wrong == 0 { "92" } else { "91" };
            let [wrong, all] = [wrong, all].map(grouped);
            remark(&format!("\x1b[1;{color}m{wrong}\x1b[0m of {all} elements wrong"));
        }
        if flags.format == Format::Json {
            match &reports[..] {
                [one] if flags.nranks.as_ref().is_none_or(|given| given.counts.len() == 1) => {
                    print_json(one);
                }
                all => print_json(&all),
            }
        }
        !reports.is_empty() && reports.iter().all(|report| report.ok)
    }
}

fn row(r: &RunReport) -> String {
    let color = if r.ok { "92" } else { "91" };
    let measured = match &r.counters {
        Some(counters) => {
            let count = |name: &str| counters.get(name).copied().unwrap_or(0);
            COUNTED.map(|(_, of)| format!("{:>12}", of(&count))).join(" ")
        }
        None => {
            let [time, algbw, busbw] =
                [r.time_us, r.algbw_gbps, r.busbw_gbps].map(Option::unwrap_or_default);
            format!("{time:>12.1} {algbw:>13.3} {busbw:>13.3}")
        }
    };
    format!("{:>7} {:>12} {measured} \x1b[1;{color}m{:>8}\x1b[0m", r.nranks, r.count, r.wrong)
}

/// The value of a column, from the counts by their names.
type Column = fn(&dyn Fn(&str) -> u64) -> String;

/// The columns of a kernel that was interpreted: sectors have 32 bytes, and `used` is the part of them that the accesses of
/// 16 bytes a lane take.
const COUNTED: [(&str, Column); 7] = [
    ("instructions", |count| count("instructions").to_string()),
    ("sectors in", |count| count("load_sectors").to_string()),
    ("sectors out", |count| count("store_sectors").to_string()),
    ("used", |count| {
        let bytes = 32 * (count("wide_load_sectors") + count("wide_store_sectors"));
        let share = (100 * count("wide_bytes")).checked_div(bytes);
        share.map_or_else(|| "-".to_owned(), |share| format!("{share} %"))
    }),
    ("barriers", |count| count("barriers").to_string()),
    ("fences", |count| count("fences").to_string()),
    ("polls", |count| count("strong_loads").to_string()),
];

/// A number whose digits are in groups of three, such as `8,000,024`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| str::from_utf8(group).expect("digits"))
        .collect();
    groups.join(",")
}
