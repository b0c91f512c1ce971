//! The function for callers: its checks, its setup, and its cleanup.

use std::fmt::Write as _;

use super::Parts;
use super::check::MpiFacts;
use super::names::calls;
use crate::loops::cpp_names::mentions;
use roundelay_core::collective::{Alias, Collective};
use roundelay_core::ids::RankId;
use roundelay_core::rational::Rat;
use roundelay_core::schedule::Schedule;
use roundelay_core::verify::Proof;

/// The data for the text around the exchange.
pub(super) struct Program<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) proof: &'a Proof,
    pub(super) parts: &'a Parts,
    /// The only rank that is written, where it is one.
    pub(super) only: Option<RankId>,
    pub(super) facts: &'a MpiFacts,
    /// Pieces of the longest region.
    pub(super) longest: u64,
}

/// Returns a length or a place of a buffer in units, by rank.
fn by_rank(schedule: &Schedule, of: impl Fn(RankId) -> u32) -> String {
    let all: Vec<u32> = (0..schedule.nranks).map(|rank| of(RankId(rank))).collect();
    if all.iter().all(|units| *units == all[0]) {
        return if all[0] == schedule.nranks && all[0] > 1 {
            "RANKS".to_owned()
        } else {
            all[0].to_string()
        };
    }
    let units = all[schedule.root.index()];
    let units = if units == schedule.nranks { "RANKS".to_owned() } else { units.to_string() };
    format!("r->rank == ROOT ? {units} : 0")
}

/// Returns a number of elements by rank, for a schedule with a count for each block.
fn of_each(numbers: &[u64]) -> String {
    if numbers.iter().all(|number| *number == numbers[0]) {
        return numbers[0].to_string();
    }
    let all: Vec<String> = numbers.iter().map(u64::to_string).collect();
    format!("((const MPI_Aint[]){{{}}})[r->rank]", all.join(", "))
}

impl Program<'_> {
    fn has_scratch(&self) -> bool {
        !self.schedule.scratch.is_empty() || self.facts.spare > 0
    }

    /// Returns the `#include`s, without those that only unused helpers need.
    pub(super) fn includes(&self, helpers: &str) -> String {
        let long = self.longest > self.parts.pieces;
        let mut headers = String::new();
        if long {
            headers += "#include <limits.h>\n";
        }
        headers += "#include <stddef.h>\n#include <stdint.h>\n";
        if self.has_scratch() || calls(helpers, "malloc") {
            headers += "#include <stdlib.h>\n";
        }
        if calls(helpers, "memmove") {
            headers += "#include <string.h>\n";
        }
        format!("{headers}\n#include <mpi.h>\n\n")
    }

    /// Returns the constants, and the types of a call.
    pub(super) fn declarations(&self) -> String {
        let Self { schedule, parts, .. } = self;
        let mut constants = vec![
            ("RANKS", schedule.nranks.to_string(), ""),
            (
                "PIECES",
                parts.pieces.to_string(),
                "equal pieces of `count` elements that regions are made of",
            ),
        ];
        if schedule.collective.is_rooted() {
            constants.push(("ROOT", schedule.root.to_string(), ""));
        }
        if self.facts.sends > 0 {
            constants.push(("SENDS", self.facts.sends.to_string(), "under way at once"));
        }
        if self.facts.receives > 0 {
            constants.push(("RECEIVES", self.facts.receives.to_string(), "under way at once"));
        }
        constants.push((
            "COPIES",
            schedule.lanes.len().to_string(),
            "the tag after those of the messages",
        ));
        let mut text = "enum {\n".to_owned();
        for (name, value, what) in constants {
            let comment = if what.is_empty() { String::new() } else { format!(" /* {what} */") };
            let _ = writeln!(text, "    {name} = {value},{comment}");
        }
        text += "};\n\n";
        if self.has_scratch() {
            text += "/* Slots of so many elements each. */\ntypedef struct {\n    char *first;\n    long long slot;\n} scratch;\n\n";
        }
        text += "/* A stretch of a buffer: its first element, and the number of its elements. */\ntypedef struct {\n    char *first;\n    int len;\n} span;\n\n";
        text += "/* A call. */\ntypedef struct {\n    int rank;\n    int count;\n    MPI_Datatype type;\n    MPI_Op op;\n    MPI_Comm comm;\n";
        text += "    MPI_Aint extent; /* bytes from an element to the next */\n    int dense;       /* whether elements have no gaps */\n    char *in;\n    char *out;\n";
        if self.has_scratch() {
            text += "    MPI_Aint true_lower;\n    MPI_Aint true_extent;\n    char *memory; /* of all scratch */\n";
        }
        for name in &parts.scratch {
            let _ = writeln!(text, "    scratch {name};");
        }
        if self.facts.spare > 0 {
            text += "    scratch spare;\n";
        }
        if self.facts.sends > 0 {
            text += "    MPI_Request sends[SENDS];\n";
        }
        if self.facts.receives > 0 {
            text += "    MPI_Request receives[RECEIVES];\n";
        }
        text += "} run;\n\n";
        text
    }

    /// Returns the functions after the exchange.
    pub(super) fn entry(&self) -> String {
        let mut text = self.begin();
        if self.has_scratch() {
            text += &self.allocate();
        }
        text += &self.end();
        let name = &self.parts.name;
        let head = format!("int {name}(");
        let pad = " ".repeat(head.len());
        let _ = writeln!(
            text,
            "{head}const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,\n{pad}MPI_Comm comm) {{"
        );
        text += "    run r;\n    TRY(begin(&r, in, out, count, type, op, comm));\n    if (count == 0) {\n        return MPI_SUCCESS;\n    }\n";
        text += "    TRY(own_communicator(comm, &r.comm));\n";
        if self.has_scratch() {
            text += "    TRY(allocate(&r));\n";
        }
        text += "    const int error = exchange(&r);\n    end(&r, error);\n    return error;\n}\n";
        text
    }

    fn begin(&self) -> String {
        let schedule = self.schedule;
        let mut text = "/* Says what is wrong with the arguments, as a class of MPI's errors; else sets up the call. */\nstatic int begin(run *r, const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,\n                 MPI_Comm comm) {\n".to_owned();
        text += "    int two_groups = 0, ranks = 0;\n    if (comm == MPI_COMM_NULL) {\n        return MPI_ERR_COMM;\n    }\n    TRY(MPI_Comm_test_inter(comm, &two_groups));\n    TRY(MPI_Comm_size(comm, &ranks));\n    if (two_groups || ranks != RANKS) {\n        return MPI_ERR_COMM;\n    }\n";
        let most = self.longest.div_ceil(self.parts.pieces);
        if most > 1 {
            let _ = writeln!(
                text,
                "    /* The longest message is of {most} times `count` elements. */\n    if (count < 0 || count > INT_MAX / {most}) {{\n        return MPI_ERR_COUNT;\n    }}"
            );
        } else {
            text += "    if (count < 0) {\n        return MPI_ERR_COUNT;\n    }\n";
        }
        if schedule.multiple > 1 {
            let why = schedule
                .demands
                .multiple
                .as_ref()
                .map_or_else(String::new, |why| format!(": {}", why.replace("*/", "* /")));
            let _ = writeln!(
                text,
                "    /* Counts are multiples of {0}{why}. */\n    if (count % {0} != 0) {{\n        return MPI_ERR_COUNT;\n    }}",
                schedule.multiple
            );
        }
        text += "    if (type == MPI_DATATYPE_NULL) {\n        return MPI_ERR_TYPE;\n    }\n";
        if schedule.collective.reduces() {
            text += "    if (op == MPI_OP_NULL) {\n        return MPI_ERR_OP;\n    }\n";
            let in_order =
                self.proof.reduction.as_ref().is_none_or(|r| r.in_every_mode().in_rank_order);
            if !in_order {
                text += "    /* Ranks are not reduced in their order. */\n    int commutes = 0;\n    TRY(MPI_Op_commutative(op, &commutes));\n    if (!commutes) {\n        return MPI_ERR_OP;\n    }\n";
            }
        }
        text += "    TRY(MPI_Comm_rank(comm, &r->rank));\n";
        if let Some(rank) = self.only {
            let _ = writeln!(
                text,
                "    if (r->rank != {rank}) {{\n        return MPI_ERR_RANK;\n    }}"
            );
        }
        text +=
            "    r->count = count;\n    r->type = type;\n    r->op = op;\n    r->comm = comm;\n";
        text += "    int size = 0;\n    MPI_Aint lower = 0, true_lower = 0, true_extent = 0;\n    TRY(MPI_Type_size(type, &size));\n    TRY(MPI_Type_get_extent(type, &lower, &r->extent));\n    TRY(MPI_Type_get_true_extent(type, &true_lower, &true_extent));\n    if (r->extent < 0) {\n        return MPI_ERR_TYPE;\n    }\n";
        text +=
            "    r->dense = true_lower == 0 && true_extent == r->extent && size == r->extent;\n";
        if self.has_scratch() {
            text += "    r->true_lower = true_lower;\n    r->true_extent = true_extent;\n    r->memory = NULL;\n";
        }
        text += &self.buffers();
        for (name, len, many) in
            [("sends", "SENDS", self.facts.sends), ("receives", "RECEIVES", self.facts.receives)]
        {
            if many > 0 {
                let _ = writeln!(
                    text,
                    "    for (int i = 0; i < {len}; i++) {{\n        r->{name}[i] = MPI_REQUEST_NULL;\n    }}"
                );
            }
        }
        text += "    return MPI_SUCCESS;\n}\n\n";
        text
    }

    /// Returns the text that finds input and output, also in place.
    fn buffers(&self) -> String {
        let schedule = self.schedule;
        let Schedule { collective, nranks, root, .. } = *schedule;
        let ranks = || (0..nranks).map(RankId);
        let (inputs, outputs) = match &schedule.elements {
            Some(lengths) => (of_each(&lengths.input), of_each(&lengths.output)),
            None => (
                by_rank(schedule, |rank| collective.input_units(rank, nranks, root)),
                by_rank(schedule, |rank| collective.output_units(rank, nranks, root)),
            ),
        };
        let mut text = format!(
            "    r->in = (char *)in;\n    r->out = out;\n    const MPI_Aint unit = count * r->extent;\n    const MPI_Aint input = ({inputs}) * unit, output = ({outputs}) * unit;\n"
        );
        text = text
            .replace("(1) * unit", "unit")
            .replace("(RANKS)", "RANKS")
            .replace("(0) * unit", "0");
        let in_place = self.proof.in_place && collective.has_in_place();
        let aliased: Vec<_> =
            ranks().filter(|rank| collective.alias(*rank, root) != Alias::Apart).collect();
        let only_root = aliased.len() < nranks as usize;
        let at = |start: u32| match start {
            _ if schedule.elements.is_some() => {
                let starts = ranks().map(|rank| schedule.in_place_starts(rank, 1));
                let starts: Vec<u64> = starts.map(|(input, output)| input.max(output)).collect();
                format!(" + {} * unit", of_each(&starts))
            }
            0 => String::new(),
            _ => format!(" + {} * unit", if only_root { "ROOT" } else { "r->rank" }),
        };
        // A rank other than the first distinguishes a place that depends on the rank from a constant one.
        let sample = aliased.last().copied();
        let place = sample.filter(|_| in_place).map(|rank| match collective.alias(rank, root) {
            Alias::InputInOutput(start) => ("r->in", format!("r->out{}", at(start)), "in"),
            Alias::OutputInInput(start) => ("r->out", format!("r->in{}", at(start)), "out"),
            Alias::Apart => unreachable!("it has a place"),
        });
        // For a reduce-scatter, MPI has another place for the output in place; nothing is proved for it.
        let keyword = collective != Collective::ReduceScatter;
        let root_only = if only_root { "r->rank == ROOT && " } else { "" };
        if let Some((set, to, given)) = place.as_ref().filter(|_| keyword) {
            let _ = writeln!(
                text,
                "    if ({root_only}{given} == MPI_IN_PLACE) {{\n        {set} = {to};\n    }}"
            );
        }
        text += "    const uintptr_t a = (uintptr_t)r->in, b = (uintptr_t)r->out;\n    if ((input > 0 && r->in == MPI_IN_PLACE) || (output > 0 && r->out == MPI_IN_PLACE)) {\n        return MPI_ERR_BUFFER;\n    }\n";
        let allowed = place.map_or_else(String::new, |(set, to, _)| format!(" && {set} != {to}"));
        let _ = write!(
            text,
            "    /* Elements may lie in one another's gaps: then only what begins together surely overlaps. */\n    const int shared = r->dense ? a < b + (uintptr_t)output && b < a + (uintptr_t)input : a == b;\n    if (input > 0 && output > 0 && shared{allowed}) {{\n        return MPI_ERR_BUFFER;\n    }}\n"
        );
        text
    }

    fn allocate(&self) -> String {
        let Self { schedule, parts, .. } = self;
        let mut text =
            "/* All scratch is one piece of memory. */\nstatic int allocate(run *r) {\n".to_owned();
        let mut sum = Vec::new();
        for (scratch, name) in schedule.scratch.iter().zip(&parts.scratch) {
            let width = super::piece(scratch.width, parts.pieces);
            let _ = writeln!(text, "    r->{name}.slot = {};", slot_elements(scratch.width, width));
            sum.push(match scratch.slots {
                1 => format!("r->{name}.slot"),
                slots => format!("{slots} * r->{name}.slot"),
            });
        }
        if self.facts.spare > 0 {
            let width = Rat::new(self.facts.spare, parts.pieces).unwrap_or(Rat::ONE);
            let _ =
                writeln!(text, "    r->spare.slot = {};", slot_elements(width, self.facts.spare));
            sum.push("r->spare.slot".to_owned());
        }
        let _ = writeln!(text, "    const long long elements = {};", sum.join(" + "));
        text += "    /* The last element may be longer than the way to a next one. */\n    const long long bytes = elements * r->extent + r->true_extent;\n";
        text += "    r->memory = (unsigned long long)bytes <= SIZE_MAX ? malloc((size_t)bytes) : NULL;\n    if (r->memory == NULL) {\n        return MPI_ERR_NO_MEM;\n    }\n";
        text += "    char *first = r->memory - r->true_lower;\n";
        let names: Vec<_> = parts
            .scratch
            .iter()
            .map(String::as_str)
            .chain((self.facts.spare > 0).then_some("spare"))
            .collect();
        for (at, (name, len)) in names.iter().zip(&sum).enumerate() {
            let _ = writeln!(text, "    r->{name}.first = first;");
            if at + 1 < names.len() {
                let _ = writeln!(text, "    first += {len} * r->extent;");
            }
        }
        text += "    return MPI_SUCCESS;\n}\n\n";
        text
    }

    fn end(&self) -> String {
        let mut body = String::new();
        if self.facts.receives > 0 {
            body += "    for (int i = 0; error != MPI_SUCCESS && i < RECEIVES; i++) {\n        if (r->receives[i] != MPI_REQUEST_NULL) {\n            MPI_Cancel(&r->receives[i]);\n            MPI_Wait(&r->receives[i], MPI_STATUS_IGNORE);\n        }\n    }\n";
        }
        let scratch = self.has_scratch();
        let mut comment = "Leaves nothing behind.";
        if self.facts.sends > 0 {
            comment = if scratch {
                "After an error, calls off what is under way; scratch that a send may still read is left."
            } else {
                "After an error, calls off what is under way."
            };
            let reading = if scratch { "    int reading = 0;\n" } else { "" };
            let read = if scratch { "            reading = 1;\n" } else { "" };
            body = format!(
                "{reading}{body}    for (int i = 0; error != MPI_SUCCESS && i < SENDS; i++) {{\n        int done = 1;\n        MPI_Test(&r->sends[i], &done, MPI_STATUS_IGNORE);\n        if (!done) {{\n            MPI_Request_free(&r->sends[i]);\n{read}        }}\n    }}\n"
            );
            if scratch {
                body += "    if (!reading) {\n        free(r->memory);\n    }\n";
            }
        } else if scratch {
            body += "    free(r->memory);\n";
        }
        let unused = match (mentions(&body, "error"), body.contains("r->")) {
            (false, false) => "    (void)r, (void)error;\n",
            (false, true) => "    (void)error;\n",
            _ => "",
        };
        format!("/* {comment} */\nstatic void end(run *r, int error) {{\n{unused}{body}}}\n\n")
    }
}

/// Returns the elements of a slot: a part of `count`, rounded up.
fn slot_elements(width: Rat, pieces: u64) -> String {
    match (width.num(), width.den()) {
        (1, 1) => "r->count".to_owned(),
        (units, 1) => format!("{units}LL * r->count"),
        _ => format!("({pieces}LL * r->count + PIECES - 1) / PIECES"),
    }
}
