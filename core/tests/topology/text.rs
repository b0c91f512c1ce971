//! The text form: read, printed, and refused where it makes no sense.

use expect_test::expect;

use roundelay_core::topology::Topology;

use crate::topology::{read, wrong};

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
    let texts = [
        "",
        "   ",
        "full_mesh",
        "full_mesh()",
        "full_mesh(0)",
        "full_mesh(-3)",
        "full_mesh(70000)",
        "full_mesh(9223372036854775807)",
        "full_mesh(9223372036854775808)",
        "full_mesh(4096)",
        "full_mesh(8, 8)",
        "full_mesh([8])",
        "full_mesh(8, 0GB/s)",
        "full_mesh(8, 1001TB/s)",
        "full_mesh(8, 25GB)",
        "full_mesh(8, 25GB/h)",
        "full_mesh(8, 2us/s)",
        "full_mesh(8, 25Gx/s)",
        "full_mesh(8, -25GB/s)",
        "full_mesh(8, 0.3B/s)",
        "full_mesh(8, 2us, 3us)",
        "full_mesh(8, 2us, 25GB/s)",
        "full_mesh(8, 25GB/s, 8)",
        "full_mesh(8, 25GB/s, 4000s)",
        "full_mesh(8, 25GB/s, 1us, 25GB/s)",
        "full_mesh(8, true)",
        "full_mesh(nranks)",
        "full_mesh(rank)",
        "full_mesh(1 / 0)",
        "full_mesh(8) without (0, 0)",
        "full_mesh(8) without (0, 8)",
        "full_mesh(8) without (-1, 2)",
        "full_mesh(8) without (0, 1) without (1, 0)",
        "full_mesh(8) without 0",
        "full_mesh(8) without (0)",
        "full_mesh(8) with (0, 1)",
        "crossbar(8) without (0, 1)",
        "full_mesh(2) without (0, 1)",
        "torus([])",
        "torus([4, 0])",
        "torus([4096, 4096])",
        "islands(2)",
        "islands(4096, 4096)",
        "spine_leaf(2, 8, 4, 3, 10GB/s, 1us, 7GB/s)",
        "groups([])",
        "groups([8, 0])",
        "7",
        "full_mesh(8), full_mesh(8)",
        "full_mesh(8)) -> AllReduce { } algorithm b(c: int = 1",
        "full_mesh(8); copy",
        "mesh(8)",
        "ful_mesh(8)",
        "Ring::natural(8)",
        "\"full_mesh(8)\"",
        "full_mesh(8",
        "rust { 1 }",
        "√",
    ];
    let found: Vec<_> = texts.iter().map(|t| format!("{t:?}: {}\n", wrong(t))).collect();
    expect![[r#"
        "": E0003 expected an expression, found the end
        "   ": E0003 expected an expression, found the end
        "full_mesh": E0101 nothing is called `full_mesh` here
        "full_mesh()": E0601 `full_mesh` takes 1 size, and got 0
        "full_mesh(0)": E0601 `full_mesh`: 0 ranks; it takes 1..=65536
        "full_mesh(-3)": E0601 `full_mesh`: -3 ranks; it takes 1..=65536
        "full_mesh(70000)": E0601 `full_mesh`: 70000 ranks; it takes 1..=65536
        "full_mesh(9223372036854775807)": E0601 `full_mesh`: 9223372036854775807 ranks; it takes 1..=65536
        "full_mesh(9223372036854775808)": E0006 `9223372036854775808` does not fit a 64-bit integer
        "full_mesh(4096)": E0601 a topology of more than 4194304 links
        "full_mesh(8, 8)": E0601 `full_mesh` takes 1 size, and got 2
        "full_mesh([8])": E0601 `full_mesh` takes numbers
        "full_mesh(8, 0GB/s)": E0601 link rank 0 -> rank 1 carries 0 bytes/s
        "full_mesh(8, 1001TB/s)": E0601 link rank 0 -> rank 1 carries 1001000000000000 bytes/s
        "full_mesh(8, 25GB)": E0103 a bandwidth is so much a second
        "full_mesh(8, 25GB/h)": E0103 a bandwidth is so much a second
        "full_mesh(8, 2us/s)": E0103 a latency is a time, and nothing a second
        "full_mesh(8, 25Gx/s)": E0002 `25Gx` is not an integer
        "full_mesh(8, -25GB/s)": E0003 expected an expression, found a number with a unit
        "full_mesh(8, 0.3B/s)": E0006 `0.3B` is not a whole number of bytes or nanoseconds, or too large
        "full_mesh(8, 2us, 3us)": E0601 `full_mesh`: two latencies in a row
        "full_mesh(8, 2us, 25GB/s)": E0601 `full_mesh`: a latency stands before its bandwidth
        "full_mesh(8, 25GB/s, 8)": E0601 `full_mesh`: a size stands behind a bandwidth
        "full_mesh(8, 25GB/s, 4000s)": E0601 link rank 0 -> rank 1 takes 4000000000000 ns for a message
        "full_mesh(8, 25GB/s, 1us, 25GB/s)": E0601 `full_mesh` takes 1 bandwidth, and got 2
        "full_mesh(8, true)": E0103 expected a size, a bandwidth or a latency, found a bool
        "full_mesh(nranks)": E0601 a topology that stands alone has no rank count to refer to
        "full_mesh(rank)": E0601 a topology that stands alone has no rank count to refer to
        "full_mesh(1 / 0)": E0118 a division by zero
        "full_mesh(8) without (0, 0)": E0602 `without (0, 0)` names one rank twice
        "full_mesh(8) without (0, 8)": E0602 `without (0, 8)`: there is no rank 8
        "full_mesh(8) without (-1, 2)": E0602 `without (-1, 2)`: there is no rank -1
        "full_mesh(8) without (0, 1) without (1, 0)": E0602 `without (1, 0)`: no link joins these two ranks
        "full_mesh(8) without 0": E0003 expected `)`, `,` or an operator, found `without`
        "full_mesh(8) without (0)": E0003 expected `,`, found `)`
        "full_mesh(8) with (0, 1)": E0003 expected `)`, `,` or an operator, found `with`
        "crossbar(8) without (0, 1)": E0602 `without (0, 1)`: no link joins these two ranks
        "full_mesh(2) without (0, 1)": E0603 the topology falls into 2 parts that cannot reach each other
        "torus([])": E0601 a torus without dimensions
        "torus([4, 0])": E0601 `torus`: 0 ranks in a dimension; it takes 1..=65536
        "torus([4096, 4096])": E0601 a topology of 16777216 ranks; it takes 1..=65536
        "islands(2)": E0601 `islands` takes 2 sizes, and got 1
        "islands(4096, 4096)": E0601 a topology of 16777216 ranks; it takes 1..=65536
        "spine_leaf(2, 8, 4, 3, 10GB/s, 1us, 7GB/s)": E0601 `spine_leaf`: both an oversubscription and an uplink bandwidth
        "groups([])": E0601 a topology of 0 ranks; it takes 1..=65536
        "groups([8, 0])": E0601 `groups`: 0 ranks in a group; it takes 1..=65536
        "7": E0103 expected a Topology, found an int
        "full_mesh(8), full_mesh(8)": E0003 expected `:`, found `(`
        "full_mesh(8)) -> AllReduce { } algorithm b(c: int = 1": E0007 this `)` closes nothing
        E0007 this `(` is not closed
        "full_mesh(8); copy": E0003 expected `)` or `,`, found `;`
        "mesh(8)": E0101 no function or step is called `mesh`
        "ful_mesh(8)": E0101 no function or step is called `ful_mesh`
        "Ring::natural(8)": E0103 the natural ring is one of all ranks
        E0103 expected a Topology, found a Ring
        "\"full_mesh(8)\"": E0003 expected an expression, found a string
        "full_mesh(8": E0007 this `(` is not closed
        "rust { 1 }": E0115 `rust { }` outside the macro
        E0103 expected a Topology, found an int
        "√": E0002 no token begins with `√`
    "#]]
    .assert_eq(&found.concat());
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
