//! Sources without end, steps without end and outputs that are full: each is told, and soon.

use std::fmt::Write as _;
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::call::{TempFile, binary, roundelay};

fn ended(mut command: Command) -> (i32, String) {
    let output = command.output().expect("the command starts");
    let err = String::from_utf8(output.stderr).expect("errors are text");
    (output.status.code().expect("an exit code"), err)
}

/// Returns the lines that use files.
fn lines(uses: &[&str]) -> String {
    uses.iter().map(|path| format!("use \"{path}\";\n")).collect::<Vec<_>>().concat()
}

/// A page in a folder of its own that uses files.
fn page(uses: &[&str]) -> TempFile {
    let text = format!(
        "{}pub algorithm A() -> AllReduce {{ copy(local.input, local.output); }}\n",
        lines(uses)
    );
    TempFile::new("page.coll", text.as_bytes())
}

/// What is wrong in a used file is quoted, so no other file than a program is read.
#[cfg(unix)]
#[test]
fn only_files_of_programs_are_used() {
    let secret = "root:secret";
    let other = TempFile::new("passwd", secret.as_bytes());
    let text = "`use` reads only files whose names end in `.coll`";
    for path in ["/dev/zero", "/etc/passwd", "/", "..", "", other.path(), "page.coll.txt"] {
        let call = roundelay(&["check", page(&[path]).path()]).refused(1, "E0122");
        assert!(call.err.contains(text) && !call.err.contains("root:"), "{path}: {}", call.err);
    }
    let page = page(&["used.coll"]);
    let used = page.folder().join("used.coll");
    let links = [
        ("/dev/zero", "a link to a file whose name"),
        (other.path(), "a link to a file whose name"),
        ("used.coll", "symbolic links"),
    ];
    for (to, why) in links {
        std::os::unix::fs::symlink(to, &used).expect("a link");
        let call = roundelay(&["check", page.path()]).refused(1, "E0122");
        assert!(call.err.contains(why) && !call.err.contains("secret"), "{to}: {}", call.err);
        std::fs::remove_file(&used).expect("it was there");
    }
    let pipe = Command::new("mkfifo").arg(&used).status().expect("mkfifo starts");
    assert!(pipe.success());
    let call = roundelay(&["check", page.path()]).refused(1, "E0122");
    assert!(call.err.contains("a device or a pipe"), "{}", call.err);
    std::fs::remove_file(&used).expect("it was there");
    std::fs::create_dir(&used).expect("a folder");
    let call = roundelay(&["check", page.path()]).refused(1, "E0122");
    assert!(call.err.contains("a folder"), "{}", call.err);
}

/// A checker of strangers' pages keeps them in their folders.
#[cfg(unix)]
#[test]
fn the_folder_of_used_files_can_be_fixed() {
    let right = "pub algorithm B() -> AllReduce { copy(local.input, local.output); }\n";
    let elsewhere = TempFile::new("b.coll", right.as_bytes());
    let outside = "outside the folder of the source";
    let up = format!("..{}", elsewhere.path().strip_prefix("/tmp").unwrap_or("/b.coll"));
    for (path, why) in [
        (elsewhere.path(), outside),
        (&*up, outside),
        ("/nowhere/at/all.coll", outside),
        ("c/../../b.coll", outside),
        ("link.coll", outside),
        ("c/link.coll", outside),
        ("c/b.coll", ""),
        ("c/../c/./b.coll", ""),
        ("missing.coll", "No such file"),
    ] {
        let page = page(&[path]);
        let folder = page.folder().join("c");
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::write(folder.join("b.coll"), right).expect("a file");
        for link in [folder.join("link.coll"), page.folder().join("link.coll")] {
            std::os::unix::fs::symlink(elsewhere.path(), link).expect("a link");
        }
        let with = |value: &str| {
            let mut command = binary();
            command.args(["check", page.path(), "-n", "1"]).env("ROUNDELAY_USE", value);
            ended(command)
        };
        let (code, err) = with("beside");
        assert_eq!(code, i32::from(!why.is_empty()), "{path}: {err}");
        assert!(err.contains(why), "{path}: {err}");
        let (code, err) = with("nowhere");
        assert!(code == 1 && err.contains("forbids every `use`"), "{path}: {err}");
        let (code, err) = with("here");
        assert!(code == 1 && err.contains("`here`, and not"), "{path}: {err}");
    }
}

/// However many paths lead to a file, it is compiled once; and sources that lead back to themselves are told.
#[cfg(unix)]
#[test]
fn a_used_file_is_compiled_once() {
    let right = "pub algorithm B() -> AllReduce { copy(local.input, local.output); }\n";
    let page = page(&["u0.coll"]);
    let folder = page.folder();
    for level in 0..30 {
        let next = format!("u{}.coll", level + 1);
        let (hard, soft) = (format!("h{next}"), format!("s{next}"));
        std::os::unix::fs::symlink(folder.join(&next), folder.join(&soft)).expect("a link");
        let uses = [&*next, &format!("./{next}"), &format!("c/../{next}"), &hard, &soft];
        let text = format!("{}{}", lines(&uses), right.replace("B()", &format!("B{level}()")));
        std::fs::write(folder.join(format!("u{level}.coll")), text).expect("a file");
    }
    std::fs::create_dir(folder.join("c")).expect("a folder");
    std::fs::write(folder.join("u30.coll"), right).expect("a file");
    for level in 1..=30 {
        let name = format!("u{level}.coll");
        std::fs::hard_link(folder.join(&name), folder.join(format!("h{name}"))).expect("a link");
    }
    let call = roundelay(&["check", page.path(), "-n", "1"]).ends(0);
    assert!(call.is_soon(), "{:?}", call.took);

    // In a row of many: the last one leads back by another name.
    std::fs::write(folder.join("u30.coll"), format!("use \"c/../hu3.coll\";\n{right}")).unwrap();
    let call = roundelay(&["check", page.path(), "-n", "1"]).refused(1, "E0122");
    assert!(call.err.contains("uses itself"), "{}", call.err);
    for level in 0..100 {
        let text = format!("use \"v{}.coll\";\n{right}", level + 1);
        std::fs::write(folder.join(format!("v{level}.coll")), text).expect("a file");
    }
    let first = folder.join("v0.coll");
    let call = roundelay(&["check", first.to_str().unwrap(), "-n", "1"]).refused(1, "E0122");
    assert!(call.err.contains("behind more than 64 sources"), "{}", call.err);
}

#[cfg(unix)]
#[test]
fn a_pipe_that_nobody_writes_to_is_waited_for_with_a_word() {
    let mut command = binary();
    command.args(["check", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().expect("the command starts");
    std::thread::sleep(Duration::from_millis(2500));
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("the command ends");
    let err = String::from_utf8(output.stderr).expect("errors are text");
    assert!(err.starts_with("waiting for the end of standard input\n"), "{err}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_no_success() {
    for args in
        [&["list"][..], &["--help"], &["emit", "rust", "RingAllReduce"], &["explain", "E0001"]]
    {
        let mut command = binary();
        command.args(args).stdout(File::create("/dev/full").expect("Linux has it"));
        let (code, err) = ended(command);
        assert_eq!(code, 2, "{args:?}: {err}");
        assert!(err.contains("error[E0508]"), "{args:?}: {err}");
    }
}

#[test]
fn steps_that_double_are_refused_before_they_are_walked() {
    let mut text = "algorithm A() -> AllReduce {\n    step s0() { let a = 1; }\n".to_owned();
    for k in 1..60 {
        let before = k - 1;
        let _ = writeln!(text, "    step s{k}() {{ s{before}(); s{before}(); }}");
    }
    for body in
        ["s59();", "for i in 0..nranks { s24(); }", "if rank == 0 { s40(); } else { s41(); }"]
    {
        let whole = format!("{text}    {body}\n    copy(local.input, local.output);\n}}\n");
        let file = TempFile::new("bomb.coll", whole.as_bytes());
        let call = roundelay(&["check", file.path(), "-n", "8"]).refused(1, "E0206");
        assert!(call.err.contains("the calls of steps here take"), "{}", call.err);
        roundelay(&["check", file.path()]).refused(1, "E0206");
    }
}
