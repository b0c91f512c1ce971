//! Ranks with a GPU each on several hosts: their calls go through memory of the hosts.

use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use roundelay::cuda::{DeviceCalls, RankBuffer};
use roundelay::{Call, Collective, DType, Options, ReduceOp, World};
use roundelay_kernels::cuda::Transport;
use roundelay_kernels::cuda::cudarc::driver::DeviceSlice as _;

use super::{Output, all_succeeded, started};

const NRANKS: u32 = 4;
/// The time that a call may take on a machine with much load.
const LONG: Duration = Duration::from_secs(20);
/// The deadline of a call for which a rank does not come.
const SHORT: Duration = Duration::from_secs(4);
/// The variable of a deadline.
const SECONDS: &str = "SECONDS";

/// Returns the world of this process, or, in the process of the test, the outputs of the ranks; ranks 0 and 2 are on one
/// host, the others on another.
fn on_two_hosts<F>(here: F, deadline: Duration) -> Result<World, Vec<Output>> {
    if std::env::var_os("ROUNDELAY_RANK").is_some() {
        let asked = std::env::var(SECONDS).ok().and_then(|seconds| seconds.parse().ok());
        let deadline = asked.map_or(deadline, Duration::from_secs);
        return Ok(World::from_env_with(Options::new().deadline(deadline)).expect("a world"));
    }
    Err(two_hosts(here, deadline, |_, _| {}))
}

/// Runs the test that `here` is a function of as ranks of two hosts.
fn two_hosts<F>(_here: F, deadline: Duration, more: impl Fn(u32, &mut Command)) -> Vec<Output> {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr()).expect("a port");
    started::<F>(NRANKS, |rank, command| {
        command.env("ROUNDELAY_FAKE_DEVICES", NRANKS.to_string());
        command.env("ROUNDELAY_ROOT", port.to_string()).env("ROUNDELAY_KEY", "5a".repeat(32));
        command.env("ROUNDELAY_HOST_ID", (rank % 2).to_string());
        command.env(SECONDS, deadline.as_secs().to_string());
        more(rank, command);
    })
}

/// The device calls of this rank, on the device of its number.
fn calls_of(world: &World) -> DeviceCalls {
    world.device_calls(world.rank().id() as usize).expect("a device each")
}

/// Bytes that are whole numbers in f32 and differ by rank.
fn input_of(rank: u32, len: usize) -> Vec<u8> {
    let value = |at: usize| (at % 17) as f32 + rank as f32;
    (0..len).flat_map(|at| value(at).to_ne_bytes()).collect()
}

/// Buffers of a call on the device, the host's bytes of the input and of the expected output.
struct Room {
    input: RankBuffer,
    output: RankBuffer,
    expected: Vec<u8>,
}

fn call_of(collective: Collective, root: u32, count: u64) -> Call {
    let op = if collective == Collective::AllReduce { ReduceOp::Sum } else { ReduceOp::Max };
    Call { collective, root, count, dtype: DType::F32, op }
}

fn room_of(world: &World, calls: &DeviceCalls, call: Call) -> Room {
    let plan = calls.plan(call).expect("a plan");
    let mut rank = world.rank();
    let bytes = input_of(rank.id(), plan.input_len());
    let mut expected = vec![0; 4 * plan.output_len()];
    rank.call_bytes(call, &bytes, &mut expected).expect("the world's own call");
    let device = calls.rank();
    let mut input = device.rank_buffer("input", bytes.len()).expect("room");
    let output = device.rank_buffer("output", expected.len()).expect("room");
    device.stream().memcpy_htod(&bytes, &mut input).expect("copied");
    Room { input, output, expected }
}

/// Returns the bytes of a buffer.
fn bytes_of(calls: &DeviceCalls, buffer: &RankBuffer) -> Vec<u8> {
    let (mut bytes, stream) = (vec![0; buffer.len()], calls.rank().stream());
    stream.memcpy_dtoh(buffer, &mut bytes).expect("copied");
    stream.synchronize().expect("it ends");
    bytes
}

#[test]
fn results_are_those_of_the_worlds_calls() {
    fn here() {}
    let world = match on_two_hosts(here, LONG) {
        Ok(world) => world,
        Err(ended) => return all_succeeded(&ended),
    };
    let calls = calls_of(&world);
    assert_eq!((calls.rank().nranks(), calls.rank().rank().0), (NRANKS, world.rank().id()));
    let ways: Vec<_> = calls.rank().transports().map(|(_, way, why)| (way, why)).collect();
    assert_eq!(ways, [(Transport::Host, Some("ranks are on several hosts")); 3]);
    let other = calls.rank().context().new_stream().expect("a stream");
    let all = [
        (Collective::AllReduce, 0, 1003),
        (Collective::AllGather, 0, 77),
        (Collective::ReduceScatter, 0, 33),
        (Collective::Broadcast, 3, 500),
        (Collective::Reduce, 1, 9),
        (Collective::AllToAll, 0, 5),
        (Collective::Gather, 2, 8),
        (Collective::Scatter, 1, 4),
        (Collective::AllReduce, 0, 0),
        // Kernels use buffers of this size where they are, once all ranks of the host have mapped them.
        (Collective::AllReduce, 0, 20_000),
    ];
    let mut rooms = all.map(|(collective, root, count)| {
        let call = call_of(collective, root, count);
        (call, room_of(&world, &calls, call))
    });
    for again in 0..5 {
        for (nth, (call, room)) in rooms.iter_mut().enumerate() {
            let plan = calls.plan(*call).expect("a plan");
            assert!(plan.kernel().is_none());
            // A sum has kernels on each host.
            let levels = call.collective == Collective::AllReduce;
            assert_eq!(format!("{plan:?}").contains("levels: 2"), levels, "{plan:?}");
            let why = plan.reason_for_copies().expect("they are copied");
            assert!(why.contains("several hosts"), "{why}");
            let stream = if (nth + again) % 3 == 0 { &other } else { calls.rank().stream() };
            plan.launch_bytes(stream, &room.input, &mut room.output).expect("a launch");
        }
        calls.wait().expect("they end");
        for (call, room) in &mut rooms {
            assert!(bytes_of(&calls, &room.output) == room.expected, "{call:?}, launch {again}");
            calls.rank().stream().memset_zeros(&mut room.output).expect("cleared");
        }
    }
    // In place, on two levels and by another algorithm.
    for count in [1003, 20_000] {
        let call = call_of(Collective::AllReduce, 0, count);
        let mut room = room_of(&world, &calls, call);
        let plan = calls.plan(call).expect("a plan");
        plan.launch_bytes_in_place(calls.rank().stream(), &mut room.input).expect("a launch");
        plan.wait().expect("it ends");
        assert!(bytes_of(&calls, &room.input) == room.expected);
    }
    let world = world.using(roundelay::library::RingAllReduce::new());
    world.update(&calls);
    let call = call_of(Collective::AllReduce, 0, 1003);
    let mut room = room_of(&world, &calls, call);
    let plan = calls.plan(call).expect("a plan");
    assert!(!format!("{plan:?}").contains("levels"), "{plan:?}");
    plan.launch_bytes_in_place(calls.rank().stream(), &mut room.input).expect("a launch");
    plan.wait().expect("it ends");
    assert!(bytes_of(&calls, &room.input) == room.expected);
}

/// A rank that ends while the others wait in a launch, and one that gives up.
#[test]
fn all_hosts_know_of_a_rank_that_ends_or_gives_up() {
    fn here() {}
    let world = match on_two_hosts(here, LONG) {
        Ok(world) => world,
        Err(ended) => return all_succeeded(&ended),
    };
    let call = call_of(Collective::AllReduce, 0, 1003);
    for (last, codes) in [(false, ["E0413"; 2]), (true, ["E0413", "E0428"])] {
        let calls = calls_of(&world);
        let mut room = room_of(&world, &calls, call);
        let plan = calls.plan(call).expect("a plan");
        let me = world.rank().id();
        if me == 3 {
            // The others are in the call by then.
            std::thread::sleep(Duration::from_millis(500));
            if last {
                // The library's harness counts a test that has passed.
                println!("test result: ok. 1 passed");
                std::process::exit(0);
            }
            calls.abort("rank 3 has seen enough").expect("it is this process");
        }
        let begun = Instant::now();
        let launched = plan.launch_bytes(calls.rank().stream(), &room.input, &mut room.output);
        let error = launched.and_then(|()| plan.wait()).expect_err("rank 3 does not come");
        assert!(codes.contains(&error.code().as_str()), "{error}");
        let told = if last { "rank 3" } else { "rank 3 has seen enough" };
        assert!(error.to_string().contains(told), "{error}");
        assert!(begun.elapsed() < LONG / 2, "{:?}", begun.elapsed());
        drop(plan);
    }
}

/// Rank 3 does not come, so that the kernel of rank 1 gives up: the ranks of the other host, which wait for longer, get no sum.
#[test]
fn a_sum_without_a_rank_is_no_result() {
    fn here() {}
    // The kernels are compiled in a world with a deadline that allows for it.
    let world = match on_two_hosts(here, LONG) {
        Ok(world) => world,
        Err(ended) => {
            all_succeeded(&ended);
            let ended = on_two_hosts(here, SHORT).map(drop).expect_err("the test's own process");
            return all_succeeded(&ended);
        }
    };
    let calls = calls_of(&world);
    let call = call_of(Collective::AllReduce, 0, 1003);
    let mut room = room_of(&world, &calls, call);
    let plan = calls.plan(call).expect("a plan");
    let me = world.rank().id();
    if std::env::var(SECONDS).is_ok_and(|seconds| seconds != SHORT.as_secs().to_string()) {
        return;
    }
    if me == 3 {
        std::thread::sleep(2 * SHORT);
        return;
    }
    if me != 1 {
        std::thread::sleep(SHORT * 3 / 4);
    }
    let launched = plan.launch_bytes(calls.rank().stream(), &room.input, &mut room.output);
    let error = launched.and_then(|()| plan.wait()).expect_err("rank 3 does not come");
    let known = if me == 1 { ["E0405", "E0413"] } else { ["E0413"; 2] };
    assert!(known.contains(&error.code().as_str()), "{error}");
    assert!(me == 1 || error.to_string().contains("gave up"), "{error}");
}

/// A process that ends at any signal of its kernels on two levels, of the first rank of a host and of another: all others get an
/// error or the whole sum.
#[test]
fn a_rank_may_end_at_every_signal_of_two_levels() {
    fn here() {}
    if std::env::var_os("ROUNDELAY_RANK").is_some() {
        let world = on_two_hosts(here, LONG).expect("a rank");
        let calls = calls_of(&world);
        let call = call_of(Collective::AllReduce, 0, 100);
        let mut room = room_of(&world, &calls, call);
        let plan = calls.plan(call).expect("a plan");
        let launched = plan.launch_bytes(calls.rank().stream(), &room.input, &mut room.output);
        match launched.and_then(|()| plan.wait()) {
            Ok(()) => assert!(bytes_of(&calls, &room.output) == room.expected),
            Err(error) => {
                let known = ["E0413", "E0428"].contains(&error.code().as_str());
                assert!(known, "{error}");
            }
        }
        return;
    }
    // Rank 1 is the first of its host.
    for bad in [1, 3] {
        for signal in 1.. {
            assert!(signal < 100, "rank {bad} never comes through");
            let mut ended = two_hosts(here, LONG, |_, command| {
                command.env("ROUNDELAY_SHIM_END", format!("{bad} {signal}"));
            });
            let of_bad = ended.remove(bad);
            all_succeeded(&ended);
            if of_bad.status.signal() != Some(9) {
                all_succeeded(&[of_bad]);
                assert!(signal > 2, "a kernel has more signals than {signal}");
                break;
            }
        }
    }
}

/// A device that is not there: all ranks get an error.
#[test]
fn a_rank_without_its_device_is_named_to_all() {
    fn here() {}
    let world = match on_two_hosts(here, LONG) {
        Ok(world) => world,
        Err(ended) => return all_succeeded(&ended),
    };
    let me = world.rank().id();
    let error = world.device_calls(if me == 1 { 17 } else { 0 }).expect_err("device 17");
    // Rank 3 is on the host of rank 1.
    let codes = [("E0427", "rank 1 "), ("E0415", "17"), ("E0427", "rank 1 "), ("E0413", "17")];
    let (code, text) = codes[me as usize];
    assert_eq!(error.code().as_str(), code, "{error}");
    assert!(error.to_string().contains(text), "{error}");
}
