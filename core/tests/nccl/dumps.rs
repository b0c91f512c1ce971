//! Files as machines write them: several hosts, ranks of a whole job, GPUs in parts, GPUs that only their class tells.

use roundelay_machines::nccl::{self, Assumption};
use roundelay_topology::nccl::System;
use roundelay_topology::{LinkKind, NodeKind};

use crate::nccl::{capacity, says, text};

/// Returns a GPU of a host: its bus id, and the content of its element.
fn gpu(busid: &str, attributes: &str, links: &str) -> String {
    format!(
        r#"<pci busid="{busid}" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
<gpu {attributes} sm="103" gdr="1">{links}</gpu></pci>"#
    )
}

const LINKS: &str = r#"<nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/>"#;
const C2C: &str = r#"<c2c bw="44712" count="5"/>"#;

fn cpu(host: &str, numaid: u32, devices: &str) -> String {
    format!(r#"<cpu {host} numaid="{numaid}" arch="arm64">{devices}</cpu>"#)
}

fn system(cpus: &str) -> String {
    format!("<system version=\"1\">{cpus}</system>")
}

/// Returns a host for each hash, with equal bus ids, of two CPUs with one GPU each.
fn hosts(hashes: &[&str]) -> String {
    let mut xml = String::new();
    for (host, hash) in hashes.iter().enumerate() {
        for cpu_of_host in 0..2 {
            let rank = format!("dev=\"{cpu_of_host}\" rank=\"{}\"", 2 * host + cpu_of_host);
            let device = gpu(&format!("00{cpu_of_host}8:06:00.0"), &rank, &[LINKS, C2C].concat());
            let card = format!(
                r#"<pci busid="00{cpu_of_host}0:03:00.0" class="0x020700"><nic>
<net name="mlx5_{cpu_of_host}" dev="{cpu_of_host}" speed="800000" guid="0x{host}"/></nic></pci>"#
            );
            xml += &cpu(hash, cpu_of_host as u32, &(device + &card));
        }
    }
    system(&xml)
}

/// Reads a file, writes it and reads it again: both systems must be equal.
fn sound(xml: &str, assume: Option<&str>) -> System {
    let assume = assume.map(|text| Assumption::parse(text).unwrap());
    let system =
        nccl::read("test.xml", xml.as_bytes(), assume).unwrap_or_else(|p| panic!("{p:#?}"));
    let again =
        nccl::read("test.xml", nccl::write_system(&system).unwrap().as_bytes(), None).unwrap();
    assert_eq!(again.topology, system.topology);
    assert_eq!((again.sm, again.nvswitch), (system.sm, system.nvswitch));
    system
}

#[test]
fn a_bus_id_is_of_one_host() {
    let xml = hosts(&["host_hash=\"0x1\"", "host_hash=\"0x2\"", "host_hash=\"0x3\""]);
    let topology = sound(&xml, None).topology;
    assert_eq!(topology.nranks(), 6);
    assert_eq!(says(&topology, "0", "5"), "NVL 721.8GB/s");
    let switches = topology.nodes().iter().filter(|node| node.kind == NodeKind::NvSwitch);
    assert_eq!(switches.count(), 1);
    // The CPUs of a host reach each other, and no others; names tell the hosts apart.
    assert_eq!(
        capacity(&topology, "CPU 0 of host 1", "CPU 1 of host 1", LinkKind::Sys).unwrap(),
        "6GB/s"
    );
    assert_eq!(capacity(&topology, "CPU 0 of host 0", "CPU 1 of host 1", LinkKind::Sys), None);
    assert_eq!(says(&topology, "2", "CPU 0 of host 1"), "C2C 223.56GB/s");
}

/// A network to which each port says `coll` reduces, as NCCL's `CollNet` has it.
#[test]
fn a_network_may_reduce() {
    let apart = hosts(&["host_hash=\"0x1\"", "host_hash=\"0x2\""]).replace(LINKS, "");
    let reducing = apart.replace("<net ", "<net coll=\"1\" ");
    let found = |xml: &str| {
        let system = sound(xml, None);
        let ranks: Vec<_> = system.topology.ranks().collect();
        let switch = system.topology.reducing_switch(&ranks);
        switch.map(|node| (system.topology.nodes()[node.index()].name.clone(), system.assumptions))
    };
    let (name, notes) = found(&reducing).expect("the network reduces");
    assert_eq!(name, "network");
    assert!(notes.iter().any(|note| note.contains("It reduces")), "{notes:?}");
    for other in [apart.clone(), reducing.replacen("coll=\"1\"", "coll=\"0\"", 1)] {
        assert!(found(&other).is_none());
    }
}

/// The hash of a host is a number, and a host may have none.
#[test]
fn hosts_are_told_apart_by_number() {
    assert_eq!(sound(&hosts(&["", "host_hash=\"0x2\""]), None).topology.nranks(), 4);
    for (one, other) in [("0xaB", "0x00Ab"), ("", "0x0"), ("0x1", "1")] {
        let hash = |hash: &str| match hash {
            "" => String::new(),
            hash => format!("host_hash=\"{hash}\""),
        };
        let problem = text(&hosts(&[&hash(one), &hash(other)])).unwrap_err();
        assert_eq!(problem.title, "two CPUs of numaid 0", "{one} and {other}");
    }
    let one = cpu("host_hash=\"0x1\"", 0, &gpu("0:01:00.0", "rank=\"0\"", LINKS));
    let two = cpu("host_hash=\"0x1\"", 1, &gpu("00000000:01:00.0", "rank=\"1\"", LINKS));
    let problem = text(&system(&(one + &two))).unwrap_err();
    assert_eq!(problem.title, "two PCI devices have the busid 00000000:01:00.0");
}

/// A link between two GPUs names a GPU on their host; letters of bus ids are large or small.
#[test]
fn targets_are_on_the_same_host() {
    let pair = |host: u32| {
        let link =
            |to: &str| format!(r#"<nvlink target="{to}" count="2" tclass="0x030200"/>{LINKS}"#);
        let rank = |gpu: u32| format!("rank=\"{}\"", 2 * host + gpu);
        let devices = gpu("0000:aB:00.0", &rank(0), &link("0000:AC:00.0"))
            + &gpu("0000:Ac:00.0", &rank(1), &link("0:ab:00.0"));
        cpu(&format!("host_hash=\"0x{}\"", host + 1), 0, &devices)
    };
    let topology = sound(&system(&(pair(0) + &pair(1))), None).topology;
    for (a, b) in [("0", "1"), ("1", "0"), ("2", "3"), ("3", "2")] {
        assert_eq!(capacity(&topology, a, b, LinkKind::NvLink).unwrap(), "80.2GB/s");
    }
    assert_eq!(capacity(&topology, "0", "3", LinkKind::NvLink), None);
}

/// Without ranks, device numbers count within a host, which may have more GPUs than another.
#[test]
fn device_numbers_repeat_on_every_host() {
    let one = gpu("1", "dev=\"1\"", LINKS) + &gpu("2", "dev=\"0\"", LINKS);
    let xml = system(
        &(cpu("host_hash=\"0x1\"", 0, &one)
            + &cpu("host_hash=\"0x2\"", 0, &gpu("1", "dev=\"0\"", LINKS))),
    );
    let topology = sound(&xml, None).topology;
    let ranks = topology.nodes().iter().take(3).map(|node| node.group);
    assert_eq!(ranks.collect::<Vec<_>>(), [Some(0), Some(0), Some(1)]);
    let twice = xml.replacen("dev=\"1\"", "dev=\"0\"", 1);
    assert_eq!(text(&twice).unwrap_err().title, "two GPUs have dev 0");
}

/// The second machine of a job: ranks 12, 9 and 11, the first of them in the file the last.
#[test]
fn ranks_of_a_whole_job() {
    let devices = gpu("a", "rank=\"12\"", &[LINKS, C2C].concat())
        + &gpu("b", "rank=\"9\"", LINKS)
        + &gpu("c", "rank=\"11\"", LINKS);
    let topology = sound(&system(&cpu("", 0, &devices)), None).topology;
    assert_eq!(topology.nranks(), 3);
    let c2c = |rank: &str| capacity(&topology, rank, "CPU 0", LinkKind::C2c).is_some();
    assert_eq!(["0", "1", "2"].map(c2c), [false, false, true]);
}

/// A device in parts: each has its part of the `NVLinks`, and they share the rest.
#[test]
fn several_gpus_in_one_device() {
    let part = |rank: u32, part: u32| {
        format!(
            r#"<gpu dev="{}" sm="107" mlopart="{part}" rank="{rank}">
<nvlink target="fffffff:ff:ff.0" count="36" tclass="0x068000"/><c2c bw="56376" count="7"/></gpu>"#,
            rank / 2
        )
    };
    let device = |id: u32| {
        let parts = part(2 * id, 0) + &part(2 * id + 1, 1);
        format!(
            r#"<pci busid="000{id}:81:00.0" class="0x030200" link_speed="64.0 GT/s PCIe" link_width="2">{parts}</pci>"#
        )
    };
    let xml = system(&cpu("host_hash=\"0x1\"", 0, &(device(0) + &device(1))));
    let topology = sound(&xml, None).topology;
    assert_eq!(topology.nranks(), 4);
    for rank in ["0", "1", "2", "3"] {
        let up = capacity(&topology, rank, "NVSwitch", LinkKind::NvLink);
        assert_eq!(up.unwrap(), "721.8GB/s");
        assert_eq!(says(&topology, rank, "CPU 0"), "C2C 394.632GB/s");
    }
    assert_eq!(says(&topology, "0", "1"), "NVL 5TB/s");
    assert_eq!(says(&topology, "1", "2"), "NVL 721.8GB/s");
    // One link to the CPU for both.
    let to_cpu = topology.links().iter().filter(|link| {
        link.kind == LinkKind::C2c && topology.nodes()[link.to.index()].kind == NodeKind::Cpu
    });
    assert_eq!(to_cpu.count(), 2);
    let unnumbered = xml.replace(" rank=", " other=");
    assert_eq!(text(&unnumbered).unwrap().topology.links(), topology.links());
}

fn accelerators(vendor: &str) -> String {
    let display = r#"<pci busid="ee" class="0x030000" vendor="0x1a03"/>"#;
    let device = |i: u32| {
        format!(
            r#"<pci busid="a{i}" class="0x060400"><pci busid="b{i}" class="0x120000" {vendor}/>
<pci busid="c{i}" class="0x020000"/></pci>"#
        )
    };
    let half = |range: std::ops::Range<u32>| range.map(device).collect::<String>();
    let cpus = cpu("", 0, &(half(0..2) + display)) + &cpu("", 1, &half(2..4));
    system(&cpus)
}

/// Processing accelerators count as GPUs; a display controller beside them does not.
#[test]
fn accelerators_are_gpus() {
    for vendor in ["", "vendor=\"0x1002\""] {
        let topology = sound(&accelerators(vendor), Some("gfx942,xgmi=1")).topology;
        assert_eq!(topology.nranks(), 4);
        for (a, b) in (0..4).flat_map(|a| (0..4).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            let link = capacity(&topology, &a.to_string(), &b.to_string(), LinkKind::NvLink);
            assert_eq!(link.unwrap(), "48GB/s");
        }
    }
    let two = sound(&accelerators(""), Some("gfx90a, xgmi=2")).topology;
    assert_eq!(capacity(&two, "0", "3", LinkKind::NvLink).unwrap(), "72GB/s");
    let none = sound(&accelerators(""), Some("gfx942")).topology;
    assert_eq!(says(&none, "0", "3"), "SYS 6GB/s");
}

fn partial(gpus: u32) -> String {
    let device = |i: u32| format!(r#"<pci busid="000{i}:00:00.0" class="0x030200"/>"#);
    system(&cpu("", 0, &(0..gpus).map(device).collect::<String>()))
}

/// Eight V100 have six `NVLinks` each, P100 four.
#[test]
fn a_cube_of_eight() {
    for (assume, each, total) in [("sm=70,cube", 20, 6), ("cube,sm=60", 18, 4)] {
        let topology = sound(&partial(8), Some(assume)).topology;
        let lanes = |a: u32, b: u32| {
            let found = topology
                .links()
                .iter()
                .find(|link| link.kind == LinkKind::NvLink && (link.from.0, link.to.0) == (a, b));
            found.map_or(0, |link| link.capacity.num() / (each * 1_000_000_000))
        };
        for a in 0..8 {
            assert_eq!((0..8).map(|b| lanes(a, b)).sum::<u64>(), total, "{assume}, rank {a}");
            assert!((0..8).all(|b| lanes(a, b) == lanes(b, a)));
            // The four of a half are all joined, and each has a partner in the other half.
            let joined = (0..8).filter(|b| lanes(a, *b) > 0);
            let half = (0..4).map(|b| a / 4 * 4 + b).filter(|b| *b != a);
            let mut expected: Vec<_> = half.chain([(a + 4) % 8]).collect();
            expected.sort_unstable();
            assert_eq!(joined.collect::<Vec<_>>(), expected);
        }
    }
    let assume = Assumption::parse("sm=70,cube").unwrap();
    let problem = nccl::read("six", partial(6).as_bytes(), Some(assume)).unwrap_err();
    assert!(problem.title.contains("8 GPUs") && problem.title.contains('6'), "{problem}");
}

/// Links that a file with GPUs leaves out are added to it.
#[test]
fn links_that_the_file_leaves_out() {
    let bare = hosts(&["host_hash=\"0x1\""]).replace(LINKS, "").replace(C2C, "");
    assert_eq!(says(&text(&bare).unwrap().topology, "0", "1"), "SYS 6GB/s");
    for assume in ["nvlinks=18", "sm=103,nvlinks=18"] {
        let system = sound(&bare, Some(assume));
        assert_eq!(says(&system.topology, "0", "1"), "NVL 721.8GB/s");
        assert_eq!(system.sm, Some(103));
    }
    // A GPU that lists some links is left unchanged.
    let whole = hosts(&["host_hash=\"0x1\""]);
    let system = sound(&whole, Some("nvlinks=4"));
    assert_eq!(says(&system.topology, "0", "1"), "NVL 721.8GB/s");
    // Alone it says too little of GPUs that the file does not name.
    let assume = Assumption::parse("nvlinks=12").unwrap();
    assert!(nccl::read("partial", partial(2).as_bytes(), Some(assume)).is_err());
}

#[test]
fn kept_attributes_and_elements_nobody_knows() {
    let xml = hosts(&["host_hash=\"0x1\""])
        .replace("<gpu ", "<gpu keep=\"1\" ")
        .replace("<net ", "<net keep=\"1\" net=\"1\" ");
    let system = sound(&xml, None);
    assert!(nccl::write_system(&system).unwrap().contains("keep=\"1\""));
}

/// The report's lines about the numbers of ranks, and about GPUs that are unlike the others.
#[test]
fn what_is_said_of_the_machine() {
    let devices = |counts: &[u32]| {
        let device = |(i, count): (usize, &u32)| {
            let links = LINKS.replace("\"18\"", &format!("\"{count}\""));
            gpu(&format!("000{i}:00:00.0"), &format!("rank=\"{}\"", i + 4), &links)
        };
        system(&cpu("", 0, &counts.iter().enumerate().map(device).collect::<String>()))
    };
    let notes = |counts: &[u32]| text(&devices(counts)).unwrap().notes;
    let equal = text(&devices(&[18; 4])).unwrap();
    assert_eq!((equal.ranks, equal.notes), (vec![4, 5, 6, 7], vec![]));
    assert_eq!(notes(&[18, 0, 18]), ["rank 1 (5 of the job) has no NVLink, the 2 others 18"]);
    let two = "ranks 0 (4 of the job), 3 (7 of the job) have 9 NVLinks, the 3 others 18";
    assert_eq!(notes(&[9, 18, 18, 9, 18]), [two]);
    let each =
        "rank 0 (4 of the job) has 1 NVLink, rank 4 (8 of the job) has 17 NVLinks, the 3 others 18";
    assert_eq!(notes(&[1, 18, 18, 18, 17]), [each]);
    assert_eq!(notes(&[0, 1, 0]), ["rank 1 (5 of the job) has 1 NVLink, the 2 others none"]);
    // No count has a majority.
    assert!(notes(&[18, 9]).is_empty() && notes(&[18, 9, 6]).is_empty());
    let of_sm = |sm: u32| {
        let bare = devices(&[0, 0]).replace("sm=\"103\"", &format!("sm=\"{sm}\""));
        text(&bare).unwrap().notes.join("\n")
    };
    for (sm, usual) in [(70, 6), (80, 12), (90, 18), (100, 18), (103, 18)] {
        let expected = format!("`--assume nvlinks={usual}` adds them");
        assert!(of_sm(sm).contains(&expected), "{}", of_sm(sm));
    }
    assert_eq!([of_sm(75), of_sm(86), of_sm(89)], ["", "", ""]);
}
