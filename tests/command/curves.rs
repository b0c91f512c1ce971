//! `simulate` of several algorithms or rank counts: equal to single runs and closed forms, gaps, pictures.

use super::call::{Call, TempFile, roundelay};

const ALL: &str = "RingAllReduce,RecursiveHalvingDoublingAllReduce,HalvingDoublingAllReduce";
const LEAVES: &str = "spine_leaf(4, 4, 2, 2, 25GB/s, 1us)";
const CROSSBAR: &str = "crossbar(16, 25GB/s, 1us)";

fn simulate(args: &[&str]) -> Call {
    roundelay(&[&["simulate"], args].concat())
}

fn json(args: &[&str]) -> serde_json::Value {
    simulate(&[args, &["--costs", "messages", "--format", "json"]].concat()).ends(0).json()
}

#[track_caller]
fn near(value: &serde_json::Value, wanted: f64) {
    let value = value.as_f64().expect("a number");
    assert!((value / wanted - 1.0).abs() < 1e-9, "{value}, not {wanted}");
}

/// The runs of the algorithm at a position of the call.
fn runs(json: &serde_json::Value, at: usize) -> &Vec<serde_json::Value> {
    json["algorithms"][at]["runs"].as_array().expect("runs")
}

/// 48 KiB are whole blocks and halves for 2, 3, 4, 6, 8, 12 and 16 ranks.
#[test]
fn each_point_is_what_its_form_says() {
    let (size, bandwidth, latency) = (48.0 * 1024.0, 25e9, 2e-6);
    let args = [ALL, "--nranks", "2..=16", "--bytes", "48KiB", "--topology", CROSSBAR];
    let json = json(&args);
    assert_eq!(json["collective"], "AllReduce");
    assert_eq!(json["levels"], serde_json::json!(["rank-switch"]));
    assert_eq!(runs(&json, 0).len(), 15);
    for run in runs(&json, 0) {
        let n = run["nranks"].as_f64().unwrap();
        let volume = 2.0 * (n - 1.0) / n * size;
        if [2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0].contains(&n) {
            near(&run["seconds"], 2.0 * (n - 1.0) * latency + volume / bandwidth);
            near(&run["bound"]["seconds"], volume / bandwidth);
            near(&run["loads"][0]["up"], volume);
            near(&run["loads"][0]["down"], volume);
        }
    }
    for run in runs(&json, 1) {
        let n = run["nranks"].as_f64().unwrap();
        let f = n.log2().floor();
        let left_over = f.exp2() < n;
        let folded = if left_over { 2.0 } else { 0.0 };
        let volume = (2.0 * (1.0 - 1.0 / f.exp2()) + folded) * size;
        let by_form = (2.0 * f + folded) * latency + volume / bandwidth;
        if left_over {
            // Data that a rank needs later arrives early, and shares the port with the data that is folded in.
            let slower = run["seconds"].as_f64().unwrap() / by_form;
            assert!((1.0..1.3).contains(&slower), "{slower} at {n}");
        } else {
            near(&run["seconds"], by_form);
        }
    }
    // Algorithms of halving and doubling equal the closed form at powers of two, and only there.
    assert_eq!(runs(&json, 2).len(), 4);
    for (run, n) in runs(&json, 2).iter().zip([2, 4, 8, 16]) {
        assert_eq!(run["nranks"], n);
        assert_eq!(run["seconds"], runs(&json, 1)[n - 2]["seconds"]);
    }
    let fastest = |at: usize| json["algorithms"][at]["fastest"].clone();
    assert_eq!(fastest(0), serde_json::json!([2, 3, 5]));
    let folded: Vec<_> = [2, 4].into_iter().chain(6..=16).collect();
    assert_eq!(fastest(1), serde_json::json!(folded));
    assert_eq!(fastest(2), serde_json::json!([2, 4, 8, 16]));
}

#[test]
fn each_point_is_what_a_run_alone_takes() {
    let flags = ["--bytes", "1MiB", "--topology", LEAVES, "--signals", "messages"];
    let algorithms = "RingAllReduce,NhrAllReduce";
    let all = json(&[&[algorithms, "--nranks", "3,8,13,16"][..], &flags[..]].concat());
    assert_eq!(all["levels"], serde_json::json!(["rank-leaf", "leaf-spine"]));
    for (at, algorithm) in algorithms.split(',').enumerate() {
        assert_eq!(runs(&all, at).len(), 4);
        for run in runs(&all, at) {
            let n = run["nranks"].to_string();
            let alone = json(&[&[algorithm, "--nranks", &n][..], &flags[..]].concat());
            for field in ["seconds", "bytes", "algbw", "busbw"] {
                assert_eq!(run[field], alone[field], "{algorithm} at {n}: {field}");
            }
            assert_eq!(run["bound"]["share"], alone["bound"]["share"]);
            let most = |from: &str, to: &str| {
                // Ranks are numbers, switches have names.
                let is = |node: &serde_json::Value, kind: &str| {
                    let name = node.as_str().unwrap();
                    if kind.is_empty() {
                        name.parse::<u32>().is_ok()
                    } else {
                        name.starts_with(kind)
                    }
                };
                let links = alone["links"].as_array().unwrap().iter();
                let those = links.filter(|link| is(&link["from"], from) && is(&link["to"], to));
                those.map(|link| link["bytes"].as_f64().unwrap()).fold(0.0, f64::max)
            };
            assert_eq!(run["loads"][0]["up"], most("", "leaf"), "{algorithm} at {n}");
            assert_eq!(run["loads"][0]["down"], most("leaf", ""));
            assert_eq!(run["loads"][1]["up"], most("leaf", "spine"));
            assert_eq!(run["loads"][1]["down"], most("spine", "leaf"));
            let crosses = run["loads"][1]["up"].as_f64().unwrap() > 0.0;
            assert_eq!(crosses, run["nranks"].as_u64().unwrap() > 4, "{algorithm} at {n}");
        }
    }
}

/// There are gaps where an algorithm refuses; the report gives the reason once, and the others go on. Of one algorithm
/// alone, a list names its counts.
#[test]
fn refused_counts_are_gaps_of_a_range() {
    let topology = ["--topology", CROSSBAR, "--bytes", "48KiB"];
    let with = |more: &[&str]| simulate(&[more, &topology[..]].concat());
    let call = with(&[ALL, "--nranks", "2..=9"]).ends(0);
    let missing: Vec<_> = call.out.lines().skip_while(|line| *line != "missing").collect();
    assert!(
        missing[1].starts_with("  HalvingDoublingAllReduce at 3, 5..=7, 9: E0205: halving pairs"),
        "{}",
        call.out
    );
    assert_eq!(call.out.matches("E0205").count(), 1, "{}", call.out);
    let row = |n: &str| {
        let found = call.out.lines().find(|line| line.split_whitespace().next() == Some(n));
        found.unwrap_or_else(|| panic!("no row of {n} in\n{}", call.out)).trim_end().to_owned()
    };
    assert!(row("9").ends_with('-') && row("8").ends_with('%'), "{}", call.out);
    let json = json(&[&[ALL, "--nranks", "2..=9"], &topology[..]].concat());
    let refused = json["algorithms"][2]["refused"].as_array().unwrap();
    assert_eq!(refused.len(), 5);
    assert_eq!((&refused[0]["nranks"], &refused[0]["code"]), (&3.into(), &"E0205".into()));
}

#[test]
fn the_picture_has_a_point_for_each_run() {
    let svg = TempFile::new("curves.svg", b"");
    let args =
        [ALL, "--nranks", "2..=13", "--bytes", "32MiB", "--topology", LEAVES, "--svg", svg.path()];
    let call = simulate(&args).ends(0);
    assert!(call.err.contains("wrote"), "{}", call.err);
    let picture = std::fs::read_to_string(svg.path()).expect("a picture");
    let document = tags(&picture);
    let points = |class: &str| {
        let of =
            |tag: &&String| tag.starts_with("circle ") && tag.contains(&format!("class=\"{class}"));
        document.iter().filter(of).count()
    };
    assert_eq!((points("c0"), points("c1"), points("c2")), (12, 12, 3));
    // The third algorithm has points at powers of two alone: nothing joins them but its sample.
    let lines = |class: &str| picture.matches(&format!("<polyline class=\"{class}")).count();
    assert_eq!((lines("c0"), lines("c1"), lines("c2")), (2, 2, 1));
    for text in [
        ">AllReduce of 32 MiB on spine_leaf(4, 4, 2, 2, 25GB/s, 1us)<",
        ">milliseconds<",
        ">ranks<",
        ">RecursiveHalvingDoublingAllReduce<",
        ">bandwidth bound<",
        "HalvingDoublingAllReduce: 8 ranks, ",
        "prefers-color-scheme",
    ] {
        assert!(picture.contains(text), "{text} is not in\n{picture}");
    }
    for wrong in ["NaN", "inf", "-0\""] {
        assert!(!picture.contains(wrong), "{wrong} is in\n{picture}");
    }
    // On standard output it stands alone.
    let args = ["RingAllReduce", "-n", "2,5", "--topology", LEAVES, "--svg", "-"];
    let call = simulate(&args).ends(0);
    assert!(call.out.starts_with("<svg ") && call.out.ends_with("</svg>\n"), "{}", call.out);
    assert!(call.err.contains("time, and share of the bandwidth bound"), "{}", call.err);
}

/// The tags of a document, which must be closed in order.
fn tags(text: &str) -> Vec<String> {
    let (mut open, mut tags) = (Vec::new(), Vec::new());
    for part in text.split('<').skip(1) {
        let (tag, _) = part.split_once('>').expect("a tag ends");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{tag}"),
            None => {
                assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
                tags.push(tag.to_owned());
                if !tag.ends_with('/') {
                    open.push(tag.split(' ').next().unwrap_or_default());
                }
            }
        }
    }
    assert!(open.is_empty(), "{open:?} are not closed");
    tags
}

/// A parameter applies to the algorithms that have it.
#[test]
fn parameters_are_for_those_that_have_them() {
    let topology = ["--topology", LEAVES, "--bytes", "4MiB", "--nranks", "16"];
    let near = [&[ALL, "--set", "near_first=true"], &topology[..]].concat();
    let json = json(&near);
    assert_eq!(json["algorithms"][0]["name"], "RingAllReduce");
    assert_eq!(json["algorithms"][2]["name"], "HalvingDoublingAllReduce near_first=true");
    let up = |at: usize| runs(&json, at)[0]["loads"][1]["up"].as_f64().unwrap();
    assert!(3.0 * up(2) < up(1), "near partners take {} and far ones {}", up(2), up(1));
}

/// A single rank and no elements take no time, and are drawn all the same.
#[test]
fn next_to_nothing() {
    let svg = TempFile::new("none.svg", b"");
    for more in [&["--nranks", "1..=3"][..], &["--nranks", "1,2", "--count", "0"]] {
        let args = [
            &[
                "RingAllReduce,NhrAllReduce",
                "--topology",
                "crossbar(4, 1GB/s)",
                "--svg",
                svg.path(),
            ],
            more,
        ];
        simulate(&args.concat()).ends(0);
        let picture = std::fs::read_to_string(svg.path()).expect("a picture");
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
        tags(&picture);
    }
}

/// Beyond 512 ranks one rank stands for all, up to as many ranks as a topology has; a range of so many counts has its
/// powers of two and its ends.
#[test]
fn curves_go_on_to_65536_ranks() {
    let names = "RingAllReduce,NhrAllReduce,TreeAllReduce";
    let topology = "crossbar(65536, 25GB/s, 1us)";
    let json = simulate(&[
        names,
        "--nranks",
        "500..=65536",
        "--bytes",
        "1GiB",
        "--topology",
        topology,
        "--costs",
        "messages",
        "--format",
        "json",
    ]);
    let json = json.json();
    let counts = |at| {
        let counts = runs(&json, at).iter().map(|run| run["nranks"].as_u64().expect("a count"));
        counts.collect::<Vec<_>>()
    };
    let all = [500, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];
    assert_eq!(counts(0), all);
    assert_eq!(counts(1), all);
    assert_eq!(counts(2), all[..4]);
    let (size, bandwidth, latency) = (f64::from(1 << 30), 25e9, 2e-6);
    for run in runs(&json, 0).iter().filter(|run| run["nranks"] != 500) {
        let n = run["nranks"].as_f64().unwrap();
        near(&run["seconds"], 2.0 * (n - 1.0) * latency + 2.0 * (n - 1.0) / n * size / bandwidth);
    }
}
