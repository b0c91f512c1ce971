//! The memory that is available without swapping: the system's, or less where a control group or a limit of addresses
//! (`ulimit -v`) bounds this process.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Returns the bytes that are available now; `None` where the system does not say.
pub(super) fn available() -> Option<u64> {
    System { root: Path::new("/") }.available()
}

/// The root folder of the files that say it.
struct System<'a> {
    root: &'a Path,
}

/// The files of a group, for either version of control groups.
struct Files {
    mount: &'static str,
    limit: &'static str,
    used: &'static str,
    /// The line of `memory.stat` with the used bytes that are cached files, which the system can drop.
    cached: &'static str,
}

const VERSION_2: Files = Files {
    mount: "sys/fs/cgroup",
    limit: "memory.max",
    used: "memory.current",
    cached: "inactive_file ",
};

const VERSION_1: Files = Files {
    mount: "sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cached: "total_inactive_file ",
};

impl System<'_> {
    fn available(&self) -> Option<u64> {
        [self.free(), self.granted(), self.addresses()].into_iter().flatten().min()
    }

    /// Returns the addresses that are left to this process; `None` where they are not limited.
    fn addresses(&self) -> Option<u64> {
        let of = |file: &str, name: &str| {
            let text = read_to_string(self.root.join("proc/self").join(file)).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        let limit = of("limits", "Max address space")?;
        Some(limit.saturating_sub(of("status", "VmSize:")?.saturating_mul(1024)))
    }

    /// Returns the available bytes of the whole machine.
    fn free(&self) -> Option<u64> {
        let text = read_to_string(self.root.join("proc/meminfo")).ok()?;
        let kib = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        Some(kib.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.saturating_mul(1024))
    }

    /// Returns the least that is left to any of the groups that this process is in.
    fn granted(&self) -> Option<u64> {
        let text = read_to_string(self.root.join("proc/self/cgroup")).ok()?;
        let groups = text.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let files = match controllers {
                "" => &VERSION_2,
                _ if controllers.split(',').any(|name| name == "memory") => &VERSION_1,
                _ => return None,
            };
            Some((files, path.trim_start_matches('/')))
        });
        groups.filter_map(|(files, path)| self.left(files, Path::new(path))).min()
    }

    /// Returns the bytes that are left to a group and its ancestors. In a container the group of the mount is its own.
    fn left(&self, files: &Files, group: &Path) -> Option<u64> {
        let mount = self.root.join(files.mount);
        group.ancestors().filter_map(|group| files.left(&mount.join(group))).min()
    }
}

impl Files {
    /// Returns the bytes that are left to one group, if it has a limit.
    fn left(&self, group: &Path) -> Option<u64> {
        let number = |name: &str| -> Option<u64> {
            read_to_string(PathBuf::from(group).join(name)).ok()?.trim().parse().ok()
        };
        // A group without a limit has the word `max`, or a number beyond any memory.
        let limit = number(self.limit)?;
        let stat = read_to_string(group.join("memory.stat")).unwrap_or_default();
        let cached = stat.lines().find_map(|line| line.strip_prefix(self.cached)?.parse().ok());
        let used = number(self.used)?.saturating_sub(cached.unwrap_or(0));
        Some(limit.saturating_sub(used))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};

    use super::*;

    /// Returns the available bytes by these files.
    fn with(files: &[(&str, &str)]) -> Option<u64> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            create_dir_all(path.parent().unwrap()).unwrap();
            write(path, text).unwrap();
        }
        System { root: folder.path() }.available()
    }

    const MACHINE: (&str, &str) =
        ("proc/meminfo", "MemTotal:  2000 kB\nMemAvailable:     1000 kB\n");

    #[test]
    fn a_system_that_says_nothing_has_no_bound() {
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[MACHINE]), Some(1_024_000));
    }

    #[test]
    fn a_limit_of_addresses_counts() {
        let limits = |most: &str| {
            format!(
                "Limit  Soft Limit  Hard Limit  Units\nMax address space         {most} unlimited bytes\n"
            )
        };
        let with_limit = |most: &str| {
            let status = ("proc/self/status", "Name:\tx\nVmSize:\t    100 kB\n");
            with(&[MACHINE, ("proc/self/limits", &limits(most)), status])
        };
        assert_eq!(with_limit("unlimited"), Some(1_024_000));
        assert_eq!(with_limit("512000"), Some(409_600));
        assert_eq!(with_limit("2000"), Some(0));
    }

    #[test]
    fn the_tightest_group_above_a_process_counts() {
        let group = ("proc/self/cgroup", "0::/a/b\n");
        let limited = [
            MACHINE,
            group,
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/memory.current", "70000\n"),
            ("sys/fs/cgroup/a/memory.max", "100000\n"),
            ("sys/fs/cgroup/a/memory.current", "90000\n"),
        ];
        assert_eq!(with(&limited), Some(10_000));
        // Cached files give way.
        let cached = ("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 30000\n");
        assert_eq!(with(&[&limited[..], &[cached]].concat()), Some(40_000));
        // A group that has taken more than its limit leaves no bytes.
        let over = ("sys/fs/cgroup/a/memory.current", "100001\n");
        assert_eq!(with(&[&limited[..5], &[over]].concat()), Some(0));
        // A group with more than the machine does not count.
        let wide = ("sys/fs/cgroup/a/memory.max", "9000000\n");
        assert_eq!(with(&[&limited[..4], &[wide, limited[5]]].concat()), Some(1_024_000));
    }

    #[test]
    fn groups_of_the_first_version_count_too() {
        let unlimited = "9223372036854771712\n";
        let files = [
            MACHINE,
            ("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/job\n0::/\n"),
            ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "500000\n"),
            ("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "200000\n"),
            (
                "sys/fs/cgroup/memory/job/memory.stat",
                "inactive_file 1\ntotal_inactive_file 50000\n",
            ),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", unlimited),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "200000\n"),
        ];
        assert_eq!(with(&files), Some(350_000));
        // A container sees its own group as the group of the mount, and its path does not exist.
        let inside = [
            MACHINE,
            ("proc/self/cgroup", "4:memory:/docker/0123\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "600000\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "200000\n"),
        ];
        assert_eq!(with(&inside), Some(400_000));
    }
}
