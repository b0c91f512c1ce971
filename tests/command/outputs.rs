//! Files that commands write beside their reports, and their output for shells and `man`.

use super::call::{TempFile, binary, roundelay};

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
}

#[test]
fn a_path_that_cannot_be_written_is_an_error_before_the_work() {
    for (args, _) in WRITERS {
        let call = roundelay(&[args, &["no/such/folder/p.svg"]].concat()).refused(2, "E0508");
        assert_eq!(call.out, "", "{args:?} worked first");
        assert!(call.err.contains("`no/such/folder/p.svg` cannot be written: "), "{}", call.err);
    }
    let file = TempFile::new("beside", b"");
    let beside = file.path().replace("beside", "never.svg");
    roundelay(&["topo", "full_mesh(4) without (0, 9)", "--svg", &beside]).ends(2);
    assert!(!std::path::Path::new(&beside).exists(), "a command that fails leaves no file");
}

#[cfg(unix)]
#[test]
fn fmt_keeps_links_and_permissions() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let file = TempFile::new("one.coll", b"algorithm One() -> AllReduce { }");
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o640)).unwrap();
    let link = file.folder().join("link.coll");
    symlink(file.path(), &link).expect("a link");
    roundelay(&["fmt", link.to_str().unwrap()]).ends(0);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(file.path()).unwrap().permissions().mode() & 0o777, 0o640);
    let text = std::fs::read_to_string(file.path()).unwrap();
    assert_eq!(text, "algorithm One() -> AllReduce {\n}\n");
    assert_eq!(std::fs::read_dir(file.folder()).unwrap().count(), 2, "nothing lies beside them");
}

#[test]
fn emit_writes_the_file_of_o() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let emit = |args: &[&str], to: &str| roundelay(&[&["emit"], args, &["-o", to]].concat());
    let printed = |args: &[&str]| roundelay(&[&["emit"], args].concat()).ends(0).out;

    let steps = ["steps", "RingAllReduce", "-n", "3"];
    let call = emit(&steps, &path("ring.txt")).ends(0);
    assert_eq!((call.out, call.err), (String::new(), format!("    wrote {}\n", path("ring.txt"))));
    assert_eq!(read("ring.txt"), printed(&steps));
    assert_eq!(emit(&steps, "-").ends(0).out, printed(&steps));
    // In a folder, each form has a name of its own.
    for (form, name) in [
        ("coll", "RingAllReduce.coll"),
        ("struct", "RingAllReduce.rs"),
        ("rust", "RingAllReduce_4.rs"),
        ("ast", "RingAllReduce.ast"),
        ("program", "RingAllReduce.program"),
        ("loops", "RingAllReduce_4.loops"),
        ("cuda", "RingAllReduce_4.cu"),
        ("mpi", "RingAllReduce_4.c"),
        ("goal", "RingAllReduce_4.goal"),
        ("msccl", "RingAllReduce_4.xml"),
        ("mscclpp", "RingAllReduce_4.json"),
    ] {
        emit(&[form, "RingAllReduce"], &path("")).ends(0);
        assert_eq!(read(name), printed(&[form, "RingAllReduce"]), "{form}");
    }
    // Several rank counts need a folder, which is made.
    let several = ["schedule", "RingAllReduce", "-n", "2,3"];
    emit(&several, &path("new/folder")).ends(0);
    assert_eq!(
        read("new/folder/RingAllReduce_2.schedule"),
        printed(&["schedule", "RingAllReduce", "-n", "2"])
    );
    assert_eq!(
        read("new/folder/RingAllReduce_3.schedule"),
        printed(&["schedule", "RingAllReduce", "-n", "3"])
    );
    emit(&several, &path("ring.txt")).refused(2, "E0507");

    emit(&steps, "no/such/folder/ring.txt").refused(2, "E0508");
    emit(&["steps", "HalvingDoublingAllReduce", "-n", "3"], &path("none.txt")).refused(1, "E0205");
    assert!(!folder.path().join("none.txt").exists(), "an error leaves no file");
    // A source that is written over would be lost.
    let source = TempFile::new(
        "one.coll",
        b"algorithm One() -> AllReduce { copy(local.input, local.output); }",
    );
    let beside = format!(
        "{}/../{}/one.coll",
        source.folder().display(),
        source.folder().file_name().unwrap().to_str().unwrap()
    );
    emit(&["steps", source.path(), "-n", "1"], &beside).refused(2, "E0507");
    emit(&["coll", source.path()], source.folder().to_str().unwrap()).refused(2, "E0507");
    assert!(
        std::fs::read_to_string(source.path())
            .unwrap()
            .starts_with("algorithm One() -> AllReduce { c")
    );
}

/// Runs the scripts in the shells that are there.
#[cfg(unix)]
#[test]
fn shells_complete_names_of_algorithms() {
    use std::process::Command;
    let path = binary().get_program().to_owned();
    let folder = std::path::Path::new(&path).parent().expect("a folder").to_owned();
    let paths = std::env::var("PATH").unwrap_or_default();
    let shells = [
        (
            "bash",
            "source <(roundelay completions bash)
             COMP_WORDS=(roundelay run -n 8 TwistedRingAllR) COMP_CWORD=4; _roundelay; echo \"${COMPREPLY[@]}\"
             COMP_WORDS=(roundelay topo spine) COMP_CWORD=2; _roundelay; eval \"echo ${COMPREPLY[0]}\"",
        ),
        (
            "fish",
            "roundelay completions fish | source
             complete -C 'roundelay run -n 8 TwistedRingAllR' | cut -f1
             complete -C 'roundelay topo spine' | cut -f1",
        ),
    ];
    for (shell, script) in shells {
        let mut command = Command::new(shell);
        command.args(["-c", script]).env("PATH", format!("{}:{paths}", folder.display()));
        let Ok(output) = command.current_dir(roundelay_tests::root()).output() else {
            println!("{shell} is not installed, so its script is not run");
            continue;
        };
        let out = String::from_utf8_lossy(&output.stdout).replace('\\', "");
        let [name, form] = out.lines().collect::<Vec<_>>()[..] else {
            panic!("{shell}: {out}\n{}", String::from_utf8_lossy(&output.stderr))
        };
        assert_eq!(name, "TwistedRingAllReduce", "{shell}");
        assert!(form.starts_with("spine_leaf(leaves, hosts, "), "{shell}: {form}");
    }
}

#[test]
fn man_gets_a_page_for_every_subcommand() {
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
