//! The compared times, as a table and as JSON.

use std::fmt;

use super::Case;

/// One size of one case.
pub(super) struct PeerLine {
    library: String,
    op: &'static str,
    forced: &'static str,
    nranks: u32,
    pub(super) bytes: u64,
    theirs: Option<Best>,
    ours: Option<Best>,
    limit: f64,
    /// Whether any result was wrong.
    pub(super) wrong: bool,
}

/// A time in microseconds, and the name of its algorithm or launch.
struct Best {
    time: f64,
    of: String,
}

fn better(best: &mut Option<Best>, time: f64, of: &str) {
    if best.as_ref().is_none_or(|best| time < best.time) {
        *best = Some(Best { time, of: of.to_owned() });
    }
}

impl PeerLine {
    pub(super) fn new(library: &str, case: &Case, nranks: u32, bytes: u64) -> Self {
        Self {
            library: library.to_owned(),
            op: case.op,
            forced: case.theirs,
            nranks,
            bytes,
            theirs: None,
            ours: None,
            limit: f64::INFINITY,
            wrong: false,
        }
    }

    pub(super) fn theirs(&mut self, time: f64, launch: &str, wrong: bool) {
        better(&mut self.theirs, time, launch);
        self.wrong |= wrong;
    }

    pub(super) fn ours(&mut self, time: f64, algorithm: &str, wrong: bool) {
        better(&mut self.ours, time, algorithm);
        self.wrong |= wrong;
    }

    pub(super) fn limit(&mut self, time: f64) {
        self.limit = self.limit.min(time);
    }

    /// Returns the peer's time over ours.
    fn ratio(&self) -> Option<f64> {
        Some(self.theirs.as_ref()?.time / self.ours.as_ref()?.time)
    }
}

impl fmt::Display for PeerLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |best: &Option<Best>| best.as_ref().map_or(String::new(), |b| b.of.clone());
        let time = |best: &Option<Best>| best.as_ref().map_or(f64::NAN, |b| b.time);
        write!(
            f,
            "{:15} {:14} {:19} {:>6} {:>9} {:>12.2} {:9} {:>12.2} {:>12.2} {:>8.2}  {}{}",
            self.library,
            self.op,
            self.forced,
            self.nranks,
            self.bytes,
            time(&self.theirs),
            of(&self.theirs),
            time(&self.ours),
            self.limit,
            self.ratio().unwrap_or(f64::NAN),
            of(&self.ours),
            if self.wrong { "  WRONG" } else { "" },
        )
    }
}

pub(super) fn render(lines: &[PeerLine]) -> String {
    let mut table = format!(
        "{:15} {:14} {:19} {:>6} {:>9} {:>12} {:9} {:>12} {:>12} {:>8}  {}\n",
        "peer",
        "op",
        "its algorithm",
        "nranks",
        "bytes",
        "its us",
        "and it",
        "our us",
        "limit us",
        "ratio",
        "our algorithm"
    );
    for line in lines {
        table.push_str(&line.to_string());
        table.push('\n');
    }
    table
}

pub(super) fn json(lines: &[PeerLine], cores: u32, rounds: u32) -> String {
    let best = |best: &Option<Best>, of: &str| match best {
        Some(best) => serde_json::json!({ "time": best.time, of: best.of }),
        None => serde_json::Value::Null,
    };
    let line = |line: &PeerLine| {
        serde_json::json!({
            "peer": line.library,
            "op": line.op,
            "algorithm": line.forced,
            "nranks": line.nranks,
            "size": line.bytes,
            "theirs": best(&line.theirs, "waiting"),
            "ours": best(&line.ours, "algo"),
            "limit": line.limit,
            "ratio": line.ratio(),
            "wrong": line.wrong,
        })
    };
    let lines: Vec<_> = lines.iter().map(line).collect();
    let report =
        serde_json::json!({ "cores": cores, "turns": rounds, "unit": "us", "results": lines });
    format!("{report:#}\n")
}
