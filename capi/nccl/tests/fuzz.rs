//! Calls with anything as their arguments, and the time of a call.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use roundelay_nccl::Name;

use crate::made::{compile_library, folder, library, program, run};

/// Makes an NCCL that answers with any code and looks at no argument, and returns it. With `is_bare`, it makes no
/// communicator.
fn careless(folder: &Path, is_bare: bool) -> PathBuf {
    let mut text = String::from(
        "static unsigned long dice = 88172645463325252u;\n\
         static long any(void) { dice ^= dice << 13; dice ^= dice >> 7; dice ^= dice << 17; return dice % 10; }\n\
         int ncclGetVersion(int *version) { static int asked; if (asked++) return any(); *version = 23203; return 0; }\n",
    );
    for name in Name::ALL.iter().filter(|name| **name != Name::GetVersion) {
        // A communicator that it says it had made would be one that it has not written.
        let makes =
            ["Init", "Split", "Shrink", "Grow"].iter().any(|word| name.to_string().contains(word));
        let answer = if is_bare && makes { "4" } else { "any()" };
        writeln!(text, "long {name}(void) {{ return {answer}; }}").expect("a string grows");
    }
    let name = if is_bare { "bare" } else { "careless" };
    let source = folder.join(name).with_extension("c");
    fs::write(&source, text).expect("a file of the tests");
    compile_library(&source, &folder.join(name), &[])
}

/// Returns how many calls had each code.
fn codes(text: &str) -> Vec<u64> {
    let code = |line: &str| line.split(' ').nth(1).and_then(|count| count.parse().ok());
    text.lines().map(|line| code(line).unwrap_or_else(|| panic!("{text}"))).collect()
}

#[test]
fn no_argument_ends_the_process() {
    let is_whole = std::env::var_os("ROUNDELAY_WHOLE").is_some();
    let all: u64 = if is_whole { 1_000_000 } else { 60_000 };
    let folder = folder();
    let fuzz = program("fuzz", folder.path());
    let [behind, bare] = [false, true].map(|is_bare| careless(folder.path(), is_bare));
    let names: Vec<_> = Name::ALL.iter().map(Name::to_string).collect();
    let calls = all.to_string();
    let library = library();
    let mut args = vec![library.as_os_str(), calls.as_ref()];
    args.extend(names.iter().map(AsRef::<OsStr>::as_ref));
    let nowhere = PathBuf::from("/nowhere/libnccl.so.2");
    let alone = PathBuf::from("alone");
    // Where the launcher says that all ranks are here, none waits for others.
    let launched = ["RANK", "LOCAL_RANK", "MASTER_PORT"].map(|name| (name, OsStr::new("0")));
    let one = ["WORLD_SIZE", "LOCAL_WORLD_SIZE"].map(|name| (name, OsStr::new("1")));
    let host = ("MASTER_ADDR", OsStr::new("localhost"));
    for (real, report, take) in [
        (&behind, "1", "selected"),
        (&behind, "0", "selected"),
        (&bare, "1", "all"),
        (&nowhere, "1", "selected"),
        (&alone, "1", "selected"),
    ] {
        let mut variables = vec![
            ("ROUNDELAY_NCCL", real.as_os_str()),
            ("ROUNDELAY_REPORT", report.as_ref()),
            ("ROUNDELAY_NCCL_TAKE", take.as_ref()),
            host,
        ];
        variables.extend(launched.iter().chain(&one));
        if real == &alone {
            variables.push(("TAME", "1".as_ref()));
        }
        let said = run(&fuzz, &args, &variables);
        let codes = codes(&said.out);
        assert_eq!(codes.iter().sum::<u64>(), all);
        if real == &alone {
            // Without a driver, no communicator comes to be.
            assert!(codes[4] > all / 4 && codes[5] > all / 4, "{codes:?}");
        } else if real == &nowhere {
            // All functions with a code are refused; texts and numbers are others.
            assert!(codes[5] > all * 8 / 10, "{codes:?}");
            assert!(said.err.contains("/nowhere/libnccl.so.2 does not exist"), "{}", said.err);
        } else {
            assert!(codes[..10].iter().all(|calls| *calls > all / 100), "{codes:?}");
        }
        let counted = said.err.contains("roundelay: ncclAllReduce ");
        assert_eq!(counted, report == "1", "{}", said.err);
    }
}

/// The bar is a microsecond; a call that is passed on takes some nanoseconds more in a group, too, and with a report.
#[test]
fn a_call_that_is_passed_on_takes_less_than_a_microsecond_more() {
    let folder = folder();
    let (cost, behind) = (program("cost", folder.path()), careless(folder.path(), false));
    let library = library();
    for (report, take) in [("0", "selected"), ("1", "selected"), ("1", "all")] {
        let variables = [
            ("ROUNDELAY_NCCL", behind.as_os_str()),
            ("ROUNDELAY_REPORT", report.as_ref()),
            ("ROUNDELAY_NCCL_TAKE", take.as_ref()),
        ];
        let said = run(&cost, &[library.as_os_str(), behind.as_os_str()], &variables);
        println!("report {report}, take {take}: {}", said.out);
        let times: Vec<f64> =
            said.out.split_whitespace().map(|word| word.parse().expect("a number")).collect();
        let [ours, theirs, ours_group, theirs_group] = times[..] else { panic!("{}", said.out) };
        assert!(ours - theirs < 1000.0 && ours_group - theirs_group < 1000.0, "{}", said.out);
    }
}
