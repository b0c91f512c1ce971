//! Calls of a plan on the caller's buffers.

use super::form::{HostsPlan, Leg, Step};
use super::traffic::Traffic;
use crate::Error;
use crate::host::{Element, extent};
use crate::process::{Counter, Visit};

impl HostsPlan {
    /// Runs this rank, while the other processes run theirs, and returns when this rank is done. Lengths are those of
    /// [`Plan::run`](crate::Plan::run) for this rank; a slice is empty where the rank has no such buffer.
    ///
    /// Before anything moves, the ranks of a host compare their calls: number, schedule, count, dtype, op and root. From
    /// host to host nothing is compared in advance. A message has a tag that follows from all of these, so messages of
    /// calls that differ do not meet, and ranks wait for them until the deadline.
    ///
    /// # Errors
    /// E0402 and E0403 for wrong buffers, before the call is made; E0412 where another thread is in a call; E0405 where
    /// another rank does not come or go on, E0428 where one of this host ended, and then E0413 or E0428 for all later
    /// calls; E0414 for a call in which ranks of this host differ, which ends a world of several hosts, for the others
    /// may have sent already; those of the [`Carrier`](super::Carrier), which end the world.
    pub fn run<T: Element>(&self, input: &[T], output: &mut [T]) -> Result<(), Error> {
        self.call.check_dtype(T::DTYPE)?;
        self.apart(input, output, 1)
    }

    /// Runs this rank in place: `buffer` holds the rank's input before and its output after, and is as long as the
    /// larger of the two.
    ///
    /// # Errors
    /// E0408 where there is no in-place form; else those of [`Self::run`].
    pub fn run_in_place<T: Element>(&self, buffer: &mut [T]) -> Result<(), Error> {
        self.call.check_dtype(T::DTYPE)?;
        self.aliased(buffer, 1)
    }

    /// Runs this rank on bytes. Lengths are those of [`Self::run`] times the size of an element.
    ///
    /// # Errors
    /// E0404 for a slice that is not aligned for the element type; else those of [`Self::run`].
    pub fn run_bytes(&self, input: &[u8], output: &mut [u8]) -> Result<(), Error> {
        self.apart(input, output, self.size)
    }

    /// Runs this rank in place on bytes. Lengths are those of [`Self::run_in_place`] times the size of an element.
    ///
    /// # Errors
    /// E0404 for a slice that is not aligned for the element type; else those of [`Self::run_in_place`].
    pub fn run_bytes_in_place(&self, buffer: &mut [u8]) -> Result<(), Error> {
        self.aliased(buffer, self.size)
    }

    fn apart<T>(&self, input: &[T], output: &mut [T], per_element: usize) -> Result<(), Error> {
        let (call, rank, [inputs, outputs]) = (&self.call, self.hosts.rank().into(), self.lens);
        call.check_buffer("input", rank, extent(input), per_element, inputs)?;
        call.check_buffer("output", rank, extent(output), per_element, outputs)?;
        let outside = [input.as_ptr().cast_mut().cast(), output.as_mut_ptr().cast()];
        // SAFETY: checked for length and alignment, and borrowed for the call; lowering refuses to write an input.
        unsafe { self.make(outside) }
    }

    fn aliased<T>(&self, buffer: &mut [T], per_element: usize) -> Result<(), Error> {
        let (call, rank) = (&self.call, self.hosts.rank().into());
        call.check_in_place()?;
        let [inputs, outputs] = self.lens;
        call.check_buffer("buffer", rank, extent(buffer), per_element, inputs.max(outputs))?;
        let whole = buffer.as_mut_ptr().cast::<u8>();
        // SAFETY: as above; the buffer holds both, as the collective has them in place.
        unsafe { self.make(self.within.map(|at| whole.wrapping_add(at))) }
    }

    /// Makes the call, on this input and output.
    ///
    /// # Safety
    /// Both addresses are good for the rank's buffers, aligned and initialized, the output's writable, and lent for
    /// the call.
    unsafe fn make(&self, outside: [*mut u8; 2]) -> Result<(), Error> {
        let world = &self.hosts.world;
        let (visit, met) = world.enter_call(self.identity, &self.call)?;
        // SAFETY: the caller's promise.
        let done = met.and_then(|counter| unsafe { self.steps(&visit, counter, outside) });
        let done = visit.end(done);
        if let Err(error @ Error::CallsDiffer(_)) = &done
            && self.hosts.are_several()
        {
            _ = world.give_up_for(error.clone());
        }
        done
    }

    /// # Safety
    /// As for [`Self::make`].
    unsafe fn steps(
        &self,
        visit: &Visit<'_>,
        counter: Counter<'_>,
        outside: [*mut u8; 2],
    ) -> Result<(), Error> {
        // Nobody else is in a call of this rank.
        for (buffer, address) in self.outside.into_iter().zip(outside) {
            self.bases.set(buffer, address);
        }
        let mut traffic = Traffic::new(self, visit, counter);
        for (step, what) in (0..).zip(&self.steps) {
            match *what {
                // SAFETY: the bases point at buffers that are lent for the call, which `traffic` does not outlive; the
                // proof has nobody touch a message's place before the step at which it ends.
                Step::Begin(leg) => unsafe { traffic.begin(leg)? },
                Step::End(leg) => {
                    if !traffic.is_done(leg) {
                        self.until_done(visit, &mut traffic, step, leg)?;
                    }
                }
                Step::Move(segment, at) => {
                    visit.stand_at(step, at);
                    // SAFETY: as above; moves touch nothing that is under way.
                    unsafe { self.one(visit, &mut traffic, segment)? };
                }
            }
        }
        traffic.close()
    }

    /// Does a move, and goes on with messages meanwhile.
    ///
    /// # Safety
    /// The bases point at the rank's buffers; the move touches nothing of a message under way that it must not.
    unsafe fn one(
        &self,
        visit: &Visit<'_>,
        traffic: &mut Traffic<'_, '_>,
        segment: u32,
    ) -> Result<(), Error> {
        let segment = self.data.all[segment as usize];
        let mut failed = Ok(());
        let stops = || {
            failed = traffic.go_on().map(drop);
            failed.is_err() || visit.stops()
        };
        let partials = self.partials.address(0);
        let elements = 0..segment.elements;
        // SAFETY: the caller's promise; the partials are this process's alone.
        let whole = unsafe { self.data.run(segment, elements, &self.bases, partials, stops) };
        failed?;
        if whole { Ok(()) } else { visit.goes_on() }
    }

    /// Goes on with all messages until that one is done.
    fn until_done(
        &self,
        visit: &Visit<'_>,
        traffic: &mut Traffic<'_, '_>,
        step: u32,
        leg: u32,
    ) -> Result<(), Error> {
        let message = self.legs[leg as usize];
        while !traffic.is_done(leg) {
            if traffic.go_on()? {
                continue;
            }
            visit.stand_at(step, message.at);
            let what = || words(message);
            let on = message.nearby.ok_or(&what as &dyn Fn() -> String);
            let mut moved = Ok(false);
            // Whatever goes on, the deadline counts anew. What has gone on once is asked about more than once.
            visit.await_message(on, traffic.polls(), || {
                if moved == Ok(false) {
                    moved = traffic.go_on();
                }
                moved != Ok(false)
            })?;
            moved?;
        }
        Ok(())
    }
}

/// A message of another host, as its end is waited for.
fn words(leg: Leg) -> String {
    let Leg { number, peer, sends, bytes, .. } = leg;
    let does = if sends { "receive" } else { "send" };
    format!(
        "rank {peer} of another host to {does} message {number}, of {bytes} bytes; it may be in another call, or gone"
    )
}
