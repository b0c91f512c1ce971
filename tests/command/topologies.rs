//! `topo` of files that it wrote, and of files that are large; and the paths that simulated data takes.

use super::call::{TempFile, roundelay};

fn topo(name: &str, bytes: &[u8]) -> super::call::Call {
    let file = TempFile::new(name, bytes);
    roundelay(&["topo", file.path()])
}

/// The file of a machine that has a name is that machine.
#[test]
fn named_machines() {
    let xml = roundelay(&["topo", "machine(\"dgx-a100\")", "--format", "xml"]).ends(0).out;
    let file = TempFile::new("a100.xml", xml.as_bytes());
    let figures = |topology: &str| {
        let of = ["simulate", "RingAllReduce", "--bytes", "16M", "--format", "json", "--topology"];
        let json = roundelay(&[&of[..], &[topology]].concat()).ends(0).json();
        json["seconds"].as_f64().unwrap_or_else(|| panic!("{json}"))
    };
    assert_eq!(figures("machine(\"dgx-a100\")").to_bits(), figures(file.path()).to_bits());
}

#[test]
fn a_written_file_reads_back() {
    let text = roundelay(&["topo", "full_mesh(4, 40GB/s)", "--format", "xml"]).ends(0).out;
    assert!(text.contains("<nvlink"), "{text}");
    let file = TempFile::new("written.xml", text.as_bytes());
    let call = roundelay(&["topo", file.path()]).ends(0);
    assert!(call.out.contains("(NVL 40 GB/s)"), "{}", call.out);
}

#[test]
fn wrong_files() {
    topo("bytes.xml", &[0xff; 4096]).refused(2, "E060");
    let deep = ["<pci>".repeat(100_000), "</pci>".repeat(100_000)].concat();
    topo("deep.xml", format!("<system><cpu>{deep}</cpu></system>").as_bytes()).refused(2, "E060");
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

/// The machine that runs the test: within a second, with its sources, for every command, and as a file of NCCL's.
#[cfg(target_os = "linux")]
#[test]
fn this_machine() {
    let call = roundelay(&["topo", "--here"]).ends(0);
    assert!(call.took < std::time::Duration::from_secs(1), "{:?}", call.took);
    let text = call.out;
    assert!(text.starts_with("here: ") && text.contains("\nread: "), "{text}");
    let json = roundelay(&["topo", "here", "--format", "json"]).ends(0).json();
    let ranks = json["nranks"].as_u64().unwrap_or_else(|| panic!("{json}"));
    let xml = roundelay(&["topo", "--here", "--format", "xml"]).ends(0).out;
    let file = TempFile::new("here.xml", xml.as_bytes());
    let again = roundelay(&["topo", file.path(), "--format", "json"]).ends(0).json();
    assert_eq!((&again["links"], &again["nodes"]), (&json["links"], &json["nodes"]));
    let selected = roundelay(&["select", "AllReduce", "--topology", "here", "--format", "json"]);
    assert_eq!(selected.ends(0).json()["nranks"].as_u64(), Some(ranks));
    roundelay(&["topo", "--here", "ring(4)"]).refused(2, "does not go with");
}

/// A folder is the copy of a machine's files, and several files are the hosts of one job.
#[cfg(target_os = "linux")]
#[test]
fn copies_and_hosts() {
    let folder = tempfile::tempdir().expect("a folder");
    roundelay(&["topo", &folder.path().display().to_string()]).refused(2, "E0607");
    for cpu in 0..3 {
        let cpu = folder.path().join(format!("sys/devices/system/cpu/cpu{cpu}"));
        std::fs::create_dir_all(cpu).expect("a processor");
    }
    let port = folder.path().join("sys/class/net/eth0");
    std::fs::create_dir_all(&port).expect("an interface");
    std::fs::write(port.join("flags"), "0x1003\n").expect("its flags");
    let path = folder.path().display().to_string();
    let xml = roundelay(&["topo", &path, "--format", "xml"]).ends(0).out;
    let [a, b] = ["a.xml", "b.xml"].map(|name| TempFile::new(name, xml.as_bytes()));
    let both = roundelay(&["topo", a.path(), b.path()]).ends(0).out;
    assert!(
        both.contains(": 6 ranks, ") && both.contains("network cards of the 2 hosts"),
        "{both}"
    );
    roundelay(&["topo", a.path(), "ring(4)"]).refused(2, "describes no machine");
}

/// The ranks of a launcher share out its processors, unless that is switched off.
#[cfg(target_os = "linux")]
#[test]
fn ranks_have_a_share_of_the_cores() {
    let launch = |value: &str| {
        let mut command = super::call::binary();
        command.env("ROUNDELAY_AFFINITY", value);
        let show = "grep Cpus_allowed_list /proc/self/status";
        super::call::ended(command, &["launch", "-n", "1", "--", "sh", "-c", show], b"")
    };
    let [off, on, told] = ["off", "", "report"].map(|value| launch(value).ends(0));
    assert_eq!(off.out, on.out);
    assert!(told.err.contains("rank 0 stays on processor"), "{}", told.err);
    launch("sometimes").refused(2, "ROUNDELAY_AFFINITY is on, off or report");
}
