//! The form in groups: ranks issue them in any order, messages arrive at any time between, and results are the author's
//! bits. Wrong groups are detected.

use std::collections::{HashMap, VecDeque};

use fastrand::Rng;
use roundelay_core::diagnostics::Code;
use roundelay_core::ids::RankId;
use roundelay_core::layout::Algorithm as _;
use roundelay_core::messages::{Group, GroupStep, Groups, MessageId, TwoSided};
use roundelay_core::schedule::Operand;
use roundelay_core::verify::{Callers, Proved};
use roundelay_oracles::engine::{self, Run, World};

use super::library::counts;
use super::{admitted, library, of_library};
use crate::proof::random::some;

/// Programs tried; `ROUNDELAY_CASES` asks for another number.
const CASES: u64 = 500;

/// A transport as NCCL is one: the k-th send meets the k-th receive, and groups end whole.
struct Issued<'a> {
    world: World<'a>,
    form: &'a TwoSided,
    groups: &'a Groups,
    next: Vec<usize>,
    /// For each rank the number of its group's messages that have not ended; `None` between groups.
    open: Vec<Option<usize>>,
    sends: HashMap<(RankId, RankId), VecDeque<MessageId>>,
    receives: HashMap<(RankId, RankId), VecDeque<MessageId>>,
    /// Sends and receives that have met.
    met: Vec<(MessageId, MessageId)>,
}

impl Issued<'_> {
    /// The rank issues its group, or does its move, or goes on behind a group that has ended.
    fn step(&mut self, rank: RankId) -> bool {
        let at = rank.index();
        match (self.groups.steps(rank).get(self.next[at]), self.open[at]) {
            (None, _) | (_, Some(1..)) => return false,
            (Some(GroupStep::Group(group)), None) => {
                self.issue(group);
                self.open[at] = Some(group.messages().count());
                return true;
            }
            (Some(GroupStep::Move(id)), _) => {
                self.world.do_move(*id, self.world.schedule.op(*id));
            }
            (Some(GroupStep::Group(_)), Some(0)) => {}
        }
        self.open[at] = None;
        self.next[at] += 1;
        true
    }

    fn issue(&mut self, group: &Group) {
        for id in &group.receives {
            let message = self.form.message(*id);
            let target = Operand { rank: message.to, region: message.target };
            self.world.spoil(target);
            let pair = (message.from, message.to);
            self.receives.entry(pair).or_default().push_back(*id);
        }
        for id in &group.sends {
            let message = self.form.message(*id);
            let pair = (message.from, message.to);
            self.sends.entry(pair).or_default().push_back(*id);
        }
        for (pair, sends) in &mut self.sends {
            let Some(receives) = self.receives.get_mut(pair) else { continue };
            while !sends.is_empty() && !receives.is_empty() {
                self.met.extend(sends.pop_front().zip(receives.pop_front()));
            }
        }
    }

    fn arrive(&mut self, at: usize) {
        let (send, receive) = self.met.swap_remove(at);
        let (send, receive) = (self.form.message(send), self.form.message(receive));
        let values = self.world.read(Operand { rank: send.from, region: send.source });
        self.world.write(Operand { rank: receive.to, region: receive.target }, &values);
        for rank in [send.from, receive.to] {
            let open = self.open[rank.index()].as_mut().expect("its group is under way");
            *open -= 1;
        }
    }
}

/// The bits of all outputs after the groups, issued as the dice say.
fn grouped(form: &TwoSided, groups: &Groups, run: Run, mut random: Rng) -> Vec<Vec<u32>> {
    let nranks = form.schedule().nranks as usize;
    let mut issued = Issued {
        world: World::new(form.schedule(), form.proof(), run),
        form,
        groups,
        next: vec![0; nranks],
        open: vec![None; nranks],
        sends: HashMap::new(),
        receives: HashMap::new(),
        met: Vec::new(),
    };
    loop {
        let first = random.u64(..) as usize;
        if first.is_multiple_of(3) && !issued.met.is_empty() {
            issued.arrive(first / 3 % issued.met.len());
        } else if !(0..nranks).any(|i| issued.step(RankId(((first + i) % nranks) as u32))) {
            if issued.met.is_empty() {
                break;
            }
            issued.arrive(first % issued.met.len());
        }
    }
    for (rank, next) in (0..).map(RankId).zip(&issued.next) {
        assert_eq!(*next, groups.steps(rank).len(), "rank {rank} is done");
    }
    issued.world.outputs()
}

fn same_bits(author: &Proved, form: &TwoSided, groups: &Groups, random: &mut Rng, what: &str) {
    for in_place in [false, true] {
        if in_place && !author.proof().in_place {
            continue;
        }
        let seed = random.u64(..);
        let run = Run { count: seed % 7 + seed % 2 * 17, in_place, averages: seed & 2 == 0 };
        let expected = engine::author(author, run);
        for _ in 0..2 {
            let found = grouped(form, groups, run, random.fork());
            assert!(expected == found, "{what}: {run:?}");
        }
    }
}

fn groups_of(form: &TwoSided, what: &str) -> Groups {
    Groups::new(form).unwrap_or_else(|found| panic!("{what}: {found:#?}"))
}

#[test]
fn every_algorithm_gives_the_same_bits() {
    let (mut made, mut rounds, mut messages) = (0, 0, 0);
    let mut random = Rng::with_seed(31);
    for algorithm in library() {
        for nranks in counts() {
            let Some(author) = admitted(&algorithm, nranks) else { continue };
            let what = format!("{} at {nranks} ranks", algorithm.name());
            let form = TwoSided::new(&author).unwrap_or_else(|found| panic!("{what}: {found:#?}"));
            let groups = groups_of(&form, &what);
            assert_eq!(groups.rounds() == 0, nranks == 1, "{what}");
            same_bits(&author, &form, &groups, &mut random, &what);
            made += 1;
            rounds += groups.rounds();
            messages += form.messages().len();
        }
    }
    println!("{made} schedules, {messages} messages in {rounds} rounds");
    assert!(made > 300 && messages > 10 * rounds as usize, "{made} {messages} {rounds}");
}

#[test]
fn random_programs_give_the_same_bits() {
    let (mut right, mut rounds) = (0, 0);
    let mut random = Rng::with_seed(5);
    for (source, schedule) in some(CASES, 1 << 41) {
        let one = || Proved::for_callers(schedule.clone(), Callers::One);
        let Ok(author) = Proved::new(schedule.clone()).or_else(|_| one()) else { continue };
        let form = TwoSided::new(&author).unwrap_or_else(|found| panic!("{found:#?} {source}"));
        let groups = groups_of(&form, &source);
        same_bits(&author, &form, &groups, &mut random, &source);
        right += 1;
        rounds += groups.rounds();
    }
    println!("{right} right, {rounds} rounds");
    assert!(right > 70 && rounds > 100, "{right} {rounds}");
}

#[test]
fn rounds_are_as_few_as_steps() {
    for (name, nranks, rounds) in [
        ("RingAllReduce", 8, 14),
        ("RingAllGather", 8, 7),
        ("RecursiveDoublingAllReduce", 8, 3),
        // A rank receives two or three at a time, as it has room.
        ("MeshAllReduce", 8, 5),
    ] {
        let form = TwoSided::new(&of_library(name, nranks)).expect("a form");
        assert_eq!(groups_of(&form, name).rounds(), rounds, "{name}");
    }
}

fn refused(form: &TwoSided, breaks: impl FnOnce(&mut [Vec<GroupStep>])) -> String {
    let found = Groups::new_with(form, breaks).expect_err("it is broken");
    assert_eq!((found.len(), found[0].code), (1, Code::Unproved));
    assert_eq!(found[0].notes, ["this is a fault of the compiler, not of the program"]);
    found[0].title.clone()
}

/// The n-th group of a rank.
fn group(steps: &mut [GroupStep], n: usize) -> &mut Group {
    let groups = steps.iter_mut().filter_map(|step| match step {
        GroupStep::Group(group) => Some(group),
        GroupStep::Move(_) => None,
    });
    groups.into_iter().nth(n).expect("it has so many groups")
}

#[test]
fn what_is_broken_is_refused() {
    let ring = TwoSided::new(&of_library("RingAllReduce", 4)).expect("a form");
    let told = refused(&ring, |of| of[1].truncate(3));
    assert!(told.contains("rank 1 does not do all its moves"), "{told}");
    // A message of a later group before its data is there.
    let told = refused(&ring, |of| {
        let id = group(&mut of[0], 2).sends.pop().expect("a send");
        group(&mut of[0], 1).sends.push(id);
    });
    assert!(told.contains("rank 0 sends or receives too late"), "{told}");
    let told = refused(&ring, |of| {
        let id = group(&mut of[0], 5).sends[0];
        group(&mut of[0], 5).receives.push(id);
    });
    assert!(told.contains("rank 0 has a message of others"), "{told}");
    let told = refused(&ring, |of| group(&mut of[2], 5).receives.clear());
    assert!(told.contains("is not in one group at each end"), "{told}");
    let told = refused(&ring, |of| {
        let at = of[3].iter().position(|step| matches!(step, GroupStep::Move(_))).expect("a move");
        let step = of[3].remove(at);
        of[3].push(step);
    });
    assert!(told.contains("rank 3 does a move out of turn"), "{told}");
}

/// Where a rank sends twice to another in one group.
fn twice(form: &TwoSided, groups: &Groups) -> Option<(usize, usize, [usize; 2])> {
    let ranks = (0..form.schedule().nranks).map(RankId);
    let steps = ranks.flat_map(|rank| {
        groups.steps(rank).iter().enumerate().map(move |(at, step)| (rank.index(), at, step))
    });
    let find = |(rank, at, step): (usize, usize, &GroupStep)| {
        let GroupStep::Group(group) = step else { return None };
        let to = |id: &MessageId| form.message(*id).to;
        let pairs = (0..group.sends.len()).flat_map(|b| (0..b).map(move |a| [a, b]));
        let mut same = pairs.filter(|[a, b]| to(&group.sends[*a]) == to(&group.sends[*b]));
        Some((rank, at, same.next()?))
    };
    steps.into_iter().find_map(find)
}

#[test]
fn messages_that_cross_are_refused() {
    let forms = library().into_iter().filter_map(|algorithm| admitted(&algorithm, 4));
    let found = forms.into_iter().find_map(|author| {
        let form = TwoSided::new(&author).expect("a form");
        let place = twice(&form, &groups_of(&form, "a form"))?;
        Some((form, place))
    });
    let (form, (rank, at, [a, b])) = found.expect("some algorithm has it");
    let told = refused(&form, |of| {
        let GroupStep::Group(group) = &mut of[rank][at] else { panic!("a group") };
        group.sends.swap(a, b);
    });
    assert!(told.contains("cross each other"), "{told}");
}

#[test]
fn groups_that_wait_for_each_other_are_refused() {
    let all = TwoSided::new(&of_library("MeshAllToAll", 3)).expect("a form");
    assert_eq!(groups_of(&all, "MeshAllToAll").rounds(), 1);
    // Its messages may go at any time, but not all receives before all sends.
    let told = refused(&all, |of| {
        for steps in of {
            let at = steps.iter().position(|step| matches!(step, GroupStep::Group(_)));
            let at = at.expect("a group");
            let GroupStep::Group(whole) = &mut steps[at] else { panic!("a group") };
            let receives = std::mem::take(&mut whole.receives);
            steps.insert(at, GroupStep::Group(Group { sends: Vec::new(), receives }));
        }
    });
    assert!(told.contains("waits for ever"), "{told}");
}
