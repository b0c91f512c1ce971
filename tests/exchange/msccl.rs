//! Every algorithm of the library as a program for MSCCL's runtime: read again and proved, or refused for a reason.

#[path = "../../core/export/tests/msccl/model.rs"]
#[allow(dead_code)]
mod model;
#[path = "../../core/export/tests/models.rs"]
#[allow(dead_code)]
mod models;
#[path = "../../core/export/tests/msccl/run.rs"]
#[allow(dead_code)]
mod run;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use expect_test::{expect, expect_file};
use roundelay::{Algorithm as _, select};
use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::messages::TwoSided;
use roundelay_core::prove_source;
use roundelay_exchange::Protocol;
use roundelay_exchange::msccl::{Connections, Exported, Options, Runtime, export, read};
use roundelay_tests::{named, root};

const PLAIN: Options = Options { protocol: Protocol::Simple, instances: 1, runtime: Runtime::Rccl };

/// Returns the program of an algorithm of the library; `None` where the algorithm refuses that number of ranks.
fn exported(name: &str, nranks: u32, options: Options) -> Option<Result<Exported, Vec<Finding>>> {
    let proved = prove_source(named(name), nranks).ok()?;
    let form = TwoSided::for_author(&proved).expect("it has the form");
    Some(export(&form, options))
}

/// A line for each algorithm: the numbers of ranks at which it is a program, its modes and sizes; or the reason why it is
/// none. `UPDATE_EXPECT=1` writes it anew.
#[test]
fn the_library() {
    let mut text = String::new();
    for algorithm in select::library() {
        let mut said: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for nranks in [2, 3, 5, 8] {
            let what = match exported(algorithm.name(), nranks, PLAIN) {
                None => continue,
                Some(Ok(exported)) => {
                    let size = exported.verdict.safe.and_then(|safe| safe.bytes);
                    let modes = exported.verdict.modes.iter().map(|mode| mode.mode.name());
                    let modes = modes.collect::<Vec<_>>().join(", ");
                    match size {
                        None => format!("{modes}, any size"),
                        Some(bytes) => format!("{modes}, up to {bytes} bytes"),
                    }
                }
                Some(Err(findings)) => {
                    assert_eq!(findings[0].code, Code::NotExportable, "{findings:?}");
                    findings[0].title.clone()
                }
            };
            said.entry(what).or_default().push(nranks.to_string());
        }
        for (what, nranks) in said {
            let _ = writeln!(text, "{} at {}: {what}", algorithm.name(), nranks.join(", "));
        }
    }
    expect_file![root().join("tests/golden/msccl.txt")].assert_eq(&text);
}

/// Every protocol, several instances and every runtime: the exported program is right by the proof and by the model of
/// the runtime, which was written from its rules and shares no code with the importer; and it has the attributes that
/// the options ask for.
#[test]
fn every_way_to_write_the_library() {
    let protocols = [Protocol::Simple, Protocol::Ll, Protocol::Ll128];
    let (mut turn, mut written, mut modelled) = (0, 0, 0);
    for algorithm in select::library() {
        let name = algorithm.name();
        for (nranks, instances) in [(2, 4), (3, 1), (4, 2), (6, 1), (7, 2), (8, 1)] {
            turn += 1;
            let runtime = Runtime::ALL[turn % 3];
            let options = Options { protocol: protocols[turn / 3 % 3], instances, runtime };
            let Some(Ok(exported)) = exported(name, nranks, options) else { continue };
            let what = format!("{name} at {nranks} ranks, {options:?}");
            written += 1;
            let back = read("back.xml", exported.text.as_bytes(), Some(runtime));
            assert_eq!(back.errors, [], "{what}");
            let program = back.program.expect("it makes sense");
            let verdict = program.verdict(&back.source, &Connections { runtime, buffer: None });
            assert!(verdict.is_right(), "{what}: {:?}", verdict.errors().collect::<Vec<_>>());
            assert!(verdict.modes.iter().all(|mode| mode.proved.is_some()), "{what}");
            let header = &program.header;
            assert_eq!((header.nranks, header.protocol), (nranks, options.protocol), "{what}");
            assert_eq!(header.min_bytes, u64::from(header.own.chunks), "{what}");
            assert!(header.own.says_bytes && header.out_of_place, "{what}");
            // The model has no rule for where a reduce-scatter leaves its result.
            if header.collective != Some(Collective::ReduceScatter) && turn % 2 == 0 {
                modelled += 1;
                assert_eq!(run::outcome(&exported.text), models::Outcome::Right, "{what}");
            }
        }
    }
    assert!(written > 200 && modelled > 70, "{written} were written, {modelled} modelled");
}

/// A ring passes through one block a channel, and each of its steps but the first and the last both receives and sends.
#[test]
fn a_ring_is_one_block_a_channel() {
    let options = Options { protocol: Protocol::Ll128, instances: 2, ..PLAIN };
    let ring = exported("NcclRingAllReduce", 3, options).expect("a ring").expect("it fits");
    let end = ring.text.find("  <gpu id=\"1\"").expect("a second rank");
    expect![[r#"
        <algo name="NcclRingAllReduce" proto="LL128" nchannels="2" nchunksperloop="12" ngpus="3" coll="allreduce" inplace="1" outofplace="1" minBytes="12" maxBytes="0">
          <gpu id="0" i_chunks="12" o_chunks="12" s_chunks="0">
            <tb id="0" send="1" recv="2" chan="0">
              <step s="0" type="s" srcbuf="i" srcoff="4" dstbuf="i" dstoff="4" cnt="1" depid="-1" deps="-1" hasdep="0"/>
              <step s="1" type="s" srcbuf="i" srcoff="5" dstbuf="i" dstoff="5" cnt="1" depid="-1" deps="-1" hasdep="0"/>
              <step s="2" type="rrs" srcbuf="i" srcoff="2" dstbuf="i" dstoff="2" cnt="1" depid="-1" deps="-1" hasdep="0"/>
              <step s="3" type="rrs" srcbuf="i" srcoff="3" dstbuf="i" dstoff="3" cnt="1" depid="-1" deps="-1" hasdep="0"/>
              <step s="4" type="rrcs" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
              <step s="5" type="rrcs" srcbuf="i" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
              <step s="6" type="rcs" srcbuf="o" srcoff="4" dstbuf="o" dstoff="4" cnt="1" depid="-1" deps="-1" hasdep="0"/>
              <step s="7" type="rcs" srcbuf="o" srcoff="5" dstbuf="o" dstoff="5" cnt="1" depid="-1" deps="-1" hasdep="0"/>
              <step s="8" type="r" srcbuf="o" srcoff="2" dstbuf="o" dstoff="2" cnt="1" depid="-1" deps="-1" hasdep="0"/>
              <step s="9" type="r" srcbuf="o" srcoff="3" dstbuf="o" dstoff="3" cnt="1" depid="-1" deps="-1" hasdep="0"/>
            </tb>
            <tb id="1" send="1" recv="2" chan="1">
              <step s="0" type="s" srcbuf="i" srcoff="10" dstbuf="i" dstoff="10" cnt="1" depid="-1" deps="-1" hasdep="0"/>
              <step s="1" type="s" srcbuf="i" srcoff="11" dstbuf="i" dstoff="11" cnt="1" depid="-1" deps="-1" hasdep="0"/>
              <step s="2" type="rrs" srcbuf="i" srcoff="8" dstbuf="i" dstoff="8" cnt="1" depid="-1" deps="-1" hasdep="0"/>
              <step s="3" type="rrs" srcbuf="i" srcoff="9" dstbuf="i" dstoff="9" cnt="1" depid="-1" deps="-1" hasdep="0"/>
              <step s="4" type="rrcs" srcbuf="i" srcoff="6" dstbuf="o" dstoff="6" cnt="1" depid="-1" deps="-1" hasdep="0"/>
              <step s="5" type="rrcs" srcbuf="i" srcoff="7" dstbuf="o" dstoff="7" cnt="1" depid="-1" deps="-1" hasdep="0"/>
              <step s="6" type="rcs" srcbuf="o" srcoff="10" dstbuf="o" dstoff="10" cnt="1" depid="-1" deps="-1" hasdep="0"/>
              <step s="7" type="rcs" srcbuf="o" srcoff="11" dstbuf="o" dstoff="11" cnt="1" depid="-1" deps="-1" hasdep="0"/>
              <step s="8" type="r" srcbuf="o" srcoff="8" dstbuf="o" dstoff="8" cnt="1" depid="-1" deps="-1" hasdep="0"/>
              <step s="9" type="r" srcbuf="o" srcoff="9" dstbuf="o" dstoff="9" cnt="1" depid="-1" deps="-1" hasdep="0"/>
            </tb>
          </gpu>
    "#]].assert_eq(&ring.text[..end]);
}

/// Each limit is named, with the amount that is needed.
#[test]
fn limits_are_named() {
    let refused = |name: &str, nranks, options: Options| {
        let made = exported(name, nranks, options).expect("so many ranks");
        let Err(findings) = made else { panic!("{name} at {nranks} ranks, {options:?}") };
        assert_eq!(findings[0].code, Code::NotExportable);
        assert!(findings[0].help.is_some());
        findings[0].title.clone()
    };
    let azure = Options { runtime: Runtime::Azure, ..PLAIN };
    let microsoft = Options { runtime: Runtime::Microsoft, ..PLAIN };
    let many = |instances, options| Options { instances, ..options };
    assert_eq!(
        refused("RingAllReduce", 33, PLAIN),
        "it needs 66 steps of a block, and RCCL has 64"
    );
    assert!(exported("RingAllReduce", 33, microsoft).is_some_and(|ring| ring.is_ok()));
    let all = [
        refused("MeshAllGather", 8, many(8, PLAIN)),
        refused("MeshAllGather", 20, azure),
        refused("MeshAllReduce", 8, many(32, azure)),
        refused("MultiRingAllGather", 3, many(33, PLAIN)),
    ];
    expect![[r"
        it needs 112 thread blocks of a rank, and RCCL has 64
        it needs 38 blocks of a rank in one channel, and msccl-executor-nccl has 32
        it needs 416 blocks up to one that others wait for, and msccl-executor-nccl has 128
        33 instances, and there are 32 channels"]]
    .assert_eq(&all.join("\n"));
}
