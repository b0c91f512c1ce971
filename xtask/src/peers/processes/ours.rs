//! Our own side: launches of `roundelay bench`, and their output.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::figures::Column;
use super::{LONGEST, PeerOp, Time};
use crate::command::within;

/// Flags of `bench`: a process for each rank, buffers from `alloc` instead of private ones, and a thread for each rank.
const PROCESSES: &[&str] = &["--callers", "processes"];
const PROCESSES_ALLOC: &[&str] = &["--callers", "processes", "--alloc"];
const THREADS: &[&str] = &["--callers", "each"];
/// The size from which a call is long, and fewer iterations suffice.
const LARGE: u64 = 16 << 20;

/// The kind of ranks, and of their buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RankSetup {
    Private,
    Alloc,
    Threads,
}

impl RankSetup {
    pub(super) const ALL: [Self; 3] = [Self::Private, Self::Alloc, Self::Threads];

    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "private" => Some(Self::Private),
            "alloc" => Some(Self::Alloc),
            "threads" => Some(Self::Threads),
            _ => None,
        }
    }

    pub(super) fn column(self) -> Column {
        match self {
            Self::Private => Column::Private,
            Self::Alloc => Column::Alloc,
            Self::Threads => Column::Threads,
        }
    }

    pub(super) fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Private => PROCESSES,
            Self::Alloc => PROCESSES_ALLOC,
            Self::Threads => THREADS,
        }
    }
}

/// Makes one launch at one size, and returns its median, and the limit of the memory beside it.
pub(super) fn time(
    program: &Path,
    (mode, rewritten): (RankSetup, bool),
    op: &PeerOp,
    nranks: u32,
    bytes: u64,
) -> Result<(Time, f64), String> {
    let mut command = Command::new(program);
    command.args(["bench", op.algorithm]).args(mode.flags());
    for parameter in op.parameters {
        command.args(["--set", parameter]);
    }
    if rewritten {
        command.arg("--rewrite");
    }
    let iterations = if bytes >= LARGE { "8" } else { "20" };
    let bytes = bytes.to_string();
    command.args(["--nranks", &nranks.to_string(), "-b", &bytes, "-e", &bytes]);
    command.args(["--iters", iterations, "--format", "json"]);
    read(&within(&mut command, LONGEST)?.stdout, op.in_place)
}

/// Reads `bench`'s report of one algorithm at one size.
fn read(text: &str, in_place: bool) -> Result<(Time, f64), String> {
    let report: Value =
        serde_json::from_str(text).map_err(|error| format!("no JSON: {error}\n{text}"))?;
    let number = |at: &str| {
        let value = report.pointer(at).and_then(Value::as_f64);
        value.ok_or_else(|| format!("{at} is no number in\n{text}"))
    };
    if report["config"]["build"] != "release" {
        return Err(format!("its times say nothing: it is no release build\n{text}"));
    }
    if report["results"].as_array().is_none_or(|results| results.len() != 1) {
        return Err(format!("not one result: {}\n{text}", report["refused"]));
    }
    let place = if in_place { "in_place" } else { "out_of_place" };
    let time = number(&format!("/results/0/{place}/median"))?;
    let wrong = number(&format!("/results/0/{place}/nwrong"))? > 0.0;
    Ok(((time, wrong), number("/limit/sizes/0/median")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a report with `nwrong` wrong elements.
    fn report(nwrong: u32) -> Value {
        serde_json::json!({
            "limit": { "what": "a program", "sizes": [ { "size": 1024, "median": 0.5 } ] },
            "results": [ {
                "algo": "OneShotMeshAllReduce",
                "out_of_place": { "time": 1.5, "median": 1.25, "nwrong": nwrong },
            } ],
            "refused": [],
            "config": { "callers": "processes", "build": "release" },
        })
    }

    #[test]
    fn a_report_gives_the_median_of_the_form_and_the_limit() {
        let mut both = report(0);
        both["results"][0]["in_place"] = serde_json::json!({ "median": 0.75, "nwrong": 0 });
        assert_eq!(read(&both.to_string(), true), Ok(((0.75, false), 0.5)));
        assert_eq!(read(&report(0).to_string(), false), Ok(((1.25, false), 0.5)));
        assert_eq!(read(&report(3).to_string(), false), Ok(((1.25, true), 0.5)));
    }

    #[test]
    fn a_report_without_a_time_says_why() {
        let mut refused = report(0);
        refused["results"] = serde_json::json!([]);
        refused["refused"] = serde_json::json!([{ "reason": "no such count" }]);
        assert!(read(&refused.to_string(), false).is_err_and(|why| why.contains("no such count")));
        let mut dev = report(0);
        dev["config"]["build"] = "dev".into();
        assert!(read(&dev.to_string(), false).is_err_and(|why| why.contains("no release build")));
        let mut unchecked = report(0);
        unchecked["results"][0]["out_of_place"]["nwrong"] = Value::Null;
        assert!(read(&unchecked.to_string(), false).is_err_and(|why| why.contains("nwrong")));
        assert!(read("error", false).is_err_and(|why| why.contains("no JSON")));
    }

    #[test]
    fn every_mode_has_its_name() {
        let named = ["private", "alloc", "threads"].map(RankSetup::named);
        assert_eq!(named, RankSetup::ALL.map(Some));
        assert_eq!(RankSetup::named("fibres"), None);
    }
}
