//! Pictures of runs: what a reader of the file can check without looking at it.

#![allow(missing_docs)]

mod stepper;

use roundelay_core::emit::spacetime::{html, svg};
use roundelay_core::ids::RankId;
use stepper::{run, schedule};

#[test]
#[ignore]
fn look() {
    let out = std::env::var("OUT").unwrap();
    for (name, n, bytes, late) in [
        ("RingAllReduce", 8, 8 << 20, 1.0),
        ("RingAllReduce", 8, 8 << 20, 2.5),
        ("TwistedRingAllReduce", 8, 8 << 20, 1.0),
        ("MeshAllReduce", 8, 8 << 20, 1.0),
        ("RecursiveDoublingAllReduce", 8, 1 << 20, 1.0),
        ("RingAllReduce", 64, 64 << 20, 1.0),
        ("RingAllReduce", 256, 64 << 20, 1.0),
        ("RingAllReduce", 2, 3, 1.0),
    ] {
        let s = schedule(name, n);
        let t = run(&s, bytes, RankId(3), late);
        let title = format!("{name} on {n} ranks, {bytes} B <a & \"b\">");
        let file = format!("{out}/{name}-{n}-{late}");
        let clock = std::time::Instant::now();
        let (a, b) = (svg(&s, &t, &title), html(&s, &t, &title));
        eprintln!("{name} {n}: {} {} {:?}", a.len(), b.len(), clock.elapsed());
        std::fs::write(format!("{file}.svg"), a).unwrap();
        std::fs::write(format!("{file}.html"), b).unwrap();
    }
}
