//! The units of links for ns-3.

use roundelay_machines::read;

/// Reads a link of this bandwidth and delay; the capacity and the latency, or the reason why it is none.
fn link(bandwidth: &str, delay: &str) -> Result<(String, u64), String> {
    let text = format!("2 0 1\n\n0 1 {bandwidth} {delay} 0\n");
    let file = read("test", text.as_bytes(), false, None).map_err(|problem| problem.title)?;
    let link = file.topology.links()[0];
    Ok((link.capacity.to_string(), link.latency))
}

#[test]
fn units_of_ns3() {
    for (text, expected) in [
        ("200Gbps", "25000000000"),
        ("2880Gbps", "360000000000"),
        ("12.5GB/s", "12500000000"),
        ("100Kbps", "12500"),
        ("1Kib/s", "128"),
        ("1bps", "1/8"),
    ] {
        assert_eq!(link(text, "1us"), Ok((expected.to_owned(), 1000)), "{text}");
    }
    for text in ["200G", "-1Gbps", "Gbps", "1e3bps", "99999999999999999999Tbps", "nanbps"] {
        let why = link(text, "1us").expect_err(text);
        assert!(why.contains("no bandwidth"), "{text}: {why}");
    }
    for (text, expected) in [
        ("0.005ms", 5000),
        ("0.000025ms", 25),
        ("1us", 1000),
        ("2000ps", 2),
        ("0", 0),
        ("1s", 1_000_000_000),
    ] {
        assert_eq!(link("8bps", text), Ok(("1".to_owned(), expected)), "{text}");
    }
    for text in ["0.5ns", "-1ms", "1h", "3601s", "ms", "1e-6s", "inf"] {
        let why = link("8bps", text).expect_err(text);
        assert!(why.contains("no delay"), "{text}: {why}");
    }
}
