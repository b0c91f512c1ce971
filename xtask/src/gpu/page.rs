//! The figures as a page of the book.

use std::fmt::Write as _;

use super::figures::{Figures, NRANKS};

/// From here on the targets of large messages hold.
const LARGE: u64 = 64 << 20;

pub(super) fn render(figures: &Figures, sanitized: &[String]) -> String {
    let Figures { device, copy_bandwidth, sizes, skipped, .. } = figures;
    let mut page = format!(
        "# On a GPU\n\n\
         Measured by `cargo xtask gpu-test` on one {device}, {NRANKS} virtual ranks: all share the GPU's memory, so nothing \
         here is the speed of a link. AllReduce, f32 sum, out of place, in microseconds.\n\n\
         Copies within the device run at {copy_bandwidth:.0} GB/s, read and written. The floor is every input read once and \
         every output written once at that speed; a size that the caches hold may be faster.\n\n"
    );
    let names = figures.names();
    let _ = writeln!(page, "| bytes a rank | {} |", names.join(" | "));
    let _ = writeln!(page, "|---|{}", "---|".repeat(names.len()));
    for size in sizes {
        let cells = names.iter().map(|name| match figures.at(name, *size) {
            None => "-".to_owned(),
            Some(time) => match time.percent_of_floor {
                Some(share) => format!("{:.1} ({share:.0} % of floor)", time.micros),
                None => format!("{:.1}", time.micros),
            },
        });
        let _ = writeln!(page, "| {size} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    page.push_str("\n## Targets\n\n");
    for line in targets(figures) {
        let _ = writeln!(page, "* {line}");
    }
    page.push_str("\n## Sanitizer\n\n");
    for line in sanitized {
        let _ = writeln!(page, "* {line}");
    }
    if !skipped.is_empty() {
        page.push_str("\n## Not measured\n\n");
        for line in skipped {
            let _ = writeln!(page, "* {line}");
        }
    }
    page
}

fn targets(figures: &Figures) -> Vec<String> {
    let verdict = |met: bool| if met { "met" } else { "**missed**" };
    let mut lines = Vec::new();
    for size in figures.sizes.iter().filter(|size| **size >= LARGE) {
        let mib = size >> 20;
        let mesh = figures.at("MeshAllReduce", *size).and_then(|mesh| mesh.percent_of_floor);
        if let Some(share) = mesh {
            let met = verdict(share >= 85.0);
            lines.push(format!("mesh, {mib} MiB: {share:.1} % of floor, 85 wanted: {met}"));
        }
        if let Some(ring) = figures.at("RingAllReduce", *size) {
            let share = figures.ring_share(ring);
            let met = verdict(share >= 90.0);
            lines.push(format!(
                "ring, {mib} MiB: {share:.1} % of its own traffic, 90 wanted: {met}"
            ));
        }
    }
    let ours = |name: &&str| name.ends_with("AllReduce");
    let small = figures.names().into_iter().filter(ours);
    let best = small.filter_map(|name| Some(figures.at(name, 1 << 10)?.micros)).reduce(f64::min);
    if let Some(micros) = best {
        lines.push(format!("1 KiB: {micros:.1} us, 12 wanted: {}", verdict(micros < 12.0)));
    }
    for size in &figures.sizes {
        let fastest = |ours: bool| {
            let all = figures.times.iter().filter(|time| time.size == *size);
            let wanted = all.filter(|time| time.name.ends_with("AllReduce") == ours);
            wanted.map(|time| time.micros).reduce(f64::min)
        };
        if let (Some(ours), Some(others)) = (fastest(true), fastest(false)) {
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
    use super::super::figures::tests::figures;
    use super::*;

    #[test]
    fn the_page_says_what_was_met_and_what_was_not_measured() {
        let page = render(&figures(), &["memcheck: nothing found".to_owned()]);
        for line in [
            "| bytes a rank | MeshAllReduce | RingAllReduce |",
            "| 1024 | 9.5 (0 % of floor) | - |",
            "* mesh, 64 MiB: 89.5 % of floor, 85 wanted: met",
            "* ring, 64 MiB: 85.6 % of its own traffic, 90 wanted: **missed**",
            "* 1 KiB: 9.5 us, 12 wanted: met",
            "* memcheck: nothing found",
            "* torch: python3 cannot import torch",
        ] {
            assert!(page.lines().any(|found| found == line), "no `{line}` in\n{page}");
        }
    }
}
