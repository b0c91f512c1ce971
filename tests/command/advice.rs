//! The advice for new users: the next command to type.

use super::call::{roundelay, with_input};

const ONE_PULL: &str = "\
#[out_of_place]
algorithm OnePull() -> AllReduce {
    require nranks == 2, \"two ranks pull from each other\";
    let other = peer(1 - rank);
    copy(local.input, local.output);
    other.TxAck();
    other.RxAck();
    reduce(other.input, local.output);
    other.TxDataSignal();
    other.RxDataSignal();
}
";

#[track_caller]
fn says(err: &str, expected: &str) {
    assert!(err.contains(expected), "`{expected}` is not in\n{err}");
    assert!(
        err.lines().filter(|l| l.contains("= help:")).all(|l| l.chars().count() < 115),
        "{err}"
    );
}

#[test]
fn links_have_units() {
    for (text, code, help) in [
        ("ring(4, 25, 2us)", "E0601", "if `25` is a bandwidth, write it with its unit: `25GB/s`"),
        ("torus([2, 2], 25)", "E0601", "write it with its unit: `25GB/s`"),
        ("ring(4, 25GB/s, 2)", "E0601", "if `2` is a latency, write it with its unit: `2us`"),
        ("ring(4, 1MiB)", "E0601", "write a bandwidth with its unit, such as `2GB/s`"),
        ("torus(2, 2)", "E0601", "the form is `torus([rows, columns], bandwidth, latency)`"),
        ("full_mesh(3, 1GiB/s)", "E0103", "write `1GB/s`"),
        ("full_mesh(3, 64KiB/s)", "E0103", "write `64KB/s`"),
        ("full_mesh(3, 25/s)", "E0103", "write `25GB/s`"),
        ("full_mesh(3, 1GiB/s)", "E0103", "powers of 1000; `GiB` is for sizes"),
    ] {
        says(&roundelay(&["topo", text]).refused(2, code).err, help);
    }
}

#[test]
fn each_parameter_has_its_own_flag() {
    let program =
        b"algorithm A(right: int = 1, left: int = 1, rings: Rings, ring: Ring, groups: Groups)
        -> AllReduce { copy(local.input, local.output); }";
    for (setting, help) in [
        ("right=3,left=2", "once for each parameter: `--set right=3 --set left=2`"),
        ("ring=1,2,0,left=2", "once for each parameter: `--set ring=1,2,0 --set left=2`"),
        (
            "rings=channels",
            "write `--set \"rings=channels(topology)\"`, where `topology` is what --topology gives",
        ),
        ("rings=disjoint", "write `--set \"rings=disjoint(topology, 2)\"`, where"),
        ("ring=around", "write `--set \"ring=around(topology)\"`, where"),
        ("groups=of", "write `--set \"groups=of(4)\"`\n"),
        ("rign=natural", "did you mean `--set ring=natural`?"),
    ] {
        let call = with_input(&["check", "-", "--set", setting], program).refused(2, "E0211");
        says(&call.err, help);
    }
    let call = with_input(&["check", "-", "--set", "ring=1,x"], program).refused(2, "E0211");
    assert!(!call.err.contains("help"), "{}", call.err);
}

#[test]
fn a_refused_default_is_called_one() {
    let takes = "choose a number of ranks by `--nranks`: of 1..=33 it takes 2\n";
    for (command, default) in [
        (&["run", "-"][..], 8),
        (&["signals", "-"], 8),
        (&["emit", "steps", "-"], 4),
        (&["emit", "cuda", "-"], 4),
    ] {
        let call = with_input(command, ONE_PULL.as_bytes()).refused(1, "E0205");
        says(&call.err, takes);
        says(&call.err, &format!("{default} is the default of --nranks"));
        let call = with_input(&[command, &["-n", "5"]].concat(), ONE_PULL.as_bytes());
        let call = call.refused(1, "E0205");
        says(&call.err, takes);
        assert!(!call.err.contains("default"), "{}", call.err);
        with_input(&[command, &["-n", "2"]].concat(), ONE_PULL.as_bytes()).ends(0);
    }
    let json = with_input(&["run", "-", "--format", "json"], ONE_PULL.as_bytes()).ends(1).json();
    assert!(json["diagnostics"][0]["help"].as_str().unwrap().ends_with("it takes 2"), "{json}");
    let never = ONE_PULL.replace("nranks == 2", "nranks == 0");
    let call = with_input(&["run", "-"], never.as_bytes()).refused(1, "E0205");
    says(&call.err, "no number of ranks from 1 to 33 is taken");
    let call = roundelay(&["bench", "RecursiveDoublingAllGather", "-n", "5"]);
    says(&call.refused(1, "E0205").err, "of 1..=33 it takes 1..=2, 4, 8, 16, 32\n");
}

#[test]
fn a_rank_that_was_set_is_called_so() {
    let set = |value| roundelay(&["check", "RingBroadcast", "-n", "2", "--set", value]);
    let call = set("root=3").refused(1, "E0204");
    says(&call.err, "`root` was set to 3: set it to a rank in 0..2, or run more ranks");
    says(&call.err, "^^^^ set to 3");
    let call = set("root=-1").refused(1, "E0204");
    says(&call.err, "`root` was set to -1: set it to a rank in 0..2\n");
    let program = b"algorithm A(root: Rank = 3) -> Broadcast { copy(local.input, local.output); }";
    let call = with_input(&["emit", "steps", "-", "-n", "2"], program).refused(1, "E0204");
    assert!(!call.err.contains("was set"), "{}", call.err);
}

#[test]
fn constants_are_called_by_whose_they_are() {
    let list = roundelay(&["list", "AllReduce", "--why"]).ends(0);
    let own =
        "constants: assumed, of the host engine on one machine; `--costs FILE` takes your own\n";
    assert!(list.out.contains(own), "{}", list.out);
    let list = roundelay(&["list", "AllReduce", "--why", "--topology", "full_mesh(4)"]).ends(0);
    assert!(list.out.contains(own), "{}", list.out);
    let json = roundelay(&["list", "AllReduce", "--why", "--format", "json"]).ends(0).json();
    assert_eq!(json["constants"]["name"], "the host engine on one machine");
}

#[test]
fn rings_are_offered_to_those_who_go_around_one() {
    let on =
        |algorithm| roundelay(&["check", algorithm, "--topology", "full_mesh(8) without (0, 1)"]);
    says(
        &on("RingAllReduce").refused(1, "E0313").err,
        "a ring that uses only links of the topology",
    );
    let call = on("OneShotMeshAllReduce").refused(1, "E0313");
    says(&call.err, "relay from rank 0 to rank 1 through one of `topology.relays(0, 1)`");
    assert!(!call.err.contains("a ring"), "{}", call.err);
}
