//! The times measured on a GPU: ours, the same schedules driven from the host, and the peers', from the output of the
//! steps.

use serde_json::Value;

use super::PEERS;
use super::steps::Record;

/// One way to make the call, at one size.
pub(super) struct Time {
    pub(super) name: String,
    pub(super) size: u64,
    /// Microseconds.
    pub(super) micros: f64,
    pub(super) percent_of_floor: Option<f64>,
    /// Microseconds, by the model.
    pub(super) predicted: Option<f64>,
    /// The wrong elements; `None` where results were not checked.
    pub(super) wrong: Option<u64>,
}

impl Time {
    /// Whether the host issued op by op.
    pub(super) fn is_driven(&self) -> bool {
        self.name.ends_with("driven from the host")
    }
}

pub(super) struct Figures {
    /// The driver's name of the device.
    pub(super) device: Option<String>,
    pub(super) nranks: u32,
    /// GB/s, read and written; the best that was seen.
    pub(super) copy_bandwidth: f64,
    pub(super) times: Vec<Time>,
    /// Output that holds no figure.
    unread: Vec<String>,
}

fn number(value: &Value, key: &str) -> Result<f64, String> {
    value[key].as_f64().ok_or_else(|| format!("no number `{key}` in {value}"))
}

impl Figures {
    /// Returns the figures that these steps have printed so far.
    pub(super) fn of(nranks: u32, records: &[Record]) -> Self {
        let mut figures = Self {
            device: None,
            nranks,
            copy_bandwidth: 0.0,
            times: Vec::new(),
            unread: Vec::new(),
        };
        for record in records {
            let read = |figures: &mut Self, text: &str| match record.name.as_str() {
                "bench" | "more bench" => figures.bench(text),
                name if PEERS.iter().any(|(peer, _)| *peer == name) => figures.peer(name, text),
                _ => Ok(()),
            };
            // A command that was cut short has printed nothing, or half a line.
            for text in record.printed.iter().filter(|text| !text.trim().is_empty()) {
                if let Err(why) = read(&mut figures, text) {
                    figures.unread.push(format!("{}: {why}", record.name));
                }
            }
        }
        figures
    }

    /// Reads a report of `bench`: the device's name, its bandwidth, and a time for each row.
    fn bench(&mut self, text: &str) -> Result<(), String> {
        let report: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        for row in report["results"].as_array().into_iter().flatten() {
            let place = &row["out_of_place"];
            self.times.push(Time {
                name: row["algo"].as_str().unwrap_or_default().to_owned(),
                size: number(row, "size")? as u64,
                micros: number(place, "time")?,
                percent_of_floor: row["percent_of_floor"].as_f64(),
                predicted: row["predicted"].as_f64(),
                wrong: place["nwrong"].as_u64(),
            });
        }
        let floor = &report["floor"];
        self.device = floor["device"].as_str().map(str::to_owned);
        self.copy_bandwidth = self.copy_bandwidth.max(number(floor, "copy_bandwidth")?);
        Ok(())
    }

    /// Reads the output of a peer, a document on each line.
    fn peer(&mut self, peer: &str, text: &str) -> Result<(), String> {
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let line: Value = serde_json::from_str(line).map_err(|e| format!("{e} in `{line}`"))?;
            // The step's verdict says why.
            if line["skipped"].is_string() {
                continue;
            }
            let name = line["version"].as_str().unwrap_or(peer).to_owned();
            let (size, wrong) = (number(&line, "size")? as u64, number(&line, "wrong")? as u64);
            let micros = number(&line, "time")?;
            let (percent_of_floor, predicted, wrong) = (None, None, Some(wrong));
            self.times.push(Time { name, size, micros, percent_of_floor, predicted, wrong });
        }
        Ok(())
    }

    /// Returns the sizes that were measured.
    pub(super) fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.times.iter().map(|time| time.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Returns the times of our kernels at a size, in every way of launching, of the algorithm of that name or of all.
    pub(super) fn ours<'a>(
        &'a self,
        algorithm: Option<&'a str>,
        size: u64,
    ) -> impl Iterator<Item = &'a Time> {
        let is = move |time: &&Time| {
            let name = time.name.split(", ").next().unwrap_or_default();
            let wanted = algorithm.map_or(name.ends_with("AllReduce"), |wanted| name == wanted);
            time.size == size && wanted && !time.is_driven()
        };
        self.times.iter().filter(is)
    }

    /// Returns the time of a name at a size.
    pub(super) fn at(&self, name: &str, size: u64) -> Option<&Time> {
        self.times.iter().find(|time| time.name == name && time.size == size)
    }

    /// Returns all names, in the order of their measurement.
    pub(super) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for time in &self.times {
            if !names.contains(&time.name.as_str()) {
                names.push(&time.name);
            }
        }
        names
    }

    /// Returns the share in percent of the time that the ring's own traffic takes at the speed of copies: a copy of the
    /// input, then n - 1 blocks that are read twice and written once, and n - 1 that are read and written once.
    pub(super) fn ring_share(&self, time: &Time) -> f64 {
        let blocks = f64::from(self.nranks - 1) / f64::from(self.nranks);
        let bytes = f64::from(self.nranks) * time.size as f64 * (2.0 + (3.0 + 2.0) * blocks);
        100.0 * bytes / (self.copy_bandwidth * 1e3) / time.micros
    }

    /// Returns an error where a result is wrong, or cannot be read.
    pub(super) fn verdict(&self) -> Result<(), String> {
        if let Some(unread) = self.unread.first() {
            return Err(format!(
                "{} outputs are no figures, the first {unread}",
                self.unread.len()
            ));
        }
        let is_wrong = |time: &&Time| time.wrong.is_some_and(|wrong| wrong > 0);
        let wrong: Vec<&Time> = self.times.iter().filter(is_wrong).collect();
        match wrong.first() {
            None => Ok(()),
            Some(Time { name, size, .. }) => {
                let count = wrong.len();
                Err(format!("{count} results are wrong, the first of {name} at {size} bytes"))
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::super::steps::GpuVerdict;
    use super::*;

    /// Makes the record of a step with this output.
    pub(in super::super) fn record(name: &str, verdict: GpuVerdict, printed: &[&str]) -> Record {
        let printed = printed.iter().map(|text| (*text).to_owned()).collect();
        Record { name: name.to_owned(), verdict, took: Duration::from_millis(1500), printed }
    }

    /// Makes a report of two algorithms at one size.
    pub(in super::super) fn report(size: u64, mesh: f64, ring: f64, wrong: u64) -> String {
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
    fn a_ring_is_held_against_its_own_traffic() {
        let bench = record("bench", GpuVerdict::Ok, &[&report(64 << 20, 1200.0, 4000.0, 0)]);
        let figures = Figures::of(8, &[bench]);
        let ring = figures.at("RingAllReduce", 64 << 20).expect("the ring was measured");
        // 8 ranks of 64 MiB, (2 + 5 * 7/8) times: 3422.6 MB at 1000 GB/s.
        assert!((figures.ring_share(ring) - 85.56).abs() < 0.01, "{}", figures.ring_share(ring));
    }

    #[test]
    fn figures_are_those_of_all_steps_that_have_some() {
        let failed = || GpuVerdict::Failed("out of time".to_owned());
        let records = [
            record("correctness", GpuVerdict::Ok, &["# cases 0 to 3 of 3"]),
            record("bench", failed(), &[&report(1 << 10, 9.5, 20.0, 0), ""]),
            record(
                "torch",
                failed(),
                &["{\"size\": 1024, \"time\": 30.5, \"wrong\": 0, \"version\": \"torch 2\"}\n"],
            ),
            record(
                "NCCL",
                GpuVerdict::Skipped("one rank".to_owned()),
                &["{\"skipped\": \"one rank\"}"],
            ),
            record("more bench", GpuVerdict::Ok, &[&report(64 << 20, 1200.0, 4000.0, 0)]),
        ];
        let figures = Figures::of(8, &records);
        assert_eq!(figures.sizes(), [1 << 10, 64 << 20]);
        assert_eq!(figures.names(), ["MeshAllReduce", "RingAllReduce", "torch 2"]);
        assert_eq!(figures.device.as_deref(), Some("A GPU"));
        assert_eq!(figures.verdict(), Ok(()));
        let none = Figures::of(8, &records[..1]);
        assert_eq!((none.device, none.times.len()), (None, 0));
    }

    #[test]
    fn what_is_wrong_or_no_figure_is_an_error() {
        let bench =
            |text: &str| Figures::of(8, &[record("bench", GpuVerdict::Ok, &[text])]).verdict();
        let why = bench(&report(1 << 10, 9.5, 20.0, 2)).expect_err("two elements are wrong");
        assert_eq!(why, "1 results are wrong, the first of RingAllReduce at 1024 bytes");
        assert!(bench("{\"floor\"").expect_err("half a document").contains("the first bench:"));
    }
}
