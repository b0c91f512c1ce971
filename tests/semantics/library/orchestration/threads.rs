//! Ranks as threads, for printed orchestrations: counters and buffers behind locks, so that an element which is read before
//! its signal is wrong and no race. The test puts a module `lane` and the orchestrations behind this text.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use lane::{Buffer, Lane, Place, Signal};

/// A counter: who posts, who waits, the signal, and the streams around.
type Counter = (i64, i64, Signal, Vec<i64>);

struct Machine {
    count: usize,
    pieces: i64,
    /// The elements of a slot of each scratch buffer.
    slots: Vec<usize>,
    memory: HashMap<(i64, Buffer), Mutex<Vec<f32>>>,
    counters: Mutex<HashMap<Counter, u64>>,
    posted: Condvar,
}

impl Machine {
    /// Runs on the elements of a place.
    fn with<T>(&self, place: &Place, run: impl FnOnce(&mut [f32]) -> T) -> T {
        let mut elements = place.elements(self.count, self.pieces);
        if let Buffer::Scratch(id) = place.buffer {
            let begin = self.slots[id] * place.slot as usize;
            elements = elements.start + begin..elements.end + begin;
        }
        let mut buffer = self.memory[&(place.rank, place.buffer)].lock().expect("no panic");
        run(&mut buffer[elements])
    }
}

#[derive(Clone)]
struct Thread {
    machine: Arc<Machine>,
    me: i64,
    streams: Vec<i64>,
}

impl Thread {
    fn counter(&self, from: i64, to: i64, signal: Signal) -> Counter {
        match signal {
            Signal::Fork | Signal::Join => (self.me, self.me, signal, vec![from + to - self.me]),
            _ => (from, to, signal, self.streams.clone()),
        }
    }
}

impl Lane for Thread {
    fn me(&self) -> i64 {
        self.me
    }

    fn post(&self, signal: Signal, peer: i64) {
        let counter = self.counter(self.me, peer, signal);
        *self.machine.counters.lock().expect("no panic").entry(counter).or_default() += 1;
        self.machine.posted.notify_all();
    }

    fn wait(&self, signal: Signal, peer: i64) {
        let counter = self.counter(peer, self.me, signal);
        let mut counters = self.machine.counters.lock().expect("no panic");
        loop {
            if let Some(posts) = counters.get_mut(&counter).filter(|posts| **posts > 0) {
                *posts -= 1;
                return;
            }
            let waited = self.machine.posted.wait_timeout(counters, Duration::from_secs(20));
            let (after, timeout) = waited.expect("no panic");
            assert!(!timeout.timed_out(), "no signal came for 20 seconds: {counter:?}");
            counters = after;
        }
    }

    fn in_lane(&self, lane: i64) -> Self {
        // No stream of a loop has this number.
        Self { streams: vec![-1, lane], ..self.clone() }
    }

    fn fold(&self, srcs: &[Place], dsts: &[Place]) {
        let mut sum = self.machine.with(&srcs[0], |elements| elements.to_vec());
        for src in &srcs[1..] {
            let more = self.machine.with(src, |elements| elements.to_vec());
            assert_eq!(more.len(), sum.len(), "{src:?}");
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
        for dst in dsts {
            self.machine.with(dst, |elements| elements.copy_from_slice(&sum));
        }
    }

    fn parallel(&self, numbers: Range<i64>, body: impl Fn(&Self, i64) + Sync) {
        std::thread::scope(|scope| {
            for number in numbers {
                let (machine, me) = (self.machine.clone(), self.me);
                let streams = [&self.streams[..], &[number]].concat();
                let body = &body;
                scope.spawn(move || body(&Self { machine, me, streams }, number));
            }
        });
    }
}

/// Runs an orchestration on files: `NAME.RANK.in` has a rank's input, and `NAME.RANK.out` has the length of its output.
fn run_case(
    (folder, name, count): (&Path, &str, usize),
    (nranks, pieces, scratch): (i64, i64, &[(usize, i64)]),
    run: fn(&Thread),
) {
    let path = |rank: i64, kind: &str| folder.join(format!("{name}.{rank}.{kind}"));
    let read = |rank: i64, kind: &str| -> Vec<f32> {
        let bytes = std::fs::read(path(rank, kind)).expect("a file of the case");
        bytes.chunks_exact(4).map(|at| f32::from_ne_bytes(at.try_into().expect("four"))).collect()
    };
    let width = |(_, width): &(usize, i64)| (*width as usize * count).div_ceil(pieces as usize);
    let slots: Vec<usize> = scratch.iter().map(width).collect();
    let mut memory = HashMap::new();
    for rank in 0..nranks {
        memory.insert((rank, Buffer::Input), Mutex::new(read(rank, "in")));
        memory.insert((rank, Buffer::Output), Mutex::new(read(rank, "out")));
        for (id, (many, _)) in scratch.iter().enumerate() {
            let elements = vec![f32::NAN; many * slots[id]];
            memory.insert((rank, Buffer::Scratch(id)), Mutex::new(elements));
        }
    }
    let (counters, posted) = (Mutex::default(), Condvar::new());
    let machine = Arc::new(Machine { count, pieces, slots, memory, counters, posted });
    std::thread::scope(|scope| {
        for me in 0..nranks {
            let machine = machine.clone();
            scope.spawn(move || run(&Thread { machine, me, streams: Vec::new() }));
        }
    });
    let left = machine.counters.lock().expect("no panic");
    assert!(left.values().all(|posts| *posts == 0), "{name}: posts are left: {left:?}");
    for rank in 0..nranks {
        let output = machine.memory[&(rank, Buffer::Output)].lock().expect("no panic");
        let bytes: Vec<u8> = output.iter().flat_map(|element| element.to_ne_bytes()).collect();
        std::fs::write(path(rank, "out"), bytes).expect("a file of the case");
    }
}
