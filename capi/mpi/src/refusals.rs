//! The mistakes that this MPI library refuses, and others take: found when MPI begins, by making each of them once.

use std::ffi::c_void;

use roundelay_kernels::mpi::{Handle, Mpi};

use crate::call::{BlockArrays, MpiCall, MpiCollective, RankNumbers, Values};
use crate::pass::pass;
use crate::rules::{Apart, Givers, Rules, rules};
use crate::types;

/// A mistake that some MPI libraries take, and others refuse.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusal {
    /// One buffer for both sides.
    OneBuffer,
    /// One buffer for both sides, of one value.
    OneValue,
    /// A type that is sent, and is not committed.
    Sent,
    /// A type that is received, and is not committed.
    Received,
}

/// The mistakes that this MPI library refuses in each collective: a bit for each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Refusals([u16; 4]);

impl Refusals {
    /// Makes each mistake once, on a communicator of this process alone, whose calls return errors. A library that
    /// refuses a mistake does so before it looks at the data, and a library that takes it has data to copy.
    pub(crate) fn of(mpi: &Mpi, own: Handle) -> Self {
        let mut all = Self::default();
        let raw = types::not_committed(mpi).filter(|raw| !types::is_committed(mpi, *raw));
        let byte = mpi.byte();
        for what in MpiCollective::ALL {
            let Rules { send, recv, apart } = rules(what);
            let mut tried = Vec::new();
            if apart != Apart::Never {
                tried.extend([(Refusal::OneBuffer, [byte; 2]), (Refusal::OneValue, [byte; 2])]);
            }
            if let Some(raw) = raw.filter(|_| !what.combines()) {
                let mistakes = [
                    (send.givers, (Refusal::Sent, [raw, byte])),
                    (recv.givers, (Refusal::Received, [byte, raw])),
                ];
                let given = mistakes.into_iter().filter(|(givers, _)| *givers != Givers::None);
                tried.extend(given.map(|(_, mistake)| mistake));
            }
            for (refusal, types) in tried {
                if is_refused(mpi, own, what, refusal, types) {
                    all.0[refusal as usize] |= 1 << what as u16;
                }
            }
        }
        if let Some(raw) = raw {
            types::free(mpi, raw);
        }
        all
    }

    pub(crate) fn refuses(self, refusal: Refusal, what: MpiCollective) -> bool {
        self.0[refusal as usize] >> what as u16 & 1 != 0
    }
}

/// Whether MPI refuses a call of this process alone that has a mistake, with values of these types.
fn is_refused(
    mpi: &Mpi,
    own: Handle,
    what: MpiCollective,
    refusal: Refusal,
    types: [Handle; 2],
) -> bool {
    let one_buffer = matches!(refusal, Refusal::OneBuffer | Refusal::OneValue);
    let (count, place) = (if matches!(refusal, Refusal::OneBuffer) { 2 } else { 1 }, 0);
    let numbers = |at: &i32| RankNumbers { at: std::ptr::from_ref(at).cast(), wide: false };
    let arrays = BlockArrays { counts: numbers(&count), places: numbers(&place) };
    let mut data = [0_u8; 4];
    let first: *mut c_void = data.as_mut_ptr().cast();
    let second = first.wrapping_byte_add(if one_buffer { 0 } else { 2 });
    let values = |at, of| Values { at, count: count.into(), of };
    let (send, recv) = (values(first, types[0]), values(second, types[1]));
    let op = mpi.bitwise_and();
    let call = MpiCall { what, send, recv, op, root: 0, comm: own, arrays: [arrays; 2] };
    pass(mpi.functions(), &call, false) != 0
}
