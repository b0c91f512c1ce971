//! Ranks whose processes end while others wait for them.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use roundelay_core::ids::RankId;
use roundelay_export::cuda::Form;
use roundelay_kernels::cuda::CudaRank;

use super::super::below::one_device::sums;
use super::super::rank_processes::{Room, case, plan_of, proved};
use super::{Devices, WHY, agrees, all_succeeded, build, code, options, ranks};

/// A process that is killed while others wait for it: they get its rank, and go on without it.
#[test]
fn survivors_go_on() {
    fn here() {}
    let ended = match ranks(3, Devices::Each, &[], here) {
        Ok(rank) => return survive(&rank),
        Err(ended) => ended,
    };
    assert_eq!(ended[1].status.signal(), Some(9), "{:?}", ended[1]);
    all_succeeded(&[ended[0].clone(), ended[2].clone()]);
}

fn survive(rank: &CudaRank) {
    let of = proved("RingAllReduce", 3);
    let shape = case(&of, sums(1003), Form::Loops);
    let plan = plan_of(rank, &shape, options()).expect("a plan");
    let mut room = Room::new(rank, &shape);
    for _ in 0..3 {
        room.launch(rank, &plan, false).and_then(|()| plan.wait()).expect("all are here");
    }
    if rank.rank() == RankId(1) {
        std::thread::sleep(Duration::from_millis(200));
        let me = rustix::process::getpid();
        rustix::process::kill_process(me, rustix::process::Signal::KILL).expect("a signal");
    }
    let begun = Instant::now();
    let error = room.launch(rank, &plan, false).and_then(|()| plan.wait()).expect_err("1 is dead");
    assert_eq!(code(&error), "E0428", "{error}");
    let told = error.to_string();
    assert!(told.contains("rank 1 (process") && told.contains("signal 9"), "{told}");
    assert!(told.contains("waited for") && told.contains("ring.coll:"), "{told}");
    assert!(begun.elapsed() < WHY / 2, "{:?}", begun.elapsed());
    let again = room.launch(rank, &plan, false).expect_err("the world has failed");
    assert_eq!(code(&again), "E0428", "{again}");
    let left = rank.shrink().expect("two are left");
    assert_eq!(left.nranks(), 2);
    agrees(&left, "RingAllReduce", sums(1003), Form::Loops);
}

/// The checks that a GPU gets, on the driver.
#[test]
fn the_checks_of_a_gpu_are_rehearsed() {
    let mut check = Command::new(env!("CARGO_BIN_EXE_gpu-check"));
    build::below(&mut check).args(["processes", "--quick", "--patience", "20"]);
    let ended = check.env("ROUNDELAY_FAKE_DEVICES", "1").output().expect("it starts");
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    for part in [
        "2 ranks, calls: same device to rank 1",
        "2 ranks, calls: RingAllReduce, loops, 1048576 bytes: ",
        "2 ranks, calls: MeshAllReduce, table, 1024 bytes: ",
        "2 ranks, killed: known after ",
        "2 ranks, aborted: known after ",
        "# ranks with a process each: 0 failed",
    ] {
        assert!(said.contains(part), "no `{part}` in\n{said}");
    }
}

/// A process that ends at any of its signals: the others get its rank from that launch, or from the next one.
#[test]
fn a_rank_may_end_at_every_signal() {
    fn here() {}
    let launches = 2;
    for form in [Form::Loops, Form::Table] {
        let form_name = format!("{form:?}");
        for signal in 1.. {
            assert!(signal < 200, "rank 1 never comes through");
            let end = format!("1 {signal}");
            let variables = [("ROUNDELAY_SHIM_END", &*end), ("FORM", &*form_name)];
            let ended = match ranks(3, Devices::Each, &variables, here) {
                Ok(rank) => return end_at_signal(&rank, launches),
                Err(ended) => ended,
            };
            all_succeeded(&[ended[0].clone(), ended[2].clone()]);
            if ended[1].status.signal() != Some(9) {
                all_succeeded(&ended);
                assert!(signal > 12, "a ring of three ranks has more signals than {signal}");
                break;
            }
        }
    }
}

fn end_at_signal(rank: &CudaRank, launches: u32) {
    let form = [Form::Loops, Form::Table]
        .into_iter()
        .find(|form| std::env::var("FORM").is_ok_and(|name| name == format!("{form:?}")))
        .expect("a form");
    let of = proved("RingAllReduce", 3);
    let shape = case(&of, sums(100), form);
    let plan = plan_of(rank, &shape, options().parts(1)).expect("a plan");
    let expected = shape.expected(false).expect("a form")[rank.rank().index()].clone();
    let mut room = Room::new(rank, &shape);
    let begun = Instant::now();
    for _ in 0..launches {
        if let Err(error) = room.launch(rank, &plan, false).and_then(|()| plan.wait()) {
            assert_ne!(rank.rank(), RankId(1), "{error}");
            assert_eq!(code(&error), "E0428", "{error}");
            assert!(error.to_string().contains("rank 1 (process"), "{error}");
            assert!(begun.elapsed() < WHY / 2, "{:?}", begun.elapsed());
            return;
        }
        assert!(room.result(rank, false) == expected);
    }
}
