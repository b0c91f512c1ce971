//! Flags that every subcommand has: when there are colors, and how much is said.

use super::call::{TempFile, binary, roundelay};

/// Whether a call has colors, with these variables in its environment.
fn colors(args: &[&str], variables: &[(&str, &str)]) -> bool {
    let mut command = binary();
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    let output = command.args(args).envs(variables.iter().copied()).output().expect("it starts");
    let [out, err] = [output.stdout, output.stderr].map(|text| text.contains(&0x1b));
    assert!(!out || !err, "it prints on one stream");
    out || err
}

#[test]
fn colors_are_as_the_flag_or_the_environment_says() {
    let check = ["check", "RingAllReduce", "-n", "2"];
    let with = |flags: &[&'static str]| [&check[..], flags].concat();
    let (force, none, cargo) = (("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1"), "CARGO_TERM_COLOR");
    assert!(!colors(&check, &[]), "a pipe gets none");
    assert!(colors(&with(&["--color", "always"]), &[none]));
    assert!(!colors(&with(&["--color", "never"]), &[force]));
    assert!(!colors(&with(&["--color=auto"]), &[(cargo, "always")]));
    assert!(colors(&check, &[force]));
    assert!(colors(&check, &[(cargo, "always")]));
    assert!(!colors(&check, &[(cargo, "always"), none]));
    assert!(!colors(&check, &[(cargo, "never")]) && !colors(&check, &[(cargo, "red")]));
    // Where a call cannot be read, too.
    for (args, code) in
        [(&["--color", "always", "chek"][..], 2), (&["run", "--help", "--color=always"], 0)]
    {
        assert!(colors(args, &[]), "{args:?}");
        assert_eq!(roundelay(args).code, code);
    }
    assert!(!colors(&["chek", "--", "--color", "always"], &[]));
    assert!(!colors(&["chek", "--color", "never"], &[force]));
    // A document has none.
    assert!(!colors(&with(&["--color", "always", "--format", "json"]), &[]));
}

#[test]
fn a_quiet_command_prints_results_and_errors_alone() {
    let file = TempFile::new("star.coll", b"algorithm A() -> AllReduce { }");
    let topology = ["--topology", "full_mesh(2, 25GB/s, 2us)", "--bytes", "1K"];
    let picture = file.path().replace("star.coll", "picture.svg");
    let calls: [(&[&str], i32); 5] = [
        (&["check", "RingAllReduce", "MeshAllReduce", "-n", "2"], 0),
        (&["check", file.path(), "none.coll", "-n", "2"], 2),
        (&["run", "RingAllReduce", "-n", "2", "--count", "7"], 0),
        (&["fmt", file.path()], 0),
        (&[&["simulate", "RingAllReduce", "--svg", &picture], &topology[..]].concat(), 0),
    ];
    for (args, code) in calls {
        let usual = roundelay(args).ends(code);
        let quiet = roundelay(&[args, &["-q"]].concat()).ends(code);
        for absent in ["wrote ", "checked ", "note: ", "0 of "] {
            let mut lines = quiet.out.lines().chain(quiet.err.lines());
            assert!(!lines.any(|line| line.trim_start().starts_with(absent)), "{args:?}: {absent}");
        }
        let errors = |text: &str| text.matches("error[").count();
        assert_eq!(errors(&quiet.err), errors(&usual.err), "{args:?}");
        let is_result = |line: &&str| line.trim_start().starts_with("proved ");
        let results = |text: &str| text.lines().filter(is_result).count();
        assert_eq!(results(&quiet.out), results(&usual.out), "{args:?}");
    }
}
