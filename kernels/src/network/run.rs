//! Calls of a plan on the caller's buffers.

use roundelay_core::ids::RankId;

use super::form::{HostsRank, Leg, Place, Step};
use super::traffic::Traffic;
use crate::Error;
use crate::lowered::{PlannedCall, RankCall, UserBuffers};
use crate::shared_memory::ActiveCall;

impl RankCall for HostsRank {
    fn planned(&self) -> &PlannedCall {
        &self.call
    }

    fn rank(&self) -> RankId {
        self.hosts.rank().into()
    }

    fn lens(&self) -> [usize; 2] {
        self.lens
    }

    fn starts(&self) -> [usize; 2] {
        self.within
    }

    unsafe fn make(&self, outside: UserBuffers) -> Result<(), Error> {
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
}

impl HostsRank {
    /// Begins a call on this input and output.
    ///
    /// # Safety
    /// Both addresses are good for the rank's buffers, aligned and initialized, the output's writable, and lent until
    /// what is returned is gone.
    pub(super) unsafe fn set_out(&self, outside: UserBuffers) -> Result<Course<'_>, Error> {
        let (visit, met) = self.hosts.world.enter_call(self.identity, &self.call)?;
        // Nobody else is in a call of this rank. Lowering refuses to write an input.
        let [input, output] = self.outside;
        self.bases.set(input, outside.input.cast_mut());
        self.bases.set(output, outside.output);
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
    plan: &'p HostsRank,
    /// Goes before the visit: nothing is under way when the call ends.
    traffic: Result<Traffic<'p>, Error>,
    visit: ActiveCall<'p>,
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
    plan: &HostsRank,
    visit: &ActiveCall<'_>,
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
