//! `run --device ptx`: kernels as NVRTC compiles them, interpreted.

use std::fs;
use std::path::Path;

use expect_test::expect_file;
use sha2::{Digest as _, Sha256};

use super::call::{Call, TempFile};
use super::cuda::compiled;

/// A user's own page, of one exchange.
const PAGE: &str = "\
algorithm Swap() -> AllGather {
    view block = output.split(nranks);
    let other = peer((rank + 1) % nranks);
    copy(local.input, local.block[rank]);
    other.TxAck();
    other.RxAck();
    copy(other.block[other.rank], local.block[other.rank]);
    other.TxDataSignal();
    other.RxDataSignal();
}
";

fn run(args: &[&str], variables: &[(&str, &str)]) -> Call {
    compiled(&[&["run"], args, &["--device", "ptx"]].concat(), variables)
}

#[test]
fn a_users_page_has_the_results_of_the_reference() {
    let page = TempFile::new("swap.coll", PAGE.as_bytes());
    let args = [page.path(), "-n", "2", "--count", "37", "--format", "json"];
    for more in [
        &[][..],
        &["--in-place", "--seed", "5"],
        &["--form", "table", "--threads", "64"],
        &["--ctas", "3"],
    ] {
        let report = run(&[&args, more].concat(), &[]).ends(0).json();
        assert_eq!((&report["ok"], &report["wrong"]), (&true.into(), &0.into()), "{report}");
        assert_eq!((&report["device"], &report["count"]), (&"PTX for sm_90".into(), &37.into()));
        let counters = &report["counters"];
        assert!(counters["instructions"].as_u64().is_some_and(|n| n > 1000), "{report}");
        // 37 floats of each rank are loaded twice and stored twice.
        assert!(counters["load_sectors"].as_u64().is_some_and(|n| n > 4 * 37 / 8), "{report}");
        assert!(report.get("time_us").is_none(), "{report}");
    }
}

/// Runs the page after a change of its compiled kernel: other texts of the same length in its entry of the cache, by what
/// the kernel's PTX says.
fn changed(change: impl Fn(&str) -> (String, String)) -> Call {
    let folder = tempfile::tempdir().expect("a folder");
    let page = TempFile::new("swap.coll", PAGE.as_bytes());
    let cache = [("ROUNDELAY_CACHE", folder.path().to_str().expect("text"))];
    let args = [page.path(), "-n", "2", "--count", "37", "--seed", "3"];
    run(&args, &cache).ends(0);
    let entries = fs::read_dir(folder.path()).expect("a folder");
    for entry in entries {
        let path = entry.expect("an entry").path();
        // Beside the kernels lie the locks of their compilations.
        if path.extension().is_none_or(|extension| extension != "kernel") {
            continue;
        }
        let text = String::from_utf8_lossy(&fs::read(&path).expect("an entry")).into_owned();
        let (from, to) = change(&text);
        assert_eq!(from.len(), to.len());
        assert!(replaced(&path, &from, &to) > 0, "no kernel has `{from}`");
    }
    let call = run(&args, &cache);
    Call { err: call.err.replace(page.path(), "swap.coll"), ..call }
}

/// Replaces texts in an entry of the cache, behind whose first line is the hash of the rest.
fn replaced(path: &Path, from: &str, to: &str) -> usize {
    let mut bytes = fs::read(path).expect("an entry");
    let body = bytes.iter().position(|byte| *byte == b'\n').expect("a first line") + 1 + 32;
    let mut changes = 0;
    for at in body..bytes.len().saturating_sub(from.len()) {
        if bytes[at..].starts_with(from.as_bytes()) {
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
            changes += 1;
        }
    }
    let hash = Sha256::digest(&bytes[body..]);
    bytes[body - 32..body].copy_from_slice(&hash);
    fs::write(path, bytes).expect("the entry");
    changes
}

#[test]
fn a_wait_that_never_ends_stands_at_the_pages_line() {
    let call = changed(|ptx| {
        let post = ptx.split("red.release.sys.global.add.u64 ").nth(1).expect("a post");
        let (post, _) = post.split_once(';').expect("an instruction");
        let (_, register) = post.split_once(", ").expect("an address and a register");
        // Each post adds nothing.
        let adds = |number: u32| format!("mov.u64 \t{register}, {number};");
        (adds(1), adds(0))
    });
    expect_file!["../data/kernel_fault.stderr"].assert_eq(&call.ends(1).err);
}

#[test]
fn a_rule_that_the_text_breaks_is_told_before_the_run() {
    let weaker = |_: &str| ("red.release.sys".to_owned(), "red.relaxed.sys".to_owned());
    let call = changed(weaker).ends(1);
    assert!(call.out.is_empty(), "{}", call.out);
    for part in ["error[E0434]", "rule Post, in ", "the post does not release", "at nranks = 2"] {
        assert!(call.err.contains(part), "{part} is not in\n{}", call.err);
    }
}

/// The harness of a page's kernel, after a change of its text, as the check of harnesses gets it.
fn checked(of: &[&str], change: impl Fn(&str) -> String, more: &[&str]) -> Call {
    let ours = compiled(&[&["kernel", "check", "--ours"], of].concat(), &[]).ends(0);
    assert!(ours.err.is_empty(), "{}", ours.err);
    let harness = TempFile::new("ours.kernel.toml", change(&ours.out).as_bytes());
    let args = [&["kernel", "check", harness.path()], more].concat();
    let call = compiled(&args, &[]);
    Call { err: call.err.replace(harness.path(), "ours.kernel.toml"), ..call }
}

#[test]
fn lines_of_128_bytes_rely_on_an_assumption_with_a_name() {
    let of = ["NcclRingAllReduce", "-n", "2", "--count", "600", "--protocol", "ll128"];
    let json = ["--format", "json", "--seeds", "3"];
    let told = checked(&of, str::to_owned, &json).json();
    assert_eq!(told["verdicts"][0]["verdict"], "relies(line128)", "{told}");
    let unnamed = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with("assume = "));
        lines.collect::<Vec<_>>().join("\n")
    };
    let call = checked(&of, unnamed, &["--seeds", "3"]).ends(1);
    assert!(call.err.contains("declare it under [assume]: line128"), "{}", call.err);
    let call = run(&of, &[]).ends(0);
    assert!(call.out.contains("assuming line128"), "{}", call.out);
}

#[test]
fn the_harness_of_a_pages_kernel_has_a_verdict_and_the_run_is_its_short_form() {
    let page = TempFile::new("swap.coll", PAGE.as_bytes());
    let json = ["--format", "json", "--first", "3", "--seeds", "1"];
    let of = [page.path(), "-n", "2", "--count", "37"];
    let told = checked(&of, str::to_owned, &json).ends(0).json();
    let verdict = &told["verdicts"][0];
    assert_eq!((&verdict["verdict"], &verdict["state"]), (&"clean".into(), &"clean".into()));
    let short = run(&[&of[..], &["--seed", "3", "--format", "json"]].concat(), &[]).ends(0).json();
    let instructions = &verdict["cases"][0]["instructions"];
    assert!(instructions.as_u64().is_some_and(|n| n > 1000), "{told}");
    assert_eq!(instructions, &short["counters"]["instructions"], "the same run");
    for of in [
        &["MeshReduceScatter", "-n", "3", "--count", "9", "--in-place", "--threads", "64"][..],
        &["NcclRingAllReduce", "-n", "3", "--count", "37", "--protocol", "ll", "--ctas", "2"],
        &[
            "RingAllReduce",
            "-n",
            "3",
            "--count",
            "37",
            "--form",
            "table",
            "--dtype",
            "bf16",
            "--op",
            "avg",
        ],
        &[
            "DoubleBinaryTreeBroadcast",
            "-n",
            "3",
            "--count",
            "9",
            "--set",
            "root=1",
            "--dtype",
            "i64",
        ],
    ] {
        let call = checked(of, str::to_owned, &["--seeds", "2"]).ends(0);
        assert!(
            call.out.contains("no finding in 2 runs; relies on nothing"),
            "{of:?}: {}",
            call.out
        );
    }
}

/// A wait that is left out is a race at the lines of the page, as it is for the kernels of others.
#[test]
fn a_mistake_in_the_harness_of_a_pages_kernel_is_found() {
    let without = |text: &str| text.replacen("lane.RxAck(left);", "", 1);
    let of = ["RingAllReduce", "-n", "3", "--count", "37", "--threads", "64"];
    let call = checked(&of, without, &["--seeds", "2"]).ends(1);
    for part in [
        "error[E0436]: a race: ",
        "--> ring.coll:27:",
        "the load: rank ",
        "memory: output of rank ",
    ] {
        assert!(call.err.contains(part), "{part} is not in\n{}", call.err);
    }
}
