//! `topo`, and topologies given to other commands: right ones, and all errors of a topology.

use super::call::{TempFile, roundelay};

fn topo(name: &str, bytes: &[u8]) -> super::call::Call {
    let file = TempFile::new(name, bytes);
    roundelay(&["topo", file.path()])
}

const CUT: &str = "full_mesh(8, 25GB/s, 2us) without (0, 1)";

#[test]
fn a_text_is_described() {
    let call = roundelay(&["topo", CUT]).ends(0);
    assert!(call.out.contains("8 ranks, 0 other nodes, 54 links"), "{}", call.out);
    assert!(call.out.contains("rank 0 -> 2 3 4 5 6 7 (NVL 25 GB/s 2us)"), "{}", call.out);
    assert!(call.out.contains("NVB 25"), "{}", call.out);
}

/// Machines that have a name, from the list to the file of one.
#[test]
fn named_machines() {
    let list = roundelay(&["topo"]).ends(0).out;
    assert!(list.contains("gb200-nvl72") && list.contains("full_mesh(ranks"), "{list}");
    let json = roundelay(&["topo", "--format", "json"]).ends(0).json();
    assert_eq!(json["machines"].as_array().unwrap().len(), 7);
    roundelay(&["topo", "--format", "svg"]).refused(2, "E0501");
    let xml = roundelay(&["topo", "machine(\"dgx-a100\")", "--format", "xml"]).ends(0).out;
    let file = TempFile::new("a100.xml", xml.as_bytes());
    let figures = |topology: &str| {
        let of = ["simulate", "RingAllReduce", "--bytes", "16M", "--format", "json", "--topology"];
        let json = roundelay(&[&of[..], &[topology]].concat()).ends(0).json();
        json["seconds"].as_f64().unwrap_or_else(|| panic!("{json}"))
    };
    assert_eq!(figures("machine(\"dgx-a100\")").to_bits(), figures(file.path()).to_bits());
    let call = roundelay(&["topo", "machine(\"dgx-h10\")"]).refused(2, "E0101");
    assert!(call.err.contains("did you mean `\"dgx-h100\"`?"), "{}", call.err);
    let call = roundelay(&["topo", "dgx-1"]).refused(2, "E0101");
    assert!(call.err.contains("write `machine(\"dgx-1\")`"), "{}", call.err);
    let two = ["--topology", "machine(\"dgx-a100\", 2)"];
    let call = roundelay(&[&["check", "HierarchicalAllReduce"], &two[..]].concat()).ends(0);
    assert!(call.out.contains("for groups = the 2 islands of the topology,"), "{}", call.out);
}

#[test]
fn json_holds_the_graph() {
    let json = roundelay(&["topo", CUT, "--format", "json"]).ends(0).json();
    assert_eq!(json["ok"], true);
    assert_eq!(json["nranks"], 8);
    assert_eq!(json["links"].as_array().unwrap().len(), 54);
    assert_eq!(json["links"][0]["bandwidth"], 25e9);
    assert_eq!(json["links"][0]["latency_ns"], 2000);
    let paths = json["paths"].as_array().unwrap();
    let relayed: Vec<_> = paths.iter().filter(|p| p["type"] == "NVB").collect();
    assert_eq!((paths.len(), relayed.len()), (56, 2));
    assert_eq!((relayed[0]["from"].as_u64(), relayed[0]["to"].as_u64()), (Some(0), Some(1)));
}

#[test]
fn real_files_are_described() {
    let file = |name: &str| format!("tests/topo/{name}.xml");
    let call = roundelay(&["topo", &file("rccl-8p90a-partial-mesh")]).ends(0);
    assert!(call.out.contains("rank 0"), "{}", call.out);
    let partial = file("azure-ndv4-8a100-vm");
    roundelay(&["topo", &partial]).refused(2, "E0608");
    let call = roundelay(&["topo", &partial, "--assume", "sm=80,nvlinks=12"]).ends(0);
    assert!(call.out.contains("assumed: The 8 PCI devices"), "{}", call.out);
    assert!(call.out.contains("NVL 240"), "{}", call.out);
}

/// The second machine of a job, one of whose GPUs lost its links.
#[test]
fn ranks_of_a_job_and_odd_ones() {
    let device = |rank: u32| {
        let links = match rank {
            5 => "",
            _ => r#"<nvlink target="f" count="12" tclass="0x068000"/>"#,
        };
        format!(
            r#"<pci busid="{rank}" class="0x03"><gpu sm="80" rank="{rank}">{links}</gpu></pci>"#
        )
    };
    let devices: String = (4..8).map(device).collect();
    let xml = format!(r#"<system version="1"><cpu numaid="0">{devices}</cpu></system>"#);
    let file = TempFile::new("second.xml", xml.as_bytes());
    let call = roundelay(&["topo", file.path()]).ends(0);
    assert!(call.out.contains("ranks 0..=3 are ranks 4 5 6 7 of the job"), "{}", call.out);
    let odd = "rank 1 (5 of the job) has no NVLink, the 3 others 12";
    assert!(call.out.contains(&format!("note: {odd}\n")), "{}", call.out);
    let json = roundelay(&["topo", file.path(), "--format", "json"]).ends(0).json();
    assert_eq!(json["job_ranks"], serde_json::json!([4, 5, 6, 7]));
    assert_eq!(json["notes"], serde_json::json!([odd]));
    let json = roundelay(&["topo", CUT, "--format", "json"]).ends(0).json();
    assert!(json.get("job_ranks").is_none(), "{json}");
}

#[test]
fn a_written_file_reads_back() {
    let text = roundelay(&["topo", "full_mesh(4, 40GB/s)", "--format", "xml"]).ends(0).out;
    assert!(text.contains("<nvlink"), "{text}");
    let file = TempFile::new("written.xml", text.as_bytes());
    let call = roundelay(&["topo", file.path()]).ends(0);
    assert!(call.out.contains("(NVL 40 GB/s)"), "{}", call.out);
    roundelay(&["topo", "full_mesh(4)", "--format", "xml"]).refused(2, "E0609");
}

#[test]
fn wrong_texts() {
    for (text, code) in [
        ("", "E0003"),
        ("full_mesh(0)", "E0601"),
        ("full_mesh(8, 0GB/s)", "E0601"),
        ("full_mesh(8, -1GB/s)", "E0003"),
        ("full_mesh(8, 2000TB/s)", "E0601"),
        ("full_mesh(8) without (3, 3)", "E0602"),
        ("full_mesh(8) without (0, 8)", "E0602"),
        ("full_mesh(2) without (0, 1)", "E0603"),
        ("mesh(8)", "E0101"),
        ("no_such_file.xml", "E0606"),
        ("a.XML", "E0606"),
    ] {
        roundelay(&["topo", text]).refused(2, code);
        roundelay(&["check", "RingAllReduce", "--topology", text]).refused(2, code);
        let json = roundelay(&["topo", text, "--format", "json"]).ends(1).json();
        assert_eq!(json["diagnostics"][0]["code"], code, "{text}");
    }
    roundelay(&["topo", "full_mesh(8)", "--root", "8"]).refused(2, "E0501");
}

#[test]
fn parts_that_cannot_reach_each_other_are_named() {
    let text = "full_mesh(4) without (0, 1) without (0, 2) without (0, 3)";
    let call = roundelay(&["topo", text]).refused(2, "E0603");
    assert!(call.err.contains("rank 0\n"), "{}", call.err);
    assert!(call.err.contains("ranks 1, 2, 3"), "{}", call.err);
}

#[test]
fn wrong_files() {
    topo("empty.xml", b"").refused(2, "E0606");
    topo("blank.xml", b" \n").refused(2, "E0606");
    topo("bytes.xml", &[0xff; 4096]).refused(2, "E060");
    topo("cut.xml", b"<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"00").refused(2, "E0606");
    topo("graphs.xml", b"<graphs version=\"1\"></graphs>").refused(2, "E0607");
    topo("html.xml", b"<html><body>404</body></html>").refused(2, "E0607");
    topo("nothing.xml", b"<system version=\"1\"></system>").refused(2, "E060");
    let deep = ["<pci>".repeat(100_000), "</pci>".repeat(100_000)].concat();
    topo("deep.xml", format!("<system><cpu>{deep}</cpu></system>").as_bytes()).refused(2, "E060");
    let bomb = "<!DOCTYPE s [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><system>&b;</system>";
    topo("bomb.xml", bomb.as_bytes()).refused(2, "E060");
}

#[test]
fn fifty_megabytes_of_xml() {
    let cpu = "<cpu numaid=\"0\"><pci busid=\"0000:00:00.0\" class=\"0x060400\"/></cpu>\n";
    let text = format!("<system version=\"1\">{}</system>", cpu.repeat(50_000_000 / cpu.len()));
    topo("large.xml", text.as_bytes()).refused(2, "E0607");
    let comment = format!("<system version=\"1\"><!-- {} --></system>", "x".repeat(50_000_000));
    topo("comment.xml", comment.as_bytes()).refused(2, "E060");
    topo("larger.xml", &vec![b' '; 65 << 20]).refused(2, "E0607");
}

#[test]
fn a_topology_smaller_than_the_run() {
    let args = ["check", "RingAllReduce", "--topology", "full_mesh(4)", "--nranks"];
    roundelay(&[&args[..], &["8"]].concat()).refused(1, "E0604");
    let call = roundelay(&[&args[..], &["3..=8"]].concat()).ends(0);
    assert!(call.out.contains("refused") && call.out.contains("nranks 5"), "{}", call.out);
}

#[test]
fn dead_links_are_reported_with_a_way_round() {
    let call = roundelay(&["check", "RingAllReduce", "--topology", CUT]).refused(1, "E0313");
    assert!(call.err.contains("--> ring.coll:"), "{}", call.err);
    assert!(call.err.contains("right.TxAck(); // my block may be pulled"), "{}", call.err);
    assert!(call.err.contains("a ring that uses only links of the topology: 0,2,"), "{}", call.err);
    for ring in ["around(topology)", "0,2,1,3,4,5,6,7", "around(full_mesh(8) without (0, 1))"] {
        let set = format!("ring={ring}");
        roundelay(&["check", "RingAllReduce", "--topology", CUT, "--set", &set]).ends(0);
    }
    roundelay(&["check", "RingAllReduce", "--set", "ring=around(topology)"]).refused(2, "E0211");
    roundelay(&["check", "examples/broken_mesh.coll", "--topology", CUT]).ends(0);
    let args = ["run", "RingAllReduce", "--set", "ring=around(topology)", "--topology", CUT];
    roundelay(&[&args[..], &["--count", "1003"]].concat()).ends(0);
}

#[test]
fn no_ring_is_an_error_with_a_proof() {
    let args = ["check", "RingAllReduce", "--set", "ring=around(topology)", "--topology"];
    let call =
        roundelay(&[&args[..], &["full_mesh(3) without (0, 1)"]].concat()).refused(1, "E0605");
    assert!(call.err.contains("note:"), "{}", call.err);
}

/// Data takes the path that `topo` shows: `NVLink`, where PCI has as few links.
#[test]
fn simulated_data_takes_the_path_that_is_shown() {
    let assume = &["--assume", "sm=80,nvlinks=12"][..];
    for (file, assume, expected) in [
        ("aws-p4d-8a100-vm", assume, 240e9),
        ("azure-ndv4-8a100-vm", assume, 240e9),
        ("simccl-8a100-nvswitch-5nic", &[], 240e9),
        ("rccl-8p90a-partial-mesh", &[], 36e9),
        ("azure-ncv4-4a100-pcie", &[], 12e9),
    ] {
        let file = format!("tests/topo/{file}.xml");
        let call = ["simulate", "RingAllReduce", "--bytes", "1G", "--topology", &file];
        let call = [&call[..], assume, &["--format", "json"]].concat();
        let run = |more: &[&str]| roundelay(&[&call, more].concat()).ends(0).json();
        let found = run(&["--costs", "messages"]);
        let busbw = found["busbw"].as_f64().expect("a number");
        assert!((busbw / expected - 1.0).abs() < 1e-3, "{file}: {busbw}");
        let seconds = |of: &serde_json::Value| of["seconds"].as_f64().expect("a number");
        assert!(seconds(&run(&[])) > seconds(&found), "{file}");
        let share = found["bound"]["share"].as_f64().expect("a number");
        assert!(share <= 1.0 + 1e-9, "{file}: {share}");
    }
}

/// Files of other programs: links for ns-3 and the table of `nvidia-smi` for every `--topology`, and files that are no
/// topology.
#[test]
fn files_of_other_programs() {
    let ns3 =
        TempFile::new("ns3.txt", b"3 1 2\n2\n0 2 200Gbps 0.005ms 0\n1 2 200Gbps 0.005ms 0.1\n");
    let call = roundelay(&["topo", ns3.path()]).ends(0);
    assert!(call.out.contains("rank 0   -> switch 2 (NET 25 GB/s 5us)"), "{}", call.out);
    assert!(
        call.out.contains("note: links lose packets, which no time takes into account (1)\n"),
        "{}",
        call.out
    );
    assert!(call.out.contains("by the rules of NCCL 2.31: type and GB/s"), "{}", call.out);
    let json = roundelay(&["topo", ns3.path(), "--format", "json"]).ends(0).json();
    assert_eq!(json["rules"], "NCCL 2.31");
    let smi = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\tX\tNV12\t0-15\t0\nGPU1\tNV12\tX\t0-15\t0\n";
    let smi = TempFile::new("smi.txt", smi.as_bytes());
    let call = roundelay(&["topo", smi.path()]).ends(0);
    assert!(call.out.contains("assumed: NV# are # NVLinks of 20GB/s"), "{}", call.out);
    assert!(call.err.is_empty(), "{}", call.err);
    for file in [&ns3, &smi] {
        for command in [
            &["simulate", "RingAllReduce", "--bytes", "1M"][..],
            &["check", "RingAllReduce"],
            &["select", "AllReduce", "--bytes", "1M"],
            &["list", "AllReduce", "--why"],
            &["synthesize", "AllGather"],
        ] {
            let call = roundelay(&[command, &["--topology", file.path()]].concat()).ends(0);
            let said = call.err.contains("assumed: NV# are # NVLinks of 20GB/s");
            assert_eq!(said, file.path() == smi.path(), "{command:?}: {}", call.err);
        }
    }
    let tuner = "allreduce,0,65536,tree,ll,2,1,8,-1,-1\n";
    topo("tuner.csv", tuner.as_bytes()).refused(2, "E0610");
    let call = super::call::with_input(&["select", "-"], tuner.as_bytes()).ends(1);
    assert!(
        call.out.contains("-:1: the file is a table of choices for NCCL's tuner"),
        "{}",
        call.out
    );
    let trees = TempFile::new("trees.xml", b"<Algo nchunkspernode=\"1\"/>");
    for command in ["check", "topo"] {
        let call = roundelay(&[command, trees.path()]);
        assert!(call.err.contains("trees that ForestColl computed"), "{command}: {}", call.err);
    }
    // The constants of GPUs, with the time of a hop as people write it.
    let gpu = |rank: u32| {
        format!(
            r#"<pci busid="0000:0{rank}:00.0" class="0x12"><gpu sm="94" gcn="gfx942" rank="{rank}"/></pci>"#
        )
    };
    let xml = format!(r#"<system version="2"><cpu numaid="0">{}{}</cpu></system>"#, gpu(0), gpu(1));
    let machine = TempFile::new("mi300.xml", xml.as_bytes());
    let call = ["simulate", "RingAllReduce", "--bytes", "256M", "--topology", machine.path()];
    let call = roundelay(&call).ends(0);
    assert!(call.out.contains("5.7 us a hop") && !call.out.contains("5.69"), "{}", call.out);
    assert!(call.out.contains("5300 GB/s"), "{}", call.out);
}
