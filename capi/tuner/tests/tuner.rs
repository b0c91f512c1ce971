//! The plugin in a host program of C, which loads and calls it as NCCL does.
#![cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

/// Returns the plugin, which was built with this test: beside it.
fn plugin() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let beside = test.with_file_name("libroundelay_nccl_tuner.so");
    assert!(beside.exists(), "{} is not there", beside.display());
    beside
}

/// Runs the host with the plugin, to do what `word` says, with a value of the plugin's setting.
fn hosted(word: &str, setting: Option<&str>) -> Output {
    static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/host.c");
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-g"]);
        cc.arg(source).arg("-o").arg(folder.path().join("host")).args(["-lpthread", "-lm", "-ldl"]);
        let output = cc.output().expect("a C compiler, which Rust links by");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        folder
    });
    let mut host = Command::new(FOLDER.path().join("host"));
    host.arg(plugin()).arg(word).env_remove("ROUNDELAY_TUNER");
    if let Some(setting) = setting {
        host.env("ROUNDELAY_TUNER", setting);
    }
    host.output().expect("it starts")
}

/// Every version, collective, size and set of offered pairs; arguments that make no sense; communicators at once and on
/// threads; a million random calls; no memory that grows; less than a microsecond a call.
#[test]
fn a_host_calls_the_plugin_in_every_way() {
    let Output { status, stdout, stderr } = hosted("check", None);
    assert!(status.success(), "{status}: {}", String::from_utf8_lossy(&stderr));
    assert!(stderr.is_empty(), "{}", String::from_utf8_lossy(&stderr));
    print!("{}", String::from_utf8_lossy(&stdout));
}

#[test]
fn a_setting_says_what_the_plugin_does() {
    let said = |setting| {
        let output = hosted("say", setting);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let begun = "3 Roundelay: communicator 0x1234, 24 ranks on 3 nodes: trees take 4 hops between nodes; NCCL counts \
                 2\n";
    let of = "3 Roundelay: AllReduce of 2^20 bytes and more on 3 nodes";
    let on = format!("{begun}{of} takes Tree by LL in 58.1 us, as NCCL would\n58.1 150.4\n");
    assert_eq!(said(None), on);
    assert_eq!(said(Some("on")), on);
    let log = format!("{begun}{of} would take Tree by LL in 58.1 us, as NCCL would\n48.1 108.6\n");
    assert_eq!(said(Some("log")), log);
    assert_eq!(said(Some("off")), "48.1 108.6\n");
    // A text in the log is no format of C.
    for wrong in ["yes", "ON", "%s%n%d"] {
        let said = said(Some(wrong));
        let warned =
            format!("2 Roundelay: ROUNDELAY_TUNER is `{wrong}`: set it to on, log or off.");
        assert_eq!(said, format!("{warned} NCCL decides alone.\n48.1 108.6\n"));
    }
}
