//! Machines without GPUs: cores, caches, memory nodes and their distances as ranks, links and islands.

use std::collections::BTreeSet;

use roundelay_machines::nccl;
use roundelay_topology::host::{Cores, numbers};
use roundelay_topology::paths::PathType;
use roundelay_topology::{LinkKind, NodeId, NodeKind, paths};

use super::files::Files;
use super::{NONE, read};

/// Two sockets of four caches of eight cores of two threads.
fn two_sockets() -> Files {
    let files = Files::new();
    files.cores([8, 4, 2], 2, &["10 32", "32 10"]);
    files.write("proc/cpuinfo", "vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 1\n");
    files
}

#[test]
fn a_machine_of_two_sockets() {
    let files = two_sockets();
    let system = read(&files, NONE).unwrap();
    let topology = &system.topology;
    assert_eq!((topology.nranks(), topology.islands().len()), (64, 8));
    assert_eq!(topology.gpus(), None);
    let caches = topology.nodes().iter().filter(|node| node.kind == NodeKind::Cache);
    assert_eq!(caches.count(), 8);
    let ways = paths::paths_from(topology, NodeId(0));
    let kinds = [1, 8, 32].map(|to: usize| ways[to].kind);
    assert_eq!(kinds, [PathType::Pix, PathType::Phb, PathType::Sys]);
    // NCCL's 24 GB/s, at a distance of 32 and not of 20.
    let between = topology.links().iter().find(|link| link.kind == LinkKind::Sys).unwrap();
    assert_eq!(between.capacity.floor(), 24_000_000_000 * 20 / 32);
    assert_eq!(
        system.sources[0][1],
        "64 cores (a rank each), 128 threads, 8 L3 caches, 2 memory nodes, 2 sockets"
    );
    let written = nccl::write_system(&system).unwrap();
    let again = nccl::read("here", written.as_bytes(), None).unwrap();
    assert_eq!(again.topology.links(), topology.links());
    assert_eq!(again.topology.islands(), topology.islands());
}

/// A level whose groups are single cores is none, nor is one whose groups are those of the level below.
#[test]
fn levels_that_say_nothing() {
    for (shape, nodes, islands) in [
        ([1, 2, 1], 3, 1),
        ([1, 4, 2], 10, 2),
        ([4, 1, 2], 10, 2),
        ([1, 1, 4], 8, 1),
        ([2, 2, 2], 14, 4),
    ] {
        let files = Files::new();
        files.cores(shape, 1, &[]);
        let topology = read(&files, NONE).unwrap().topology;
        assert_eq!(topology.islands().len(), islands, "{shape:?}");
        assert_eq!(topology.nodes().len(), nodes, "{shape:?}");
    }
}

#[test]
fn only_the_cores_that_the_process_may_use() {
    let files = two_sockets();
    files.write("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-3,32-35,66\n");
    let system = read(&files, NONE).unwrap();
    assert_eq!((system.topology.nranks(), system.topology.islands().len()), (8, 2));
    assert!(system.notes[0].contains("8 of the 64 cores"), "{:?}", system.notes);
    // A part of a machine that a container hides says less, and is read all the same.
    let files = Files::new();
    files.line("sys/devices/system/cpu/cpu0/online", "1");
    files.line("sys/devices/system/cpu/cpu5/online", "1");
    files.line("sys/devices/system/cpu/cpufreq/boost", "1");
    assert_eq!(read(&files, NONE).unwrap().topology.nranks(), 2);
}

/// The parts of all ranks cover the cores, apart while there are enough, of equal sizes, and stay inside of the mask.
#[test]
fn shares_and_places() {
    let all = Cores::read(&two_sockets().root());
    assert_eq!(all.share(1, 16), numbers("4-7,68-71").unwrap());
    assert_eq!((all.place(0, 2), all.place(1, 2)), (Some(0), Some(32)));
    // More ranks than cores: the second threads, and then around.
    assert_eq!([0, 1, 2, 127].map(|rank| all.place(rank, 128).unwrap()), [0, 64, 1, 127]);
    let mask = numbers("1,3,5-9,40,64-127").unwrap();
    let some = all.clone().restrict(&mask);
    for cores in [&all, &some, &Cores::default()] {
        let allowed: BTreeSet<_> =
            cores.cores().iter().flat_map(|core| core.cpus.clone()).collect();
        let threads = allowed.len() as u32;
        for nranks in 1..=140 {
            let shares: Vec<_> = (0..nranks).map(|rank| cores.share(rank, nranks)).collect();
            let union: BTreeSet<_> = shares.iter().flatten().copied().collect();
            assert_eq!(union, allowed, "{nranks}");
            let places: BTreeSet<_> = (0..nranks).filter_map(|r| cores.place(r, nranks)).collect();
            if threads == 128 {
                assert_eq!(places.len() as u32, nranks.min(threads), "{nranks}");
            }
            for (rank, share) in shares.iter().enumerate() {
                let place = cores.place(rank as u32, nranks);
                assert!(place.is_none_or(|cpu| share.contains(&cpu)), "{rank} of {nranks}");
            }
            let cores = cores.cores().len() as u32;
            if nranks <= cores {
                let sum: usize = shares.iter().map(Vec::len).sum();
                assert_eq!(sum, allowed.len(), "{nranks}");
            }
        }
    }
}

/// The file of the guide is what `--here --format xml` prints on such a server.
#[test]
fn the_server_of_the_guide() {
    let files = Files::new();
    files.cores([2, 2, 2], 2, &["10 32", "32 10"]);
    files.write("proc/cpuinfo", "vendor_id : AuthenticAMD\ncpu family : 26\nmodel : 2\n");
    files.line("sys/devices/system/node/node0/cpumap", "0f0f");
    files.line("sys/devices/system/node/node1/cpumap", "f0f0");
    files.line("proc/sys/kernel/hostname", "server");
    files.line("proc/sys/kernel/random/boot_id", "c2c3dd66-f8c5-4c15-91db-750d41000000");
    let port = "sys/devices/pci0000:80/0000:80:01.0";
    let card = [
        ("class", "0x020000"),
        ("numa_node", "1"),
        ("max_link_speed", "16.0 GT/s PCIe"),
        ("max_link_width", "16"),
    ];
    let card = files.pci(port, "0000:81:00.0", &card);
    files.interface("eth0", "100000", Some(&card));
    let written = nccl::write_system(&read(&files, NONE).unwrap()).unwrap();
    expect_test::expect_file!["../../../book/src/listings/topology/server.xml"].assert_eq(&written);
}
