//! Flags: their text in the helps, their values, and the errors of a wrong call.

use roundelay::{Collective, DType, ReduceOp};

use super::call::roundelay;

/// Every subcommand, and those of `executor`, as the helps name them.
fn subcommands() -> Vec<Vec<String>> {
    let names = |args: &[&str]| -> Vec<String> {
        let help = roundelay(args).ends(0).out;
        let (_, commands) = help.split_once("\nCommands:\n").expect("a list of subcommands");
        let (commands, _) = commands.split_once("\n\n").expect("the options follow");
        let lines = commands.lines().filter(|line| !line.starts_with("   "));
        lines.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
    };
    let mut all: Vec<_> = names(&["--help"]).into_iter().map(|name| vec![name]).collect();
    for outer in ["emit", "executor"] {
        let inner = names(&[outer, "--help"]);
        all.extend(inner.into_iter().map(|name| vec![outer.to_owned(), name]));
    }
    all.retain(|words| words.last().is_none_or(|last| last != "help"));
    all
}

fn help(words: &[String]) -> String {
    let mut args: Vec<&str> = words.iter().map(String::as_str).collect();
    args.push("--help");
    // The help as one line: its line breaks depend on the width.
    let help = roundelay(&args).ends(0).out;
    help.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_help_has_examples_and_says_where_to_read_on() {
    let help = roundelay(&["--help"]).ends(0).out;
    for text in ["\nExamples:\n", "roundelay check mine.coll", "roundelay explain E0301", "book/"] {
        assert!(help.contains(text), "{text} is not in\n{help}");
    }
    assert_eq!(roundelay(&["help"]).ends(0).out, help);
    let run = roundelay(&["help", "run"]).ends(0).out;
    assert_eq!(run, roundelay(&["run", "--help"]).ends(0).out);
    assert!(roundelay(&["--version"]).ends(0).out.starts_with("roundelay "));
}

/// A shell would run text in backticks where it is pasted.
#[test]
fn no_help_has_backticks_in_double_quotes() {
    for words in subcommands() {
        let help = help(&words);
        let quoted = help.split('"').skip(1).step_by(2);
        let wrong: Vec<_> = quoted.filter(|text| text.contains('`')).collect();
        assert!(wrong.is_empty(), "{words:?}: {wrong:?}");
    }
}

#[test]
fn helps_name_what_flags_take() {
    let dtypes: Vec<_> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
    let ops: Vec<_> = ReduceOp::ALL.iter().map(|op| op.name()).collect();
    let collectives = Collective::ALL.map(Collective::name);
    let lists = [
        ("--dtype", dtypes.join(" ")),
        ("--op", ops.join(" ")),
        ("--collective", collectives.join(", ")),
        ("--format", "Possible values: - human: ".to_owned()),
        ("--nranks", "[default: ".to_owned()),
        ("--workers", "up to 1024 [default: one a core]".to_owned()),
    ];
    let mut named = 0;
    let of_all = ReduceOp::ALL.iter().filter(|op| !op.is_for_integers());
    let of_executors = of_all.map(|op| op.name()).collect::<Vec<_>>().join(" ");
    for words in subcommands() {
        let help = help(&words);
        for (flag, list) in &lists {
            let executes = *flag == "--op" && words[0] == "executor";
            let list = if executes { &of_executors } else { list };
            if help.contains(&format!("{flag} <")) {
                assert!(help.contains(list), "{words:?} does not say what {flag} takes:\n{help}");
                named += 1;
            }
        }
    }
    assert!(named > 20, "{named} flags were found");
}

#[test]
fn n_is_ranks_everywhere() {
    let mut with_ranks = 0;
    for words in subcommands() {
        let help = help(&words);
        if help.contains("--nranks") {
            assert!(help.contains("-n, --nranks <RANKS>"), "{words:?}:\n{help}");
            with_ranks += 1;
        } else {
            assert!(!help.contains(" -n, "), "{words:?}: -n is something else:\n{help}");
        }
        if help.contains("--iterations") {
            assert!(help.contains("-I, --iterations <N>"), "{words:?}:\n{help}");
        }
    }
    assert_eq!(
        with_ranks, 21,
        "check, watch, run, bench, calibrate, simulate, 9 of emit, signals, list, select, synthesize, launch, executor synthesize"
    );
    let help = help(&["bench".to_owned()]);
    assert!(help.contains("Letters of nccl-tests:"), "{help}");
    let proved = roundelay(&["check", "RingAllReduce", "-n", "3"]).ends(0).out;
    assert!(proved.contains("for nranks 3:"), "{proved}");
}

#[test]
fn counts_take_the_units_of_sizes_and_powers_of_ten() {
    let count = |text: &str| {
        let args = ["run", "RingAllReduce", "-n", "2", "-I", "1", "--format", "json", "--count"];
        roundelay(&[&args[..], &[text]].concat()).ends(0).json()["count"].as_u64()
    };
    assert_eq!(count("3K"), Some(3072));
    assert_eq!(count("1e3"), Some(1000));
    assert_eq!(count("17"), Some(17));
    let topology = ["--topology", "full_mesh(2, 25GB/s, 2us)", "--format", "json"];
    let simulated = |text: &str| {
        let args = ["simulate", "RingAllReduce", "--count", text];
        roundelay(&[&args[..], &topology].concat()).ends(0).json()["count"].as_u64()
    };
    assert_eq!(simulated("2M"), Some(2 << 20));
    for wrong in ["abc", "1MB", "-1", "0.3", "1e30"] {
        let flag = format!("--count={wrong}");
        let call = roundelay(&["run", "RingAllReduce", &flag]).refused(2, "E0501");
        assert!(call.err.contains(&format!("--count {wrong} is not")), "{}", call.err);
        assert!(call.err.contains("such as 1000, 64K, 1M"), "{}", call.err);
    }
}

/// Compares the whole output for each kind of wrong call.
#[test]
fn wrong_calls_are_told_as_other_errors_are() {
    let told = |args: &[&str], expected: &str| {
        let call = roundelay(args).ends(2);
        assert_eq!(call.out, "", "{args:?}");
        assert_eq!(call.err, expected, "{args:?}");
    };
    told(
        &["run", "RingAllReduce", "--workers", "5000"],
        "error[E0501]: --workers 5000 is not in 1..=1024\n  \
           = help: give a whole number in 1..=1024\n",
    );
    told(
        &["run", "RingAllReduce", "--seed", "x"],
        "error[E0501]: --seed x is not a whole number\n  = help: give one in 0..\n",
    );
    told(
        &["topo", "full_mesh(4)", "--format", "jsn"],
        "error[E0501]: --format jsn is not one of its values\n  \
           = help: did you mean json? the values of --format are human, json, svg, xml\n",
    );
    told(
        &["completions", "tcsh"],
        "error[E0501]: tcsh is not one of the values of <SHELL>\n  \
           = help: did you mean zsh? the values of <SHELL> are bash, elvish, fish, powershell, zsh\n",
    );
    told(
        &["chek"],
        "error[E0507]: `roundelay` has no subcommand `chek`\n  \
           = help: did you mean check? `roundelay --help` lists its subcommands\n",
    );
    told(
        &["executor", "run", "X", "--dtpye", "f32"],
        "error[E0507]: `roundelay executor run` has no flag --dtpye\n  \
           = help: did you mean --dtype? `roundelay executor run --help` lists its flags\n",
    );
    told(
        &["run", "A", "B"],
        "error[E0507]: `roundelay run` has no place for `B`\n  \
           = note: usage: roundelay run [OPTIONS] <SOURCE>\n  = help: `roundelay run --help` says more\n",
    );
    told(
        &["run"],
        "error[E0507]: `roundelay run`: <SOURCE> is missing\n  \
           = note: usage: roundelay run <SOURCE>\n  = help: `roundelay run --help` says more\n",
    );
    told(
        &["-q", "fmt", "a.coll", "-v"],
        "error[E0507]: --quiet does not go with --verbose\n  = help: leave out one of them\n",
    );
    told(
        &["bench", "A", "--contest", "-b", "1K"],
        "error[E0507]: --contest does not go with --minbytes\n  \
           = note: usage: roundelay bench --contest <ALGORITHM|FILE>...\n  \
           = help: `roundelay bench --help` says more\n",
    );
    told(
        &["bench", "A", "-b", "-1"],
        "error[E0507]: `roundelay bench` has no flag -1\n  \
           = help: a value that begins with a hyphen is joined to its flag: FLAG=-1\n",
    );
    told(&["run", "A", "--count"], "error[E0507]: --count is given without a value\n");
}
