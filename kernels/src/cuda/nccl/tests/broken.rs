//! Wrong steps are detected, by the library or in the bits, and no rank waits for ever.

use std::time::Duration;

use roundelay_core::dtype::{DType, ReduceOp};

use super::super::comm::{NcclId, NcclLink};
use super::super::nccl_steps::{NcclStep, Steps, Transfer};
use super::world::{Breaks, Case, DEADLINE, nccl};
use crate::cuda::error::Error;
use crate::library::named;

/// Groups of a rank.
fn groups(steps: &mut Steps) -> Vec<(&mut Vec<Transfer>, &mut Vec<Transfer>)> {
    let groups = steps.list.iter_mut().filter_map(|step| match step {
        NcclStep::Group { sends, receives } => Some((sends, receives)),
        NcclStep::Fold { .. } => None,
    });
    groups.collect()
}

fn ring() -> Case {
    Case::new(named("RingAllReduce", 4), 40, (DType::F32, ReduceOp::Sum))
}

/// Returns the errors of the ranks; at least one rank has an error.
fn told(case: &Case, breaks: Breaks<'_>) -> Vec<String> {
    let all = case.run_with(false, DEADLINE, breaks);
    let told: Vec<String> = all
        .into_iter()
        .filter_map(Result::err)
        .inspect(|error| assert_eq!(error.code().as_str(), "E0421", "{error}"))
        .map(|error| error.to_string())
        .collect();
    assert!(!told.is_empty(), "no rank has an error");
    told
}

fn assert_told(case: &Case, why: &str, breaks: Breaks<'_>) {
    let told = told(case, breaks);
    assert!(told.iter().any(|told| told.contains(why)), "{told:#?}");
}

#[test]
fn a_wrong_count_is_seen() {
    let why = "message 2 from rank 1 to rank 2 has 9 elements of type 7, and room for 10 of type 7";
    assert_told(&ring(), why, &|rank, steps| {
        if rank.0 == 1 {
            groups(steps)[2].0[0].len = 9;
        }
    });
}

#[test]
fn a_wrong_type_is_seen() {
    assert_told(&ring(), "of type 2", &|rank, steps| {
        if rank.0 == 0 {
            steps.dtype = DType::I32;
        }
    });
}

#[test]
fn a_missing_group_is_seen() {
    let why = "nobody can go on: rank 0 waits for rank 1 to receive message 5";
    assert_told(&ring(), why, &|rank, steps| {
        if rank.0 == 1 {
            let group = steps.list.iter().rposition(|step| matches!(step, NcclStep::Group { .. }));
            steps.list.remove(group.expect("a group"));
        }
    });
}

#[test]
fn a_peer_that_there_is_not_is_seen() {
    for (peer, why) in [(7, "rank 3 has no peer 7"), (3, "rank 3 has no peer 3")] {
        assert_told(&ring(), why, &|rank, steps| {
            if rank.0 == 3 {
                groups(steps)[0].0[0].peer = peer;
            }
        });
    }
}

/// All ranks receive in one group and send in the next.
#[test]
fn groups_that_wait_for_each_other_are_seen() {
    let why =
        "nobody can go on: rank 0 waits for rank 3 to send message 0; rank 1 waits for rank 0";
    assert_told(&ring(), why, &|_, steps| {
        let at = steps.list.iter().position(|step| matches!(step, NcclStep::Group { .. }));
        let at = at.expect("a group");
        let NcclStep::Group { receives, .. } = &mut steps.list[at] else { panic!("a group") };
        let receives = std::mem::take(receives);
        steps.list.insert(at, NcclStep::Group { sends: Vec::new(), receives });
    });
}

/// Asserts that the results are not the author's bits.
fn assert_other_bits(case: &Case, breaks: Breaks<'_>) {
    let results = case.run_with(false, DEADLINE, breaks);
    let results: Vec<Vec<u8>> =
        results.into_iter().map(|result| result.expect("it runs")).collect();
    assert!(results != case.expected(), "the bits are the author's");
}

#[test]
fn sends_that_cross_give_other_bits() {
    // Two pieces go from one rank to another in one group.
    let case = Case::new(named("MultiRingAllReduce", 4), 48, (DType::F32, ReduceOp::Sum));
    let crossed = std::sync::atomic::AtomicBool::new(false);
    assert_other_bits(&case, &|rank, steps| {
        for (sends, _) in groups(steps) {
            let pairs = (0..sends.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
            let mut same = pairs.filter(|(a, b)| {
                sends[*a].peer == sends[*b].peer && sends[*a].len == sends[*b].len
            });
            if let Some((a, b)) = same.next().filter(|_| rank.0 == 0) {
                sends.swap(a, b);
                crossed.store(true, std::sync::atomic::Ordering::Relaxed);
                return;
            }
        }
    });
    assert!(crossed.into_inner(), "two sends to one rank");
}

#[test]
fn a_fold_before_its_group_gives_other_bits() {
    assert_other_bits(&ring(), &|rank, steps| {
        if rank.0 == 2 {
            let is =
                |step: &NcclStep| matches!(step, NcclStep::Fold { from, .. } if from.len() > 1);
            let fold = steps.list.iter().position(is).expect("a fold");
            steps.list.swap(fold - 1, fold);
        }
    });
}

#[test]
fn an_average_that_does_not_divide_gives_other_bits() {
    let case = Case::new(named("RingAllReduce", 4), 40, (DType::F32, ReduceOp::Avg));
    assert_other_bits(&case, &|rank, steps| {
        for step in steps.list.iter_mut().filter(|_| rank.0 == 0) {
            if let NcclStep::Fold { divisor, .. } = step {
                *divisor = 0;
            }
        }
    });
}

/// Joins two ranks of a communicator of `nranks` ranks.
fn two_of(nranks: u32, ranks: [u32; 2], deadline: Duration) -> [Result<NcclLink, Error>; 2] {
    let id = NcclId::of(nccl()).expect("a name");
    std::thread::scope(|scope| {
        let join = |rank: u32| {
            let id = &id;
            scope.spawn(move || NcclLink::join(nccl(), id, (rank.into(), nranks), deadline))
        };
        ranks.map(join).map(|thread| thread.join().expect("no panic"))
    })
}

fn error(result: Result<NcclLink, Error>) -> (String, String) {
    let error = result.err().expect("it is refused");
    (error.code().as_str().to_owned(), error.to_string())
}

#[test]
fn ranks_that_do_not_all_come_are_told() {
    let [first, second] = two_of(3, [0, 2], Duration::from_millis(300));
    for result in [first, second] {
        let (code, why) = error(result);
        // The rank that gives up first tells the other rank.
        assert!(
            code == "E0427" && why.contains("did not all come") || code == "E0421",
            "{code} {why}"
        );
    }
    let (code, why) =
        error(two_of(2, [0, 2], Duration::from_millis(100)).into_iter().nth(1).unwrap());
    assert_eq!(code, "E0411", "{why}");
    let twice = two_of(2, [1, 1], Duration::from_millis(100)).map(error);
    assert!(
        twice.iter().any(|(code, why)| code == "E0421" && why.contains("is there already")),
        "{twice:?}"
    );
}

#[test]
fn a_rank_that_does_not_call_is_waited_for_until_the_deadline() {
    let mut links: Vec<NcclLink> = two_of(2, [0, 1], Duration::from_millis(300))
        .into_iter()
        .map(|link| link.expect("it joins"))
        .collect();
    let mut second = links.pop().expect("two");
    let mut first = links.pop().expect("two");
    let mut room = [0_u32; 4];
    let end = super::super::comm::NcclEnd {
        peer: 1,
        address: room.as_mut_ptr().expose_provenance() as u64,
        len: 4,
    };
    let stream = std::ptr::without_provenance_mut(1);
    // SAFETY: the room has that length, and is lent until the link is gone.
    let waited =
        unsafe { first.group(&[], &[end], DType::U32, stream) }.expect_err("no rank sends");
    assert_eq!(waited.code().as_str(), "E0405");
    let waited = waited.to_string();
    assert!(waited.contains("rank 0 waits for rank 1 to send message 0"), "{waited}");
    assert!(
        waited.contains("a group of rank 0 that sends to [] and receives from [1]"),
        "{waited}"
    );
    // The other rank learns of it, and both communicators are unusable.
    for (link, why) in [(&mut second, "rank 0 gave up"), (&mut first, "given up after an error")] {
        let error = link.check("a call").expect_err("it is given up");
        assert_eq!(error.code().as_str(), "E0421");
        assert!(error.to_string().contains(why), "{error}");
    }
}
