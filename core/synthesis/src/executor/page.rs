//! The texts of the pages: an AllReduce in waves, and an executor.

/// An AllReduce in waves; capital words stand for what depends on the waves.
pub(super) const ALGORITHM: &str = "
/// DOCS
///
/// Move m carries the pieces `begin[m]..end[m]` of a slice from rank `giver[m]` to rank `taker[m]`. Wave w has the moves
/// from `first[w]` on. The first UP of WAVES waves add up, the others hand out the sums. In beat b, slice b - w is in wave
/// w. Linked ranks tell each other the end of every beat, by two signals in turn: so a signal is posted only after its
/// last one was waited for, and a slot of the inbox is filled only after it was read, two beats before.
#[verify(nranks = RANKS)]
#[topology(TOPOLOGY)]
pub algorithm NAME(topology: Topology, slices: int = 1) -> AllReduce {
    let weights = WEIGHTS;
    let first = FIRST;
    let giver = GIVER;
    let taker = TAKER;
    let begin = BEGIN;
    let end = END;
    let slot = SLOTS;
    let lanes = min(slices, WAVES); // a lane for each wave of a beat
    view given = input.split(slices);
    view slice = output.split(slices);
    scratch inbox: 2 * INBOX like slice[0].split(PARTS);

    require nranks == RANKS, \"the moves are those of RANKS ranks\";
    for beat in 0..(slices + WAVES) / 2 * 2 { // an even number
        if beat < slices {
            copy(local.given[beat], local.slice[beat]);
        }
        parallel l in 0..lanes * (nranks - 1) {
            let next = peer((rank + l / lanes + 1) % nranks);
            for wave in max(0, beat - slices + 1)..min(WAVES, beat + 1) {
                if wave % lanes == l % lanes {
                    view part = slice[beat - wave].split(weights);
                    for m in first[wave]..first[wave + 1] {
                        if giver[m] == rank && taker[m] == next.rank {
                            if wave < UP {
                                copy(local.part[begin[m]..end[m]], next.inbox[2 * slot[m] + beat % 2]);
                            } else {
                                copy(local.part[begin[m]..end[m]], next.part[begin[m]..end[m]]);
                            }
                        }
                    }
                }
            }
        }
        parallel d in 1..nranks {
            let next = peer((rank + d) % nranks);
            let last = peer((rank - d) % nranks);
            if topology.linked(rank, next) {
                if beat % 2 == 0 {
                    next.TxAck();
                } else {
                    next.TxDataSignal();
                }
            }
            if topology.linked(last, rank) {
                if beat % 2 == 0 {
                    last.RxAck();
                } else {
                    last.RxDataSignal();
                }
            }
        }
        for wave in max(0, beat - slices + 1)..min(UP, beat + 1) {
            view part = slice[beat - wave].split(weights);
            for m in first[wave]..first[wave + 1] {
                if taker[m] == rank {
                    reduce(local.inbox[2 * slot[m] + beat % 2], local.part[begin[m]..end[m]]);
                }
            }
        }
    }
}
";

/// An executor; `CLASSES` are its lines of `when` and `otherwise`.
pub(super) const EXECUTOR: &str = "
DOCSpub executor Synthesized for AllReduce {
    topology: TOPOLOGY;
    ccl_buffer: 200 MiB;
CLASSES
}
";
