//! Every function hands its arguments and its answer on as NCCL's header declares them. A stand-in notes the registers
//! and the words of the stack as each of its functions finds them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use roundelay_nccl::Name;

use crate::made::{compile, compile_library, folder, library, program, run, source, wheel};

/// Words of the stack that are noted.
const STACK: usize = 26;
const REGISTERS: usize = 6;

/// Returns the texts of the headers without comments.
fn headers() -> String {
    let names = ["include/nccl.h", "include/nccl_device/host.h"];
    let texts = names.map(|name| fs::read_to_string(wheel().join(name)).expect("a header"));
    let mut text = texts.concat();
    while let Some(begin) = text.find("/*") {
        let end = begin + text[begin..].find("*/").expect("a comment ends") + 2;
        text.replace_range(begin..end, " ");
    }
    text.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the result and the arguments of a function, as words of C; `None` where no header declares it.
fn declared(headers: &str, name: &str) -> Option<(String, Vec<String>)> {
    let place = headers.match_indices(name).find(|(at, _)| {
        let before = headers[..*at].chars().next_back().is_some_and(char::is_whitespace);
        before && headers[at + name.len()..].trim_start().starts_with('(')
    });
    let (at, _) = place?;
    let result = headers[..at].rsplit([';', '}', '#']).next().unwrap_or_default();
    let result = result.split_whitespace().last().unwrap_or_default().to_owned();
    let rest = headers[at + name.len()..].trim_start();
    let inner = &rest[1..rest.find(')').expect("arguments end")];
    let args =
        inner.split(',').map(|arg| arg.split('=').next().unwrap_or_default().trim().to_owned());
    Some((result, args.filter(|arg| !arg.is_empty() && arg != "void").collect()))
}

/// The bits that count of each word that a function's arguments take: (the word's place, the bits). Registers come
/// before the stack.
fn words(args: &[String]) -> Vec<(usize, u64)> {
    let (mut register, mut stack, mut all) = (0, REGISTERS, Vec::new());
    let mut take = |sizes: &[u64], is_memory: bool| {
        let is_register = !is_memory && register + sizes.len() <= REGISTERS;
        for bits in sizes {
            let place = if is_register { &mut register } else { &mut stack };
            all.push((*place, *bits));
            *place += 1;
        }
    };
    let (whole, half) = (u64::MAX, u64::from(u32::MAX));
    for arg in args {
        let is_address = arg.contains('*');
        if arg.starts_with("ncclUniqueId ") && !is_address {
            take(&[whole; 16], true);
        } else if arg.starts_with("ncclTeam") && !is_address {
            take(&[whole, half], false);
        } else {
            let handles = [
                "ncclComm_t",
                "cudaStream_t",
                "ncclWindow_t",
                "ncclMultimemHandle_t",
                "ncclParamHandle_t",
                "size_t",
            ];
            let is_wide = is_address || arg.split(' ').any(|word| handles.contains(&word));
            take(&[if is_wide { whole } else { half }], false);
        }
    }
    all
}

#[test]
fn every_argument_and_answer_is_handed_on_as_the_header_declares_it() {
    let folder = folder();
    let mut text = String::new();
    for (number, name) in Name::ALL.iter().enumerate() {
        // The library asks for the version when it opens NCCL.
        let answer = if *name == Name::GetVersion { 0 } else { number + 1 };
        writeln!(text, "ECHO({name}, {answer})").expect("a string grows");
    }
    fs::write(folder.path().join("functions.h"), &text).expect("a file of the tests");
    let include = format!("-I{}", folder.path().display());
    let real = folder.path().join("real");
    let real = compile_library(&source("programs/echo_library.c"), &real, &[&include]);
    let caller = folder.path().join("caller");
    compile(&source("programs/echo.c"), &caller, &[&include, "-ldl"]);
    let headers = headers();
    let said =
        run(&caller, &[library().as_os_str(), real.as_os_str()], &[("ROUNDELAY_NCCL", &real)]);
    let mut rows: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for line in said.out.lines() {
        let (name, rest) = line.split_once(' ').expect("a name and words");
        let word = |word: &str| u64::from_str_radix(word, 16).expect("a number");
        rows.insert(name, rest.split(' ').map(word).collect());
    }
    let mut compared = 0;
    for (number, name) in Name::ALL.iter().enumerate() {
        let name = name.to_string();
        for name in [name.clone(), format!("p{name}")] {
            let row = &rows[&name[..]];
            let (first, second, noted) = (row[0], row[1], &row[2..]);
            let header = name.strip_prefix('p').unwrap_or(&name);
            let Some((result, args)) = declared(&headers, header) else {
                assert_eq!(header, "ncclResetDebugInitInternal");
                continue;
            };
            let words = words(&args);
            for (place, bits) in &words {
                // What the caller gave: the number of the word.
                let given = 0x0111_0001_0000_0001_u64 * (*place as u64 + 1);
                assert_eq!(noted[*place] & bits, given & bits, "{name}, word {place}");
            }
            compared += words.len();
            let answer = if header == "ncclGetVersion" { 0 } else { number as u64 + 1 };
            let whole = answer << 32 | answer;
            match &result[..] {
                "ncclResult_t" | "int" => assert_eq!(first & 0xffff_ffff, answer, "{name}"),
                "char*" => assert_eq!(first, whole, "{name}"),
                "ncclTeam_t" => {
                    assert_eq!((first, second & 0xffff_ffff), (whole, answer), "{name}");
                }
                "void" => {}
                other => panic!("{name} returns {other}"),
            }
        }
    }
    assert!(compared > 2 * 350 && STACK >= 16, "{compared}");
}

/// The program of the fuzzer compiles alone, too: a name that it does not know is an error there.
#[test]
fn a_name_that_is_missing_is_told() {
    let folder = folder();
    let program = program("fuzz", folder.path());
    let said =
        run::<&str>(&program, &[library().as_os_str(), "1".as_ref(), "ncclNothing".as_ref()], &[]);
    assert!(said.out.contains("no ncclNothing"), "{}", said.out);
}
