//! The figures as a page, of the book or of a rehearsal.

use std::fmt::Write as _;

use super::figures::{Figures, Time};
use super::steps::{GpuVerdict, Record};

/// The size from which the targets of large messages hold.
const LARGE: u64 = 64 << 20;

/// Renders the page as far as the steps have come.
pub(super) fn render(figures: &Figures, records: &[Record], rehearsal: bool) -> String {
    let Figures { device, nranks, copy_bandwidth, .. } = figures;
    let mut page = if rehearsal {
        "# A rehearsal in which no GPU took part\n\n\
         Kernels ran on CPU threads, below a driver for tests: no time here says anything of a GPU.\n\n"
            .to_owned()
    } else {
        "# On a GPU\n\n".to_owned()
    };
    match device {
        None => page.push_str("`cargo xtask gpu-test` has measured no times.\n\n"),
        Some(device) => {
            let _ = write!(
                page,
                "Measured by `cargo xtask gpu-test` on one {device}, {nranks} virtual ranks: all share the GPU's memory, so \
                 nothing here is the speed of a link. AllReduce, f32 sum, out of place, in microseconds.\n\n\
                 Copies within the device run at {copy_bandwidth:.0} GB/s, read and written. The floor is every input read \
                 once and every output written once at that speed; a size that the caches hold may be faster.\n\n"
            );
            times(&mut page, figures);
        }
    }
    page.push_str("## Steps\n\n| step | seconds | verdict |\n|---|---|---|\n");
    for record in records {
        let verdict = match &record.verdict {
            GpuVerdict::Ok => {
                format!("ok{}", record.summary().map_or(String::new(), |s| format!(": {s}")))
            }
            GpuVerdict::Skipped(why) => format!("skipped: {}", cell(why)),
            GpuVerdict::Failed(why) => format!("**failed**: {}", cell(why)),
        };
        let _ =
            writeln!(page, "| {} | {:.1} | {verdict} |", record.name, record.took.as_secs_f64());
    }
    page
}

/// Returns the text in a form that may stand in a table.
fn cell(text: &str) -> String {
    text.replace('|', "/").replace(['\n', '<', '>'], " ")
}

fn times(page: &mut String, figures: &Figures) {
    let names = figures.names();
    let _ = writeln!(page, "| bytes a rank | {} |", names.join(" | "));
    let _ = writeln!(page, "|---|{}", "---|".repeat(names.len()));
    for size in figures.sizes() {
        let cells = names.iter().map(|name| match figures.at(name, size) {
            None => "-".to_owned(),
            Some(time) => {
                let share = time.percent_of_floor.map(|share| format!("{share:.0} % of floor"));
                let predicted = time.predicted.map(|time| format!("{time:.1} predicted"));
                let beside: Vec<String> = share.into_iter().chain(predicted).collect();
                let beside = match &beside[..] {
                    [] => String::new(),
                    some => format!(" ({})", some.join(", ")),
                };
                let wrong = match time.wrong {
                    Some(0) => "",
                    Some(_) => " **wrong**",
                    None => " (result not looked at)",
                };
                format!("{:.1}{beside}{wrong}", time.micros)
            }
        });
        let _ = writeln!(page, "| {size} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    page.push_str("\n## Targets\n\n");
    for line in targets(figures) {
        let _ = writeln!(page, "* {line}");
    }
    page.push('\n');
}

fn targets(figures: &Figures) -> Vec<String> {
    let verdict = |met: bool| if met { "met" } else { "**missed**" };
    let mut lines = Vec::new();
    for size in figures.sizes().iter().filter(|size| **size >= LARGE) {
        let mib = size >> 20;
        let mesh = figures.ours(Some("MeshAllReduce"), *size);
        let mesh = mesh.filter_map(|mesh| mesh.percent_of_floor).reduce(f64::max);
        if let Some(share) = mesh {
            let met = verdict(share >= 85.0);
            lines.push(format!("mesh, {mib} MiB: {share:.1} % of floor, 85 wanted: {met}"));
        }
        let ring = figures.ours(Some("RingAllReduce"), *size);
        if let Some(share) = ring.map(|ring| figures.ring_share(ring)).reduce(f64::max) {
            let met = verdict(share >= 90.0);
            lines.push(format!(
                "ring, {mib} MiB: {share:.1} % of its own traffic, 90 wanted: {met}"
            ));
        }
    }
    let best = figures.ours(None, 1 << 10).map(|time| time.micros).reduce(f64::min);
    if let Some(micros) = best {
        lines.push(format!("1 KiB: {micros:.1} us, 12 wanted: {}", verdict(micros < 12.0)));
    }
    for size in &figures.sizes() {
        let ours = figures.ours(None, *size).map(|time| time.micros).reduce(f64::min);
        let is_other = |time: &&Time| time.is_driven() || !time.name.contains("AllReduce");
        let others = figures.times.iter().filter(|time| time.size == *size).filter(is_other);
        let others = others.map(|time| time.micros).reduce(f64::min);
        if let (Some(ours), Some(others)) = (ours, others) {
            let met = verdict(ours < others);
            lines.push(format!(
                "{size} B: {ours:.1} us, the fastest of the others {others:.1}: {met}"
            ));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::{record, report};
    use super::*;

    #[test]
    fn the_page_says_what_was_met_and_what_became_of_each_step() {
        let (small, large) = (report(1 << 10, 9.5, 20.0, 0), report(64 << 20, 1200.0, 4000.0, 3));
        let torch = GpuVerdict::Skipped("python3 cannot import torch".to_owned());
        let records = [
            record(
                "correctness",
                GpuVerdict::Ok,
                &["# A GPU\n# cases 0 to 3 of 3: 6 runs, 0 wrong, 1 s\n"],
            ),
            record("bench", GpuVerdict::Failed("out of time: a | b".to_owned()), &[&small, &large]),
            record("torch", torch, &[]),
        ];
        let page = render(&Figures::of(8, &records), &records, false);
        assert!(page.starts_with("# On a GPU\n"), "{page}");
        for line in [
            "| bytes a rank | MeshAllReduce | RingAllReduce |",
            "| 1024 | 9.5 (90 % of floor, 4.8 predicted) | 20.0 (27 % of floor, 10.0 predicted) |",
            "| 67108864 | 1200.0 (90 % of floor, 600.0 predicted) | 4000.0 (27 % of floor, 2000.0 predicted) **wrong** |",
            "* mesh, 64 MiB: 89.5 % of floor, 85 wanted: met",
            "* ring, 64 MiB: 85.6 % of its own traffic, 90 wanted: **missed**",
            "* 1 KiB: 9.5 us, 12 wanted: met",
            "| correctness | 1.5 | ok: cases 0 to 3 of 3: 6 runs, 0 wrong, 1 s |",
            "| bench | 1.5 | **failed**: out of time: a / b |",
            "| torch | 1.5 | skipped: python3 cannot import torch |",
        ] {
            assert!(page.lines().any(|found| found == line), "no `{line}` in\n{page}");
        }
    }

    #[test]
    fn a_page_without_figures_is_a_page_and_a_rehearsal_says_so_first() {
        let records = [record("bench", GpuVerdict::Failed("out of time".to_owned()), &[""])];
        let page = render(&Figures::of(8, &records), &records, false);
        assert!(page.contains("has measured no times"), "{page}");
        assert!(page.contains("| bench | 1.5 | **failed**: out of time |"), "{page}");
        let page = render(&Figures::of(4, &records), &records, true);
        assert!(page.starts_with("# A rehearsal in which no GPU took part\n"), "{page}");
    }
}
