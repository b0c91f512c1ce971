//! Files that are refused: each with its code, and where the file is wrong.

use expect_test::{Expect, expect};
use roundelay_core::diagnostics::Code;
use roundelay_core::topology::{LinkKind, nccl};

use crate::nccl::{bytes, capacity, text};

/// A machine of two GPUs with `first` inside of the first.
fn two(first: &str) -> String {
    format!(
        r#"<system version="1"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">
<pci busid="0000:01:00.0" class="0x030200"><gpu sm="80" rank="0">{first}</gpu></pci>
<pci busid="0000:02:00.0" class="0x030200"><gpu sm="80" rank="1"/></pci>
</cpu></system>"#
    )
}

fn refused(xml: &str, code: Code, expected: &Expect) {
    let problem = text(xml).expect_err(xml);
    assert_eq!(problem.code, code, "{problem:#?}");
    let lines = std::iter::once(&problem.title).chain(&problem.notes).chain(&problem.help);
    let lines: Vec<_> = lines.map(String::as_str).collect();
    expected.assert_eq(&lines.join("\n"));
}

fn unreadable(xml: &str, expected: &Expect) {
    refused(xml, Code::UnreadableXml, expected);
}

fn wrong(xml: &str, expected: &Expect) {
    refused(xml, Code::NotATopology, expected);
}

#[test]
fn the_two_that_the_others_are_made_from() {
    assert_eq!(text(&two("")).unwrap().topology.nranks(), 2);
}

#[test]
fn an_empty_file() {
    unreadable(
        "",
        &expect![[r#"
        the file holds no XML element
        line 1, column 1 of test.xml"#]],
    );
    unreadable(
        " \n<!-- nothing -->\n",
        &expect![[r#"
        the file holds no XML element
        line 3, column 1 of test.xml"#]],
    );
}

#[test]
fn not_xml() {
    unreadable(
        "full_mesh(8)",
        &expect![[r#"
            text outside of any element: this is not XML
            line 1, column 1 of test.xml"#]],
    );
    unreadable(
        "<system version=\"1\"><cpu></system>",
        &expect![[r#"
        broken XML: ill-formed document: expected `</cpu>`, but `</system>` was found
        line 1, column 26 of test.xml"#]],
    );
    unreadable(
        "<system version=1></system>",
        &expect![[r#"
            broken attribute of <system>: position 15: attribute value must be enclosed in `"` or `'`
            line 1, column 1 of test.xml"#]],
    );
    unreadable(
        "<system/><system/>",
        &expect![[r#"
            a second element after the first
            line 1, column 10 of test.xml"#]],
    );
    unreadable(
        "<system version=\"1\" version=\"1\"/>",
        &expect![[r#"
            a <system> has `version` twice
            line 1, column 1 of test.xml"#]],
    );
}

#[test]
fn cut_off() {
    unreadable(
        &two("")[..150],
        &expect![[r#"
        the file ends inside of <cpu>
        line 2, column 78 of test.xml
        is it cut off?"#]],
    );
    unreadable(
        &two("")[..88],
        &expect![[r#"
        broken XML: syntax error: attribute value not closed: `"` not found before end of input
        line 2, column 1 of test.xml"#]],
    );
    // No prefix of a real file passes for a machine.
    let whole = bytes("rccl-4p3l-mesh.xml");
    let end = whole.iter().rposition(|byte| *byte == b'>').unwrap();
    for length in 0..end {
        let problem = nccl::read("cut", &whole[..length], None).unwrap_err();
        assert_eq!(problem.code, Code::UnreadableXml, "{length}");
    }
}

#[test]
fn not_utf8() {
    let problem = nccl::read("latin", b"<system>\n\xe4", None).unwrap_err();
    assert_eq!(problem.code, Code::UnreadableXml);
    assert_eq!(problem.notes, ["line 2, column 1 of latin"]);
}

#[test]
fn nested_absurdly() {
    unreadable(
        &"<system>".repeat(100_000),
        &expect![[r#"
            elements nest more than 64 deep
            line 1, column 513 of test.xml"#]],
    );
    unreadable(
        &format!("<system version=\"1\">{}", "<x>".repeat(100_000)),
        &expect![[r#"
            elements nest more than 64 deep
            line 1, column 210 of test.xml"#]],
    );
}

#[test]
fn entities_are_not_expanded() {
    let bomb = format!(
        r#"<!DOCTYPE system [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>{}"#,
        two("").replace("rank=\"0\"", "rank=\"&b;\"")
    );
    unreadable(
        &bomb,
        &expect![[r#"
            broken attribute of <gpu>: at 1..2: unrecognized entity `b`
            line 2, column 44 of test.xml"#]],
    );
    let known = two("").replace("AuthenticAMD", "&#65;uthentic&amp;");
    assert_eq!(text(&known).unwrap().cpus[0].vendor.as_deref(), Some("Authentic&"));
}

#[test]
fn graphs_are_not_topologies() {
    wrong(
        "<graphs version=\"1\"><graph id=\"0\"/></graphs>",
        &expect![[r#"
            the file is an NCCL graph: channels that were found, not the topology they were found on
            line 1, column 1 of test.xml
            NCCL writes the topology to the file that NCCL_TOPO_DUMP_FILE names"#]],
    );
    wrong(
        "<html/>",
        &expect![[r#"
            the file begins with <html>, not with <system>
            line 1, column 1 of test.xml
            NCCL writes the topology to the file that NCCL_TOPO_DUMP_FILE names"#]],
    );
}

#[test]
fn versions() {
    wrong(
        &two("").replace("version=\"1\"", ""),
        &expect![[r#"
            a <system> without `version`
            line 1, column 1 of test.xml"#]],
    );
    wrong(
        &two("").replace("version=\"1\"", "version=\"3\""),
        &expect![[r#"
            `version="3"` of a <system> is no number that makes sense
            line 1, column 1 of test.xml
            it is 1..=2"#]],
    );
}

#[test]
fn lies_about_counts() {
    for count in ["-1", "1000000000000", "99999999999999999999", "two", "2 two", "1.5"] {
        let link = format!(r#"<nvlink target="0000:02:00.0" count="{count}"/>"#);
        assert_eq!(text(&two(&link)).unwrap_err().code, Code::NotATopology, "{count}");
    }
    wrong(
        &two(r#"<nvlink target="0000:02:00.0" count="1e9"/>"#),
        &expect![[r#"
            `count="1e9"` of a <nvlink> is no number that makes sense
            line 2, column 66 of test.xml
            it is 0..=1024"#]],
    );
    wrong(
        &two(r#"<nvlink target="0000:02:00.0"/>"#),
        &expect![[r#"
            a <nvlink> without `count`
            line 2, column 66 of test.xml"#]],
    );
    wrong(
        &two(r#"<c2c bw="1000000000" count="1000000000"/>"#),
        &expect![[r#"
            a <c2c> of more than 1000 TB/s
            line 2, column 66 of test.xml"#]],
    );
    wrong(
        &two("").replace("0x030200\"", "0x030200\" link_width=\"-16\""),
        &expect![[r#"
            `link_width="-16"` of a <pci> is no number that makes sense
            line 2, column 1 of test.xml
            it is 0..=64"#]],
    );
    let net = r#"<nic><net name="n" speed="9223372036854775807"/></nic></cpu>"#;
    wrong(
        &two("").replace("</cpu>", net),
        &expect![[r#"
            `speed="9223372036854775807"` of a <net> is no number that makes sense
            line 4, column 6 of test.xml
            it is -1..=1000000000"#]],
    );
    let net = r#"<nic><net name="n" latency="NaN"/></nic></cpu>"#;
    wrong(
        &two("").replace("</cpu>", net),
        &expect![[r#"
            the `latency` of a <net> is no time in microseconds
            line 4, column 6 of test.xml"#]],
    );
}

#[test]
fn links_to_nowhere() {
    wrong(
        &two(r#"<nvlink target="0000:03:00.0" count="1"/>"#),
        &expect![[r#"
            a <nvlink> to 0000:03:00.0, which is not in the file
            line 2, column 66 of test.xml"#]],
    );
    wrong(
        &two(r#"<nvlink count="1"/>"#),
        &expect![[r#"
            a <nvlink> without `target`
            line 2, column 66 of test.xml"#]],
    );
}

#[test]
fn ranks_that_contradict_each_other() {
    wrong(
        &two("").replace("rank=\"1\"", "rank=\"0\""),
        &expect![[r#"
            two GPUs have rank 0
            line 3, column 44 of test.xml"#]],
    );
    wrong(
        &two("").replace("rank=\"1\"", ""),
        &expect![[r#"
            a <gpu> without `rank`
            line 3, column 44 of test.xml"#]],
    );
    wrong(
        &two("").replace("rank=\"1\"", "rank=\"4294967296\""),
        &expect![[r#"
            `rank="4294967296"` of a <gpu> is no number that makes sense
            line 3, column 44 of test.xml
            it is 0..=4294967295"#]],
    );
}

/// Ranks, otherwise device numbers, otherwise the order of the file: here all three, the first link from rank 1.
#[test]
fn what_numbers_the_ranks() {
    let linked = two(r#"<nvlink target="0000:02:00.0" count="1"/>"#);
    let turned = linked.replace("rank=\"0\"", "rank=\"7\"").replace("rank=\"1\"", "rank=\"0\"");
    let turned = turned.replace("rank=\"7\"", "rank=\"1\"");
    let links = |xml: &str| {
        let topology = text(xml).unwrap().topology;
        ["0", "1"].map(|rank| {
            let other = if rank == "0" { "1" } else { "0" };
            capacity(&topology, rank, other, LinkKind::NvLink).is_some()
        })
    };
    assert_eq!(links(&turned), [false, true]);
    assert_eq!(links(&turned.replace("rank=", "dev=")), [false, true]);
    assert_eq!(links(&turned.replace("rank=", "other=")), [true, false]);
}

#[test]
fn devices_that_contradict_each_other() {
    wrong(
        &two("").replace("0000:02", "0000:01"),
        &expect![[r#"
            two PCI devices have the busid 0000:01:00.0
            line 3, column 1 of test.xml"#]],
    );
    wrong(
        &two("").replace("busid=\"0000:02:00.0\"", ""),
        &expect![[r#"
            a <pci> without `busid`
            line 3, column 1 of test.xml"#]],
    );
    wrong(
        &two("").replace("</cpu>", "</cpu><cpu numaid=\"0\"/>"),
        &expect![[r#"
            two CPUs of numaid 0
            line 4, column 7 of test.xml"#]],
    );
    wrong(
        &two("").replace("numaid=\"0\"", ""),
        &expect![[r#"
            a <cpu> without `numaid`
            line 1, column 21 of test.xml"#]],
    );
    wrong(
        &two("").replacen("sm=\"80\"", "", 1),
        &expect![[r#"
            a <gpu> without `sm`
            line 2, column 44 of test.xml"#]],
    );
    wrong(
        &two("").replacen("</gpu>", "</gpu><gpu sm=\"80\" rank=\"1\"/>", 1),
        &expect![[r#"
            two GPUs have rank 1
            line 3, column 44 of test.xml"#]],
    );
    wrong(
        &two("").replace("</cpu>", "<gpu sm=\"80\" rank=\"2\"/></cpu>"),
        &expect![[r#"
            1 GPUs that are not in a <pci> of their own below a <cpu>
            line 1, column 1 of test.xml"#]],
    );
    wrong(
        &two("").replacen("</gpu>", "</gpu><pci busid=\"0000:09:00.0\"/>", 1),
        &expect![[r#"
            devices below the GPU 0000:01:00.0
            line 2, column 1 of test.xml"#]],
    );
}

#[test]
fn hosts_that_nothing_joins() {
    let apart = r#"</cpu><cpu numaid="0" host_hash="0x2"><pci busid="0000:03:00.0"
        class="0x030200"><gpu sm="80" rank="2"/></pci></cpu>"#;
    refused(
        &two("").replace("</cpu>", apart),
        Code::Disconnected,
        &expect![[r#"
        the topology falls into 2 parts that cannot reach each other
        a part: ranks 0, 1
        a part: rank 2
        every rank must reach every other, through switches and other ranks"#]],
    );
}

#[test]
fn too_much_of_everything() {
    let many =
        |piece: &dyn Fn(usize) -> String, count: usize| (0..count).map(piece).collect::<String>();
    let gpu =
        |i: usize| format!(r#"<pci busid="{i}" class="0x03"><gpu sm="80" rank="{i}"/></pci>"#);
    let gpus =
        format!(r#"<system version="1"><cpu numaid="0">{}</cpu></system>"#, many(&gpu, 1025));
    wrong(
        &gpus,
        &expect![[r#"
            1025 GPUs; a system has at most 1024
            line 1, column 1 of test.xml"#]],
    );
    let pci = |i: usize| format!(r#"<pci busid="{i}"/>"#);
    wrong(
        &two("").replace("</cpu>", &(many(&pci, 5000) + "</cpu>")),
        &expect![[r#"
            more than 4096 devices
            line 4, column 76658 of test.xml"#]],
    );
    let cpu = |i: usize| format!(r#"<cpu numaid="{}"/>"#, i + 1);
    wrong(
        &two("").replace("</system>", &(many(&cpu, 256) + "</system>")),
        &expect![[r#"
            more than 256 CPUs of one host
            line 4, column 4744 of test.xml"#]],
    );
    let attribute = |i: usize| format!(" a{i}=\"\"");
    wrong(
        &format!("<system{}/>", many(&attribute, 100_000)),
        &expect![[r#"
            a <system> of more than 64 attributes
            line 1, column 1 of test.xml"#]],
    );
    wrong(
        &format!("<system version=\"{}\"/>", "1".repeat(5000)),
        &expect![[r#"
            `version` of a <system> is too long
            line 1, column 1 of test.xml"#]],
    );
}

/// Reading skips 50 MB of unknown elements; of known elements it stops early.
#[test]
fn fifty_megabytes() {
    let started = std::time::Instant::now();
    let noise = "<noise><deep a=\"b\"/>text &amp; more</noise><!-- -->".repeat(1_000_000);
    let padded = two("").replace("</system>", &(noise + "</system>"));
    assert!(padded.len() > 50_000_000);
    assert_eq!(text(&padded).unwrap().topology, text(&two("")).unwrap().topology);
    let known = format!("<system version=\"1\">{}", "<cpu numaid=\"0\"/>".repeat(3_000_000));
    wrong(
        &known,
        &expect![[r#"
            more than 16384 elements
            line 1, column 278532 of test.xml"#]],
    );
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}
