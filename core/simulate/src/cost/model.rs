//! The constants of a machine, and the time that follows from counts.
//!
//! T = steps * L + pieces * piece + S * (volume / B + reduced / reduce + copied / copy), where L is the latency of a
//! step, B the bandwidth between two ranks and S nccl-tests' size: Hockney's latency and bandwidth, an overhead of
//! each piece as `LogP` has one of each message, and Rabenseifner's cost of the additions. It is used where a
//! schedule is too large to be laid out, and where ranks share cores: there all work is divided among the cores.
//! Elsewhere the simulator finds the time by the same constants.

use std::fmt;

use super::counts::{Counts, Work};
use roundelay_base::diagnostics::near::nearest;
use roundelay_base::diagnostics::{Code, Diagnostic};
use roundelay_base::source::Span;
use roundelay_core::syntax::literal_token;
use roundelay_core::syntax::token::{Quantity, Tok};
use roundelay_topology::Fabric;
use roundelay_topology::Problem;

/// The source of the constants of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The caller gave them.
    Given,
    /// They are measured on the machine, as `roundelay calibrate` does.
    Measured,
    /// They are published of the machine's GPUs: by the maker's data sheet, and by NCCL.
    Published,
    /// They are measured on another machine, and taken for this one.
    Assumed,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Given => "given",
            Self::Measured => "measured",
            Self::Published => "published",
            Self::Assumed => "assumed",
        })
    }
}

/// The constants of a machine in the model of time: latencies in seconds, rates in bytes a second.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// The name of the machine, or of the file with the constants.
    pub name: String,
    /// Where the constants come from.
    pub origin: Origin,
    /// L: seconds that a rank waits for another in each step.
    pub latency: f64,
    /// Seconds that each piece of a message costs in addition, however short, except the first, whose cost is in L.
    pub message: f64,
    /// B: bytes a second between two ranks in one direction.
    pub bandwidth: f64,
    /// Bytes a second that a rank reduces, in addition to moving them.
    pub reduce: f64,
    /// Bytes a second that a rank copies within its own memory.
    pub copy: f64,
    /// The number of ranks that work at once, where they share a machine's cores; all ranks if not given.
    pub cores: Option<u32>,
}

/// A predicted time in seconds, in parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Time {
    /// Seconds for steps that wait for one another.
    pub steps: f64,
    /// Seconds for the overhead of pieces.
    pub pieces: f64,
    /// Seconds for data on its way between ranks.
    pub volume: f64,
    /// Seconds for reducing.
    pub reduced: f64,
    /// Seconds for copies within a rank.
    pub copied: f64,
}

impl Time {
    /// The whole time in seconds.
    pub fn seconds(&self) -> f64 {
        self.steps + self.pieces + self.volume + self.reduced + self.copied
    }
}

/// Units of a constant.
#[derive(Clone, Copy)]
enum Unit {
    Seconds,
    PerSecond,
    Number,
}

/// The constants of a file.
const KEYS: [(&str, Unit); 6] = [
    ("latency", Unit::Seconds),
    ("message", Unit::Seconds),
    ("bandwidth", Unit::PerSecond),
    ("reduce", Unit::PerSecond),
    ("copy", Unit::PerSecond),
    ("cores", Unit::Number),
];

/// Returns the present name of a constant for a former name, or a name in papers.
fn renamed(key: &str) -> Option<&'static str> {
    match key {
        "alpha" | "L" => Some("latency"),
        "beta" | "B" => Some("bandwidth"),
        "gamma" => Some("reduce"),
        _ => None,
    }
}

impl Costs {
    /// Reads `key = value` lines such as `latency = 2us` and `bandwidth = 25GB/s`; `#` begins a comment. All
    /// constants except `cores` must be there, once each.
    pub fn parse(name: &str, text: &str) -> Result<Self, Problem> {
        let mut found: [Option<f64>; KEYS.len()] = [None; KEYS.len()];
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split_once('#').map_or(line, |(line, _)| line).trim();
            if line.is_empty() {
                continue;
            }
            let wrong = |title: String| {
                Problem::new(Code::BadFlag, format!("{name}:{number}: {title}"))
                    .help("a line is such as `latency = 2us`, `bandwidth = 25GB/s` or `cores = 2`")
            };
            let (key, value) = line
                .split_once('=')
                .ok_or_else(|| wrong(format!("`{line}` is no `key = value`")))?;
            let (key, value) = (key.trim(), value.trim());
            let at = KEYS.iter().position(|(known, _)| *known == key).ok_or_else(|| {
                let known = KEYS.map(|(key, _)| key);
                let title =
                    format!("`{key}` is no constant; the constants are {}", known.join(", "));
                match renamed(key).or_else(|| nearest(key, known)) {
                    Some(meant) => wrong(title).help(format!("did you mean `{meant}`?")),
                    None => wrong(title),
                }
            })?;
            if found[at].is_some() {
                return Err(wrong(format!("`{key}` is given twice")));
            }
            found[at] = Some(KEYS[at].1.read(value).ok_or_else(|| {
                wrong(format!("`{key}` is {}, not `{value}`", KEYS[at].1.takes()))
            })?);
        }
        let get = |at: usize| {
            found[at].ok_or_else(|| {
                Problem::new(Code::BadFlag, format!("{name}: `{}` is missing", KEYS[at].0))
                    .help("`cargo xtask calibrate` measures all constants of this machine")
            })
        };
        Ok(Self {
            name: name.to_owned(),
            origin: Origin::Measured,
            latency: get(0)?,
            message: get(1)?,
            bandwidth: get(2)?,
            reduce: get(3)?,
            copy: get(4)?,
            cores: found[5].map(|cores| cores as u32),
        })
    }

    /// The lines that [`Self::parse`] reads: whole nanoseconds, and bandwidths in MB/s.
    pub fn lines(&self) -> String {
        let time = |seconds: f64| format!("{}ns", (seconds * 1e9).round());
        let rate = |rate: f64| format!("{}MB/s", (rate / 1e6).round().max(1.0));
        let cores = self.cores.map_or_else(String::new, |cores| format!("cores = {cores}\n"));
        format!(
            "latency = {}\nmessage = {}\nbandwidth = {}\nreduce = {}\ncopy = {}\n{cores}",
            time(self.latency),
            time(self.message),
            rate(self.bandwidth),
            rate(self.reduce),
            rate(self.copy),
        )
    }

    /// Returns the time for `bytes` bytes, nccl-tests' size S, by counts alone. Where ranks share cores, all pieces
    /// cost their overhead.
    pub fn time(&self, counts: &Counts, bytes: u64) -> Time {
        let bytes = bytes as f64;
        let done = |work: Work| match self.cores {
            Some(cores) => work.busiest.max(work.total / f64::from(cores.max(1))),
            None => work.busiest,
        };
        let first = if self.cores.is_some() { 0.0 } else { counts.messages.busiest };
        Time {
            steps: self.latency * f64::from(counts.steps),
            pieces: self.message * (done(counts.pieces) - first),
            volume: bytes * done(counts.volume) / self.bandwidth,
            reduced: bytes * done(counts.reduced) / self.reduce,
            copied: bytes * done(counts.copied) / self.copy,
        }
    }
}

/// Whether the links of `topology` were given latencies; latencies of network cards alone, in a file about a machine,
/// do not count.
pub fn has_latency(topology: &Fabric) -> bool {
    !topology.has_kinds() && topology.links().iter().any(|link| link.latency > 0)
}

/// Bytes a second of a text such as `25GB/s`.
pub fn read_rate(text: &str) -> Option<f64> {
    Unit::PerSecond.read(text.trim())
}

/// Seconds of a text such as `2us`.
pub fn read_time(text: &str) -> Option<f64> {
    Unit::Seconds.read(text.trim())
}

impl Unit {
    fn read(self, text: &str) -> Option<f64> {
        if let Self::Number = self {
            return text.parse::<u32>().ok().filter(|n| *n > 0).map(f64::from);
        }
        let number = match self {
            Self::PerSecond => text.strip_suffix("/s")?.trim_end(),
            _ => text,
        };
        let mut errors: Vec<Diagnostic> = Vec::new();
        match (self, literal_token(number, Span::default(), &mut errors)) {
            _ if !errors.is_empty() => None,
            (Self::Seconds, Tok::Quantity(Quantity::Time(ns))) => Some(ns as f64 * 1e-9),
            (Self::PerSecond, Tok::Quantity(Quantity::Bytes(b))) if b > 0 => Some(b as f64),
            _ => None,
        }
    }

    const fn takes(self) -> &'static str {
        match self {
            Self::Seconds => "a time such as 2us",
            Self::PerSecond => "a bandwidth such as 25GB/s",
            Self::Number => "a number of 1 or more",
        }
    }
}
