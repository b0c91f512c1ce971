//! The text form: read, printed, and refused where it makes no sense.

use crate::cases;
use crate::topology::{read, wrong};
use roundelay_core::topology::Topology;

#[test]
fn a_topology_is_called_by_its_text() {
    for text in [
        "full_mesh(8)",
        "full_mesh(8, 25GB/s, 2us) without (0, 1)",
        "full_mesh(4, 12.5GB/s, 1.5us) without (0, 1) without (2, 3)",
        "torus([2, 3, 4], 1TB/s)",
        "spine_leaf(4, 8, 2, 3, 50GB/s, 500ns)",
        "spine_leaf(4, 8, 2, 50GB/s, 500ns, 100GB/s, 1us)",
        "islands(2, 8, 200GB/s, 2us, 25GB/s, 5us)",
        "groups([8, 4], 999kB/s, 1ms)",
        "crossbar(4, 7B/s)",
        "ring(5, 2us)",
    ] {
        assert_eq!(read(text).name(), text);
        assert_eq!(text.parse::<Topology>().as_ref(), Ok(&read(text)));
    }
    let spellings = [
        ("full_mesh( 0x8 ,25_000MB/s,2000ns )", "full_mesh(8, 25GB/s, 2us)"),
        ("crossbar(2 * 4, 400Gb/s)", "crossbar(8, 50GB/s)"),
        ("full_mesh(log2(256))", "full_mesh(8)"),
        ("full_mesh(8 - 1) without (1 + 1, 0)", "full_mesh(7) without (2, 0)"),
        ("ring(4, 0.5kB/s) /* half */ // a comment", "ring(4, 500B/s)"),
    ];
    for (written, canonical) in spellings {
        assert_eq!(read(written).name(), canonical);
    }
}

#[test]
fn what_is_wrong_is_said() {
    cases::check("topology/text.txt", &[("empty", String::new())], wrong);
}

#[test]
fn garbage_of_any_size_is_answered() {
    for text in ["(".repeat(100_000), "full_mesh(".repeat(5_000), "1,".repeat(1 << 20)] {
        assert!(!wrong(&text).is_empty());
    }
    let cuts = " without (0, 1)".repeat(10_000);
    assert!(!wrong(&format!("full_mesh(8){cuts}")).is_empty());
    let sums = format!("full_mesh({}8)", "1 + ".repeat(10_000));
    assert!(!wrong(&sums).is_empty());
}
