//! Harness files: mistakes at their places, the same harness in JSON, and mutants.

use roundelay_core::render::render;
use roundelay_kernel_check::{Candidate, Expression, Harness};

use crate::{cases, options};

/// A harness with most keys.
const WHOLE: &str = include_str!("harnesses/whole.kernel.toml");

fn mistake(text: &str) -> String {
    let mistake = Harness::from_toml(text).expect_err(text);
    let (diagnostic, source) = mistake.diagnostic("x.kernel.toml", text);
    render(&diagnostic, &source, false)
}

/// The harnesses of other projects' kernels, which a job runs by hand.
#[test]
fn the_harnesses_of_projects_can_be_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../xtask/kernels");
    let folders = std::fs::read_dir(folder).expect("the folder").flatten();
    let files = folders.flat_map(|of| std::fs::read_dir(of.path()).expect("a project").flatten());
    let mut read = 0;
    for file in files.filter(|file| file.path().extension().is_some_and(|end| end == "toml")) {
        let (name, text) = (file.path(), std::fs::read_to_string(file.path()).expect("a text"));
        let is_candidate = name.to_string_lossy().ends_with("candidate.toml");
        let all = if is_candidate {
            Candidate::from_toml(&text).map(|candidate| vec![candidate.harness])
        } else {
            Harness::from_toml(&text)
        };
        let all = all.unwrap_or_else(|wrong| panic!("{name:?}: {wrong:?}"));
        assert!(all.iter().all(|harness| !harness.source.is_empty()), "{name:?} tells no source");
        read += 1;
    }
    assert!(read >= 15, "{read} harnesses");
}

#[test]
fn a_mistake_stands_at_its_place() {
    for (from, to, place, why) in [
        ("peers = true", "peer = true", "7:39", "did you mean `peers`?"),
        ("peers = true", "peers = 1", "7:47", "`true` or `false` is expected"),
        ("type = \"u32\"", "type = \"u31\"", "6:18", "did you mean `u32`?"),
        ("\"4*ranks\"", "\"4*rnks\"", "7:20", "`rnks` is neither a number nor a name"),
        ("\"4*ranks\"", "\"4*(ranks\"", "7:26", "`)` is missing here"),
        ("\"m.copy\"", "\"n.copy\"", "21:10", "there is no module `n`"),
        ("write = \"input\"", "write = \"inputs\"", "16:9", "did you mean `input`?"),
        ("polls-acquire", "poll-acquire", "54:1", "did you mean `polls-acquire`?"),
        ("[\"pad\", ", "[{ ptr = \"pat\" }, ", "1:1", "`table` points at `pat`"),
        ("[\"pad\", ", "[{ at = \"pad\" }, ", "11:25", "`at` is no key"),
        ("{ value = \"element*rank\" }", "{ values = [1, \"2\"] }", "10:55", "a whole number"),
        ("verdict = \"clean\"", "verdict = \"fine\"", "57:11", "`fine` is no verdict"),
        ("[expect]", "[expect", "38:8", "the harness is no TOML"),
    ] {
        assert!(WHOLE.contains(from), "{from}");
        let text = mistake(&WHOLE.replacen(from, to, 1));
        assert!(text.contains("error[E0435]"), "{text}");
        assert!(
            text.contains(&format!("x.kernel.toml:{place}")) && text.contains(why),
            "{to}: {text}"
        );
    }
}

#[test]
fn cases_are_laid_over_the_file() {
    let all = Harness::from_toml(WHOLE).expect("a harness");
    let names: Vec<_> = all.iter().map(|harness| harness.case.as_deref()).collect();
    assert_eq!(names, [Some("good"), Some("bad")]);
    assert_eq!([all[0].run.seeds, all[1].run.seeds], [5, 9]);
    assert_eq!(all[1].modules[0].defines, ["A=1", "BAD"]);
    assert_eq!([all[0].assume.len(), all[1].assume.len()], [2, 3]);
}

#[test]
fn json_has_the_same_tables() {
    let json = r#"{"module": {"m": {"ptx": "x"}}, "call": [{"kernel": "m.copy", "grid": [1, "ranks"], "block": 32}],
        "run": {"elements": {"cycle": [1, 2]}}}"#;
    let all = Harness::from_json(json).expect("a harness");
    assert_eq!(all[0].run.elements, [vec![1, 2]]);
    let wrong = Harness::from_json(&json.replace("\"grid\"", "\"gird\"")).expect_err("a key");
    assert_eq!(wrong.help.as_deref(), Some("did you mean `grid`?"));
}

#[test]
fn expressions_have_the_values_of_integers() {
    let numbers = [3, 4, 1, 2, 37, 5, 0];
    for (text, value) in [
        ("min(36, ceil(elements/4, 512))", Ok(1)),
        ("ceil(elements, 4) * 2 - -1", Ok(21)),
        ("(rank + 1) % ranks", Ok(0)),
        ("0x80000000", Ok(1 << 31)),
        ("2 + 3 * 4 - 1", Ok(13)),
        ("call == 1", Ok(1)),
        ("elements - element <= 31", Ok(0)),
        ("7 / (rank - 3)", Err("divides by zero")),
        ("9223372036854775807 + 1", Err("does not fit")),
        ("ceil(-7, 2)", Ok(-3)),
    ] {
        let got = Expression::parse(text).expect(text).value(&numbers);
        match (got, value) {
            (Ok(got), Ok(value)) => assert_eq!(got, value, "{text}"),
            (Err(why), Err(wanted)) => assert!(why.contains(wanted), "{why}"),
            (got, _) => panic!("{text}: {got:?}"),
        }
    }
    for (text, at) in
        [("1 +", 3..3), ("1 2", 2..3), ("min(1)", 5..6), ("ranks ¤", 6..8), ("x", 0..1)]
    {
        assert_eq!(Expression::parse(text).expect_err(text).0, at, "{text}");
    }
    let deep = format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(Expression::parse(&deep).is_err() && Expression::parse(&"1+".repeat(100_000)).is_err());
}

/// No change of a harness file ends in a panic, neither when it is read nor when it runs.
#[test]
fn no_mutant_of_a_harness_panics() {
    let (mut read, mut ran) = (0, 0);
    mutants(WHOLE, |text| match Harness::from_toml(text) {
        Ok(all) => {
            read += 1;
            for harness in all.iter().take(1) {
                let small = harness.run.ranks.iter().all(|ranks| *ranks < 9)
                    && harness.run.elements.iter().flatten().all(|count| *count < 4096)
                    && harness.run.calls < 9;
                if small && harness.modules.iter().all(|module| module.name == "m") {
                    let options =
                        roundelay_kernel_check::CheckOptions { seeds: Some(1), ..options() };
                    ran += usize::from(harness.check(&cases(harness), &options).is_ok());
                }
            }
        }
        Err(mistake) => _ = mistake.diagnostic("x", text),
    });
    assert!(read > 20 && ran > 5, "{read} were read, {ran} ran");
}

/// Takes mutants of a text, one after another; `KERNEL_MUTANTS` sets their number.
pub(crate) fn mutants(text: &str, mut take: impl FnMut(&str)) {
    let count = std::env::var("KERNEL_MUTANTS").ok().and_then(|text| text.parse().ok());
    let mut random = fastrand::Rng::with_seed(68);
    let tokens: Vec<&str> = text.split_inclusive([' ', '\n', ',', '"', '=']).collect();
    let odd = [
        "-1",
        "0",
        "99999999999",
        "\"\"",
        "{}",
        "[]",
        "\"rank-9\"",
        "true",
        "\"é\"",
        "[[call]]\n",
        "1.5",
    ];
    for _ in 0..count.unwrap_or(2000) {
        let mut mutant = tokens.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(0..mutant.len());
            match random.u8(0..4) {
                0 => _ = mutant.remove(at),
                1 => mutant[at] = odd[random.usize(0..odd.len())],
                2 => mutant[at] = tokens[random.usize(0..tokens.len())],
                _ => mutant.insert(at, tokens[random.usize(0..tokens.len())]),
            }
        }
        take(&mutant.concat());
    }
}
