//! One run of one kernel, beside the definition.

use fastrand::Rng as Random;
use roundelay_arithmetic::{InstructionSet, Kernel, MoveForm, Stores};
use roundelay_base::dtype::{DType, ReduceOp};

use crate::copy::LINE;
use crate::element::{converted, defined, defined_wide, element, float, read, same, write};

/// One run of one kernel, with the places of its operands in lines of memory.
pub(crate) struct Case {
    pub(crate) set: InstructionSet,
    pub(crate) kernel: Kernel,
    pub(crate) dtype: DType,
    pub(crate) op: ReduceOp,
    pub(crate) stores: Stores,
    pub(crate) srcs: usize,
    pub(crate) dsts: usize,
    pub(crate) len: usize,
    /// Elements from the start of a line to each operand, used in turn.
    pub(crate) offsets: Vec<usize>,
    /// The destination, if any, that equals a source, and the index of that source.
    pub(crate) shared: Option<(usize, usize)>,
    pub(crate) divide: Option<u32>,
    pub(crate) form: MoveForm,
}

impl Case {
    pub(crate) fn check(&self, random: &mut Random) {
        const GUARD: u8 = 0xa5;
        let size = self.dtype.size();
        let stride = (self.len * Ord::max(4, size)).next_multiple_of(LINE) + 2 * LINE;
        let mut memory = vec![GUARD; stride * (self.srcs + self.dsts) + LINE];
        let base = memory.as_ptr().align_offset(LINE);
        let at = |operand: usize| {
            let places = LINE / self.size(operand);
            let offset = self.offsets[operand % self.offsets.len()] % places * self.size(operand);
            base + operand * stride + offset
        };
        let mut places: Vec<usize> = (0..self.srcs + self.dsts).map(at).collect();
        if let Some((dst, src)) = self.shared
            && self.size(self.srcs + dst) == self.size(src)
        {
            places[self.srcs + dst] = places[src];
        }
        for (nth, &src) in places[..self.srcs].iter().enumerate() {
            let (dtype, size) = (self.dtype(nth), self.size(nth));
            for bytes in memory[src..][..self.len * size].chunks_exact_mut(size) {
                write(dtype, element(dtype, random), bytes);
            }
        }
        let before = memory.clone();
        let start = memory.as_mut_ptr();
        // SAFETY: all places are in `memory`, `stride` apart or equal, and aligned for the dtype.
        unsafe {
            let at: Vec<*mut u8> = places.iter().map(|&place| start.add(place)).collect();
            let srcs: Vec<*const u8> = at[..self.srcs].iter().map(|at| at.cast_const()).collect();
            self.kernel.run(
                &srcs,
                &at[self.srcs..],
                self.len,
                self.form(),
                self.divide,
                self.stores,
            );
        }
        let mut want = before.clone();
        // A NaN that is copied to or from a wide operand may become a quiet one, or stay as it is.
        let wide_move = (0..self.srcs + self.dsts).any(|nth| self.dtype(nth) != self.dtype);
        let copied = self.srcs == 1 && self.divide.is_none();
        let narrow = converted(self.dtype).is_some();
        for i in 0..self.len {
            let value = |nth: usize| {
                let size = self.size(nth);
                read(self.dtype(nth), &before[places[nth] + i * size..][..size])
            };
            let values: Vec<u64> = (0..self.srcs).map(value).collect();
            let (wide, result) = if copied && !wide_move {
                (0.0, values[0])
            } else if narrow {
                defined_wide((self.dtype, self.op), self.form(), &values, self.divide)
            } else {
                (0.0, defined(self.dtype, self.op, &values, self.divide))
            };
            for (operand, &dst) in places.iter().enumerate().skip(self.srcs) {
                let (dtype, size) = (self.dtype(operand), self.size(operand));
                let result = if dtype == self.dtype { result } else { u64::from(wide.to_bits()) };
                let got = &memory[dst + i * size..][..size];
                let a_nan = |bits| {
                    float(dtype).is_some_and(|(infinity, ..)| {
                        bits & ((1 << (dtype.size() * 8 - 1)) - 1) > infinity
                    })
                };
                let nans = wide_move && self.srcs == 1 && a_nan(result) && a_nan(read(dtype, got));
                assert!(
                    nans || same(dtype, read(dtype, got), result, copied && !wide_move),
                    "{}: element {i} of {values:x?} is {:x}, not {result:x}",
                    self.name(),
                    read(dtype, got),
                );
                want[dst + i * size..][..size].copy_from_slice(got);
            }
        }
        assert!(memory == want, "{}: memory beside the destinations has changed", self.name());
    }

    /// Returns the type of an operand, sources first.
    fn dtype(&self, operand: usize) -> DType {
        let wide = match operand.checked_sub(self.srcs) {
            None => self.form.wide_srcs >> operand,
            Some(dst) => self.form.wide_dsts >> dst,
        };
        let narrow = converted(self.dtype).is_some();
        if narrow && wide & 1 == 1 { DType::F32 } else { self.dtype }
    }

    /// Returns the form, with no bits beyond the operands.
    fn form(&self) -> MoveForm {
        let MoveForm { chain, wide_srcs, wide_dsts } = self.form;
        let of = |n: usize| u8::MAX >> (8 - n);
        MoveForm {
            chain,
            wide_srcs: wide_srcs & of(self.srcs),
            wide_dsts: wide_dsts & of(self.dsts),
        }
    }

    fn size(&self, operand: usize) -> usize {
        self.dtype(operand).size()
    }

    fn name(&self) -> String {
        let Self { set, dtype, op, stores, srcs, dsts, len, offsets, shared, divide, form, .. } =
            self;
        format!(
            "{set:?} {dtype} {op} {stores:?} {srcs} -> {dsts} len {len} offsets {offsets:?} \
             shared {shared:?} divide {divide:?} {form:?}"
        )
    }
}
