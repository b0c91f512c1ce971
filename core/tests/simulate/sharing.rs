//! Checks rates against their definition, on small random networks while flows come and go.
//!
//! Rates are max-min fair exactly if no link exceeds its capacity and every flow has a full link on which no other
//! flow is faster (Bertsekas and Gallager, Data Networks, 6.5.2). So no second algorithm is needed.

use fastrand::Rng;
use part::Sharing;

use paths::RankPaths;

// The part has no face of its own: its source is a module of these tests, too.
#[path = "../../simulate/src/sharing.rs"]
mod part;

/// Given paths over given links.
mod paths {
    pub(super) struct RankPath {
        /// Bytes a second if no other message is on its links.
        pub(super) alone: f64,
    }

    pub(super) struct RankPaths<'m> {
        all: Vec<RankPath>,
        ways: Vec<Vec<(u32, f64)>>,
        pub(super) capacity: &'m [f64],
    }

    impl<'m> RankPaths<'m> {
        pub(super) fn new(capacity: &'m [f64], ways: &[Vec<(u32, f64)>]) -> Self {
            let alone = |way: &Vec<(u32, f64)>| {
                let each = way.iter().map(|(link, share)| capacity[*link as usize] / share);
                RankPath { alone: each.fold(f64::INFINITY, f64::min) }
            };
            let all = ways.iter().map(alone).collect();
            Self { all, ways: ways.to_vec(), capacity }
        }

        pub(super) fn path(&self, path: u32) -> &RankPath {
            &self.all[path as usize]
        }

        pub(super) fn links(&self, path: u32) -> &[(u32, f64)] {
            &self.ways[path as usize]
        }

        pub(super) fn longest(&self) -> usize {
            self.ways.iter().map(Vec::len).max().unwrap_or(0)
        }
    }
}

/// Returns a few links, and paths over some of them, of which some split.
fn network(random: &mut Rng) -> (Vec<f64>, Vec<Vec<(u32, f64)>>) {
    let links = 2 + random.u64(..6);
    let capacity = (0..links).map(|_| 1.0 + random.u64(..4) as f64).collect();
    let mut way = || {
        let mut links: Vec<u32> = (0..links as u32).filter(|_| random.u64(..3) == 0).collect();
        if links.is_empty() {
            links.push(random.u64(..2) as u32);
        }
        let part = if random.u64(..3) == 0 { 0.5 } else { 1.0 };
        links.into_iter().map(|link| (link, part)).collect()
    };
    (capacity, (0..12).map(|_| way()).collect())
}

/// Checks that `rates` of flows on their paths are max-min fair, or returns the fault.
fn fair(capacity: &[f64], flows: &[(&[(u32, f64)], f64)]) -> Result<(), String> {
    const NEAR: f64 = 1e-9;
    let carries = |link: u32| -> f64 {
        let on = |(way, rate): &(&[(u32, f64)], f64)| {
            way.iter().filter(|(l, _)| *l == link).map(|(_, share)| share * rate).sum::<f64>()
        };
        flows.iter().map(on).sum()
    };
    for (link, capacity) in (0..).zip(capacity) {
        if carries(link) > capacity * (1.0 + NEAR) {
            return Err(format!("link {link} carries {} of {capacity}", carries(link)));
        }
    }
    for (nth, (way, rate)) in flows.iter().enumerate() {
        let bottleneck = |link: u32| {
            let full = carries(link) >= capacity[link as usize] * (1.0 - NEAR);
            let on = |way: &[(u32, f64)]| way.iter().any(|(l, _)| *l == link);
            let fastest = flows.iter().all(|(w, r)| !on(w) || *r <= rate * (1.0 + NEAR));
            full && fastest
        };
        if !way.iter().any(|(link, _)| bottleneck(*link)) {
            return Err(format!("flow {nth} could be faster than {rate}: {flows:?}"));
        }
    }
    Ok(())
}

#[test]
fn rates_are_max_min_fair_while_flows_come_and_go() {
    for seed in 1..=400 {
        let mut random = Rng::with_seed(seed);
        let (capacity, ways) = network(&mut random);
        let paths = RankPaths::new(&capacity, &ways);
        let mut sharing = Sharing::new(&paths);
        let mut active: Vec<(u32, u32)> = Vec::new();
        let mut free: Vec<u32> = (0..24).collect();
        for step in 0..60 {
            for _ in 0..=random.u64(..3) {
                if free.is_empty() || random.u64(..5) < 2 && !active.is_empty() {
                    let (flow, _) = active.swap_remove(random.u64(..active.len() as u64) as usize);
                    sharing.end(flow);
                    free.push(flow);
                } else if let Some(flow) = free.pop() {
                    let path = random.u64(..ways.len() as u64) as u32;
                    sharing.start(flow, path, 1e6);
                    active.push((flow, path));
                }
            }
            sharing.settle(f64::from(step), |_, _| ());
            let flows: Vec<_> = active
                .iter()
                .map(|(flow, path)| (&ways[*path as usize][..], sharing.flow(*flow).rate))
                .collect();
            fair(&capacity, &flows).unwrap_or_else(|why| panic!("seed {seed}, step {step}: {why}"));
        }
    }
}

/// Two flows share a link of 10 bytes a second, of which one ends first: 30 bytes at 5, then 20 more at 10.
#[test]
fn a_flow_that_ends_leaves_its_part_to_the_others() {
    let paths = RankPaths::new(&[10.0], &[vec![(0, 1.0)]]);
    let mut sharing = Sharing::new(&paths);
    sharing.start(0, 0, 30.0);
    sharing.start(1, 0, 50.0);
    sharing.settle(0.0, |_, _| ());
    assert_eq!((sharing.flow(0).end, sharing.flow(1).end), (6.0, 10.0));
    sharing.end(0);
    let mut moved = Vec::new();
    sharing.settle(6.0, |flow, end| moved.push((flow, end)));
    assert_eq!(moved, [(1, 8.0)]);
}

/// A flow that has no binding link in common with a change keeps its rate, and is not reported.
#[test]
fn flows_elsewhere_are_left_alone() {
    let paths =
        RankPaths::new(&[10.0, 10.0, 100.0], &[vec![(0, 1.0), (2, 1.0)], vec![(1, 1.0), (2, 1.0)]]);
    let mut sharing = Sharing::new(&paths);
    sharing.start(0, 0, 100.0);
    sharing.settle(0.0, |_, _| ());
    let mut moved = Vec::new();
    sharing.start(1, 1, 100.0);
    sharing.start(2, 1, 100.0);
    sharing.settle(1.0, |flow, end| moved.push((flow, end)));
    moved.sort_by_key(|(flow, _)| *flow);
    assert_eq!(moved, [(1, 21.0), (2, 21.0)]);
    assert_eq!((sharing.flow(0).rate, sharing.flow(1).rate), (10.0, 5.0));
}
