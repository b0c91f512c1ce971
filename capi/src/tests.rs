//! The functions as C calls them, in a world of one rank; calls of several are the programs' of `tests/`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use crate::*;

const SUM: c_int = 0;
const F32: c_int = 7;
const ALL_REDUCE: c_int = 0;
const ALL_GATHER: c_int = 2;

fn world() -> u64 {
    joined(unique_id(), (1, 0), 0)
}

fn unique_id() -> [u8; 128] {
    let mut id = [0; 128];
    // SAFETY: as long as it is to be.
    assert_eq!(unsafe { roundelay_unique_id(id.as_mut_ptr()) }, 0, "{}", error());
    id
}

/// Joins a world with these flags of options.
fn joined(id: [u8; 128], (nranks, rank): (u32, u32), flags: u32) -> u64 {
    let mut world = 0;
    let options = Options { size: 24, timeout_ms: 0, level: 2, flags };
    // SAFETY: as long as they are to be.
    let status =
        unsafe { roundelay_init_id(id.as_ptr(), nranks, rank, &raw const options, &raw mut world) };
    assert_eq!(status, 0, "{}", error());
    world
}

fn error() -> String {
    // SAFETY: a text of this thread.
    unsafe { CStr::from_ptr(roundelay_last_error()) }.to_string_lossy().into_owned()
}

/// Makes a call of `count` floats.
fn call(world: u64, collective: c_int, input: *const f32, output: *mut f32, count: u64) -> c_int {
    // SAFETY: the tests give as many elements as they say, or arguments that are refused.
    unsafe {
        let (input, output) = (input.cast(), output.cast());
        roundelay_call(world, collective, input, output, count, F32, SUM, 0)
    }
}

#[test]
fn a_world_is_joined_called_and_left() {
    let world = world();
    let (input, mut output) = ([1.5_f32; 10], [0_f32; 10]);
    assert_eq!(call(world, ALL_REDUCE, input.as_ptr(), output.as_mut_ptr(), 10), 0, "{}", error());
    assert_eq!(output.map(f32::to_bits), input.map(f32::to_bits));
    assert_eq!(call(world, ALL_GATHER, output.as_ptr(), output.as_mut_ptr(), 10), 0, "{}", error());
    assert_eq!(call(world, ALL_REDUCE, null(), null_mut(), 0), 0, "{}", error());
    assert_eq!((roundelay_barrier(world), roundelay_finalize(world)), (0, 0), "{}", error());

    // A handle that was given back is invalid.
    assert_eq!(roundelay_barrier(world), 406);
    assert!(error().starts_with("there is no world with the handle"), "{}", error());
    assert_eq!((roundelay_finalize(world), roundelay_finalize(0)), (406, 406));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let world = world();
    let mut data = [0_f32; 10];
    let at = data.as_mut_ptr();
    let said = |status: c_int, text: &str| {
        assert_eq!(status, 406, "{}", error());
        assert!(error().contains(text), "{}", error());
    };
    said(call(world, ALL_REDUCE, null(), at, 10), "`input` is a null pointer");
    said(call(world, ALL_REDUCE, at, null_mut(), 10), "`output` is a null pointer");
    said(call(world, 8, at, at, 10), "collective 8 is none of 0 to 7");
    said(call(world, ALL_REDUCE, at, at.wrapping_add(1), 5), "overlap");
    said(call(world, ALL_REDUCE, at, at, u64::MAX), "no memory is so large");
    said(call(world, ALL_REDUCE, at, at, 1 << 62), "no memory is so large");
    // SAFETY: no memory is accessed.
    unsafe {
        let void: *mut c_void = at.cast();
        said(roundelay_call(world, 0, void, void, 1, 12, SUM, 0), "dtype 12 is none of");
        said(roundelay_call(world, 0, void, void, 1, F32, -1, 0), "op -1 is none of");
        assert_eq!(roundelay_call(world, 3, void, void, 1, F32, SUM, 1), 411, "{}", error());
        assert_eq!(roundelay_call(world, 0, void.byte_add(1), void, 0, F32, SUM, 0), 0);
        let aside = void.byte_add(2);
        assert_eq!(roundelay_call(world, 0, aside, aside, 4, F32, SUM, 0), 404, "{}", error());
        assert_eq!(roundelay_send(world, aside, 1, F32, 0), 404, "{}", error());
        said(roundelay_rank(world, null_mut()), "`rank` is a null pointer");
        said(roundelay_use(world, null(), null(), -1, 0, 1), "`source` is a null pointer");
        let mut part = 0;
        said(roundelay_split(world, -2, 0, &raw mut part), "color -2");
        said(roundelay_init_id(null(), 1, 0, null(), null_mut()), "`id` is a null pointer");
        let none = Options { size: 8, timeout_ms: 0, level: 2, flags: 0 };
        said(roundelay_init_from_env(&raw const none, null_mut()), "options of 8 bytes");
        let none = Options { size: 24, timeout_ms: 0, level: 3, flags: 0 };
        said(roundelay_init_from_env(&raw const none, null_mut()), "level 3");
        for (flags, text) in [(3, "CHECK_FIRST and ROUNDELAY_CHECK_NEVER"), (16, "flags 0x10")] {
            let none = Options { size: 24, timeout_ms: 0, level: 2, flags };
            said(roundelay_init_from_env(&raw const none, null_mut()), text);
        }
    }
    said(roundelay_free(at.cast()), "no memory was lent");
    said(roundelay_wait(77, -1), "no request");
    assert_eq!(roundelay_finalize(world), 0);
}

/// Two ranks are two threads: where one of them checks its first call and the other does not, they make different
/// calls.
#[test]
fn first_calls_check_themselves_where_flags_say_so() {
    let call_of = |id, rank, flags| {
        let world = joined(id, (2, rank), flags);
        let (input, mut output) = ([1_f32; 10], [0_f32; 10]);
        let status = call(world, ALL_REDUCE, input.as_ptr(), output.as_mut_ptr(), 10);
        let said = if status == 0 { String::new() } else { error() };
        // The first barrier is checked, too.
        assert_eq!(roundelay_barrier(world), status, "{}", error());
        assert_eq!(roundelay_finalize(world), 0);
        (status, output[0].to_bits(), said)
    };
    let both = |flags: [u32; 2]| {
        let id = unique_id();
        std::thread::scope(|threads| {
            let other = threads.spawn(move || call_of(id, 1, flags[1]));
            [call_of(id, 0, flags[0]), other.join().expect("no panic")]
        })
    };
    for flags in [0, worlds::CHECK_FIRST, worlds::CHECK_NEVER | worlds::USUAL_WAYS] {
        for (status, sum, said) in both([flags; 2]) {
            assert_eq!((status, sum), (0, 2_f32.to_bits()), "{flags}: {said}");
        }
    }
    for (status, _, said) in both([worlds::CHECK_FIRST, worlds::CHECK_NEVER]) {
        assert_eq!(status, 414, "{said}");
        assert!(said.contains("check"), "{said}");
    }
}

/// After enough calls of a shape, rank 0 of two threads tells a way, but not where it measures nothing.
#[test]
fn ways_are_measured_unless_a_flag_says_no() {
    let told = |id, rank, flags| {
        let world = joined(id, (2, rank), flags);
        let mut data = vec![1_f32; 5000];
        let at = data.as_mut_ptr();
        for _ in 0..220 {
            assert_eq!(call(world, ALL_REDUCE, at, at, 5000), 0, "{}", error());
        }
        let mut ways = null();
        // SAFETY: a pointer to a pointer, and the text that it then points to.
        let lines = unsafe {
            assert_eq!(roundelay_ways(world, &raw mut ways), 0, "{}", error());
            CStr::from_ptr(ways).to_string_lossy().lines().count()
        };
        assert_eq!(roundelay_finalize(world), 0);
        lines
    };
    for (flags, lines) in [(0, 1), (worlds::USUAL_WAYS, 0)] {
        let id = unique_id();
        std::thread::scope(|threads| {
            threads.spawn(move || assert_eq!(told(id, 1, flags), 0));
            assert_eq!(told(id, 0, flags), lines, "{flags}");
        });
    }
}

/// The arguments of a call with a count for each block, of a world of one rank.
struct Blocks {
    collective: c_int,
    input: *const f32,
    counts: [u64; 2],
    starts: [i64; 2],
    output: *mut f32,
    packed: bool,
}

impl Blocks {
    fn call(&self, world: u64) -> c_int {
        let starts = |at: &i64| if self.packed { null() } else { std::ptr::from_ref(at) };
        // SAFETY: the tests give as many elements as they say, or arguments that are refused.
        unsafe {
            roundelay_call_v(
                world,
                self.collective,
                self.input.cast(),
                &raw const self.counts[0],
                starts(&self.starts[0]),
                self.output.cast(),
                &raw const self.counts[1],
                starts(&self.starts[1]),
                F32,
                SUM,
                0,
            )
        }
    }
}

#[test]
#[allow(clippy::float_cmp, reason = "the floats are copied")]
fn blocks_lie_where_the_caller_says() {
    let world = world();
    let input = [1_f32, 2.0, 3.0];
    for collective in [ALL_GATHER, 1, 5, 6, 7] {
        let mut output = [0_f32; 6];
        let middle = &raw mut output[3];
        let of = |counts, starts, packed| Blocks {
            collective,
            input: input.as_ptr(),
            counts,
            starts,
            output: middle,
            packed,
        };
        assert_eq!(of([2, 2], [1, -2], false).call(world), 0, "{}", error());
        assert_eq!(output, [0.0, 2.0, 3.0, 0.0, 0.0, 0.0], "collective {collective}");
        assert_eq!(of([3, 3], [0, 0], true).call(world), 0, "{}", error());
        assert_eq!(output, [0.0, 2.0, 3.0, 1.0, 2.0, 3.0], "collective {collective}");
        assert_eq!(of([0, 0], [i64::MAX, i64::MIN], false).call(world), 0, "{}", error());
        assert_eq!(of([2, 3], [0, 0], true).call(world), 432, "two counts of one block");
        assert!(error().contains("2 elements in the input of rank 0 and 3"), "{}", error());
        assert_eq!(of([1 << 60, 1 << 60], [0, 0], true).call(world), 432, "{}", error());
        assert_eq!(of([u64::MAX, u64::MAX], [0, 0], true).call(world), 432, "{}", error());
        assert_eq!(of([1, 1], [(1 << 62) + 5, 0], false).call(world), 432, "{}", error());
        let none = Blocks { input: null(), ..of([1, 1], [0, 0], true) };
        assert_eq!(none.call(world), 406);
        assert!(error().contains("`input` is a null pointer"), "{}", error());
        let aside =
            Blocks { input: input.as_ptr().wrapping_byte_add(1), ..of([1, 1], [0, 0], true) };
        assert_eq!(aside.call(world), 404, "{}", error());
        // In place the block of the input is the block of the output; all-to-all has no such form.
        let same = Blocks { input: middle, ..of([2, 2], [1, 1], false) };
        let expected = if collective == 7 { 406 } else { 0 };
        assert_eq!(same.call(world), expected, "{}", error());
        let shifted = Blocks { input: middle, ..of([2, 2], [0, 1], false) };
        assert_eq!(shifted.call(world), 406);
        assert!(error().contains("block 0 of the input and block 0 of the output"), "{}", error());
        assert_eq!(output, [0.0, 2.0, 3.0, 1.0, 2.0, 3.0], "refused calls move nothing");
    }
    let mut output = 0_f32;
    let reduce = Blocks {
        collective: ALL_REDUCE,
        input: input.as_ptr(),
        counts: [1, 1],
        starts: [0, 0],
        output: &raw mut output,
        packed: true,
    };
    assert_eq!(reduce.call(world), 432);
    assert!(error().contains("AllReduce has one count"), "{}", error());

    let (mut output, mut request, count) = ([0_f32; 3], 0, 3);
    // SAFETY: as many elements as the count says, which live until the call is done.
    let status = unsafe {
        roundelay_start_v(
            world,
            ALL_GATHER,
            input.as_ptr().cast(),
            &raw const count,
            null(),
            output.as_mut_ptr().cast(),
            &raw const count,
            null(),
            F32,
            SUM,
            0,
            &raw mut request,
        )
    };
    assert_eq!((status, roundelay_wait(request, -1)), (0, 0), "{}", error());
    assert_eq!(output, input);
    assert_eq!(roundelay_finalize(world), 0);
}

#[test]
#[allow(clippy::float_cmp, reason = "the floats are copied")]
fn calls_are_started_and_waited_for() {
    let world = world();
    let mut data = [2_f32; 10];
    let mut request = 0;
    let at: *mut c_void = data.as_mut_ptr().cast();
    // SAFETY: the data are there until both are waited for.
    let start = |request: *mut u64| unsafe {
        roundelay_start(world, ALL_REDUCE, at, at, 10, F32, SUM, 0, request)
    };
    assert_eq!(start(&raw mut request), 0, "{}", error());
    assert_eq!(roundelay_wait(request, -1), 0, "{}", error());
    assert_eq!(roundelay_wait(request, 0), 406, "the request was given back");
    assert_eq!(start(&raw mut request), 0, "{}", error());
    assert_eq!(roundelay_release(request), 0);
    assert_eq!(roundelay_barrier(world), 0, "{}", error());

    // The receive waits until another thread sends.
    let mut got = [0_f32; 3];
    let (status, sent) = std::thread::scope(|threads| {
        let to: usize = got.as_mut_ptr().addr();
        let recv = threads.spawn(move || {
            let to: *mut c_void = std::ptr::with_exposed_provenance_mut(to);
            // SAFETY: there until the thread ends.
            unsafe { roundelay_recv(world, to, 3, F32, 0) }
        });
        let data = [7_f32, 8.0, 9.0];
        // SAFETY: as many as it says.
        let sent = unsafe { roundelay_send(world, data.as_ptr().cast(), 3, F32, 0) };
        (recv.join().expect("no panic"), sent)
    });
    assert_eq!((status, sent, got), (0, 0, [7.0, 8.0, 9.0]), "{}", error());
    assert_eq!(roundelay_finalize(world), 0);
}

#[test]
fn memory_is_lent_until_its_world_is_left() {
    let world = world();
    let (mut a, mut b) = (null_mut(), null_mut());
    // SAFETY: pointers to pointers.
    unsafe {
        assert_eq!(roundelay_alloc(world, 100, &raw mut a), 0, "{}", error());
        assert_eq!(roundelay_alloc(world, 0, &raw mut b), 0, "{}", error());
        assert_eq!(roundelay_alloc(world, 1 << 60, &raw mut b), 407, "{}", error());
    }
    let floats: *mut f32 = a.cast();
    assert_eq!(call(world, ALL_REDUCE, floats, floats, 25), 0, "{}", error());
    assert_eq!((roundelay_free(a), roundelay_free(a), roundelay_free(null_mut())), (0, 406, 0));
    assert_eq!((roundelay_finalize(world), roundelay_free(b)), (0, 406));
}

#[test]
fn a_world_that_was_aborted_says_why() {
    let world = world();
    // SAFETY: a text.
    assert_eq!(unsafe { roundelay_abort(world, c"the data are wrong".as_ptr()) }, 0);
    // SAFETY: no text.
    assert_eq!(unsafe { roundelay_abort(world, null()) }, 0, "twice is once");
    assert_eq!(roundelay_barrier(world), 413);
    assert!(error().contains("the data are wrong"), "{}", error());
    assert_eq!(roundelay_finalize(world), 0);
}

/// Calls `roundelay_use` of a source, and returns its code.
fn used(world: u64, source: &str, algorithm: Option<&str>, collective: c_int) -> c_int {
    let source = CString::new(source).expect("no zeros");
    let algorithm = algorithm.map(|text| CString::new(text).expect("no zeros"));
    let algorithm: *const c_char = algorithm.as_ref().map_or(null(), |text| text.as_ptr());
    // SAFETY: texts.
    unsafe { roundelay_use(world, source.as_ptr(), algorithm, collective, 0, u64::MAX) }
}

#[test]
fn algorithms_are_compiled_or_refused() {
    let world = world();
    assert_eq!(used(world, "RingAllReduce", None, -1), 0, "{}", error());
    assert_eq!(used(world, "RingReduce", Some("RingReduce slices=2"), 4), 0, "{}", error());
    assert_eq!(used(world, "RingReduce", Some("slices=2"), -1), 0, "{}", error());
    assert_eq!(used(world, "no/such.coll", None, -1), 1, "{}", error());
    assert_eq!(used(world, "RingAllReduce", None, ALL_GATHER), number("E0503"), "{}", error());
    assert_eq!(used(world, "RingAllReduse", None, -1), number("E0502"), "{}", error());
    assert!(error().contains("did you mean `RingAllReduce`?"), "{}", error());
    assert_eq!(used(world, "algorithm X() -> AllReduce { copy(local.input); }", None, -1), 104);
    assert!(error().contains("<stdin>:1:"), "{}", error());
    let two = "algorithm A() -> AllReduce { } algorithm B() -> AllReduce { }";
    assert_eq!(used(world, two, None, -1), 406);
    assert!(error().contains("several algorithms: A, B"), "{}", error());
    assert_eq!(used(world, two, Some("A"), -1), 0, "{}", error());
    // It is proved when it is called.
    let mut data = [0_f32; 4];
    assert_eq!(call(world, ALL_REDUCE, [1_f32; 4].as_ptr(), data.as_mut_ptr(), 4), 304);
    assert_eq!(roundelay_finalize(world), 0);
}

fn number(code: &str) -> c_int {
    code[1..].parse().expect("a number")
}

#[test]
#[allow(clippy::float_cmp, reason = "small integers add exactly")]
fn an_algorithm_runs_for_all_ranks() {
    let (a, b) = ([1_f32, 2.0], [10_f32, 20.0]);
    let (mut x, mut y) = ([0_f32; 2], [0_f32; 2]);
    let inputs = [a.as_ptr().cast(), b.as_ptr().cast()];
    let outputs = [x.as_mut_ptr().cast(), y.as_mut_ptr().cast()];
    // SAFETY: as many as it says.
    let status = unsafe {
        let (inputs, outputs) = (inputs.as_ptr(), outputs.as_ptr());
        roundelay_run(c"RingAllReduce".as_ptr(), null(), 2, inputs, outputs, 2, F32, SUM)
    };
    assert_eq!((status, x, y), (0, [11.0, 22.0], [11.0, 22.0]), "{}", error());
}

#[test]
fn a_panic_is_an_error() {
    assert_eq!(guard(|| panic!("by a test")), 410);
    assert!(error().contains("by a test"), "{}", error());
    assert_eq!(guard(|| panic!("by {}", "two")), 410);
    assert!(error().contains("by two"), "{}", error());
}

/// Input and output of one rank overlap, and the other rank hears of it from its call.
#[test]
fn a_refused_call_is_told_to_the_other_rank() {
    let id = unique_id();
    let rank = |rank: u32| {
        let world = joined(id, (2, rank), 0);
        let mut data = [1_f32; 10];
        let at = data.as_mut_ptr();
        let output = if rank == 0 { at.wrapping_add(1) } else { at };
        let told = (call(world, ALL_REDUCE, at, output, 5), error());
        let again = call(world, ALL_REDUCE, at, at, 10);
        // SAFETY: a text of C.
        let refused = unsafe { roundelay_refuse(world, c"no time".as_ptr()) };
        (told, again, refused, roundelay_barrier(world), roundelay_finalize(world))
    };
    let [own, other] = std::thread::scope(|threads| {
        [0, 1].map(|of| threads.spawn(move || rank(of))).map(|one| one.join().expect("no panic"))
    });
    assert!(own.0.0 == 406 && own.0.1.contains("input and output of AllReduce overlap"), "{own:?}");
    assert!(
        other.0.0 == 414 && other.0.1.starts_with("rank 0 refused to make call 1"),
        "{other:?}"
    );
    assert!(other.0.1.contains("input and output of AllReduce overlap"), "{other:?}");
    for (_, again, refused, barrier, left) in [own, other] {
        assert_eq!([again, refused, barrier, left], [0; 4]);
    }
}
