//! What is measured on a GPU: ours, the same schedules driven from the host, and the peers, all in one run.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::lines;
use crate::command::output;

/// Virtual ranks.
pub(super) const NRANKS: u32 = 8;
const OURS: [&str; 3] = ["MeshAllReduce", "OneShotMeshAllReduce", "RingAllReduce"];
const PEERS: [(&str, &str); 2] = [("torch", "torch_sum.py"), ("NCCL", "nccl_one_gpu.py")];

/// One way to do it, at one size.
pub(super) struct Time {
    pub(super) name: String,
    pub(super) size: u64,
    /// Microseconds.
    pub(super) micros: f64,
    pub(super) percent_of_floor: Option<f64>,
    pub(super) wrong: u64,
}

pub(super) struct Figures {
    pub(super) device: String,
    /// GB/s, read and written.
    pub(super) copy_bandwidth: f64,
    pub(super) sizes: Vec<u64>,
    pub(super) times: Vec<Time>,
    /// Peers that were not measured, and why.
    pub(super) skipped: Vec<String>,
}

/// One to the next by a factor of 4.
fn sizes(quick: bool) -> Vec<u64> {
    let largest: u64 = if quick { 16 << 20 } else { 1 << 30 };
    std::iter::successors(Some(1 << 10), |size| Some(size * 4))
        .take_while(|s| *s <= largest)
        .collect()
}

fn number(value: &Value, key: &str) -> Result<f64, String> {
    value[key].as_f64().ok_or_else(|| format!("no number `{key}` in {value}"))
}

impl Figures {
    pub(super) fn measure(
        root: &Path,
        ours: &Path,
        device: u32,
        quick: bool,
    ) -> Result<Self, String> {
        let sizes = sizes(quick);
        let (mut times, mut skipped) = (Vec::new(), Vec::new());
        let (name, copy_bandwidth) = bench(ours, device, &sizes, &mut times)?;
        for (peer, script) in PEERS {
            match peer_times(root, peer, script, device, &sizes)? {
                Ok(found) => times.extend(found),
                Err(why) => {
                    println!("== skipped: {peer}: {why}");
                    skipped.push(format!("{peer}: {why}"));
                }
            }
        }
        Ok(Self { device: name, copy_bandwidth, sizes, times, skipped })
    }

    /// The time of one at a size.
    pub(super) fn at(&self, name: &str, size: u64) -> Option<&Time> {
        self.times.iter().find(|time| time.name == name && time.size == size)
    }

    /// All names, in the order of their measuring.
    pub(super) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for time in &self.times {
            if !names.contains(&time.name.as_str()) {
                names.push(&time.name);
            }
        }
        names
    }

    /// The share in percent of what the ring's own traffic takes at the speed of copies: a copy of the input, then
    /// n - 1 blocks that are read twice and written once, and n - 1 that are read and written once.
    pub(super) fn ring_share(&self, time: &Time) -> f64 {
        let blocks = f64::from(NRANKS - 1) / f64::from(NRANKS);
        let bytes = f64::from(NRANKS) * time.size as f64 * (2.0 + (3.0 + 2.0) * blocks);
        100.0 * bytes / (self.copy_bandwidth * 1e3) / time.micros
    }

    pub(super) fn verdict(&self) -> Result<(), String> {
        let wrong: Vec<&Time> = self.times.iter().filter(|time| time.wrong > 0).collect();
        match wrong.first() {
            None => Ok(()),
            Some(first) => Err(format!(
                "{} results are wrong, the first of {} at {} bytes",
                wrong.len(),
                first.name,
                first.size
            )),
        }
    }
}

/// Ours: the device's name, its bandwidth, and a time for each row.
fn bench(
    ours: &Path,
    device: u32,
    sizes: &[u64],
    times: &mut Vec<Time>,
) -> Result<(String, f64), String> {
    let (first, last) = (sizes[0].to_string(), sizes[sizes.len() - 1].to_string());
    let mut command = Command::new(ours);
    command.args(["bench", &OURS.join(","), "--device", &format!("cuda:{device}")]);
    command.args(["--nranks", &NRANKS.to_string(), "-b", &first, "-e", &last, "-f", "4"]);
    let text = output(command.args(["--format", "json"]))?;
    let report: Value =
        serde_json::from_str(&text).map_err(|error| format!("bench: {error}\n{text}"))?;
    for row in report["results"].as_array().into_iter().flatten() {
        let place = &row["out_of_place"];
        times.push(Time {
            name: row["algo"].as_str().unwrap_or_default().to_owned(),
            size: number(row, "size")? as u64,
            micros: number(place, "time")?,
            percent_of_floor: row["percent_of_floor"].as_f64(),
            wrong: number(place, "nwrong")? as u64,
        });
    }
    let floor = &report["floor"];
    let name = floor["device"].as_str().ok_or("bench names no device")?.to_owned();
    Ok((name, number(floor, "copy_bandwidth")?))
}

/// A peer's times, or why there are none.
fn peer_times(
    root: &Path,
    peer: &str,
    script: &str,
    device: u32,
    sizes: &[u64],
) -> Result<Result<Vec<Time>, String>, String> {
    // Its absence is no error, a script that fails is one.
    let importable = Command::new("python3").args(["-c", "import torch"]).output();
    if !importable.is_ok_and(|output| output.status.success()) {
        return Ok(Err("python3 cannot import torch".to_owned()));
    }
    let mut command = Command::new("python3");
    command.arg(root.join("xtask/peers").join(script)).arg(NRANKS.to_string());
    command.env("CUDA_VISIBLE_DEVICES", device.to_string()).env("NCCL_MULTI_RANK_GPU_ENABLE", "1");
    let mut times = Vec::new();
    for line in lines(command.args(sizes.iter().map(u64::to_string)))? {
        if let Some(why) = line["skipped"].as_str() {
            return Ok(Err(why.to_owned()));
        }
        let name = line["version"].as_str().unwrap_or(peer).to_owned();
        let size = number(&line, "size")? as u64;
        let (micros, wrong) = (number(&line, "time")?, number(&line, "wrong")? as u64);
        times.push(Time { name, size, micros, percent_of_floor: None, wrong });
    }
    Ok(Ok(times))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn figures() -> Figures {
        let time = |name: &str, size, micros, percent_of_floor| Time {
            name: name.to_owned(),
            size,
            micros,
            percent_of_floor,
            wrong: 0,
        };
        Figures {
            device: "A GPU".to_owned(),
            copy_bandwidth: 1000.0,
            sizes: vec![1 << 10, 64 << 20],
            times: vec![
                time("MeshAllReduce", 1 << 10, 9.5, Some(0.2)),
                time("MeshAllReduce", 64 << 20, 1200.0, Some(89.5)),
                time("RingAllReduce", 64 << 20, 4000.0, Some(26.8)),
            ],
            skipped: vec!["torch: python3 cannot import torch".to_owned()],
        }
    }

    #[test]
    fn a_ring_is_held_against_its_own_traffic() {
        let figures = figures();
        let ring = figures.at("RingAllReduce", 64 << 20).expect("it was measured");
        // 8 ranks of 64 MiB, (2 + 5 * 7/8) times: 3422.6 MB at 1000 GB/s.
        assert!((figures.ring_share(ring) - 85.56).abs() < 0.01, "{}", figures.ring_share(ring));
    }

    #[test]
    fn sizes_go_up_by_four() {
        assert_eq!(sizes(true).last(), Some(&(16 << 20)));
        assert_eq!(sizes(false).len(), 11);
    }
}
