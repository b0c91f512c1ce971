//! `roundelay bench`: its tables, its JSON, its plots. No test checks a time itself: only properties of every time.

use serde_json::Value;

use super::call::{TempFile, roundelay};

/// A call that is soon over; sizes and iterations are small.
fn bench(args: &[&str]) -> super::call::Call {
    let mut all = vec!["bench"];
    all.extend(args);
    if !args.contains(&"--iters") {
        all.extend(["--iters", "2"]);
    }
    roundelay(&all)
}

fn json(args: &[&str]) -> Value {
    let mut all = args.to_vec();
    all.extend(["--format", "json"]);
    bench(&all).ends(0).json()
}

fn results(report: &Value) -> &[Value] {
    report["results"].as_array().expect("a list of results")
}

/// Of every result, the value of a key.
fn of<'a>(report: &'a Value, key: &str) -> Vec<&'a Value> {
    results(report).iter().map(|row| &row[key]).collect()
}

/// However many algorithms, rank counts, types and ops there are.
#[test]
fn the_table_fits_a_page_and_nothing_stands_between_its_rows() {
    let names = "RingAllReduce,RecursiveHalvingDoublingReduceScatter";
    let call = bench(&[names, "-n", "2,4", "-b", "1K", "-d", "f32,i8", "-o", "sum,max"]).ends(0);
    let widest = call.out.lines().map(|line| line.chars().count()).max();
    assert!(widest.is_some_and(|widest| widest <= 100), "{}", call.out);
    let lines: Vec<_> = call.out.lines().collect();
    let is_row = |line: &&str| !line.starts_with('#');
    let first = lines.iter().position(is_row).expect("a row");
    let rows = lines[first..].iter().take_while(|line| is_row(line)).count();
    assert_eq!(rows, 16);
    assert_eq!(lines.iter().filter(|line| is_row(line)).count(), rows, "{}", call.out);
    let head = lines[first - 2].split_whitespace().collect::<Vec<_>>();
    for column in ["type", "redop", "nranks", "time", "#wrong", "algo"] {
        assert!(head.contains(&column), "{column} is not in {head:?}");
    }
    // A column whose values are all equal is a line above the table.
    let call = bench(&["RingAllReduce", "-n", "4", "-b", "1K", "-e", "2K", "-f", "2"]).ends(0);
    assert!(call.out.contains("\n# AllReduce on 4 ranks, f32 sum\n"), "{}", call.out);
    assert!(!call.out.contains("nranks  ") && !call.out.contains("redop"), "{}", call.out);
    let quiet = bench(&["-q", "RingAllReduce", "-n", "4", "-b", "1K"]).ends(0);
    assert_eq!(quiet.out.lines().count(), 4, "heads and a row:\n{}", quiet.out);
    let dry = ["--device", "cuda", "--dry-run", "-n", "2,4", "-b", "1K", "-e", "1G", "-f", "1024"];
    let call = roundelay(&[&["bench", "RingAllReduce"], &dry[..]].concat()).ends(0);
    assert!(call.out.lines().all(|line| line.chars().count() <= 100), "{}", call.out);
}

#[test]
fn a_plot_in_letters() {
    let args = ["RingAllReduce,MeshAllReduce", "-n", "2", "-b", "1K", "-e", "4K", "-f", "2"];
    let call = bench(&[&args[..], &["--plot"]].concat()).ends(0);
    let (_, plot) = call.out.split_once("\nAllReduce on 2 ranks\n").expect("a plot");
    assert!(plot.lines().all(|line| line.chars().count() <= 100), "{plot}");
    for line in ["        A RingAllReduce", "        B MeshAllReduce", "        * limit"] {
        assert!(plot.lines().any(|shown| shown == line), "`{line}` is not in\n{plot}");
    }
    let frame: String = plot.lines().filter(|line| line.contains('|')).collect();
    // Points of one place share a letter, and the times are this machine's.
    assert!(frame.contains(['A', 'B']), "{plot}");
    assert!(["1 KiB", "2 KiB", "4 KiB"].iter().all(|size| plot.contains(size)), "{plot}");
}

#[test]
fn the_table_of_nccl_tests() {
    let sizes = ["-b", "1K", "-e", "4K", "-f", "2"];
    let args = [&["-v", "RingAllReduce,RingAllGather", "-n", "4"], &sizes[..]].concat();
    let call = bench(&args);
    let call = call.ends(0);
    let rows: Vec<Vec<&str>> = call
        .out
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows.len(), 6, "three sizes of two algorithms:\n{}", call.out);
    for row in &rows {
        assert_eq!(row.len(), 17, "{row:?}");
        let (size, count): (u64, u64) = (row[0].parse().unwrap(), row[1].parse().unwrap());
        let (name, ranks_in_size) = match row[16] {
            "RingAllReduce" => ("sum", 1),
            "RingAllGather" => ("none", 4),
            other => panic!("{other}"),
        };
        assert_eq!(size, count * 4 * ranks_in_size);
        assert_eq!(row[2..5], ["f32", name, "-1"]);
        assert_eq!([row[8], row[12]], ["0", "0"], "nothing is wrong");
        assert_eq!([row[13], row[14]], ["4", "1"], "nranks and streams");
        for time in [row[5], row[9], row[15]] {
            assert!(time.parse::<f64>().unwrap() > 0.0, "{row:?}");
        }
        // algbw and busbw, as far as the digits go
        let number = |at: usize| row[at].parse::<f64>().unwrap();
        let factor = if ranks_in_size == 1 { 1.5 } else { 0.75 };
        assert!((number(7) - number(6) * factor).abs() < 0.02 + 0.01 * number(7), "{row:?}");
    }
    let sizes: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(sizes, ["1024", "2048", "4096", "1024", "2048", "4096"]);
    assert!(call.out.contains("# Out of bounds values : 0 OK\n"), "{}", call.out);
    assert!(call.out.contains("# Avg bus bandwidth    : "), "{}", call.out);
    let limits = call.out.lines().filter(|line| line.starts_with("# limit f32"));
    assert_eq!(limits.count(), 6, "one for each size of each collective");
    let dev = cfg!(debug_assertions);
    let (build, said) = if dev { ("dev, quick to build", 1) } else { ("release\n", 0) };
    assert!(call.out.contains(&format!("# build: {build}")), "{}", call.out);
    let warnings = call.err.lines().filter(|line| line.contains("warning: this is the dev build"));
    assert_eq!(warnings.count(), said, "{}", call.err);
    // A verbose command says at its end what it took.
    assert_eq!(call.err.lines().count(), said + 1, "no progress bar where there is no terminal");
}

#[test]
fn json_has_the_keys_of_nccl_tests() {
    let report = json(&["RingAllReduce,MeshAllReduce", "--nranks", "4", "-b", "4K"]);
    let [ring, mesh] = results(&report) else { panic!("{report}") };
    assert_eq!([&ring["algo"], &mesh["algo"]], ["RingAllReduce", "MeshAllReduce"]);
    for row in [ring, mesh] {
        assert_eq!(row["nranks"], 4);
        assert_eq!(row["size"], 4096);
        assert_eq!(row["count"], 1024);
        assert_eq!([&row["type"], &row["redop"]], ["f32", "sum"]);
        assert_eq!(row["root"], -1);
        assert_eq!(row["streams"], 1);
        for place in [&row["out_of_place"], &row["in_place"]] {
            let number =
                |key: &str| place[key].as_f64().unwrap_or_else(|| panic!("{key}: {place}"));
            assert_eq!(place["nwrong"], 0);
            let alg_bw = 4096.0 / number("time") / 1e3;
            assert!(
                (number("alg_bw") / alg_bw - 1.0).abs() < 1e-9,
                "GB/s of microseconds: {place}"
            );
            assert!((number("bus_bw") / alg_bw - 1.5).abs() < 1e-9, "2(n-1)/n: {place}");
            assert!(number("min") <= number("median") && number("min") <= number("time"));
        }
        let limit = report["limit"]["sizes"][0]["time"].as_f64().unwrap();
        let share = row["percent_of_limit"].as_f64().unwrap();
        let time = row["out_of_place"]["time"].as_f64().unwrap();
        assert!((share - 100.0 * limit / time).abs() < 1e-6, "{row}");
    }
    let limit = &report["limit"]["sizes"][0];
    assert_eq!([&limit["collective"], &limit["type"]], ["AllReduce", "f32"]);
    assert_eq!(limit["size"], 4096);
    assert_eq!(limit["bytes"], 4096 * 8, "four inputs are read, four outputs written");
    assert_eq!(report["out_of_bounds"]["count"], 0);
    assert_eq!(report["out_of_bounds"]["okay"], true);
    let mean: f64 = results(&report)
        .iter()
        .flat_map(|row| [&row["out_of_place"], &row["in_place"]])
        .map(|place| place["bus_bw"].as_f64().unwrap() / 4.0)
        .sum();
    assert!((report["average_bus_bandwidth"].as_f64().unwrap() / mean - 1.0).abs() < 1e-9);
    assert_eq!(report["config"]["iters"], 2);
    let build = if cfg!(debug_assertions) { "dev" } else { "release" };
    assert_eq!(report["config"]["build"], build);
    assert_eq!(report["config"]["nranks"], serde_json::json!([4]));
}

#[test]
fn types_ops_and_roots() {
    let report = json(&["NhrBroadcast", "-n", "3", "-b", "1K", "-d", "double,i8", "-r", "-1"]);
    let rows: Vec<(&Value, &Value, &Value)> =
        results(&report).iter().map(|row| (&row["type"], &row["root"], &row["redop"])).collect();
    assert_eq!(rows.len(), 6);
    for (nth, (dtype, root, redop)) in rows.into_iter().enumerate() {
        assert_eq!(dtype, ["f64", "i8"][nth % 2], "types within roots");
        assert_eq!((root, redop), (&(nth / 2).into(), &"none".into()));
    }
    let report = json(&["RingReduce", "-n", "2", "-b", "1K", "--op", "all", "--root", "1"]);
    assert_eq!(of(&report, "redop"), ["sum", "prod", "min", "max", "avg"]);
    assert!(of(&report, "root").iter().all(|root| **root == 1));
    // Among all types, the rows have only the types with the op.
    let report = json(&["RingReduce", "-n", "2", "-b", "1K", "--op", "max,lxor", "-d", "all"]);
    assert_eq!(of(&report, "redop").iter().filter(|op| **op == "lxor").count(), 6);
    assert_eq!(results(&report).len(), 18);
    assert_eq!(report["out_of_bounds"]["okay"], true);
    let report = json(&["RingAllReduce", "-n", "2", "-b", "1K", "-d", "all", "-w", "0"]);
    assert_eq!(results(&report).len(), 12);
    assert_eq!(report["out_of_bounds"]["okay"], true);
}

#[test]
fn all_algorithms_of_a_collective() {
    let report = json(&["--collective", "allreduce", "--nranks", "6", "-b", "1K"]);
    let names: Vec<&str> = of(&report, "algo").iter().map(|name| name.as_str().unwrap()).collect();
    assert!(names.len() > 5 && names.contains(&"RingAllReduce"), "{names:?}");
    let refused = report["refused"].as_array().unwrap();
    let doubling = refused.iter().find(|r| r["algo"] == "RecursiveDoublingAllReduce").unwrap();
    assert_eq!((&doubling["nranks"], &doubling["code"]), (&6.into(), &"E0205".into()));
    assert!(!names.contains(&"RecursiveDoublingAllReduce"));
    let call = bench(&["--collective", "AllToAll", "-n", "2", "-b", "1K"]).ends(0);
    assert!(call.out.contains(" N/A"), "no in-place form:\n{}", call.out);
}

#[test]
fn the_choice_of_select_stands_beside_the_fastest() {
    let two = "RingAllReduce,OneShotMeshAllReduce";
    let report = json(&[two, "-n", "2,3", "-b", "1K", "-e", "64K", "-f", "64", "--choice"]);
    let cells = report["choice"]["cells"].as_array().expect("cells");
    let time = |algorithm: &Value, cell: &Value| {
        let same = |row: &&Value| {
            row["algo"] == *algorithm
                && row["nranks"] == cell["nranks"]
                && row["size"] == cell["size"]
        };
        let row = results(&report).iter().find(same).expect("the algorithm was measured");
        row["out_of_place"]["time"].as_f64().expect("a time")
    };
    for cell in cells {
        let [chosen, best] = ["chosen", "best"].map(|key| time(&cell[key], cell));
        assert_eq!(cell["time"], chosen);
        assert_eq!(cell["best_time"], best);
        // A number that is read from JSON may differ in its last bit.
        let ratio = cell["ratio"].as_f64().expect("a ratio");
        assert!((ratio * best / chosen - 1.0).abs() < 1e-12, "{cell}");
        assert!(chosen >= best);
        let nranks = cell["nranks"].to_string();
        let asked = ["select", "AllReduce", "-n", &nranks, "--bytes", &cell["size"].to_string()];
        let select = roundelay(&[&asked[..], &["--format", "json"]].concat()).ends(0).json();
        let first = &select["ranges"][0]["algorithm"];
        // Among all algorithms of the library, another one may be first.
        assert!(cell["chosen"] == *first || !two.contains(first.as_str().expect("a name")));
    }
    let good = cells.iter().filter(|cell| cell["ratio"].as_f64().expect("a ratio") <= 1.1).count();
    assert_eq!((cells.len(), &report["choice"]["within_a_tenth"]), (4, &good.into()));
}

#[test]
fn a_plot_for_people() {
    let file = TempFile::new("plot.svg", b"");
    let args =
        ["RingAllReduce,MeshAllReduce", "-n", "2", "-b", "1K", "-e", "4K", "-f", "2", "--svg"];
    bench(&[&args[..], &[file.path()]].concat()).ends(0);
    let plot = std::fs::read_to_string(file.path()).expect("a plot");
    for text in [
        "<svg ",
        "AllReduce on 2 ranks",
        ">limit<",
        ">RingAllReduce<",
        ">1 KiB<",
        "prefers-color-scheme",
    ] {
        assert!(plot.contains(text), "{text} is not in\n{plot}");
    }
    assert_eq!(plot.matches("<circle").count(), 9, "three sizes of two algorithms and the limit");
    assert!(!plot.contains("NaN") && !plot.contains("inf"), "{plot}");
}
