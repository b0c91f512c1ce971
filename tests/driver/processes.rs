//! Ranks with a process and a device each, below the driver for tests: each test starts its ranks as processes of this
//! program, which run the same test.

use std::fmt::Write as _;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use roundelay::{Call, Collective, DType, Options, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_core::layout::Configured;
use roundelay_core::verify::Proved;
use roundelay_export::cuda::{Form, Protocol};
use roundelay_kernels::cuda::{CudaOptions, CudaRank, Error, ProcessPlan, Transport};
use roundelay_kernels::shared_memory::{UniqueId, World};

use super::below::one_device::sums;
use super::rank_processes::{Room, case, plan_of, proved};
use super::{build, variables};
use crate::driver::cases::{Case, Data};

const WHY: Duration = Duration::from_secs(20);

/// The devices of the ranks.
#[derive(Clone, Copy)]
enum Devices {
    /// One for all ranks.
    One,
    /// One for each rank, all of which reach each other.
    Each,
    /// One for each rank, of which the last reaches no other.
    OneAlone,
    /// One for each rank, which sees no other.
    Hidden,
}

/// The variables of a test's ranks.
type Variables<'a> = &'a [(&'a str, &'a str)];

/// Runs the test that `here` is a function of as `nranks` processes below the driver, and returns what they said; in such
/// a process, returns its rank.
fn ranks<F>(
    nranks: u32,
    devices: Devices,
    variables: Variables<'_>,
    _here: F,
) -> Result<CudaRank, Vec<Output>> {
    if std::env::var_os("ROUNDELAY_RANK").is_some() {
        let world = World::from_env(Options::new().deadline(WHY)).expect("a world");
        let device = match devices {
            Devices::One | Devices::Hidden => 0,
            Devices::Each | Devices::OneAlone => world.rank() as usize,
        };
        return Ok(CudaRank::join(&world, device).expect("a rank on a device"));
    }
    let id = UniqueId::new().expect("an id").to_hex();
    Err(started::<F>(nranks, |rank, command| {
        // The driver's last device reaches no other.
        let count = match devices {
            Devices::One => 1,
            Devices::Each | Devices::Hidden => nranks + 1,
            Devices::OneAlone => nranks,
        };
        command.env("ROUNDELAY_FAKE_DEVICES", count.to_string());
        if matches!(devices, Devices::Hidden) {
            command.env("ROUNDELAY_FAKE_VISIBLE", rank.to_string());
        }
        command.envs(variables.iter().copied()).env("ROUNDELAY_ID", &id);
    }))
}

/// Runs the test that `F` is a function of as `nranks` processes below the driver, which `prepare` gives their variables.
fn started<F>(nranks: u32, prepare: impl Fn(u32, &mut Command)) -> Vec<Output> {
    let path = std::any::type_name::<F>().rsplit_once("::").expect("a function of a test").0;
    let name = path.split_once("::").expect("a test of this program").1;
    let start = |rank: u32| -> Child {
        let mut command = Command::new(std::env::current_exe().expect("a running program"));
        build::below(&mut command).args(["--exact", name, "--nocapture"]);
        command.env("ROUNDELAY_RANK", rank.to_string());
        command.env("ROUNDELAY_NRANKS", nranks.to_string());
        prepare(rank, &mut command);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it starts")
    };
    variables::outputs((0..nranks).map(start).collect())
}

/// Has a test run as ranks in processes of their own, all of which must succeed; the value is the rank.
macro_rules! on_each {
    ($nranks:expr, $devices:expr, $variables:expr) => {{
        fn here() {}
        match ranks($nranks, $devices, $variables, here) {
            Ok(rank) => rank,
            Err(ended) => return all_succeeded(&ended),
        }
    }};
}

mod ends;
mod hosts;
mod pairs;
mod registration;
mod threads;
mod waits;

fn all_succeeded(ended: &[Output]) {
    let mut wrong = String::new();
    for (rank, Output { status, stdout, stderr }) in ended.iter().enumerate() {
        let [said, errors] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(bytes));
        if !status.success() || !said.contains("1 passed") {
            _ = writeln!(wrong, "rank {rank}: {status}\n{said}\n{errors}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn options() -> CudaOptions {
    CudaOptions::new().deadline(WHY)
}

/// Compares the results of several launches of a case on this rank with the host's.
fn agrees(rank: &CudaRank, name: &str, data: Data, form: Form) {
    let of = proved(name, rank.nranks());
    case_agrees(rank, &case(&of, data, form));
}

fn case_agrees(rank: &CudaRank, case: &Case) {
    let name = &case.proved.schedule().algorithm;
    let plan = plan_of(rank, case, options()).unwrap_or_else(|why| panic!("{name}: {why}"));
    let mut room = Room::new(rank, case);
    for in_place in [false, true] {
        let Some(expected) = case.expected(in_place) else { continue };
        for nth in 0..3 {
            let named = || format!("{name} {} launch {nth}", case.name(in_place));
            let launched = room.launch(rank, &plan, in_place);
            launched.and_then(|()| plan.wait()).unwrap_or_else(|why| panic!("{}: {why}", named()));
            let (got, expected) = (room.result(rank, in_place), &expected[rank.rank().index()]);
            assert!(got == *expected, "{}: rank {} differs", named(), rank.rank());
        }
    }
}

const AVERAGE: Data = Data { count: 1003, dtype: DType::Bf16, op: ReduceOp::Avg };

/// The cases of each kind of memory.
fn few(rank: &CudaRank) {
    agrees(rank, "RingAllReduce", sums(5000), Form::Loops);
    agrees(rank, "RingAllGather", sums(3), Form::Table);
}

/// The cases of each kind of posts.
fn table(rank: &CudaRank) {
    few(rank);
    agrees(rank, "RingAllReduce", AVERAGE, Form::Loops);
    agrees(rank, "MeshAllReduce", sums(0), Form::Loops);
    agrees(rank, "RingBroadcast", sums(1003), Form::Loops);
    agrees(rank, "NcclRingAllReduce", sums(103), Form::Loops);
    agrees(rank, "MeshAllToAll", sums(7), Form::Loops);
}

fn lines_of_128_bytes<'a>(of: &'a (&'static Configured, Proved)) -> Case<'a> {
    Case { protocol: Protocol::Ll128, ..case(of, sums(1003), Form::Loops) }
}

/// Looks that lines of 128 bytes are refused, with the way of the first ranks that do not keep them together.
fn tears_lines(rank: &CudaRank, way: &str) {
    let of = proved("NcclRingAllReduce", rank.nranks());
    let error = plan_of(rank, &lines_of_128_bytes(&of), options()).expect_err("lines are torn");
    assert_eq!(code(&error), "E0423", "{error}");
    let told = error.to_string();
    assert!(told.contains("rank 0 reaches rank ") && told.contains(way), "{told}");
}

#[test]
fn results_are_the_hosts_on_a_device_each() {
    let rank = on_each!(3, Devices::Each, &[]);
    let ways: Vec<_> = rank.transports().map(|(_, way, _)| way).collect();
    assert_eq!(ways, [Transport::NvLink; 2]);
    table(&rank);
    case_agrees(&rank, &lines_of_128_bytes(&proved("NcclRingAllReduce", 3)));
}

/// Where atomics are not whole, posts are stores.
#[test]
fn results_are_the_hosts_over_pcie() {
    let rank = on_each!(3, Devices::Each, &[("ROUNDELAY_FAKE_LINK", "pcie")]);
    for (_, way, why) in rank.transports() {
        assert_eq!((way, why), (Transport::Pcie, Some("no NVLink joins the devices")));
    }
    table(&rank);
    tears_lines(&rank, "peer by PCIe");
}

/// A device without virtual memory shares plain allocations by handles.
#[test]
fn results_are_the_hosts_by_legacy_handles() {
    let rank = on_each!(2, Devices::Each, &[("ROUNDELAY_FAKE_ATTRIBUTES", "102=0")]);
    assert!(rank.transports().all(|(_, way, _)| way == Transport::NvLink));
    few(&rank);
}

/// Each process sees its own device alone, as launchers may have it.
#[test]
fn results_are_the_hosts_where_devices_are_hidden() {
    let rank = on_each!(2, Devices::Hidden, &[]);
    for (_, way, why) in rank.transports() {
        assert_eq!(way, Transport::Pcie);
        assert!(why.is_some_and(|why| why.contains("not visible to this process")), "{why:?}");
    }
    few(&rank);
}

/// The device runs one process at a time, for a millisecond each.
#[test]
fn results_are_the_hosts_in_slices() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().to_str().expect("a path in UTF-8");
    let sliced = [("ROUNDELAY_FAKE_SLICE", "1000"), ("ROUNDELAY_FAKE_MACHINE", folder)];
    let rank = on_each!(2, Devices::One, &sliced);
    agrees(&rank, "RingAllReduce", sums(103), Form::Loops);
}

/// The memory of a rank that some rank does not reach is the host's.
#[test]
fn results_are_the_hosts_through_the_host() {
    let rank = on_each!(3, Devices::OneAlone, &[]);
    for (peer, way, why) in rank.transports() {
        assert_eq!(way, Transport::Host, "{peer}");
        let why = why.expect("a reason");
        let told = ["mapping another rank's memory", "cannot reach the device of rank"];
        assert!(told.iter().any(|text| why.contains(text)), "{why}");
    }
    few(&rank);
    tears_lines(&rank, "through the host");
}

#[test]
fn results_are_the_hosts_on_one_device() {
    let rank = on_each!(2, Devices::One, &[]);
    let ways: Vec<_> = rank.transports().collect();
    assert_eq!(ways, [(RankId(1 - rank.rank().0), Transport::SameDevice, None)]);
    few(&rank);
}

fn code(error: &Error) -> &'static str {
    error.code().as_str()
}

/// A plan that checks itself, and many launches in a row on two streams.
#[test]
fn launches_follow_each_other_on_all_streams() {
    let rank = on_each!(2, Devices::Each, &[("ROUNDELAY_CHECK", "first")]);
    let of = proved("RingAllReduce", 2);
    let case = case(&of, sums(1003), Form::Loops);
    let plan = plan_of(&rank, &case, options()).expect("a plan");
    assert!(format!("{plan:?}").contains("rank: CudaRank(rank"), "{plan:?}");
    let expected = case.expected(false).expect("a form")[rank.rank().index()].clone();
    let mut room = Room::new(&rank, &case);
    let other = rank.context().new_stream().expect("a stream");
    for nth in 0..200 {
        let stream = if nth % 3 == 0 { &other } else { rank.stream() };
        plan.launch_bytes(stream, &room.input, &mut room.shared).expect("a launch");
    }
    plan.wait().expect("they end");
    assert!(room.result(&rank, false) == expected);
}

/// The attribute of devices whose memory a switch reaches.
const MULTICAST: (&str, &str) = ("ROUNDELAY_FAKE_ATTRIBUTES", "132=1");

/// Moves of all ranks by a switch, on blocks that one address stands for.
#[test]
fn a_switch_makes_the_moves_of_all_ranks() {
    let rank = on_each!(3, Devices::Each, &[MULTICAST]);
    let data = |count, dtype, op| Data { count, dtype, op };
    for (name, data) in [
        ("SwitchAllReduce", data(1003, DType::I32, ReduceOp::Sum)),
        ("SwitchAllReduce", data(300, DType::U64, ReduceOp::Avg)),
        ("SwitchAllReduce", data(500, DType::U8, ReduceOp::Bxor)),
        ("SwitchAllReduce", data(0, DType::I64, ReduceOp::Min)),
        ("OneShotSwitchAllReduce", data(77, DType::I32, ReduceOp::Max)),
        ("SwitchReduceScatter", data(33, DType::U32, ReduceOp::Sum)),
        ("SwitchAllGather", data(9, DType::F8E4M3, ReduceOp::Prod)),
    ] {
        agrees(&rank, name, data, Form::Switch);
    }
    // What a switch does not fold, and what it has no move for.
    let refused = |name: &str, data, title: &str| {
        let of = proved(name, 3);
        let error = plan_of(&rank, &case(&of, data, Form::Switch), options());
        let error = error.expect_err("no switch does it");
        assert_eq!(code(&error), "E0423", "{error}");
        assert!(error.to_string().contains(title), "{error}");
    };
    refused("SwitchAllReduce", data(9, DType::F32, ReduceOp::Prod), "for prod of f32");
    refused("SwitchAllReduce", data(9, DType::F32, ReduceOp::Max), "leave out NaNs");
    refused("SwitchAllReduce", AVERAGE, "before that is divided");
    refused("SwitchAllReduce", data(9, DType::I8, ReduceOp::Sum), "elements of 8 bits");
    refused("RingAllReduce", sums(9), "has no move of all ranks");
}

/// Calls by an algorithm with moves of all ranks take the switch, unless it has not the op, or there is none.
#[test]
fn calls_take_a_switch_where_there_is_one() {
    fn here() {}
    if std::env::var_os("ROUNDELAY_RANK").is_none() {
        for variables in [&[MULTICAST][..], &[]] {
            let ended = ranks(2, Devices::Each, variables, here).map(drop).expect_err("ranks");
            all_succeeded(&ended);
        }
        return;
    }
    let world = roundelay::World::from_env().expect("a world");
    let world = world.using(roundelay::library::SwitchAllReduce::new());
    let calls = world.device_calls(world.rank().id() as usize).expect("a device each");
    let form = |dtype, op| {
        let (collective, count) = (Collective::AllReduce, 1003);
        let plan = calls.plan(Call { collective, root: 0, count, dtype, op });
        plan.expect("a plan").kernel().expect("a kernel").form
    };
    let has_switch = std::env::var(MULTICAST.0).is_ok_and(|value| value == MULTICAST.1);
    let wanted = if has_switch { Form::Switch } else { Form::Loops };
    assert_eq!(form(DType::F16, ReduceOp::Sum), wanted);
    assert_eq!(form(DType::F32, ReduceOp::Prod), Form::Loops);
}

/// Looks that a switch's kernel is refused for a reason.
fn lacks_a_switch(rank: &CudaRank, why: &str) {
    let of = proved("SwitchAllReduce", rank.nranks());
    let error = plan_of(rank, &case(&of, sums(9), Form::Switch), options());
    let error = error.expect_err("no switch is there");
    assert_eq!(code(&error), "E0423", "{error}");
    assert!(error.to_string().contains(why), "{error}");
    agrees(rank, "SwitchAllReduce", sums(9), Form::Table);
}

#[test]
fn devices_without_multicast_have_no_switch() {
    lacks_a_switch(&on_each!(2, Devices::Each, &[]), "the device of rank 0 has no multicast");
}

#[test]
fn ranks_of_one_device_have_no_switch() {
    lacks_a_switch(&on_each!(2, Devices::One, &[MULTICAST]), "ranks 0 and 1 share a device");
}

#[test]
fn devices_apart_have_no_switch() {
    let variables = [MULTICAST, ("ROUNDELAY_FAKE_LINK", "pcie")];
    let why = "NVLink does not join the devices of ranks 0 and 1";
    lacks_a_switch(&on_each!(2, Devices::Each, &variables), why);
}

/// All ranks get an error, with its cause, where one of them cannot go on.
#[test]
fn plans_that_cannot_be_are_refused_on_all_ranks() {
    let rank = on_each!(2, Devices::Each, &[]);
    let first = rank.rank() == RankId(0);
    let of = proved("RingAllReduce", 2);
    let shape = |count| case(&of, sums(count), Form::Loops);
    let refused = |case: &Case, options, mine: &str, theirs: &str| {
        let error = plan_of(&rank, case, options).expect_err("it cannot be");
        assert_eq!(code(&error), if first { mine } else { theirs }, "{error}");
        error.to_string()
    };
    let threads = if first { 33 } else { 256 };
    let told = refused(&shape(10), options().threads(threads), "E0423", "E0413");
    assert!(told.contains("33 threads"), "{told}");
    let count = if first { 10 } else { 11 };
    let told = refused(&shape(count), options(), "E0414", "E0414");
    assert!(told.contains("RingAllReduce"), "{told}");
    // More than the driver's devices have.
    let huge = shape(32 << 20);
    refused(&huge, options(), "E0419", "E0419");
    let three = proved("RingAllReduce", 3);
    refused(&case(&three, sums(10), Form::Loops), options(), "E0401", "E0401");
    agrees(&rank, "RingAllReduce", sums(10), Form::Loops);
}

#[test]
fn an_abort_ends_the_launches_of_all() {
    let rank = on_each!(2, Devices::Each, &[]);
    let of = proved("RingAllReduce", 2);
    let case = case(&of, sums(100), Form::Loops);
    let plan = plan_of(&rank, &case, options()).expect("a plan");
    let mut room = Room::new(&rank, &case);
    if rank.rank() == RankId(0) {
        std::thread::sleep(Duration::from_millis(200));
        rank.abort("the job is over").expect("it is this process");
        return;
    }
    let error = room.launch(&rank, &plan, false).and_then(|()| plan.wait()).expect_err("aborted");
    assert_eq!(code(&error), "E0413", "{error}");
    assert!(error.to_string().contains("the job is over"), "{error}");
}
