//! Calls of a plan on the caller's buffers.

use super::form::{HostsPlan, Leg, Place, Step};
use super::traffic::Traffic;
use crate::Error;
use crate::host::{Element, extent};
use crate::process::Visit;

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
        let _turn = self.hosts.call()?;
        // SAFETY: the caller's promise; the call ends here.
        let mut course = unsafe { self.set_out(outside)? };
        let done = course.run();
        let done = course.end(done);
        if let Err(error @ Error::CallsDiffer(_)) = &done
            && self.hosts.are_several()
        {
            _ = self.hosts.world.give_up_for(error.clone());
        }
        done
    }

    /// Begins a call on this input and output.
    ///
    /// # Safety
    /// Both addresses are good for the rank's buffers, aligned and initialized, the output's writable, and lent until
    /// what is returned is gone.
    pub(super) unsafe fn set_out(&self, outside: [*mut u8; 2]) -> Result<Course<'_>, Error> {
        let (visit, met) = self.hosts.world.enter_call(self.identity, &self.call)?;
        // Nobody else is in a call of this rank.
        for (buffer, address) in self.outside.into_iter().zip(outside) {
            self.bases.set(buffer, address);
        }
        let traffic = met.map(|counter| Traffic::new(self, &visit, counter));
        Ok(Course { plan: self, visit, traffic, step: 0 })
    }
}

/// How far a call came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    Nowhere,
    Further,
    /// All steps are done.
    Through,
}

/// A call under way, as far as this rank has come.
pub(super) struct Course<'p> {
    plan: &'p HostsPlan,
    /// Goes before the visit: nothing is under way when the call ends.
    traffic: Result<Traffic<'p>, Error>,
    visit: Visit<'p>,
    /// The next of the plan's steps.
    step: usize,
}

impl<'p> Course<'p> {
    /// Does steps until there are none, and waits where it must.
    fn run(&mut self) -> Result<(), Error> {
        while self.go_on()? != Came::Through {
            let Some(Step::End(leg)) = self.plan.steps.get(self.step) else { continue };
            self.until_done(*leg)?;
        }
        Ok(())
    }

    /// Does steps until one has to be waited for, and says how far it came.
    pub(super) fn go_on(&mut self) -> Result<Came, Error> {
        let mut moved = false;
        let (plan, visit) = (self.plan, &self.visit);
        let traffic = self.traffic.as_mut().map_err(|error| error.clone())?;
        while let Some(what) = plan.steps.get(self.step) {
            match *what {
                // SAFETY: the bases point at buffers that are lent for the call, which `traffic` does not outlive; the
                // proof has nobody touch a message's place before the step at which it ends.
                Step::Begin(leg) => unsafe { traffic.begin(leg)? },
                Step::End(leg) => {
                    if !traffic.is_done(leg) {
                        moved |= traffic.go_on(visit)?;
                    }
                    if !traffic.is_done(leg) {
                        return Ok(if moved { Came::Further } else { Came::Nowhere });
                    }
                }
                Step::Move(segment, at) => {
                    visit.stand_at(self.step as u32, at);
                    // SAFETY: as above; moves touch nothing that is under way.
                    unsafe { one(plan, visit, traffic, segment)? };
                }
            }
            self.step += 1;
            moved = true;
        }
        Ok(Came::Through)
    }

    /// Goes on with all messages until that one is done.
    fn until_done(&mut self, leg: u32) -> Result<(), Error> {
        let (visit, message) = (&self.visit, self.plan.legs[leg as usize]);
        let traffic = self.traffic.as_mut().map_err(|error| error.clone())?;
        while !traffic.is_done(leg) {
            if traffic.go_on(visit)? {
                continue;
            }
            visit.stand_at(self.step as u32, message.at);
            let what = || words(message);
            let on = match message.place {
                Place::Nearby(rank) => Ok(rank),
                Place::Far(_) => Err(&what as &dyn Fn() -> String),
            };
            let mut moved = Ok(false);
            // Whatever goes on, the deadline counts anew. What has gone on once is asked about more than once.
            visit.await_message(on, traffic.polls(), || {
                if moved == Ok(false) {
                    moved = traffic.go_on(visit);
                }
                moved != Ok(false)
            })?;
            moved?;
        }
        Ok(())
    }

    /// What has not happened that it waits for, in words.
    pub(super) fn awaited(&self) -> impl Fn() -> String + use<'p> {
        let (plan, step) = (self.plan, self.step);
        move || match plan.steps.get(step) {
            Some(Step::End(leg)) => {
                let Leg { number, peer, sends, bytes, at, .. } = plan.legs[*leg as usize];
                let done = if sends { "received" } else { "sent" };
                let place = plan.call.schedule.place(at);
                format!(
                    "rank {peer} of another host has not {done} message {number}, of {bytes} bytes ({place}); it may be in another call, or gone"
                )
            }
            _ => "has not gone on by itself".to_owned(),
        }
    }

    /// The end of the call, with what became of it.
    pub(super) fn end(self, done: Result<(), Error>) -> Result<(), Error> {
        let Self { traffic, visit, .. } = self;
        let done = match (done, traffic) {
            (Ok(()), Ok(traffic)) => traffic.close(&visit),
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        visit.end(done)
    }
}

/// Does a move, and goes on with messages meanwhile.
///
/// # Safety
/// The bases point at the rank's buffers; the move touches nothing of a message under way that it must not.
unsafe fn one(
    plan: &HostsPlan,
    visit: &Visit<'_>,
    traffic: &mut Traffic<'_>,
    segment: u32,
) -> Result<(), Error> {
    let segment = plan.data.all[segment as usize];
    let mut failed = Ok(());
    let stops = || {
        failed = traffic.go_on(visit).map(drop);
        failed.is_err() || visit.stops()
    };
    let partials = plan.partials.address(0);
    let elements = 0..segment.elements;
    // SAFETY: the caller's promise; the partials are this process's alone.
    let whole = unsafe { plan.data.run(segment, elements, &plan.bases, partials, stops) };
    failed?;
    if whole { Ok(()) } else { visit.goes_on() }
}

/// A message of another host, as its end is waited for.
fn words(leg: Leg) -> String {
    let Leg { number, peer, sends, bytes, .. } = leg;
    let does = if sends { "receive" } else { "send" };
    format!(
        "rank {peer} of another host to {does} message {number}, of {bytes} bytes; it may be in another call, or gone"
    )
}
