//! The processors that threads stay on: a helper or a rank on a core, a rank's process near its share of the cores or
//! near its GPU. A thread never leaves the processors that it may use already: a launcher or a user chose
//! them.

use std::sync::OnceLock;

use roundelay_topology::host::{Cores, Root, numbers};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The variable that switches this off.
pub const AFFINITY: &str = "ROUNDELAY_AFFINITY";

/// Keeps the calling thread on one core: number `core` of the cores that it may use, counted from 0 and around, one
/// thread of each core first.
///
/// The threads of ranks that call by themselves do this at their beginning, with their rank, as `mpirun` does with
/// its processes: otherwise two of them may share a core for a while and wait for each other. On Linux only; where
/// the system refuses, or with `ROUNDELAY_AFFINITY=off`, the thread stays where the system puts it.
/// [`stay_in_place`] knows the number of ranks too, and spreads them.
pub fn stay_on_core(core: u32) {
    Affinity::default().go(Some(core));
}

/// Keeps the calling thread on the core of rank `rank` of the `nranks` ranks of this host: on one of the cores that the
/// thread may use. The ranks spread over the caches and memory nodes of these, and neighbors stay near each other; with
/// more ranks than cores, they take the cores' second threads, and then go around. On Linux only; where the system
/// refuses, or with `ROUNDELAY_AFFINITY=off`, the thread stays where the system puts it.
///
/// ```
/// std::thread::spawn(|| roundelay_kernels::stay_in_place(1, 4)).join().unwrap();
/// ```
pub fn stay_in_place(rank: u32, nranks: u32) {
    if let Some(cpu) = allowed().and_then(|allowed| cores(&allowed).place(rank, nranks)) {
        stay_on(&[cpu]);
    }
}

/// Keeps the calling thread, and the threads and processes that it starts from then on, on the share of rank `rank` of
/// the `nranks` ranks of this host: whole cores that are next to each other. The ranks share out the cores that the
/// thread may use. On Linux only; with more ranks than cores, which the system shares out better, where the system
/// refuses, or with `ROUNDELAY_AFFINITY=off`, nothing changes.
pub fn stay_in_share(rank: u32, nranks: u32) {
    stay_on(&share(rank, nranks));
}

/// Returns the processors that [`stay_in_share`] keeps a rank on; none where it changes nothing.
pub fn share(rank: u32, nranks: u32) -> Vec<u32> {
    let cores = allowed().map(|allowed| cores(&allowed));
    let cores = cores.filter(|cores| nranks as usize <= cores.cores().len());
    cores.map_or_else(Vec::new, |cores| cores.share(rank, nranks))
}

/// Keeps the calling thread, and the threads that it starts from then on, on the processors of the memory node of a PCI
/// device that it may use. Where there are none, or no file tells them, nothing changes.
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "only GPUs are devices"))]
pub(crate) fn stay_near(busid: &str) {
    if let (Some(allowed), Ok(root)) = (allowed(), Root::new("/")) {
        stay_on(&near(&root, busid, &allowed));
    }
}

/// Returns the allowed processors of the memory node of a PCI device.
fn near(root: &Root, busid: &str, allowed: &[u32]) -> Vec<u32> {
    let file = format!("sys/bus/pci/devices/{}/local_cpulist", busid.to_lowercase());
    let mut local = root.text(&file).and_then(|list| numbers(&list)).unwrap_or_default();
    local.retain(|cpu| allowed.binary_search(cpu).is_ok());
    local
}

/// Returns the processors that the calling thread may use, in order; `None` where the system does not tell them, and
/// where affinity is off.
fn allowed() -> Option<Vec<u32>> {
    if std::env::var_os(AFFINITY).is_some_and(|value| value == "off") {
        return None;
    }
    let set = sched_getaffinity(None).ok()?;
    Some((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect())
}

/// Returns the allowed cores of this host.
fn cores(allowed: &[u32]) -> Cores {
    static CORES: OnceLock<Cores> = OnceLock::new();
    let read = || Root::new("/").map_or_else(|_| Cores::default(), |root| Cores::read(&root));
    CORES.get_or_init(read).clone().restrict(allowed)
}

/// Keeps the calling thread on processors, unless there are none.
fn stay_on(cpus: &[u32]) {
    let mut wanted = CpuSet::new();
    for cpu in cpus.iter().filter(|cpu| (**cpu as usize) < CpuSet::MAX_CPU) {
        wanted.set(*cpu as usize);
    }
    if wanted.count() > 0 {
        // Where the system refuses, the thread stays where it is: that is slower at worst.
        _ = sched_setaffinity(None, &wanted);
    }
}

/// The core of the calling thread.
#[derive(Default)]
pub(super) struct Affinity {
    core: Option<u32>,
    /// The processors that the thread had before it was kept on one core.
    all: Option<Vec<u32>>,
}

impl Affinity {
    /// Moves the thread to the `core`-th core that it may use, or back to all of its cores.
    pub(super) fn go(&mut self, core: Option<u32>) {
        if self.core == core {
            return;
        }
        self.core = core;
        if self.all.is_none() {
            self.all = allowed();
        }
        let Some(all) = &self.all else { return };
        match core {
            None => stay_on(all),
            Some(core) => {
                let cores = cores(all);
                let nranks = (cores.cores().len() as u32).max(1);
                let threads = cores.cores().get((core % nranks) as usize);
                let cpu = threads.map(|at| at.cpus[(core / nranks) as usize % at.cpus.len()]);
                stay_on(cpu.as_slice());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    #[test]
    fn there_and_back() {
        let before = sched_getaffinity(None).expect("this thread's cores");
        let mut affinity = Affinity::default();
        affinity.go(Some(1));
        assert_eq!(sched_getaffinity(None).expect("one core").count(), 1);
        affinity.go(None);
        assert_eq!(sched_getaffinity(None).expect("all cores"), before);
    }

    /// Ranks share out what the thread may use, and never more: also a thread that has a single processor.
    #[test]
    fn ranks_stay_inside_of_what_they_may_use() {
        let before: BTreeSet<_> = allowed().expect("this thread's cores").into_iter().collect();
        let count = cores(&Vec::from_iter(before.clone())).cores().len() as u32;
        for nranks in 1..=count {
            let shares: BTreeSet<_> = (0..nranks).flat_map(|rank| share(rank, nranks)).collect();
            assert_eq!(shares, before, "{nranks}");
        }
        assert_eq!(share(0, count + 1), []);
        let narrow = move |act: fn()| {
            let thread = std::thread::spawn(move || {
                act();
                allowed().expect("the thread's cores")
            });
            thread.join().expect("it ends")
        };
        let one = narrow(|| stay_in_place(1, 2));
        assert_eq!(one.len(), 1);
        let last = *before.last().expect("a core");
        assert!(before.len() < 2 || one == [last], "{one:?} of {before:?}");
        let again = narrow(|| {
            stay_in_place(1, 2);
            stay_in_share(0, 2);
            stay_on_core(5);
        });
        assert_eq!(again, one);
        assert_eq!(narrow(|| stay_on(&[])), Vec::from_iter(before));
    }

    #[test]
    fn a_device_has_the_processors_of_its_node() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Root::new(folder.path()).expect("it is there");
        let device = folder.path().join("sys/bus/pci/devices/0000:1b:00.0");
        fs::create_dir_all(&device).expect("a device");
        fs::write(device.join("local_cpulist"), "2-5,64\n").expect("its processors");
        assert_eq!(near(&root, "0000:1B:00.0", &[0, 3, 4, 64]), [3, 4, 64]);
        // Another node is all that the process may use, or no file tells it: nothing changes.
        assert_eq!(near(&root, "0000:1b:00.0", &[0, 1]), []);
        assert_eq!(near(&root, "0000:1c:00.0", &[0, 1]), []);
    }
}
