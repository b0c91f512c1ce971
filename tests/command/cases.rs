//! Calls of the command that are data: files of calls, and what is checked of each.
//!
//! * `file NAME` is a file that calls may name as `{NAME}`; its text is the lines behind `|`. `{root}` is the repository.
//! * `$ VARIABLE=VALUE roundelay ARGS < NAME` is a call; variables and the input may be left out. Quotes keep blanks.
//!   The checks below several calls in a row are of each of them, and `always CHECK` is of all calls that follow.
//! * `  2 E0501 TEXT` is the exit code and, of an error that comes soon, what standard error contains.
//! * `  out TEXT` and `  err TEXT` are what a stream contains, `  err*2 TEXT` how often, and `  no out TEXT` what it does
//!   not contain; `\n` is a line end, and `\s` a blank. `  out is` and `  err is` stand above the whole text.
//! * `  begins TEXT` is how standard output begins, `  words TEXT` what it contains with its white space folded,
//!   `  columns 100` how wide its lines may be, and `  narrow` says that helps fit into a terminal.
//! * `  same` says that the calls of a row have one output.
//! * `  json /KEY/0 = VALUE` is a value of the output, of which `-1` is the last of a list. In the place of `=` stand `~`
//!   for about a number, `has` for keys or a part of a text, and `len` for how many there are.

use std::fmt::Write as _;
use std::path::Path;

use roundelay_tests::root;
use serde_json::Value;

use super::call::{Call, binary, ended};

macro_rules! tests {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )*

        #[test]
        fn every_file_of_cases_is_run() {
            let files = roundelay_tests::files(&root().join("tests/command/cases"), "txt");
            let names: Vec<_> = files.iter().map(|path| path.file_stem().unwrap()).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}
tests!(
    advice bad_input bench certificates constants cuda curves device endless executor flags habits json launch list memory
    messages msccl mscclpp outputs processes ptx select simulate subcommands synthesize topologies warnings
);

/// Makes all calls of a file.
fn check(name: &str) {
    let path = root().join(format!("tests/command/cases/{name}.txt"));
    let text = std::fs::read_to_string(path).expect("a file of cases");
    let folder = tempfile::tempdir().expect("a folder");
    let (mut calls, mut always, mut wrong) = (Vec::new(), Vec::new(), String::new());
    let mut is_checked = true;
    let mut lines = (1..).zip(text.lines()).peekable();
    while let Some((at, line)) = lines.next() {
        let mut block = String::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| line.trim_start().starts_with('|')) {
            let line = line.trim_start();
            block += line.strip_prefix("| ").unwrap_or(&line[1..]);
            block.push('\n');
        }
        let first = calls.first().map(|(_, call): &(&str, Call)| call.out.clone());
        let mut hold = |(command, call): &(&str, Call), check: &str| {
            let same = check == "same" && first.as_ref() == Some(&call.out);
            if !same && !holds(call, check, &block) {
                let Call { code, out, err, .. } = call;
                let shown = |text: &str| text.chars().take(2000).collect::<String>();
                let _ = writeln!(
                    wrong,
                    "{name}.txt:{at}: {command}\nit is not so: {check}\nexit code {code}; out:\n{}\nerr:\n{}",
                    shown(out),
                    shown(err)
                );
            }
        };
        if let Some(file) = line.strip_prefix("file ") {
            std::fs::write(folder.path().join(file), block).expect("a file");
        } else if let Some(check) = line.strip_prefix("always ") {
            always.push(check);
        } else if let Some(command) = line.strip_prefix("$ ") {
            if std::mem::take(&mut is_checked) {
                calls.clear();
            }
            calls.push((command, call(command, folder.path())));
            for check in &always {
                hold(&calls[calls.len() - 1], check);
            }
        } else if let Some(check) = line.strip_prefix("  ") {
            is_checked = true;
            for call in &calls {
                hold(call, check);
            }
        } else {
            assert!(line.is_empty() || line.starts_with('#'), "{name}.txt:{at}: {line}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The words of a command; quotes keep blanks.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None, None);
    for letter in line.chars() {
        match (letter, quote) {
            ('"' | '\'', None) => {
                quote = Some(letter);
                word.get_or_insert_with(String::new);
            }
            (_, Some(open)) if letter == open => quote = None,
            (' ', None) => words.extend(word.take()),
            _ => word.get_or_insert_with(String::new).push(letter),
        }
    }
    words.extend(word);
    words
}

fn call(line: &str, folder: &Path) -> Call {
    let mut command = binary();
    let (line, input) = line.split_once(" < ").unwrap_or((line, ""));
    let mut words = words(line);
    let begin = words.iter().position(|word| word == "roundelay").expect("a call of the command");
    for word in &mut words {
        *word = word.replace("{root}", root().to_str().expect("text"));
        if let (Some(from), Some(to)) = (word.find('{'), word.find('}')) {
            let path = folder.join(&word[from + 1..to]);
            word.replace_range(from..=to, path.to_str().expect("text"));
        }
    }
    command.envs(words[..begin].iter().map(|word| word.split_once('=').expect("a variable")));
    let input = match input {
        "" => Vec::new(),
        name => std::fs::read(folder.join(name)).expect("a file of the cases"),
    };
    let args: Vec<&str> = words[begin + 1..].iter().map(String::as_str).collect();
    ended(command, &args, &input)
}

/// Whether a check holds of a call; `block` is the text below it.
fn holds(call: &Call, check: &str, block: &str) -> bool {
    let (kind, rest) = check.split_once(' ').unwrap_or((check, ""));
    let part = &*rest.replace("\\n", "\n").replace("\\s", " ");
    let (of, times) = kind.split_once('*').unwrap_or((kind, ""));
    let stream = if of == "err" { &call.err } else { &call.out };
    match of {
        "no" => !holds(call, rest, block),
        "out" | "err" if rest == "is" => stream == block,
        "out" | "err" if times.is_empty() => stream.contains(part),
        "out" | "err" => times.parse() == Ok(stream.matches(part).count()),
        "begins" => stream.starts_with(part),
        "words" => stream.split_whitespace().collect::<Vec<_>>().join(" ").contains(part),
        "columns" => stream.lines().all(|line| line.chars().count() <= rest.parse().unwrap()),
        "narrow" => {
            let mut helps = call.err.lines().filter(|line| line.contains("= help:"));
            helps.all(|line| line.chars().count() < 115)
        }
        "json" => of_json(&call.json(), rest) == Some(true),
        code => {
            let (error, part) = part.split_once(' ').unwrap_or((part, ""));
            code.parse() == Ok(call.code)
                && [error, part].iter().all(|part| call.err.contains(part))
                && (error.is_empty() || call.is_soon())
        }
    }
}

/// Whether `/KEY/0 = VALUE` is so; nothing where the line or the value has another form.
fn of_json(whole: &Value, check: &str) -> Option<bool> {
    let (path, rest) = check.split_once(' ')?;
    let (relation, wanted) = rest.split_once(' ')?;
    let found = path.split('/').filter(|key| !key.is_empty()).fold(whole, |value, key| match value
        .as_array()
    {
        Some(all) if key == "-1" => all.last().unwrap_or(&Value::Null),
        Some(all) => key.parse().ok().and_then(|at: usize| all.get(at)).unwrap_or(&Value::Null),
        None => &value[key],
    });
    Some(match relation {
        "=" => match serde_json::from_str::<Value>(wanted) {
            Ok(wanted) => *found == wanted,
            Err(_) => found == wanted,
        },
        "~" => (found.as_f64()? / wanted.parse::<f64>().ok()? - 1.0).abs() < 1e-3,
        "has" => match found {
            Value::Object(keys) => wanted.split(' ').all(|key| keys.contains_key(key)),
            Value::String(text) => text.contains(wanted),
            other => other.as_array()?.iter().any(|value| value == wanted),
        },
        "len" => found.as_array()?.len() == wanted.parse::<usize>().ok()?,
        _ => return None,
    })
}
