//! `executor score`: the contest's judgement. First the analyser's verdict, then bandwidth by size and its mean:
//! simulated on the links of the topology, and measured on this machine, whose ranks share one memory.

use roundelay_core::executor::Executor;
use roundelay_core::layout::Algorithm as _;
use roundelay_core::units::microseconds;
use roundelay_export::contest::SIGNALS;
use roundelay_runner::executor::{ExecutorRow, Runner, Runs};
use roundelay_synthesis::executor::ScoredCall;
use serde::Serialize;

use super::check::ListedNeeds;
use super::executor_flags::ScoreFlags;
use super::size;
use crate::build_facts;
use crate::memory_bound::room;
use crate::progress;
use crate::report::{Failure, Format, refuse, wrong};
use crate::streams::{print, print_json};
use crate::topo::short;

#[derive(Serialize)]
struct ScoreReport {
    ok: bool,
    executor: String,
    collective: &'static str,
    topology: String,
    /// The build of this command, where it measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    build: Option<&'static str>,
    /// Bytes a second of B, and seconds of latency, where the topology gives none.
    bandwidth: f64,
    latency: f64,
    verdict: ScoreVerdict,
    rows: Vec<Scored>,
    /// GB/s.
    mean_simulated: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_measured: Option<f64>,
    /// The mean share of the bound, in percent.
    mean_share: f64,
}

/// The claims of the proof.
#[derive(Serialize)]
struct ScoreVerdict {
    proved: [&'static str; 5],
    /// Whether one-shot flags, one set for each link, would do for the signals too.
    one_shot_links: bool,
    /// The things that an operator relies on and that are not documented.
    #[serde(skip_serializing_if = "Option::is_none")]
    hcomm: Option<Vec<String>>,
}

#[derive(Serialize)]
struct Scored {
    bytes: u64,
    algorithm: String,
    simulated_us: f64,
    simulated_gbps: f64,
    /// The least that any algorithm could take: by bandwidth or by latency, whichever is more.
    bound_us: f64,
    share_percent: f64,
    /// The measured row, if any, or why the size was not run.
    measured: Result<Option<ExecutorRow>, String>,
}

/// The properties that were proved of every class.
const PROVED: [&str; 5] = [
    "no deadlock",
    "no memory conflict, from run to run and in place too",
    "every contribution once",
    "no read of what was never written",
    "no use of a dead link",
];

pub(super) fn main(flags: &ScoreFlags) -> Result<bool, Failure> {
    let (source, executor) = flags.asked.load_with_source()?;
    for &bytes in &flags.sizes {
        call(&executor, bytes, flags).check(&executor)?;
    }
    let runner = Runner::new(executor.clone(), flags.data.data(), room()?);
    let measures = !flags.simulate_only;
    if measures {
        build_facts::warn("executor score");
    }
    let text = flags.asked.format == Format::Human;
    let format = flags.asked.format;
    let needs = flags.interface.needs(&executor);
    let needs = needs.map_err(|errors| refuse(format, &errors, &source, wrong))?;
    let hcomm = needs.map(|needs| ListedNeeds::from(needs).assumptions);
    let one_shot_links = executor.prove_with(SIGNALS).is_ok();
    let verdict = ScoreVerdict { proved: PROVED, one_shot_links, hcomm };
    if text {
        head(&executor, &verdict, flags);
    }
    let mut rows = Vec::new();
    for &bytes in &flags.sizes {
        progress::about(format!("{}, {bytes} B", executor.name));
        let row = scored(&executor, bytes, measures.then_some(&runner), flags)?;
        if text {
            print(&row.line());
        }
        rows.push(row);
    }
    let mean = |of: &dyn Fn(&Scored) -> f64| rows.iter().map(of).sum::<f64>() / rows.len() as f64;
    let run =
        |row: &Scored| row.measured.as_ref().ok().and_then(Option::as_ref).map(|r| r.algbw_gbps);
    let report = ScoreReport {
        ok: rows.iter().all(Scored::is_right),
        executor: executor.name.clone(),
        collective: executor.collective.name(),
        topology: executor.topology.name().to_owned(),
        build: measures.then_some(build_facts::BUILD),
        bandwidth: flags.links.bandwidth,
        latency: flags.links.latency,
        verdict,
        mean_simulated: mean(&|row| row.simulated_gbps),
        // The mean over all sizes, or none if a size has none.
        mean_measured: rows.iter().map(run).sum::<Option<f64>>().map(|sum| sum / rows.len() as f64),
        mean_share: mean(&|row| row.share_percent),
        rows,
    };
    if text {
        report.print_mean(measures);
    } else {
        print_json(&report);
    }
    Ok(report.ok)
}

fn call(executor: &Executor, bytes: u64, flags: &ScoreFlags) -> ScoredCall {
    ScoredCall { bytes, ccl_buffer: flags.data.of_ccl(executor), dtype: flags.data.dtype }
}

fn scored(
    executor: &Executor,
    bytes: u64,
    runner: Option<&Runner>,
    flags: &ScoreFlags,
) -> Result<Scored, Failure> {
    let (call, links) = (call(executor, bytes, flags), flags.links.links());
    let (seconds, least) = (call.seconds(executor, links)?, call.least(executor, links)?);
    let measured = match runner {
        None => Ok(None),
        Some(runner) => {
            let runs = Runs { in_place: false, iterations: flags.iterations };
            match runner.admits(bytes, runs) {
                Ok(()) => Ok(Some(runner.run(bytes, runs)?)),
                Err(much) => Err(format!("not run: it {much}")),
            }
        }
    };
    let rate = |seconds: f64| if seconds > 0.0 { bytes as f64 / seconds / 1e9 } else { 0.0 };
    Ok(Scored {
        bytes,
        algorithm: executor.class(bytes).algorithm.name().to_owned(),
        simulated_us: microseconds(seconds),
        simulated_gbps: rate(seconds),
        bound_us: microseconds(least),
        share_percent: if seconds > 0.0 { 100.0 * least / seconds } else { 100.0 },
        measured,
    })
}

impl Scored {
    fn is_right(&self) -> bool {
        self.measured.as_ref().ok().and_then(Option::as_ref).is_none_or(|row| row.wrong == 0)
    }

    fn line(&self) -> String {
        let measured = match &self.measured {
            Ok(Some(m)) => {
                format!("{:>13.1} {:>7.3} {:>7}", m.time_us, m.algbw_gbps, m.wrong)
            }
            Ok(None) => String::new(),
            Err(why) => format!("  {why}"),
        };
        format!(
            "{:>10} {:<22} {:>12.1} {:>7.2} {:>12.1} {:>8.1} {measured}",
            size(self.bytes),
            self.algorithm,
            self.simulated_us,
            self.simulated_gbps,
            self.bound_us,
            self.share_percent,
        )
    }
}

/// Prints the lines above the rows.
fn head(executor: &Executor, verdict: &ScoreVerdict, flags: &ScoreFlags) {
    let Executor { name, collective, topology, .. } = executor;
    print(&format!("\x1b[1m{name}\x1b[0m ({}) on {}", collective.name(), topology.name()));
    let proved = verdict.proved;
    print(&format!("  \x1b[1;92mright\x1b[0m     {}", proved[..2].join("; ")));
    print(&format!("            {}", proved[2..].join("; ")));
    match &verdict.hcomm {
        None => {
            let links = if verdict.one_shot_links { "would do" } else { "would not do" };
            print(&format!("            one-shot flags, one set a link, {links} for its signals"));
        }
        Some(assumptions) => {
            print("            no one-shot notify of HCOMM loses a signal");
            for (nth, one) in assumptions.iter().enumerate() {
                print(&format!("  {:<9} {one}", if nth == 0 { "relies on" } else { "" }));
            }
        }
    }
    print(&format!(
        "  simulated with links of {} GB/s and {} us, streams in order, signals as messages, reductions free",
        short(flags.links.bandwidth / 1e9),
        short(flags.links.latency * 1e6)
    ));
    if !flags.simulate_only {
        print(&format!("  measured on this machine; {}", build_facts::line("executor score")));
    }
    let measured = format!("{:>13} {:>7} {:>7}", "measured us", "GB/s", "#wrong");
    print(&format!(
        "\n{:>10} {:<22} {:>12} {:>7} {:>12} {:>8} {}",
        "size",
        "algorithm",
        "simulated us",
        "GB/s",
        "bound us",
        "% bound",
        if flags.simulate_only { "" } else { &measured }
    ));
}

impl ScoreReport {
    fn print_mean(&self, measured: bool) {
        let mean = self.mean_measured.map_or(String::new(), |m| format!("{:>13} {m:>7.3}", ""));
        print(&format!(
            "{:>10} {:<22} {:>12} {:>7.2} {:>12} {:>8.1} {mean}",
            "mean", "", "", self.mean_simulated, "", self.mean_share
        ));
        if measured {
            print(
                "\nall ranks share this machine's memory: what is measured is no bandwidth of links",
            );
        }
    }
}
