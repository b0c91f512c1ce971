//! Files that commands write beside their reports, and their output for shells and `man`.

use super::call::{TempFile, roundelay};

const MESH: &str = "full_mesh(4, 25GB/s, 2us)";

/// Calls that write one file, and the beginning of the file. They end soon.
const WRITERS: [(&[&str], &str); 4] = [
    (&["topo", MESH, "--svg"], "<svg "),
    (&["simulate", "RingAllReduce", "--bytes", "4K", "--topology", MESH, "--svg"], "<svg "),
    (&["synthesize", "AllGather", "--bytes", "4K", "--topology", MESH, "--draw"], "<svg "),
    (&["bench", "RingAllReduce", "-n", "2", "-b", "1K", "-I", "1", "--svg"], "<svg "),
];

#[test]
fn a_file_is_written_over_and_named() {
    for (args, begins) in WRITERS {
        let file = TempFile::new("picture.svg", "what was there ".repeat(100_000).as_bytes());
        let call = roundelay(&[args, &[file.path()]].concat()).ends(0);
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert!(text.starts_with(begins) && !text.contains("what was there"), "{args:?}: {text}");
        assert!(call.err.contains(&format!("wrote {}\n", file.path())), "{args:?}: {}", call.err);
        assert!(!call.out.is_empty() && !call.out.contains(begins), "{args:?}: {}", call.out);
    }
}

#[test]
fn a_dash_is_standard_output_and_the_report_gives_way() {
    for (args, begins) in WRITERS {
        let file = TempFile::new("picture.svg", b"");
        let report = roundelay(&[args, &[file.path()]].concat()).ends(0).out;
        let call = roundelay(&[args, &["-"]].concat()).ends(0);
        assert!(call.out.starts_with(begins), "{args:?}: {}", call.out);
        assert!(call.out.ends_with("</svg>\n"), "{args:?}: {}", call.out);
        let first = report.lines().next().expect("a report");
        assert!(call.err.contains(first) && !call.out.contains(first), "{args:?}: {}", call.err);
        assert!(!call.err.contains("wrote"), "{args:?}: {}", call.err);
        roundelay(&[args, &["-", "--format", "json"]].concat()).refused(2, "E0507");
    }
    let args = ["simulate", "RingAllReduce", "--topology", MESH, "--svg", "-", "--html", "-"];
    roundelay(&args).refused(2, "E0507");
}

#[test]
fn a_path_that_cannot_be_written_is_an_error_before_the_work() {
    for (args, _) in WRITERS {
        let call = roundelay(&[args, &["no/such/folder/p.svg"]].concat()).refused(2, "E0508");
        assert_eq!(call.out, "", "{args:?} worked first");
        assert!(call.err.contains("`no/such/folder/p.svg` cannot be written: "), "{}", call.err);
    }
    roundelay(&["man", "--dir", "README.md"]).refused(2, "E0508");
    let file = TempFile::new("beside", b"");
    let beside = file.path().replace("beside", "never.svg");
    roundelay(&["topo", "full_mesh(4) without (0, 9)", "--svg", &beside]).ends(2);
    assert!(!std::path::Path::new(&beside).exists(), "a command that fails leaves no file");
}

#[test]
fn what_fmt_writes_is_named() {
    let file = TempFile::new(
        "one.coll",
        b"algorithm One() -> AllReduce { copy(local.input, local.output); }",
    );
    let call = roundelay(&["fmt", "--write", file.path()]).ends(0);
    assert!(call.err.contains("wrote "), "{}", call.err);
    let call = roundelay(&["fmt", "--write", file.path()]).ends(0);
    assert_eq!(call.err, "", "nothing was left to change");
}

#[test]
fn shells_get_completions() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = roundelay(&["completions", shell]).ends(0).out;
        for word in ["simulate", "topology", "nranks"] {
            assert!(script.contains(word), "{word} is not in the script for {shell}");
        }
    }
}

#[test]
fn man_gets_a_page_for_every_subcommand() {
    let page = roundelay(&["man"]).ends(0).out;
    assert!(page.contains(".TH roundelay 1") && page.contains("Examples:"), "{page}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let dir = folder.path().join("man1");
    let call = roundelay(&["man", "--dir", dir.to_str().unwrap()]).ends(0);
    assert_eq!(call.out, "");
    for name in ["roundelay", "roundelay-check", "roundelay-man", "roundelay-executor-score"] {
        let page = std::fs::read_to_string(dir.join(format!("{name}.1")));
        let page = page.unwrap_or_else(|_| panic!("no {name}.1; {}", call.err));
        assert!(page.contains(&format!(".TH {name} 1")), "{page}");
    }
}
