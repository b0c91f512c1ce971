//! The times measured on a GPU: ours, the same schedules driven from the host, and the peers', from the output of the
//! steps; and the page with them, of the book or of a rehearsal.

use serde_json::Value;

use super::timed_steps::{GpuVerdict, StepRecord};

/// The size from which the targets of large messages hold.
const LARGE: u64 = 64 << 20;
/// The steps whose output has figures.
const MEASURED: [&str; 4] = ["bench", "more bench", "torch", "NCCL"];
/// The step whose lines are on the page as they are.
const PROCESSES: &str = "processes";

/// One way to make the call, at one size.
struct GpuTime {
    name: String,
    size: u64,
    micros: f64,
    percent_of_floor: Option<f64>,
    /// Microseconds, by the model.
    predicted: Option<f64>,
    /// The wrong elements; `None` where results were not checked.
    wrong: Option<u64>,
}

impl GpuTime {
    /// Whether a kernel of ours made the whole call, and the host did not issue it op by op.
    fn is_ours(&self) -> bool {
        self.algorithm().ends_with("AllReduce") && !self.name.ends_with("driven from the host")
    }

    fn algorithm(&self) -> &str {
        self.name.split(", ").next().unwrap_or_default()
    }
}

#[derive(Default)]
pub(super) struct GpuTimes {
    /// The driver's name of the device.
    pub(super) device: Option<String>,
    nranks: u32,
    /// GB/s, read and written; the best that was seen.
    copy_bandwidth: f64,
    times: Vec<GpuTime>,
    /// Output that holds no figure.
    unread: Vec<String>,
}

impl GpuTimes {
    /// Returns the times that these steps have printed so far.
    pub(super) fn of(nranks: u32, records: &[StepRecord]) -> Self {
        let mut all = Self { nranks, ..Self::default() };
        for record in records.iter().filter(|record| MEASURED.contains(&record.name.as_str())) {
            // A command that was cut short has printed nothing, or half a line.
            for text in &record.printed {
                if let Err(why) = all.read(&record.name, text) {
                    all.unread.push(format!("{}: {why}", record.name));
                }
            }
        }
        all
    }

    /// Reads JSON: reports of `bench`, with a time for each row, or a time of a peer on each line.
    fn read(&mut self, step: &str, text: &str) -> Result<(), String> {
        for document in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
            let document = document.map_err(|error| error.to_string())?;
            let number = |value: &Value, at: &str| {
                let number = value.pointer(at).and_then(Value::as_f64);
                number.ok_or_else(|| format!("no number {at} in {value}"))
            };
            let mut add = |row: &Value, name: &str, time: &str, wrong: &str| {
                self.times.push(GpuTime {
                    name: row[name].as_str().unwrap_or(step).to_owned(),
                    size: number(row, "/size")? as u64,
                    micros: number(row, time)?,
                    percent_of_floor: row["percent_of_floor"].as_f64(),
                    predicted: row["predicted"].as_f64(),
                    wrong: row.pointer(wrong).and_then(Value::as_u64),
                });
                Ok::<(), String>(())
            };
            if let Some(rows) = document["results"].as_array() {
                for row in rows {
                    add(row, "algo", "/out_of_place/time", "/out_of_place/nwrong")?;
                }
                self.device = document["floor"]["device"].as_str().map(str::to_owned);
                let bandwidth = number(&document, "/floor/copy_bandwidth")?;
                self.copy_bandwidth = self.copy_bandwidth.max(bandwidth);
            // The step's verdict says why a peer was skipped.
            } else if !document["skipped"].is_string() {
                number(&document, "/wrong")?;
                add(&document, "version", "/time", "/wrong")?;
            }
        }
        Ok(())
    }

    /// Returns the sizes that were measured.
    fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.times.iter().map(|time| time.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Returns the times at a size, those of our kernels or the others.
    fn at(&self, size: u64, ours: bool) -> impl Iterator<Item = &GpuTime> {
        self.times.iter().filter(move |time| time.size == size && time.is_ours() == ours)
    }

    /// Returns the share in percent of the time that the ring's own traffic takes at the speed of copies: a copy of the
    /// input, then n - 1 blocks that are read twice and written once, and n - 1 that are read and written once.
    fn ring_share(&self, time: &GpuTime) -> f64 {
        let blocks = f64::from(self.nranks - 1) / f64::from(self.nranks);
        let bytes = f64::from(self.nranks) * time.size as f64 * (2.0 + (3.0 + 2.0) * blocks);
        100.0 * bytes / (self.copy_bandwidth * 1e3) / time.micros
    }

    /// Returns an error where a result is wrong, or cannot be read.
    pub(super) fn verdict(&self) -> Result<(), String> {
        if let Some(unread) = self.unread.first() {
            let count = self.unread.len();
            return Err(format!("{count} outputs are no figures, the first {unread}"));
        }
        let is_wrong = |time: &&GpuTime| time.wrong.is_some_and(|wrong| wrong > 0);
        let wrong: Vec<&GpuTime> = self.times.iter().filter(is_wrong).collect();
        let (count, first) = (wrong.len(), wrong.first());
        first.map_or(Ok(()), |GpuTime { name, size, .. }| {
            Err(format!("{count} results are wrong, the first of {name} at {size} bytes"))
        })
    }

    /// Returns the table of all times.
    fn table(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for time in &self.times {
            if !names.contains(&time.name.as_str()) {
                names.push(&time.name);
            }
        }
        let mut table = head(&[&["bytes a rank"], &names[..]].concat());
        for size in self.sizes() {
            let cell = |name: &&str| {
                let mut all = self.times.iter();
                all.find(|time| time.name == *name && time.size == size)
                    .map_or("-".to_owned(), shown)
            };
            let cells: Vec<String> = names.iter().map(cell).collect();
            table.push(format!("| {size} | {} |", cells.join(" | ")));
        }
        table.join("\n")
    }

    /// Returns the targets, a line each.
    fn targets(&self) -> Vec<String> {
        let verdict = |met: bool| if met { "met" } else { "**missed**" };
        let mut lines = Vec::new();
        for size in self.sizes() {
            let of =
                |name: &'static str| self.at(size, true).filter(move |t| t.algorithm() == name);
            let mesh = of("MeshAllReduce").filter_map(|time| time.percent_of_floor);
            let ring = of("RingAllReduce").map(|time| self.ring_share(time));
            let large = [
                ("mesh", mesh.reduce(f64::max), "floor", 85.0),
                ("ring", ring.reduce(f64::max), "its own traffic", 90.0),
            ];
            for (name, share, whole, wanted) in large.into_iter().filter(|_| size >= LARGE) {
                let Some(share) = share else { continue };
                let (mib, met) = (size >> 20, verdict(share >= wanted));
                let line =
                    format!("* {name}, {mib} MiB: {share:.1} % of {whole}, {wanted} wanted: {met}");
                lines.push(line);
            }
            let least = |ours| self.at(size, ours).map(|time| time.micros).reduce(f64::min);
            if let (Some(micros), 1024) = (least(true), size) {
                lines.push(format!(
                    "* 1 KiB: {micros:.1} us, 12 wanted: {}",
                    verdict(micros < 12.0)
                ));
            }
            if let (Some(ours), Some(others)) = (least(true), least(false)) {
                let (beside, met) = ("the fastest of the others", verdict(ours < others));
                lines.push(format!("* {size} B: {ours:.1} us, {beside} {others:.1}: {met}"));
            }
        }
        lines
    }
}

/// Returns a time with what is known beside it.
fn shown(time: &GpuTime) -> String {
    let share = time.percent_of_floor.map(|share| format!("{share:.0} % of floor"));
    let predicted = time.predicted.map(|time| format!("{time:.1} predicted"));
    let beside: Vec<String> = share.into_iter().chain(predicted).collect();
    let beside =
        if beside.is_empty() { String::new() } else { format!(" ({})", beside.join(", ")) };
    let wrong = match time.wrong {
        Some(0) => "",
        Some(_) => " **wrong**",
        None => " (result not looked at)",
    };
    format!("{:.1}{beside}{wrong}", time.micros)
}

/// Returns the first two lines of a table.
fn head(heads: &[&str]) -> Vec<String> {
    vec![format!("| {} |", heads.join(" | ")), format!("|{}", "---|".repeat(heads.len()))]
}

/// Renders the page as far as the steps have come.
pub(super) fn render(times: &GpuTimes, records: &[StepRecord], rehearsal: bool) -> String {
    let title = if rehearsal {
        "# A rehearsal in which no GPU took part\n\n\
         Kernels ran on CPU threads, below a driver for tests: no time here says anything of a GPU.\n\n"
    } else {
        "# On a GPU\n\n"
    };
    let measured = match &times.device {
        None => "`cargo xtask gpu-test` has measured no times.\n\n".to_owned(),
        Some(device) => format!(
            "Measured by `cargo xtask gpu-test` on one {device}, {} virtual ranks: all share the GPU's memory, so \
             nothing here is the speed of a link. AllReduce, f32 sum, out of place, in microseconds.\n\n\
             Copies within the device run at {:.0} GB/s, read and written. The floor is every input read \
             once and every output written once at that speed; a size that the caches hold may be faster.\n\n\
             {}\n\n## Targets\n\n{}\n\n",
            times.nranks,
            times.copy_bandwidth,
            times.table(),
            times.targets().join("\n")
        ),
    };
    // Text that may stand in a table.
    let cell = |text: &str| text.replace('|', "/").replace(['\n', '<', '>'], " ");
    let mut table = head(&["step", "seconds", "verdict"]);
    for record in records {
        let verdict = match &record.verdict {
            GpuVerdict::Ok => {
                record.summary().map_or("ok".to_owned(), |said| format!("ok: {said}"))
            }
            GpuVerdict::Skipped(why) => format!("skipped: {}", cell(why)),
            GpuVerdict::Failed(why) => format!("**failed**: {}", cell(why)),
        };
        let seconds = record.took.as_secs_f64();
        table.push(format!("| {} | {seconds:.1} | {verdict} |", record.name));
    }
    let processes = records.iter().find(|record| record.name == PROCESSES);
    let lines = processes.iter().flat_map(|record| record.printed.iter()).flat_map(|p| p.lines());
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with('#')).collect();
    let mut processes = String::new();
    if !lines.is_empty() {
        let lines = lines.join("\n");
        processes = format!("## Ranks with a process each\n\n```text\n{lines}\n```\n\n");
    }
    format!("{title}{measured}{processes}## Steps\n\n{}\n", table.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::super::timed_steps::tests::record;
    use super::*;

    /// Makes a report of two algorithms at one size.
    fn report(size: u64, mesh: f64, ring: f64, wrong: u64) -> String {
        let row = |algo: &str, time: f64, share: f64, wrong: u64| {
            serde_json::json!({
                "algo": algo, "size": size, "percent_of_floor": share, "predicted": time / 2.0,
                "out_of_place": { "time": time, "nwrong": wrong }
            })
        };
        let rows = [row("MeshAllReduce", mesh, 89.5, 0), row("RingAllReduce", ring, 26.8, wrong)];
        let floor = serde_json::json!({ "device": "A GPU", "copy_bandwidth": 1000.0 });
        serde_json::json!({ "floor": floor, "results": rows }).to_string()
    }

    #[test]
    fn the_page_says_what_was_met_and_what_became_of_each_step() {
        let (small, large) = (report(1 << 10, 9.5, 20.0, 0), report(64 << 20, 1200.0, 4000.0, 3));
        let torch = "{\"size\": 1024, \"time\": 30.5, \"wrong\": 0, \"version\": \"torch 2\"}\n";
        let mut records = [
            record("correctness", &["# A GPU\n# cases 0 to 3 of 3: 6 runs, 0 wrong, 1 s\n"]),
            record("bench", &[&small, &large, ""]),
            record("torch", &[torch]),
            record("NCCL", &["{\"skipped\": \"one rank\"}"]),
            record("processes", &["2 ranks, killed: known after 2 ms\n# 0 failed\n"]),
        ];
        records[1].verdict = GpuVerdict::Failed("out of time: a | b".to_owned());
        records[3].verdict = GpuVerdict::Skipped("one rank".to_owned());
        let times = GpuTimes::of(8, &records);
        let page = render(&times, &records, false);
        assert!(page.starts_with("# On a GPU\n\nMeasured by `cargo xtask gpu-test` on one A GPU"));
        // 8 ranks of 64 MiB, (2 + 5 * 7/8) times: 3422.6 MB at 1000 GB/s.
        for line in [
            "| bytes a rank | MeshAllReduce | RingAllReduce | torch 2 |",
            "| 1024 | 9.5 (90 % of floor, 4.8 predicted) | 20.0 (27 % of floor, 10.0 predicted) | 30.5 |",
            "| 67108864 | 1200.0 (90 % of floor, 600.0 predicted) | 4000.0 (27 % of floor, 2000.0 predicted) **wrong** | - |",
            "* mesh, 64 MiB: 89.5 % of floor, 85 wanted: met",
            "* ring, 64 MiB: 85.6 % of its own traffic, 90 wanted: **missed**",
            "* 1 KiB: 9.5 us, 12 wanted: met",
            "* 1024 B: 9.5 us, the fastest of the others 30.5: met",
            "| correctness | 1.5 | ok: cases 0 to 3 of 3: 6 runs, 0 wrong, 1 s |",
            "| bench | 1.5 | **failed**: out of time: a / b |",
            "| NCCL | 1.5 | skipped: one rank |",
            "2 ranks, killed: known after 2 ms",
            "| processes | 1.5 | ok: 0 failed |",
        ] {
            assert!(page.lines().any(|found| found == line), "no `{line}` in\n{page}");
        }
        let why = times.verdict().expect_err("three elements are wrong");
        assert_eq!(why, "1 results are wrong, the first of RingAllReduce at 67108864 bytes");
    }

    #[test]
    fn a_page_without_figures_is_a_page_and_what_is_no_figure_is_an_error() {
        let records = [record("bench", &["{\"floor\""]), record("litmus", &["no figure"])];
        let times = GpuTimes::of(4, &records);
        assert!(
            times
                .verdict()
                .is_err_and(|why| why.contains("1 outputs are no figures, the first bench:"))
        );
        assert!(render(&times, &records, false).contains("has measured no times"));
        let page = render(&times, &records, true);
        assert!(page.starts_with("# A rehearsal in which no GPU took part\n"), "{page}");
    }
}
