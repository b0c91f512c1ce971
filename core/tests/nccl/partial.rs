//! Files without GPUs, and the assumptions about them.

use expect_test::expect;
use roundelay_core::diagnostics::Code;
use roundelay_machines::nccl::{self, Assumption};

use crate::cases;
use crate::nccl::bad::told;
use crate::nccl::{PARTIAL, bytes, load};

#[test]
fn without_an_assumption_they_are_refused() {
    for name in PARTIAL {
        let problem = nccl::read(name, &bytes(name), None).unwrap_err();
        assert_eq!(problem.code, Code::PartialTopology);
        assert!(problem.help.unwrap().contains("--assume sm=80,nvlinks=12"));
    }
}

#[test]
fn what_was_assumed_is_said() {
    expect![[r#"
        The 8 PCI devices of class 0x03 are GPUs of sm 80, each with 12 NVLinks to one NVSwitch.
        The 8 PCI devices of class 0x02 are network cards."#]]
    .assert_eq(&load(PARTIAL[1]).assumptions.join("\n"));
    let pcie = Assumption::parse("sm=90").unwrap();
    let system = nccl::read("vm", &bytes(PARTIAL[1]), Some(pcie.clone())).unwrap();
    assert!(!system.nvswitch && system.sm == Some(90) && system.topology.nranks() == 8);
    let full = nccl::read("full", &bytes(crate::nccl::FULL[3]), Some(pcie)).unwrap();
    assert_eq!(full.sm, Some(80));
    assert_eq!(full.assumptions.len(), 1);
}

#[test]
fn assumptions_as_text() {
    let parse = |text: &str| Assumption::parse(text).unwrap();
    assert_eq!(parse("nvlinks=12, sm=80"), parse(" sm = 80,nvlinks=12"));
    assert_eq!(parse("sm=80"), parse("nvlinks=0,sm=80"));
    assert_eq!(parse("xgmi=1 , gfx90a"), parse("gfx90a,xgmi=1"));
    for good in ["nvlinks=18", "cube", "xgmi=2", "gfx1100", "sm=60,cube"] {
        parse(good);
    }
    cases::check("nccl/partial.txt", &[("empty", String::new())], |text| {
        told(&Assumption::parse(text).unwrap_err())
    });
}
