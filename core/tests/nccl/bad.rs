//! Files that are refused: each with its code, and where the file is wrong.

use roundelay_core::diagnostics::Code;
use roundelay_machines::nccl;
use roundelay_topology::{LinkKind, Problem};

use crate::cases;
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

/// The code of a problem, and all that it says.
pub(super) fn told(problem: &Problem) -> String {
    let lines = std::iter::once(&problem.title).chain(&problem.notes).chain(&problem.help);
    let lines: Vec<_> = lines.map(String::as_str).collect();
    format!("{} {}", problem.code, lines.join("\n"))
}

#[test]
fn what_is_refused() {
    let two = two("");
    let many = |count: usize, piece: &dyn Fn(usize) -> String| -> String {
        (0..count).map(piece).collect()
    };
    let gpu = |i| format!(r#"<pci busid="{i}" class="0x03"><gpu sm="80" rank="{i}"/></pci>"#);
    let before = |end: &str, pieces: String| two.replace(end, &(pieces + end));
    let texts = [
        ("cut in a tag", two[..150].to_owned()),
        ("cut in a value", two[..88].to_owned()),
        ("nested", "<system>".repeat(100_000)),
        ("nested inside", format!("<system version=\"1\">{}", "<x>".repeat(100_000))),
        (
            "1025 GPUs",
            format!(r#"<system version="1"><cpu numaid="0">{}</cpu></system>"#, many(1025, &gpu)),
        ),
        ("5002 devices", before("</cpu>", many(5000, &|i| format!(r#"<pci busid="{i}"/>"#)))),
        ("257 CPUs", before("</system>", many(256, &|i| format!(r#"<cpu numaid="{}"/>"#, i + 1)))),
        ("100000 attributes", format!("<system{}/>", many(100_000, &|i| format!(" a{i}=\"\"")))),
        ("a long value", format!("<system version=\"{}\"/>", "1".repeat(5000))),
        (
            "3000000 CPUs",
            format!("<system version=\"1\">{}", "<cpu numaid=\"0\"/>".repeat(3_000_000)),
        ),
        ("two", two.clone()),
    ];
    cases::check("nccl/bad.txt", &texts, |xml| match text(xml) {
        Ok(system) => format!("taken: {} ranks", system.topology.nranks()),
        Err(problem) => told(&problem),
    });
    let problem = nccl::read("latin", b"<system>\n\xe4", None).unwrap_err();
    assert_eq!(
        (problem.code, &*problem.notes),
        (Code::UnreadableXml, &["line 2, column 1 of latin".to_owned()][..])
    );
    let known = two.replace("AuthenticAMD", "&#65;uthentic&amp;");
    assert_eq!(text(&known).unwrap().cpus[0].vendor.as_deref(), Some("Authentic&"));
}

/// No prefix of a real file passes for a machine.
#[test]
fn cut_off() {
    let whole = bytes("rccl-4p3l-mesh.xml");
    let end = whole.iter().rposition(|byte| *byte == b'>').unwrap();
    for length in 0..end {
        let problem = nccl::read("cut", &whole[..length], None).unwrap_err();
        assert_eq!(problem.code, Code::UnreadableXml, "{length}");
    }
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

/// Reading skips 50 MB of unknown elements; of known elements it stops early.
#[test]
fn fifty_megabytes() {
    let started = std::time::Instant::now();
    let noise = "<noise><deep a=\"b\"/>text &amp; more</noise><!-- -->".repeat(1_000_000);
    let padded = two("").replace("</system>", &(noise + "</system>"));
    assert!(padded.len() > 50_000_000);
    assert_eq!(text(&padded).unwrap().topology, text(&two("")).unwrap().topology);
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}
