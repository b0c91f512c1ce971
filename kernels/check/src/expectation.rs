//! The memory that a run must leave behind: the results of its calls, inputs as they were, and pads that are zero.

use roundelay_core::collective::Expected;
use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;
use roundelay_ptx::machine::Window;

use crate::addresses::in_order;
use crate::elements::{POISON, at, is_right, reduce, shown};
use crate::fill::each;
use crate::finding::{Finding, Kind, Memory};
use crate::harness::{Expect, ExpectedValues as Wanted, Fill, Order, StepWork};
use crate::sequence::{Sequence, Variation};

/// The expected elements of a rank, and the magnitude to which the error of each refers; none for a copy, which has the
/// same bits.
type Elements = (Vec<u8>, Vec<Option<f64>>);

/// An error of a result.
struct Bad {
    kind: Kind,
    title: String,
    memory: Memory,
}

impl Sequence<'_> {
    /// Compares the memory after a run. Windows are those of the run, by rising addresses.
    pub(crate) fn compare(&self, windows: &[Window]) -> Result<Option<Finding>, String> {
        let bytes = |room: usize| {
            let address = self.layout.rooms[room].address;
            let found = windows.binary_search_by_key(&address, |window| window.address);
            found.map_or(&[][..], |at| &windows[at].bytes)
        };
        let mut bad = None;
        if !matches!(self.variation, Variation::Absent(_)) {
            for number in 0..self.harness.expect.len() {
                bad = bad.or(self.result(number, &bytes)?);
            }
        }
        let bad = bad.or_else(|| self.leftover(&bytes));
        Ok(bad.map(|Bad { kind, title, memory }| Finding {
            memory: Some(memory),
            ..Finding::new(kind, title)
        }))
    }

    /// The first wrong element of a result.
    fn result<'w>(
        &self,
        number: usize,
        bytes: &impl Fn(usize) -> &'w [u8],
    ) -> Result<Option<Bad>, String> {
        let (harness, case) = (self.harness, self.case);
        let expect = &harness.expect[number];
        let buffer = harness.buffer(&expect.buffer).unwrap_or(0);
        let dtype = harness.memory[buffer].dtype;
        let size = dtype.size();
        let one_stream = harness.streams.len() < 2;
        let last = harness.run.calls - 1;
        let mut before: Option<Vec<Vec<u8>>> = None;
        for call in 0..=last {
            let group = self.group(expect, call)?;
            let wanted = self.wanted(expect, &group, call, before.as_deref())?;
            let mut first: Option<(u32, Vec<u8>)> = None;
            for (&rank, (wanted, scales)) in group.iter().zip(&wanted) {
                // Of several streams only the end is read.
                let whole = if one_stream {
                    let each = self.layout.rooms[self.layout.room(buffer, rank)].bytes as usize;
                    let all = bytes(self.copies[number][rank as usize]);
                    &all[call as usize * each..(call as usize + 1) * each]
                } else if call == last {
                    bytes(self.layout.room(buffer, rank))
                } else {
                    continue;
                };
                let got = whole.get(..wanted.len()).ok_or_else(|| {
                    format!(
                        "`{}` of rank {rank} is shorter than the result, {} bytes",
                        expect.buffer,
                        wanted.len()
                    )
                })?;
                let ulp = expect.ulp.unwrap_or(match &expect.values {
                    Wanted::Collective { order: Order::Any, .. } => case.ranks,
                    _ => 0,
                });
                let pairs = got.chunks_exact(size).zip(wanted.chunks_exact(size)).zip(scales);
                let mut wrong = pairs
                    .enumerate()
                    .filter(|(_, (pair, scale))| !is_right(dtype, *pair, (ulp, **scale)));
                if let Some((element, ((value, right), _))) = wrong.next() {
                    let more = match wrong.count() {
                        0 => String::new(),
                        1 => ", and one more is wrong".to_owned(),
                        more => format!(", and {more} more are wrong"),
                    };
                    let got_text = if value.iter().all(|byte| *byte == POISON) {
                        "was never written".to_owned()
                    } else {
                        format!("is {}", shown(dtype, value))
                    };
                    let title = format!(
                        "element {element} of rank {rank}'s {} {got_text} after call {call}, not {}{more}",
                        expect.buffer,
                        shown(dtype, right)
                    );
                    let memory = self.memory(buffer, rank, element * size);
                    return Ok(Some(Bad { kind: Kind::Wrong, title, memory }));
                }
                match &first {
                    Some((other, bits)) if expect.same_bits && bits != got => {
                        let element = (0..got.len() / size)
                            .find(|at| got[at * size..][..size] != bits[at * size..][..size]);
                        let element = element.unwrap_or(0);
                        let title = format!(
                            "element {element} of {} has other bits at rank {rank} than at rank {other}, after call {call}",
                            expect.buffer
                        );
                        let memory = self.memory(buffer, rank, element * size);
                        return Ok(Some(Bad { kind: Kind::Wrong, title, memory }));
                    }
                    None => first = Some((rank, got.to_vec())),
                    _ => {}
                }
            }
            before = Some(wanted.into_iter().map(|(bytes, _)| bytes).collect());
        }
        Ok(None)
    }

    fn memory(&self, buffer: usize, rank: u32, offset: usize) -> Memory {
        let known = &self.harness.memory[buffer];
        let name = known.name.clone();
        let element = (offset / known.dtype.size()) as u64;
        Memory { name, rank, offset: offset as u64, element }
    }

    /// The ranks of a result.
    fn group(&self, expect: &Expect, call: u32) -> Result<Vec<u32>, String> {
        if expect.ranks.is_empty() {
            return Ok((0..self.case.ranks).collect());
        }
        let numbers = self.case.numbers(self.harness, 0, call);
        let rank = |rank: &crate::expression::Expression| {
            let value = rank.value(&numbers)?;
            u32::try_from(value).ok().filter(|rank| *rank < self.case.ranks).ok_or_else(|| {
                format!("rank {value} is in `ranks` of a result, and there are {}", self.case.ranks)
            })
        };
        expect.ranks.iter().map(rank).collect()
    }

    /// The input of a rank in a call.
    fn input(&self, buffer: usize, rank: u32, call: u32) -> &[u8] {
        let values = &self.values[buffer][rank as usize];
        let written = values.written[..=call as usize].iter().rev().flatten().next();
        written.unwrap_or(&values.first)
    }

    /// The expected results of the ranks of a group. `before` has those of the call before.
    fn wanted(
        &self,
        expect: &Expect,
        group: &[u32],
        call: u32,
        before: Option<&[Vec<u8>]>,
    ) -> Result<Vec<Elements>, String> {
        let (harness, case) = (self.harness, self.case);
        let buffer = harness.buffer(&expect.buffer).unwrap_or(0);
        let dtype = harness.memory[buffer].dtype;
        let size = dtype.size();
        let (collective, op, input, root, count, order, wide) = match &expect.values {
            Wanted::Each(value) => {
                let of = |&rank: &u32| {
                    let len = case.bytes(harness, buffer, (rank, call))? as usize / size;
                    let bytes = each(value, dtype, len, case.numbers(harness, rank, call))?;
                    Ok((bytes, vec![Some(0.0); len]))
                };
                return group.iter().map(of).collect();
            }
            Wanted::Collective { collective, op, input, root, count, order, wide } => {
                (*collective, *op, harness.buffer(input).unwrap_or(0), root, count, *order, *wide)
            }
        };
        let numbers = case.numbers(harness, group[0], call);
        let nranks = group.len() as u32;
        let root = RankId(
            u32::try_from(root.value(&numbers)?)
                .ok()
                .filter(|root| *root < nranks)
                .ok_or("no root")?,
        );
        let in_place = input == buffer;
        let units = if in_place {
            collective.max_units(nranks)
        } else {
            collective.max_input_units(nranks).into()
        };
        let count = match count {
            Some(count) => count.value(&numbers)?,
            None => (case.bytes(harness, input, (group[0], call))? / size as u64 / units) as i64,
        };
        let count =
            usize::try_from(count).map_err(|_| format!("a unit would have {count} elements"))?;
        let written = self.values[input][0].written.iter().any(Option::is_some);
        let given = |at: usize| match before {
            Some(before) if in_place && !written => &before[at][..],
            _ => self.input(input, group[at], call),
        };
        let starts =
            |at: u32| if in_place { collective.alias(RankId(at), root).starts() } else { (0, 0) };
        let element = |at: usize, unit: u32, position: usize| {
            let place = (starts(at as u32).0 + unit) as usize * count + position;
            let bytes = given(at);
            bytes.get(place * size..(place + 1) * size).ok_or_else(|| {
                let name = &harness.memory[input].name;
                format!("`{name}` of rank {} has no element {place}", group[at])
            })
        };
        let each_step = if wide && dtype.is_narrow_float() { DType::F32 } else { dtype };
        let each_step =
            if order == Order::Any && dtype.is_float() { DType::F64 } else { each_step };
        let mut all = Vec::new();
        for at in 0..nranks {
            let mut bytes = Vec::new();
            let mut scales = Vec::new();
            // The bytes before the output in its buffer stay as they were.
            let skipped = starts(at).1 as usize * count * size;
            if skipped > 0 {
                bytes.extend(
                    given(at as usize).get(..skipped).ok_or("the output's buffer is too short")?,
                );
                scales.resize(bytes.len() / size, None);
            }
            for unit in 0..collective.output_units(RankId(at), nranks, root) {
                for position in 0..count {
                    match collective.expected_value(RankId(at), unit, root) {
                        Expected::Copied { rank, unit } => {
                            bytes.extend(element(rank.index(), unit, position)?);
                            scales.push(None);
                        }
                        Expected::Reduced { unit } => {
                            let ranks = in_order(order, at, nranks);
                            let elements = ranks.map(|rank| {
                                let bytes = element(rank as usize, unit, position)?;
                                Ok(self::at(dtype, bytes, 0))
                            });
                            let elements: Vec<_> = elements.collect::<Result<_, String>>()?;
                            let (value, scale) =
                                reduce((dtype, each_step), op, elements.into_iter());
                            bytes.extend(value);
                            scales.push(Some(scale));
                        }
                    }
                }
            }
            all.push((bytes, scales));
        }
        Ok(all)
    }

    /// The first byte of an input that a kernel wrote, or of a pad that is not zero.
    fn leftover<'w>(&self, bytes: &impl Fn(usize) -> &'w [u8]) -> Option<Bad> {
        let harness = self.harness;
        for (number, buffer) in harness.memory.iter().enumerate() {
            let is_target = |work: &StepWork| match work {
                StepWork::Set { to, .. } | StepWork::Copy { to, .. } => to.buffer == buffer.name,
                _ => false,
            };
            let is_result = harness.expect.iter().any(|expect| expect.buffer == buffer.name);
            let written =
                self.values[number].iter().any(|values| values.written.iter().any(Option::is_some));
            let is_input = (written || buffer.fill == Fill::Random)
                && !is_result
                && !harness.calls.iter().any(|step| is_target(&step.work));
            for rank in 0..self.case.ranks {
                let got = bytes(self.layout.room(number, rank));
                let absent = self.variation == Variation::Absent(rank);
                let differs =
                    |wanted: &[u8]| got.iter().zip(wanted).position(|(got, wanted)| got != wanted);
                if is_input && !absent {
                    let values = &self.values[number][rank as usize];
                    let mut wanted = values.first.clone();
                    for written in values.written.iter().flatten() {
                        wanted[..written.len()].copy_from_slice(written);
                    }
                    if let Some(at) = differs(&wanted) {
                        let title = format!(
                            "rank {rank}'s {} is an input, and byte {at} was overwritten",
                            buffer.name
                        );
                        return Some(Bad {
                            kind: Kind::Wrong,
                            title,
                            memory: self.memory(number, rank, at),
                        });
                    }
                }
                if buffer.zero_after
                    && let Some(at) = got.iter().position(|byte| *byte != 0)
                {
                    let title = format!(
                        "byte {at} of rank {rank}'s {} is not zero at the end",
                        buffer.name
                    );
                    return Some(Bad {
                        kind: Kind::DirtyPad,
                        title,
                        memory: self.memory(number, rank, at),
                    });
                }
            }
        }
        None
    }
}
