//! Calls that the engine refuses, each with the error it gives. The pages show the lines between the
//! marks, so the calls that a reader sees are the ones that were made.

use std::time::Duration;

use roundelay::library::RingAllReduce;
use roundelay::{Comm, DType, Error, Options, Plan, ReduceOp, ToPlan as _, UniqueId, World};
use roundelay_core::diagnostics::Code;
use roundelay_core::ids::{RankId, StreamId};
use roundelay_kernels::{Ended, Stuck, WrongData};
use roundelay_tests::root;

use crate::book::read;

roundelay::collective! {
    /// Every rank's block `r` to rank `r`.
    algorithm Exchange() -> AllToAll {
        view sent = input.split(nranks);
        view got = output.split(nranks);
        copy(local.sent[rank], local.got[rank]);
        for d in 1..nranks {
            let from = peer((rank - d) % nranks);
            let to = peer((rank + d) % nranks);
            to.TxAck();
            from.RxAck();
            copy(from.sent[rank], local.got[from.rank]);
            from.TxDataSignal();
            to.RxDataSignal();
        }
    }
}

roundelay::include_collective!("../data/take_and_add.coll");

/// The call's text, if a call can be shown, and the text of its error.
pub(crate) fn example(code: Code) -> (String, String) {
    if code == Code::KernelFault {
        // A run of the command writes it, of a kernel that was changed after it was compiled.
        let shown = read(&root().join("tests/data/kernel_fault.stderr"));
        return (String::new(), shown.replacen(&format!("error[{code}]: "), "", 1));
    }
    let made = match code {
        Code::WrongBufferCount => wrong_buffer_count(),
        Code::WrongBufferLength => wrong_buffer_length(),
        Code::WrongDType => wrong_dtype(),
        Code::MisalignedBuffer => misaligned_buffer(),
        Code::Timeout => timeout(),
        Code::BadOption => bad_option(),
        Code::TooLarge => too_large(),
        Code::NoInPlace => no_in_place(),
        Code::NoRanks => no_ranks(),
        Code::WorkerPanicked => worker_panicked(),
        Code::NoSuchRank => no_such_rank(),
        Code::RankBusy => rank_busy(),
        Code::Abandoned => abandoned(),
        Code::CallsDiffer => calls_differ(),
        Code::OneMode => one_mode(),
        Code::Unproved => unproved(),
        Code::NotJoined => not_joined(),
        Code::RankEnded => rank_ended(),
        Code::SystemRefused => system_refused(),
        Code::Corrupt => corrupt(),
        Code::NoSuchOp => no_such_op(),
        Code::WrongData => wrong_data(),
        other => Err(crate::book::device::example(other).into()),
    };
    let error = made.err().unwrap_or_else(|| panic!("the call for {code} succeeds"));
    assert_eq!(error.code(), code, "{error}");
    // The code stands before it on a page.
    let text = if code == Code::NotJoined { steady(&error.to_string()) } else { error.to_string() };
    (shown(code), text.strip_suffix(&format!(" [{code}]")).unwrap_or(&text).to_owned())
}

/// The message of a world that did not meet, with names that are others each time as in one run of it.
fn steady(text: &str) -> String {
    let after = |text: &str, mark: &str, ends: fn(char) -> bool, instead: &str| match text
        .split_once(mark)
    {
        Some((before, rest)) => {
            let len = rest.find(ends).unwrap_or(rest.len());
            format!("{before}{mark}{instead}{}", &rest[len..])
        }
        None => panic!("no `{mark}` in `{text}`"),
    };
    let named =
        after(text, "@roundelay-", |c| !c.is_ascii_hexdigit(), "d934686c7e88ed03811642a23e2f2d4b");
    after(&named, "(process ", |c| !c.is_ascii_digit(), "4242")
}

fn shown(code: Code) -> String {
    let mut lines = include_str!("engine.rs")
        .lines()
        .skip_while(|line| line.trim() != format!("// {code}"))
        .skip(1)
        .take_while(|line| line.trim() != "// end")
        .peekable();
    let indent = lines.peek().map_or(0, |first| first.len() - first.trim_start().len());
    lines.map(|line| line.get(indent..).unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

fn wrong_buffer_count() -> Result<(), Error> {
    // E0401
    let plan = RingAllReduce::new().plan(4, 10, DType::F32, ReduceOp::Sum)?;
    let inputs = [[1.0_f32; 10]; 3]; // three, for four ranks
    let mut outputs = [[0.0_f32; 10]; 4];
    let inputs = inputs.each_ref().map(|i| &i[..]);
    plan.run(&inputs, &mut outputs.each_mut().map(|o| &mut o[..]))?;
    // end
    Ok(())
}

fn wrong_buffer_length() -> Result<(), Error> {
    // E0402
    let plan = RingAllReduce::new().plan(4, 10, DType::F32, ReduceOp::Sum)?;
    let inputs = [[1.0_f32; 10]; 4];
    let mut outputs = [[0.0_f32; 9]; 4]; // nine, for a count of ten
    let inputs = inputs.each_ref().map(|i| &i[..]);
    plan.run(&inputs, &mut outputs.each_mut().map(|o| &mut o[..]))?;
    // end
    Ok(())
}

fn wrong_dtype() -> Result<(), Error> {
    // E0403
    let plan = RingAllReduce::new().plan(4, 10, DType::F32, ReduceOp::Sum)?;
    let inputs = [[1.0_f64; 10]; 4]; // f64, for a plan of f32
    let mut outputs = [[0.0_f64; 10]; 4];
    let inputs = inputs.each_ref().map(|i| &i[..]);
    plan.run(&inputs, &mut outputs.each_mut().map(|o| &mut o[..]))?;
    // end
    Ok(())
}

#[repr(align(8))]
struct Aligned([u8; 48]);

fn misaligned_buffer() -> Result<(), Error> {
    let (memory, mut results) = (Aligned([0; 48]), Aligned([0; 48]));
    let (memory, results) = (&memory.0, &mut results.0);
    // E0404
    let plan = RingAllReduce::new().plan(1, 10, DType::F32, ReduceOp::Sum)?;
    let input = &memory[1..41]; // 40 bytes that begin at an odd address
    let output = &mut results[..40];
    plan.run_bytes(&[input], &mut [output])?;
    // end
    Ok(())
}

/// Returns the error of a run in which rank 0 is held up. It is made by hand: a proved schedule on a healthy machine
/// gives none.
fn timeout() -> Result<(), Error> {
    let stuck = Stuck {
        rank: RankId(1),
        stream: StreamId(1),
        step: 2,
        waiting_on: "TxAck from rank 0".to_owned(),
        expected: 1,
        seen: 0,
        file: "my.coll".into(),
        line: 16,
        after: Some(Duration::from_secs(60)),
    };
    Err(roundelay_kernels::Error::Timeout(Box::new(stuck)).into())
}

fn bad_option() -> Result<(), Error> {
    // E0406
    let options = Options::new().workers(u32::MAX); // more threads than any machine has
    RingAllReduce::new().plan_with(4, 10, DType::F32, ReduceOp::Sum, options)?;
    // end
    Ok(())
}

fn too_large() -> Result<(), Error> {
    // E0407
    RingAllReduce::new().plan(4, u64::MAX, DType::F32, ReduceOp::Sum)?;
    // end
    Ok(())
}

fn no_in_place() -> Result<(), Error> {
    // E0408
    // `Exchange` is an AllToAll.
    let plan = Exchange::new().plan(2, 10, DType::F32, ReduceOp::Sum)?;
    let mut buffers = [[1.0_f32; 20]; 2];
    plan.run_in_place(&mut buffers.each_mut().map(|b| &mut b[..]))?;
    // end
    Ok(())
}

fn no_ranks() -> Result<(), Error> {
    // E0409
    RingAllReduce::new().plan(0, 10, DType::F32, ReduceOp::Sum)?;
    // end
    Ok(())
}

/// Not provoked either: the engine does not panic that we know of.
fn worker_panicked() -> Result<(), Error> {
    let message = "index out of bounds".to_owned();
    Err(roundelay_kernels::Error::WorkerPanicked { message }.into())
}

fn no_such_rank() -> Result<(), Error> {
    // E0411
    let comm = Comm::new(4)?;
    comm.rank(4)?; // of ranks 0 to 3
    // end
    Ok(())
}

/// Returns the error that the second of two threads gets when both call for one rank.
fn rank_busy() -> Result<(), Error> {
    Err(roundelay_kernels::Error::RankBusy { rank: RankId(1) }.into())
}

fn abandoned() -> Result<(), Error> {
    // E0413
    let short = Options::new().deadline(Duration::from_millis(50));
    let comm = Comm::with_options(2, short)?;
    let mut buffer = [1.0_f32; 10];
    // Rank 1 never calls: rank 0 gives up at the deadline, and from then on nobody goes on.
    let first = comm.rank(0)?.all_reduce(&mut buffer, ReduceOp::Sum);
    assert!(first.is_err_and(|error| error.code().as_str() == "E0405"));
    comm.rank(1)?.all_reduce(&mut buffer, ReduceOp::Sum)?;
    // end
    Ok(())
}

fn calls_differ() -> Result<(), Error> {
    // E0414
    let comm = &Comm::new(2)?;
    let call = |rank: u32, count: usize| {
        comm.rank(rank)?.all_reduce(&mut vec![1.0_f32; count], ReduceOp::Sum)
    };
    std::thread::scope(|threads| {
        let longer = threads.spawn(|| call(1, 20)); // twenty elements, where rank 0 has ten
        let shorter = call(0, 10);
        assert!(longer.join().is_ok_and(|refused| refused.is_err())); // each is told
        shorter
    })?;
    // end
    Ok(())
}

fn one_mode() -> Result<(), Error> {
    // E0424
    // copy(local.theirs, local.output);   in place, my input was here
    // copy(local.input, local.theirs);
    TakeAndAdd::new().spmd_plan(2, 1000, DType::F32, ReduceOp::Sum)?;
    // end
    Ok(())
}

/// No call of a user's makes it: a pass must be broken.
fn unproved() -> Result<(), Error> {
    let ring = roundelay_core::prove(&RingAllReduce::new(), 4).expect("the library is right");
    let broken = ring.with_broken_passes(|made| made.operands.swap(0, 4));
    Plan::new(&broken, 1000, DType::F32, ReduceOp::Sum)?;
    Ok(())
}

fn not_joined() -> Result<(), Error> {
    // E0427
    let short = Options::new().deadline(Duration::from_millis(50));
    let id = UniqueId::new()?;
    World::join_with(&id, 2, 0, short)?; // and nobody joins as rank 1
    // end
    Ok(())
}

/// Returns the error of the survivors when rank 3 is killed. It is made by hand: a real one takes processes.
fn rank_ended() -> Result<(), Error> {
    let what = "rank 3 (process 4242) was killed by signal 9 (SIGKILL) in call 17, AllReduce of 1000 f32, sum, at step 2 (ring.coll:27); ranks 0 and 2 waited for it";
    let ended = Ended { rank: RankId(3), pid: 4242, number: 17, what: what.to_owned() };
    Err(roundelay_kernels::Error::RankEnded(Box::new(ended)).into())
}

/// Returns the error where no descriptor is left. It is made by hand: a real one would take the descriptors of other
/// tests.
fn system_refused() -> Result<(), Error> {
    let what = "the system refuses a descriptor of this process (pidfd_open): Too many open files (os error 24); this process may hold 20 descriptors (`ulimit -n`): raise that limit".to_owned();
    Err(roundelay_kernels::Error::SystemRefused { what }.into())
}

/// Returns the error for a word in shared memory that no rank writes. It is made by hand: ranks write no such words.
fn corrupt() -> Result<(), Error> {
    let what = "rank 1 says that a buffer of 4000 bytes lies at 12 of the arena, whose heaps begin at 4096".to_owned();
    Err(roundelay_kernels::Error::Corrupt { what }.into())
}

fn wrong_data() -> Result<(), Error> {
    let (expected, found) = ("7544".to_owned(), "11640".to_owned());
    let call = "AllReduce of 1000 f32, sum".to_owned();
    let (rank, algorithm) = (RankId(2), "RingAllReduce".to_owned());
    let wrong = WrongData { rank, element: 703, expected, found, number: 5, call, algorithm };
    Err(roundelay_kernels::Error::WrongData(Box::new(wrong)).into())
}

fn no_such_op() -> Result<(), Error> {
    // E0431
    RingAllReduce::new().plan(4, 10, DType::F32, ReduceOp::Bxor)?;
    // end
    Ok(())
}
