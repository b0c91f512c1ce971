//! Every program computes the collective: otherwise its time would be no limit.

use roundelay_core::dtype::ReduceOp;

use super::*;
use roundelay_kernels::reference::Reference;

/// Bytes that begin `off` bytes behind the start of a cache line.
struct Buffer(Vec<u8>, std::ops::Range<usize>);

impl Buffer {
    fn new(content: &[u8], off: usize) -> Self {
        let mut bytes = vec![0xA5; content.len() + 128];
        let start = bytes.as_ptr().align_offset(64) + off;
        bytes[start..][..content.len()].copy_from_slice(content);
        Self(bytes, start..start + content.len())
    }

    fn bytes(&self) -> &[u8] {
        &self.0[self.1.clone()]
    }
}

/// Runs all programs, on one and on two threads.
fn check(collective: Collective, nranks: u32, count: usize, dtype: DType, off: usize) {
    let root = RankId(nranks - 1);
    let reference = Reference { collective, nranks, root, count, dtype, op: ReduceOp::Sum };
    let given = reference.inputs(7);
    let inputs: Vec<Buffer> = given.iter().map(|input| Buffer::new(input, off)).collect();
    let inputs: Vec<&[u8]> = inputs.iter().map(Buffer::bytes).collect();
    let unit = count * dtype.size();
    let units = |rank| collective.output_units(RankId(rank), nranks, root) as usize;
    let mut outputs: Vec<Buffer> =
        (0..nranks).map(|rank| Buffer::new(&vec![0xA5; units(rank) * unit], off)).collect();
    let words = if dtype == DType::F32 { SumKind::Float } else { SumKind::Integer };
    let mut programs = usize::MAX;
    let mut at = 0;
    while at < programs {
        for output in &mut outputs {
            output.0.fill(0xA5);
        }
        let mut views: Vec<&mut [u8]> = outputs.iter_mut().map(|b| &mut b.0[b.1.clone()]).collect();
        let jobs = jobs::jobs(collective, root, &inputs, &mut views, unit);
        let all = candidates::all(&jobs, words, 2);
        // SAFETY: whole units of vectors that are borrowed here.
        unsafe { with_crew(&jobs, &all, |crew| crew.run(at, unit)) };
        let results: Vec<&[u8]> = outputs.iter().map(Buffer::bytes).collect();
        let wrong = reference.count_wrong(&given, &results, nranks);
        let outside = |b: &Buffer| {
            let (before, after) = (&b.0[..b.1.start], &b.0[b.1.end..]);
            before.iter().chain(after).filter(|byte| **byte != 0xA5).count()
        };
        let spilt: usize = outputs.iter().map(outside).sum();
        let name = all[at].describe();
        assert_eq!((wrong, spilt), (0, 0), "{collective} {nranks} {count} {dtype}: {name}");
        programs = all.len();
        at += 1;
    }
    assert!(programs >= 2, "programs compete");
}

#[test]
fn every_program_computes_the_collective() {
    for collective in Collective::ALL {
        for (nranks, count) in [(1, 5), (2, 256), (3, 1000), (5, 17), (8, 2048), (9, 1), (18, 333)]
        {
            for (dtype, off) in [(DType::F32, 0), (DType::F32, 4), (DType::U32, 0)] {
                check(collective, nranks, count, dtype, off);
            }
        }
    }
}
