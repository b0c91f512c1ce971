//! Files that are missing, broken, huge or no files: what comes is a machine or an error, within bounds.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use roundelay_machines::nccl;
use roundelay_topology::host::Root;

use super::files::Files;
use super::{NONE, read};

/// All files below a folder.
fn files_of(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            files_of(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// Machines of several kinds, small.
fn machines() -> Vec<Files> {
    let cores = Files::new();
    cores.cores([2, 2, 2], 2, &["10 12", "12 10"]);
    cores.write("proc/cpuinfo", "vendor_id : GenuineIntel\ncpu family : 6\nmodel : 143\n");
    cores.write("proc/self/status", "Cpus_allowed_list:\t0-7\n");
    let card =
        cores.pci("sys/devices/pci0000:00/0000:00:03.0", "0000:05:00.0", &[("class", "0x020000")]);
    cores.interface("eth0", "-1", Some(&card));
    let mut all = vec![cores];
    for name in
        ["azure-ncv4-4a100-pcie.xml", "rccl-4p3l-mesh.xml", "simccl-8a100-nvswitch-5nic.xml"]
    {
        let (files, _) = Files::of(&crate::nccl::load(name).root);
        files.join();
        all.push(files);
    }
    all
}

/// Random changes of the files of machines: none panics, and what is read is written within NCCL's limits and read again.
#[test]
fn mutants() {
    let mut random = fastrand::Rng::with_seed(72);
    let words = [
        "",
        "-1",
        "0",
        "1",
        "2",
        "18446744073709551616",
        "-9223372036854775808",
        "0-8191",
        "7-3",
        "0x",
        "0x030200",
        "0x10de",
        "0x2330",
        "\u{0}\u{1}",
        "<a b=\"c\">",
        "NaN GT/s",
        "inf",
        "1e999 GT/s",
        "4294967295",
        "10 10 10 10",
        "type 11\nnode_to 1\nmax_bandwidth 9\nmin_bandwidth 0\n",
        "gfx_target_version 4294967295\nlocation_id 0\n",
        "location_id 18446744073709551615\ngfx_target_version 90402\nsimd_per_cu 0\nsimd_count 1\n",
    ];
    let (mut taken, mut refused) = (0, 0);
    for files in machines() {
        let mut all = Vec::new();
        files_of(files.path(), &mut all);
        for _ in 0..12 {
            let mut undo = Vec::new();
            for _ in 0..random.usize(1..6) {
                let path = &all[random.usize(0..all.len())];
                let link = fs::read_link(path).ok();
                let text = fs::read(path).ok();
                if fs::remove_file(path).is_err() {
                    continue;
                }
                undo.push((path.clone(), link.clone(), text.clone()));
                let other = &all[random.usize(0..all.len())];
                match (random.u32(0..6), link) {
                    (0, _) => {}
                    (1, _) => fs::create_dir(path).unwrap(),
                    (2, _) => symlink(path, path).unwrap(),
                    (3, Some(_)) => symlink(other.parent().unwrap(), path).unwrap(),
                    (4, _) => fs::write(path, [0xff, 0xfe, 0]).unwrap(),
                    _ => fs::write(path, words[random.usize(0..words.len())]).unwrap(),
                }
            }
            match read(&files, NONE) {
                Ok(system) => {
                    taken += 1;
                    if let Ok(written) = nccl::write_system(&system) {
                        let again = nccl::read("here", written.as_bytes(), None);
                        assert_eq!(again.map(|again| again.topology), Ok(system.topology));
                    }
                }
                Err(problem) => {
                    refused += 1;
                    assert!(!problem.title.is_empty());
                }
            }
            for (path, link, text) in undo.into_iter().rev() {
                if path.is_dir() && !path.is_symlink() {
                    fs::remove_dir(&path).unwrap();
                } else {
                    _ = fs::remove_file(&path);
                }
                match (link, text) {
                    (Some(to), _) => symlink(to, &path).unwrap(),
                    (None, Some(text)) => fs::write(&path, text).unwrap(),
                    (None, None) => {}
                }
            }
        }
    }
    assert!(taken > 20 && refused > 0, "{taken} taken, {refused} refused");
}

#[test]
fn files_that_are_none() {
    let files = Files::new();
    files.cores([2, 1, 1], 1, &["10"]);
    let root = files.root();
    let online = "sys/devices/system/cpu/online";
    let at = files.path().join(online);
    // Too long, a pipe, a loop, a link that leaves the tree: the processors are then found by their folders.
    files.write(online, vec![b'0'; 1 << 17]);
    assert_eq!(root.text(online), None);
    fs::remove_file(&at).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&at).status().unwrap();
    assert!(made.success());
    assert_eq!(root.text(online), None);
    for to in [at.as_path(), Path::new("/etc/hostname"), Path::new("/dev/zero")] {
        fs::remove_file(&at).unwrap();
        symlink(to, &at).unwrap();
        assert_eq!((root.text(online), root.real(online)), (None, None), "{to:?}");
    }
    assert_eq!(read(&files, NONE).unwrap().topology.nranks(), 2);
    assert!(Root::new(files.path().join("sys/no")).is_err() && Root::new("/etc/hostname").is_err());
    // Nothing at all.
    let problem = read(&Files::new(), NONE).unwrap_err();
    assert!(problem.title.contains("no GPU and no core"), "{problem:?}");
}

/// The largest host that there may be, and more.
#[test]
fn machines_beyond_the_limits() {
    let files = Files::new();
    files.line("sys/devices/system/cpu/online", "0-2047");
    let problem = read(&files, NONE).unwrap_err();
    assert!(problem.title.contains("2048 cores; a system has at most 1024"), "{problem:?}");
}
