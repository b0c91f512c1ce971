//! Flags: their text in the helps.

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
        with_ranks, 23,
        "check, watch, run, bench, calibrate, simulate, 11 of emit, signals, list, select, synthesize, launch, executor synthesize"
    );
}
