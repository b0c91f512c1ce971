//! Calls with anything as their arguments, and the time of a call.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use roundelay_nccl::Name;

use crate::made::{compile_library, folder, library, program, run};

/// Makes an NCCL that answers with any code and looks at no argument, and returns it.
fn careless(folder: &Path) -> PathBuf {
    let mut text = String::from(
        "static unsigned long dice = 88172645463325252u;\n\
         static long any(void) { dice ^= dice << 13; dice ^= dice >> 7; dice ^= dice << 17; return dice % 10; }\n\
         int ncclGetVersion(int *version) { static int asked; if (asked++) return any(); *version = 23203; return 0; }\n",
    );
    for name in Name::ALL.iter().filter(|name| **name != Name::GetVersion) {
        writeln!(text, "long {name}(void) {{ return any(); }}").expect("a string grows");
    }
    let source = folder.join("careless.c");
    fs::write(&source, text).expect("a file of the tests");
    compile_library(&source, &folder.join("careless"), &[])
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
    let (fuzz, behind) = (program("fuzz", folder.path()), careless(folder.path()));
    let names: Vec<_> = Name::ALL.iter().map(Name::to_string).collect();
    let calls = all.to_string();
    let library = library();
    let mut args = vec![library.as_os_str(), calls.as_ref()];
    args.extend(names.iter().map(AsRef::<OsStr>::as_ref));
    let nowhere = PathBuf::from("/nowhere/libnccl.so.2");
    for (real, report) in [(&behind, "1"), (&behind, "0"), (&nowhere, "1")] {
        let variables =
            [("ROUNDELAY_NCCL", real.as_os_str()), ("ROUNDELAY_REPORT", report.as_ref())];
        let said = run(&fuzz, &args, &variables);
        let codes = codes(&said.out);
        assert_eq!(codes.iter().sum::<u64>(), all);
        if real == &nowhere {
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
    let (cost, behind) = (program("cost", folder.path()), careless(folder.path()));
    let library = library();
    for report in ["0", "1"] {
        let variables =
            [("ROUNDELAY_NCCL", behind.as_os_str()), ("ROUNDELAY_REPORT", report.as_ref())];
        let said = run(&cost, &[library.as_os_str(), behind.as_os_str()], &variables);
        println!("report {report}: {}", said.out);
        let times: Vec<f64> =
            said.out.split_whitespace().map(|word| word.parse().expect("a number")).collect();
        let [ours, theirs, ours_group, theirs_group] = times[..] else { panic!("{}", said.out) };
        assert!(ours - theirs < 1000.0 && ours_group - theirs_group < 1000.0, "{}", said.out);
    }
}
