//! Buffers of callers that the kernels of all ranks use where they are, and those that launches copy.

use roundelay::cuda::{RankBuffer, Registration};
use roundelay_kernels::cuda::cudarc::driver::DevicePtr as _;

use super::*;

/// The elements of a call whose buffers are large enough.
const COUNT: usize = 20_000;

/// Input and output of a rank, in memory that others can map.
struct Shared {
    input: RankBuffer,
    output: RankBuffer,
}

impl Shared {
    fn new(rank: &CudaRank, case: &Case) -> Self {
        let buffers = case.buffers()[rank.rank().index()];
        let input = rank.rank_buffer("input", buffers.input).expect("room");
        let output = rank.rank_buffer("output", buffers.shared).expect("room");
        Self { input, output }
    }
}

/// Writes the rank's input, launches, and compares its result with the host's; `nth` changes nothing but the message.
fn right(rank: &CudaRank, plan: &ProcessPlan, case: &Case, io: &mut Shared, nth: u32) {
    let (at, stream) = (rank.rank().index(), rank.stream());
    stream.memcpy_htod(&case.inputs()[at], &mut io.input).expect("copied");
    stream.memset_zeros(&mut io.output).expect("cleared");
    let launched = plan.launch_bytes(stream, &io.input, &mut io.output);
    launched.and_then(|()| plan.wait()).unwrap_or_else(|why| panic!("launch {nth}: {why}"));
    let mut result = vec![0; case.buffers()[at].output];
    stream.memcpy_dtoh(&io.output, &mut result).expect("copied");
    stream.synchronize().expect("it ends");
    assert!(result == case.expected(false).expect("a form")[at], "launch {nth} of rank {at}");
}

/// The second launch has the pair of buffers that the first had, and no copies.
fn no_copies(rank: &CudaRank, name: &str, data: Data, form: Form) {
    let of = proved(name, rank.nranks());
    let case = case(&of, data, form);
    let plan = plan_of(rank, &case, options()).expect("a plan");
    let mut io = Shared::new(rank, &case);
    for nth in 1..=3 {
        right(rank, &plan, &case, &mut io, nth);
        let reason = plan.reason_for_copies();
        let expected = (nth == 1).then_some("it was the first launch");
        assert_eq!(reason.as_deref(), expected, "{name}, launch {nth}");
    }
}

#[test]
fn buffers_are_used_where_they_are() {
    let rank = on_each!(3, Devices::Each, &[]);
    no_copies(&rank, "RingAllReduce", sums(COUNT), Form::Loops);
    no_copies(&rank, "MeshAllReduce", sums(COUNT), Form::Table);
    no_copies(&rank, "NcclRingAllReduce", sums(COUNT), Form::Loops);
    let average = Data { count: COUNT, dtype: DType::I32, op: ReduceOp::Avg };
    no_copies(&rank, "RingAllReduce", average, Form::Loops);
}

/// Posts are stores there, and so are the words by which ranks tell their tables.
#[test]
fn buffers_are_used_where_they_are_over_pcie() {
    let rank = on_each!(2, Devices::Each, &[("ROUNDELAY_FAKE_LINK", "pcie")]);
    no_copies(&rank, "RingAllReduce", sums(COUNT), Form::Loops);
}

/// Each rank has the launches on its own pair without copies: it may take another pair than the others, or none.
#[test]
fn each_rank_chooses_its_buffers_by_itself() {
    let rank = on_each!(2, Devices::Each, &[]);
    let of = proved("RingAllReduce", 2);
    let case = case(&of, sums(COUNT), Form::Loops);
    let plan = plan_of(&rank, &case, options()).expect("a plan");
    let mut pairs: Vec<Shared> = (0..10).map(|_| Shared::new(&rank, &case)).collect();
    let first = rank.rank() == RankId(0);
    let copies = |pairs: &mut Vec<Shared>, nth: u32, pair: usize| {
        right(&rank, &plan, &case, &mut pairs[pair], nth);
        plan.reason_for_copies().is_some()
    };
    // Launches 1 to 4: rank 0 has one pair, rank 1 another one each time.
    for nth in 1..=4 {
        let pair = if first { 0 } else { nth as usize };
        assert_eq!(copies(&mut pairs, nth, pair), nth % 2 == 1 && (nth == 1 || !first), "{nth}");
    }
    // Pairs of launches 2 and 4 have tables of rank 1.
    for (nth, pair, copied) in [(5, 2, false), (6, 4, false), (7, 3, true)] {
        let pair = if first { 0 } else { pair };
        assert_eq!(copies(&mut pairs, nth, pair), copied && !first, "{nth}");
    }
    // The launches of an exchange are ever rarer, and so are new pairs: more pairs than tables.
    let mut nth = 7;
    for power in 3..11_u32 {
        let pair = power as usize % 10;
        while nth + 1 < 1 << power {
            nth += 1;
            // Most launches are not looked at.
            let io = &mut pairs[4];
            plan.launch_bytes(rank.stream(), &io.input, &mut io.output).expect("a launch");
        }
        nth += 1;
        assert!(!copies(&mut pairs, nth, pair), "launch {nth}");
    }
    // An allocation at the address of one that is gone is another one.
    let Shared { input, output } = pairs.remove(0);
    let address = input.device_ptr(rank.stream()).0;
    drop(input);
    let bytes = case.buffers()[rank.rank().index()].input;
    let input = rank.rank_buffer("input", bytes).expect("room");
    assert_eq!(input.device_ptr(rank.stream()).0, address, "the driver gives addresses anew");
    pairs.insert(0, Shared { input, output });
    assert!(copies(&mut pairs, nth + 1, 0));
}

/// Memory that others cannot map is copied, with the reason.
#[test]
fn buffers_that_are_copied_have_a_reason() {
    let rank = on_each!(2, Devices::Each, &[]);
    let of = proved("RingAllReduce", 2);
    let shape = |count| case(&of, sums(count), Form::Loops);
    let reason = |count, options: CudaOptions| {
        let case = shape(count);
        let plan = plan_of(&rank, &case, options).expect("a plan");
        let mut room = Room::new(&rank, &case);
        for _ in 0..2 {
            room.launch(&rank, &plan, false).and_then(|()| plan.wait()).expect("all are here");
        }
        let expected = &case.expected(false).expect("a form")[rank.rank().index()];
        assert!(room.result(&rank, false) == *expected);
        plan.reason_for_copies().expect("they are copied")
    };
    let small = reason(1000, options());
    assert!(small.contains("no buffer of the call has 64 KiB"), "{small}");
    let never = reason(COUNT, options().registration(Registration::Never));
    assert!(never.contains("the options say"), "{never}");
    // The buffers of a pool.
    let pool = reason(COUNT, options());
    assert!(pool.contains("the input cannot be mapped by others"), "{pool}");
    // A rank alone cannot choose otherwise.
    let mine = if rank.rank() == RankId(0) { Registration::All } else { Registration::Shared };
    let error = plan_of(&rank, &shape(COUNT), options().registration(mine)).expect_err("E0414");
    assert_eq!(code(&error), "E0414", "{error}");
}

/// Plain allocations are taken where their owner promises to keep them.
#[test]
fn plain_allocations_are_used_where_they_are_on_request() {
    let plain = [("ROUNDELAY_FAKE_ATTRIBUTES", "102=0")];
    let rank = on_each!(2, Devices::Each, &plain);
    let of = proved("RingAllReduce", 2);
    let case = case(&of, sums(COUNT), Form::Loops);
    let usual = plan_of(&rank, &case, options()).expect("a plan");
    let all = plan_of(&rank, &case, options().registration(Registration::All)).expect("a plan");
    let mut io = Shared::new(&rank, &case);
    for nth in 1..=2 {
        right(&rank, &usual, &case, &mut io, nth);
        right(&rank, &all, &case, &mut io, nth);
    }
    let reason = usual.reason_for_copies().expect("they are copied");
    assert!(reason.contains("must outlive the plan"), "{reason}");
    assert_eq!(all.reason_for_copies(), None);
}
