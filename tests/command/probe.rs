//! `roundelay probe`: hosts of one machine, a rank that dies, and slow ends of hosts that are network namespaces.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::call::{Call, TempFile, binary, ended, roundelay};

/// The variables of a rank, each of them on a host of its own.
fn of_job(command: &mut Command, port: u16, [rank, nranks]: [u32; 2]) {
    command
        .env("ROUNDELAY_ROOT", format!("127.0.0.1:{port}"))
        .env("ROUNDELAY_KEY", "5a".repeat(32));
    command.env("ROUNDELAY_HOST_ID", rank.to_string());
    command.env("ROUNDELAY_RANK", rank.to_string()).env("ROUNDELAY_NRANKS", nranks.to_string());
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("it is bound").port()
}

/// Starts the ranks of a job but rank 0.
fn others(port: u16, nranks: u32, args: &[&str]) -> Vec<Child> {
    let start = |rank| {
        let mut command = binary();
        of_job(&mut command, port, [rank, nranks]);
        command.arg("probe").args(args).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().expect("it starts")
    };
    (1..nranks).map(start).collect()
}

/// Probes hosts of this machine, and returns the call of rank 0, with whose code all ranks end.
fn probe(nranks: u32, args: &[&str]) -> Call {
    let port = free_port();
    let others = others(port, nranks, args);
    let mut command = binary();
    of_job(&mut command, port, [0, nranks]);
    let call = ended(command, &[&["probe"], args].concat(), b"");
    for mut other in others {
        let code = other.wait().expect("it ends").code();
        assert_eq!(code, Some(call.code), "{}{}", call.out, call.err);
    }
    call
}

#[test]
fn every_pair_of_few_hosts_is_measured() {
    let file = TempFile::new("hosts.links", b"");
    let told = probe(3, &["--json", "--time", "30ms", "--write", file.path()]);
    let json = told.json();
    assert_eq!(json["ok"], told.code == 0, "{json:#}");
    assert_eq!(json["carrier"].as_str(), Some("TCP over lo, 127.0.0.1"));
    let links = json["links"].as_array().expect("links");
    let mut pairs: Vec<_> = links.iter().map(|link| (&link["from"], &link["to"])).collect();
    pairs.dedup();
    assert_eq!((links.len(), pairs.len()), (6, 6));
    for link in links {
        assert!(link["measured"]["rate"].as_f64() > Some(1e6), "{link}");
        assert!(link["measured"]["segments"].as_u64() > Some(1), "{link}");
    }
    for (rank, host) in json["hosts"].as_array().expect("hosts").iter().enumerate() {
        assert_eq!(host["rank"], json!(rank));
        assert!(host["facts"]["interface"].is_string() && host["facts"]["mtu"].is_u64(), "{host}");
    }
    // Both forms of the measured topology are topologies.
    for topology in [json["topology"].as_str().expect("a text"), file.path()] {
        let selected = roundelay(&["select", "AllReduce", "--topology", topology]).ends(0);
        assert!(selected.out.contains("AllReduce"), "{}", selected.out);
    }
}

#[test]
fn a_topology_bounds_the_rates() {
    // No loopback has a terabyte a second.
    let topology = ["--topology", "crossbar(2, 1TB/s, 1us)"];
    let told = probe(2, &[&["--json", "--time", "30ms"], &topology[..]].concat()).ends(1);
    let json = told.json();
    assert_eq!(json["against"], "crossbar(2, 1TB/s, 1us)");
    assert!(json["links"].as_array().expect("links").iter().all(|link| link["expected"] == 1e12));
    assert_eq!(json["findings"][0]["fault"], "slow");
    assert_eq!(json["findings"][0]["part"], json!({"pair": [0, 1]}), "no end of two can be named");
}

#[test]
fn a_wrong_call_is_refused_on_all_ranks() {
    let refused = |nranks, args: &[&str], code: &str, help: &str| {
        let call = probe(nranks, args).refused(2, code);
        assert!(call.err.contains(help), "{}", call.err);
    };
    refused(1, &[], "E0507", "one host");
    refused(2, &["--topology", "crossbar(3, 1GB/s, 1us)"], "E0604", "a rank for each host");
    refused(2, &["--topology", "ring(2)"], "E0601", "in bytes a second");
    refused(2, &["--write", "/no/such/folder/file"], "E", "/no/such/folder");
    let alone = roundelay(&["probe"]).refused(2, "E0427");
    assert!(alone.err.contains("ROUNDELAY_RANK"), "{}", alone.err);
}

/// A rank that is killed between or in rounds is named, and no rank waits for it.
#[test]
fn a_rank_that_dies_is_named() {
    let port = free_port();
    let mut others = others(port, 3, &["--time", "20s"]);
    let mut command = binary();
    of_job(&mut command, port, [0, 3]);
    command.args(["probe", "--time", "20s"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut first = command.spawn().expect("it starts");
    let mut out = BufReader::new(first.stdout.take().expect("a pipe"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    assert!(line.starts_with("3 hosts, 3 ranks, by TCP over "), "{line}");
    others[0].kill().expect("it is there");
    let mut err = String::new();
    first.stderr.take().expect("a pipe").read_to_string(&mut err).expect("text");
    assert_eq!(first.wait().expect("it ends").code(), Some(2), "{err}");
    assert!(err.contains("rank 1 is gone") && err.contains("E0428"), "{err}");
    for mut other in others {
        other.wait().expect("it ends");
    }
}

/// The end of a host's link is limited: `tc` with this rate.
const SLOW: &str = "root tbf rate 4mbit burst 16kb limit 2mb";

/// Probes hosts that are network namespaces, with links of 10 Mbit/s that `setup` changes; `None` where they cannot be made.
fn on_hosts(hosts: u32, setup: &str, args: &[&str]) -> Option<Value> {
    const NETWORK: &str = "10.78.9";
    let script = roundelay_tests::root().join("xtask/suites/hosts.sh");
    let hosts_of = |hosts: u32| {
        let mut command = Command::new("bash");
        command.arg(&script).args([&hosts.to_string(), "", NETWORK]);
        command
    };
    let usual = "root tbf rate 10mbit burst 16kb limit 2mb";
    let all =
        format!("for i in $(seq {hosts}); do out $i qdisc add dev wire {usual}; done; {setup}");
    let mut tried = hosts_of(1);
    tried.arg("true").env("SETUP", format!("out 1 qdisc add dev wire {usual}"));
    let tried = tried.output().expect("bash starts");
    if !tried.status.success() {
        let why = String::from_utf8_lossy(&tried.stderr).replace('\n', "; ");
        eprintln!("skipped: hosts that are network namespaces need root, ip and tc: {why}");
        return None;
    }
    // As many hosts share few cores: no rank has one of its own.
    let run = r#"agent=$0 hosts=$1 root=$2 command=$3; shift 3
        job="ROUNDELAY_KEY=$(printf 5a%.0s $(seq 32)) $command launch -n 1 --root $root --of $hosts"
        probe="$command probe$(printf ' %q' "$@")"
        for i in $(seq 2 "$hosts"); do
            "$agent" "h$i" "$job --first $((i - 1)) -- $probe" > /dev/null 2>&1 &
        done
        eval "$job --first 0 -- $probe"; code=$?; wait; exit "$code""#;
    let mut command = hosts_of(hosts);
    command.args(["bash", "-c", run, "AGENT", &hosts.to_string(), &format!("{NETWORK}.1:7000")]);
    command.arg(binary().get_program()).args(args).args(["--json", "--time", "800ms"]);
    let call = ended(
        {
            command.env("SETUP", all);
            command
        },
        &[],
        b"",
    );
    assert!(call.code < 2, "{}{}", call.out, call.err);
    let json = call.json();
    assert_eq!(json["ok"], call.code == 0);
    Some(json)
}

/// The parts with a fault among the findings.
fn parts(json: &Value, fault: &str) -> Vec<Value> {
    let findings = json["findings"].as_array().expect("findings").iter();
    findings.filter(|found| found["fault"] == fault).map(|found| found["part"].clone()).collect()
}

#[test]
fn a_slow_sender_among_six_hosts_is_named() {
    let setup = format!("out 3 qdisc replace dev wire {SLOW}");
    let Some(json) = on_hosts(6, &setup, &[]) else { return };
    assert_eq!(parts(&json, "slow"), [json!({"sender": 2})], "{:#}", json["findings"]);
}

/// Eight hosts, with one fault of each kind: only where all tests are asked for, as each takes half a minute.
#[test]
fn faults_among_eight_hosts_are_named() {
    if !roundelay_tests::takes_all() {
        return;
    }
    let sender = format!("out 3 qdisc replace dev wire {SLOW}");
    let receiver = format!("into 6 qdisc add dev port6 {SLOW}");
    let host = format!("out 5 qdisc replace dev wire {SLOW}; into 5 qdisc add dev port5 {SLOW}");
    // A class of its own for what goes to host 3.
    let class = "out 3 class add dev wire parent 1: classid";
    let direction = format!(
        "out 3 qdisc replace dev wire root handle 1: htb default 10 r2q 1
        {class} 1:10 htb rate 10mbit burst 16kb; {class} 1:20 htb rate 4mbit burst 16kb
        out 3 filter add dev wire parent 1: protocol ip u32 match ip dst 10.78.9.4/32 flowid 1:20"
    );
    // Drops 2% of what comes from the host to the switch, by a random number: 42 in 43 are below the bound.
    let loss = "ip -n ${name}h7 link set wire gso_max_segs 1
        into 7 qdisc add dev port7 clsact
        into 7 filter add dev port7 ingress bpf da bytecode \\
            '4,32 0 0 4294963256,53 0 1 4209067950,6 0 0 2,6 0 0 4294967295'";
    let mtu = "ip -n ${name}h8 link set wire mtu 1400".to_owned();
    let two = format!("{sender}; {receiver}");
    let bounded = ["--topology", "crossbar(8, 1.25MB/s, 50us)"];
    let cases: [(&str, &[&str], &str, Vec<Value>); 8] = [
        ("", &[], "slow", vec![]),
        (&sender, &bounded, "slow", vec![json!({"sender": 2})]),
        (&receiver, &[], "slow", vec![json!({"receiver": 5})]),
        (&host, &[], "slow", vec![json!({"host": 4})]),
        (&direction, &[], "slow", vec![json!({"direction": [2, 3]})]),
        (&two, &["--all-pairs"], "slow", vec![json!({"sender": 2}), json!({"receiver": 5})]),
        (loss, &[], "loss", vec![json!({"sender": 6})]),
        (&mtu, &[], "mtu", vec![json!({"host": 7})]),
    ];
    for (setup, args, fault, wanted) in cases {
        let Some(json) = on_hosts(8, setup, args) else { return };
        let mut found = parts(&json, fault);
        found.sort_by_key(Value::to_string);
        let mut wanted = wanted;
        wanted.sort_by_key(Value::to_string);
        assert_eq!(found, wanted, "{setup}: {:#}", json["findings"]);
    }
}
