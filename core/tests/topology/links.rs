//! Lists of links.

use roundelay_machines::links::read;

fn shown(text: &str) -> String {
    match read("test", text) {
        Ok(topology) => {
            let link = |l: &roundelay_topology::Link| {
                format!("{}>{} {} {}", l.from.0, l.to.0, l.capacity, l.latency)
            };
            topology.links().iter().map(link).collect::<Vec<_>>().join(", ")
        }
        Err(problem) => format!("{} {}", problem.code, problem.title),
    }
}

#[test]
fn links_of_both_kinds() {
    let text =
        "# a pair\nranks 2\nswitch net\n0 -- net 12.5GB/s 0.7us\nnet -> 1 1MB/s\n1 -> 0 3GB/s\n";
    assert_eq!(
        shown(text),
        "0>2 12500000000 700, 1>0 3000000000 0, 2>0 12500000000 700, 2>1 1000000 0"
    );
    assert_eq!(shown("ranks 2\n0 -- 1 1.5\n0 -> 1 0.5"), "0>1 2 0, 1>0 3/2 0");
    let relative = read("test", "ranks 2\n0 -- 1 1").expect("a pair");
    assert!(relative.is_relative());
}

#[test]
fn wrong_lists() {
    for (text, told) in [
        ("", "E0601 line 1: a list of links begins with the number of ranks"),
        ("0 -- 1 5", "E0601 line 1: a list of links begins with the number of ranks"),
        ("ranks many", "E0601 line 1: `ranks` takes a whole number"),
        ("ranks 0", "E0601 line 1: a topology of 0 ranks; it takes 1..=65536"),
        ("ranks 2\n0 - 1 5", "E0601 line 2: this is no link"),
        ("ranks 2\n0 -- 2 5", "E0602 line 2: there is no rank or switch `2`"),
        ("ranks 2\n0 -- 0 5", "E0602 line 2: rank 0 is linked to itself"),
        (
            "ranks 2\n0 -- 1 5\n1 -> 0 5GB/s",
            "E0601 line 3: `5GB/s` is no bandwidth: a multiple of B, as above",
        ),
        ("ranks 2\n0 -- 1 5GB", "E0601 line 2: `5GB` is no bandwidth: such as 12.5GB/s"),
        ("ranks 2\n0 -- 1 0GB/s", "E0601 line 2: link rank 0 -> rank 1 carries 0 bytes/s"),
        (
            "ranks 2\n0 -- 1 5GB/s 0.5ns",
            "E0601 line 2: a latency is a whole number of ns, such as 0.7us",
        ),
        ("ranks 2\nswitch 1", "E0601 line 2: there are two nodes `1`"),
        ("ranks 3\n0 -- 1 5", "E0603 the topology falls into 2 parts that cannot reach each other"),
    ] {
        assert_eq!(shown(text), told, "{text}");
    }
}
