//! Predefined types and ops, and their counterparts in Roundelay.

use std::ffi::{CStr, c_long};

use roundelay_core::dtype::{DType, ReduceOp};

use super::Lookup;
use super::abi::{Abi, Handle};

/// A predefined type whose values lie without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    /// Bytes of a value.
    pub size: u64,
    /// The elements of a value, for ops that combine values.
    pub elements: Elements,
}

/// The kind of values, for ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Numbers: arithmetic, logical and bitwise ops, as far as the type has them.
    Numbers(DType),
    /// Truth values of C, a byte each: logical ops alone.
    Truth,
    /// Bytes without a meaning: bitwise ops alone.
    Bytes,
    /// Characters, or numbers of a width that Roundelay does not have: no ops.
    Opaque,
}

impl Elements {
    /// The dtype that `op` combines, if MPI allows it and Roundelay has the dtype.
    pub fn combined_by(self, op: ReduceOp) -> Option<DType> {
        let logical = matches!(op, ReduceOp::Land | ReduceOp::Lor | ReduceOp::Lxor);
        let bitwise = matches!(op, ReduceOp::Band | ReduceOp::Bor | ReduceOp::Bxor);
        match self {
            Self::Numbers(dtype) => (!dtype.is_float() || !(logical || bitwise)).then_some(dtype),
            Self::Truth => logical.then_some(DType::U8),
            Self::Bytes => bitwise.then_some(DType::U8),
            Self::Opaque => None,
        }
    }
}

/// A predefined type or op: its symbol in Open MPI, its numbers in MPICH's ABI and in the standard's, and its
/// counterpart.
type Row<T> = (&'static CStr, Handle, Handle, T);

const fn number(dtype: DType) -> Type {
    Type { size: dtype.size() as u64, elements: Elements::Numbers(dtype) }
}

const fn opaque(size: u64) -> Type {
    Type { size, elements: Elements::Opaque }
}

/// `long`, as wide as on this system.
const LONG: Type = number(if size_of::<c_long>() == 8 { DType::I64 } else { DType::I32 });
const UNSIGNED_LONG: Type = number(if size_of::<c_long>() == 8 { DType::U64 } else { DType::U32 });

/// The number of types that have names here.
pub(super) const TYPES_LEN: usize = 38;
/// The number of ops that have names here.
pub(super) const OPS_LEN: usize = 10;

/// The types of MPI 3.1 and later that have no gaps. The handles come from the three headers.
const TYPES: [Row<Type>; TYPES_LEN] = [
    (c"ompi_mpi_char", 0x4c00_0101, 0x243, opaque(1)),
    (c"ompi_mpi_signed_char", 0x4c00_0118, 0x244, number(DType::I8)),
    (c"ompi_mpi_unsigned_char", 0x4c00_0102, 0x245, number(DType::U8)),
    (c"ompi_mpi_byte", 0x4c00_010d, 0x247, Type { size: 1, elements: Elements::Bytes }),
    (c"ompi_mpi_short", 0x4c00_0203, 0x208, opaque(2)),
    (c"ompi_mpi_unsigned_short", 0x4c00_0204, 0x20c, opaque(2)),
    (c"ompi_mpi_int", 0x4c00_0405, 0x209, number(DType::I32)),
    (c"ompi_mpi_unsigned", 0x4c00_0406, 0x20d, number(DType::U32)),
    (c"ompi_mpi_long", 0x4c00_0807, 0x20a, LONG),
    (c"ompi_mpi_unsigned_long", 0x4c00_0808, 0x20e, UNSIGNED_LONG),
    (c"ompi_mpi_long_long_int", 0x4c00_0809, 0x20b, number(DType::I64)),
    (c"ompi_mpi_unsigned_long_long", 0x4c00_0819, 0x20f, number(DType::U64)),
    (c"ompi_mpi_float", 0x4c00_040a, 0x210, number(DType::F32)),
    (c"ompi_mpi_double", 0x4c00_080b, 0x214, number(DType::F64)),
    (c"ompi_mpi_int8_t", 0x4c00_0137, 0x240, number(DType::I8)),
    (c"ompi_mpi_uint8_t", 0x4c00_013b, 0x241, number(DType::U8)),
    (c"ompi_mpi_int16_t", 0x4c00_0238, 0x248, opaque(2)),
    (c"ompi_mpi_uint16_t", 0x4c00_023c, 0x249, opaque(2)),
    (c"ompi_mpi_int32_t", 0x4c00_0439, 0x250, number(DType::I32)),
    (c"ompi_mpi_uint32_t", 0x4c00_043d, 0x251, number(DType::U32)),
    (c"ompi_mpi_int64_t", 0x4c00_083a, 0x258, number(DType::I64)),
    (c"ompi_mpi_uint64_t", 0x4c00_083e, 0x259, number(DType::U64)),
    (c"ompi_mpi_c_bool", 0x4c00_013f, 0x238, Type { size: 1, elements: Elements::Truth }),
    (c"ompi_mpi_cxx_bool", 0x4c00_0133, 0x239, Type { size: 1, elements: Elements::Truth }),
    (c"ompi_mpi_aint", 0x4c00_0843, 0x201, number(DType::I64)),
    (c"ompi_mpi_count", 0x4c00_0845, 0x202, number(DType::I64)),
    (c"ompi_mpi_offset", 0x4c00_0844, 0x203, number(DType::I64)),
    (c"ompi_mpi_integer", 0x4c00_041b, 0x219, number(DType::I32)),
    (c"ompi_mpi_integer1", 0x4c00_012d, 0x2c1, number(DType::I8)),
    (c"ompi_mpi_integer2", 0x4c00_022f, 0x2c9, opaque(2)),
    (c"ompi_mpi_integer4", 0x4c00_0430, 0x2d1, number(DType::I32)),
    (c"ompi_mpi_integer8", 0x4c00_0831, 0x2d9, number(DType::I64)),
    (c"ompi_mpi_real", 0x4c00_041c, 0x21a, number(DType::F32)),
    (c"ompi_mpi_real4", 0x4c00_0427, 0x2d2, number(DType::F32)),
    (c"ompi_mpi_real8", 0x4c00_0829, 0x2da, number(DType::F64)),
    (c"ompi_mpi_dblprec", 0x4c00_081f, 0x21c, number(DType::F64)),
    (c"ompi_mpi_character", 0x4c00_011a, 0x21e, opaque(1)),
    (c"ompi_mpi_packed", 0x4c00_010f, 0x207, opaque(1)),
];

/// The ops that Roundelay also has.
const OPS: [Row<ReduceOp>; OPS_LEN] = [
    (c"ompi_mpi_op_max", 0x5800_0001, 0x23, ReduceOp::Max),
    (c"ompi_mpi_op_min", 0x5800_0002, 0x22, ReduceOp::Min),
    (c"ompi_mpi_op_sum", 0x5800_0003, 0x21, ReduceOp::Sum),
    (c"ompi_mpi_op_prod", 0x5800_0004, 0x24, ReduceOp::Prod),
    (c"ompi_mpi_op_land", 0x5800_0005, 0x30, ReduceOp::Land),
    (c"ompi_mpi_op_band", 0x5800_0006, 0x28, ReduceOp::Band),
    (c"ompi_mpi_op_lor", 0x5800_0007, 0x31, ReduceOp::Lor),
    (c"ompi_mpi_op_bor", 0x5800_0008, 0x29, ReduceOp::Bor),
    (c"ompi_mpi_op_lxor", 0x5800_0009, 0x32, ReduceOp::Lxor),
    (c"ompi_mpi_op_bxor", 0x5800_000a, 0x2a, ReduceOp::Bxor),
];

/// The handles of a library's predefined types and ops, sorted, and of its communicators.
#[derive(Debug)]
pub(super) struct Types {
    /// With the rows of the tables.
    known: Vec<(Handle, usize)>,
    ops: Vec<(Handle, usize)>,
    pub(super) comm_world: Handle,
    pub(super) comm_self: Handle,
    pub(super) comm_null: Handle,
    pub(super) type_null: Handle,
    pub(super) byte: Handle,
    pub(super) packed: Handle,
    pub(super) bitwise_and: Handle,
    /// Words of 64 bits.
    pub(super) word: Handle,
}

impl Types {
    /// Collects the handles of a library, whose data `symbol` finds.
    pub(super) fn new(abi: Abi, symbol: Lookup<'_>) -> Self {
        let handle = |name: &CStr, mpich: Handle, standard: Handle| match abi {
            Abi::OpenMpi => symbol(name).addr(),
            Abi::Mpich => mpich,
            Abi::Standard => standard,
        };
        Self {
            known: sorted(&TYPES, &handle),
            ops: sorted(&OPS, &handle),
            comm_world: handle(c"ompi_mpi_comm_world", 0x4400_0000, 0x101),
            comm_self: handle(c"ompi_mpi_comm_self", 0x4400_0001, 0x102),
            comm_null: handle(c"ompi_mpi_comm_null", 0x0400_0000, 0x100),
            type_null: handle(c"ompi_mpi_datatype_null", 0x0c00_0000, 0x200),
            byte: handle(c"ompi_mpi_byte", 0x4c00_010d, 0x247),
            packed: handle(c"ompi_mpi_packed", 0x4c00_010f, 0x207),
            bitwise_and: handle(c"ompi_mpi_op_band", 0x5800_0006, 0x28),
            word: handle(c"ompi_mpi_uint64_t", 0x4c00_083e, 0x259),
        }
    }

    pub(super) fn of(&self, handle: Handle) -> Option<Type> {
        self.row(handle).map(|row| TYPES[row].3)
    }

    pub(super) fn op(&self, handle: Handle) -> Option<ReduceOp> {
        self.op_row(handle).map(|row| OPS[row].3)
    }

    /// Returns the number of a type, which is equal in all processes.
    pub(super) fn row(&self, handle: Handle) -> Option<usize> {
        found(&self.known, handle)
    }

    /// Returns the number of an op, which is equal in all processes.
    pub(super) fn op_row(&self, handle: Handle) -> Option<usize> {
        found(&self.ops, handle)
    }

    /// The pairs of a type and an op that combines it, if MPI and Roundelay have both: the handle and the number of
    /// each, the elements, and the op.
    pub(super) fn combined(&self) -> impl Iterator<Item = CombinedPair> {
        self.known.iter().flat_map(|&(of, row)| {
            self.ops.iter().filter_map(move |&(op, op_row)| {
                let (elements, by) = (TYPES[row].3.elements, OPS[op_row].3);
                elements.combined_by(by)?;
                Some(CombinedPair { of: (of, row), op: (op, op_row), elements, by })
            })
        })
    }
}

/// A predefined type, and a predefined op that combines its values.
#[derive(Clone, Copy, Debug)]
pub(super) struct CombinedPair {
    pub(super) of: (Handle, usize),
    pub(super) op: (Handle, usize),
    pub(super) elements: Elements,
    pub(super) by: ReduceOp,
}

/// Returns the rows' numbers, sorted by handle. Rows that the library lacks are left out: no caller can name them.
fn sorted<T>(
    rows: &[Row<T>],
    handle: &dyn Fn(&CStr, Handle, Handle) -> Handle,
) -> Vec<(Handle, usize)> {
    let mut all: Vec<_> = rows
        .iter()
        .enumerate()
        .map(|(row, (name, mpich, standard, _))| (handle(name, *mpich, *standard), row))
        .filter(|(handle, _)| *handle != 0)
        .collect();
    all.sort_unstable_by_key(|(handle, _)| *handle);
    all
}

fn found(all: &[(Handle, usize)], handle: Handle) -> Option<usize> {
    let at = all.binary_search_by_key(&handle, |(known, _)| *known).ok()?;
    Some(all[at].1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ptr::null_mut;

    use super::{Abi, DType, Elements, OPS, ReduceOp, TYPES, Types};

    #[test]
    fn no_two_types_and_no_two_ops_have_one_handle() {
        for column in [1, 2] {
            let types: BTreeSet<_> =
                TYPES.iter().map(|row| if column == 1 { row.1 } else { row.2 }).collect();
            let ops: BTreeSet<_> =
                OPS.iter().map(|row| if column == 1 { row.1 } else { row.2 }).collect();
            assert_eq!((types.len(), ops.len()), (TYPES.len(), OPS.len()), "column {column}");
        }
        let names: BTreeSet<_> = TYPES.iter().map(|row| row.0).collect();
        assert_eq!(names.len(), TYPES.len());
        // MPICH writes the size of a type into its handle.
        assert!(TYPES.iter().all(|row| (row.1 >> 8) as u64 & 0xff == row.3.size));
    }

    #[test]
    fn handles_are_found() {
        let types = Types::new(Abi::Mpich, &|_| null_mut());
        assert_eq!(types.of(0x4c00_040a).map(|t| t.elements), Some(Elements::Numbers(DType::F32)));
        assert_eq!((types.of(0x4c00_0fff), types.op(0x5800_0003)), (None, Some(ReduceOp::Sum)));
        // A library without any symbol has no types.
        let none = Types::new(Abi::OpenMpi, &|_| null_mut());
        assert_eq!((none.of(0), none.op(0)), (None, None));
    }

    #[test]
    fn ops_are_allowed_as_mpi_says() {
        let (float, int) = (Elements::Numbers(DType::F64), Elements::Numbers(DType::I32));
        assert_eq!(float.combined_by(ReduceOp::Sum), Some(DType::F64));
        assert_eq!(
            (float.combined_by(ReduceOp::Band), float.combined_by(ReduceOp::Land)),
            (None, None)
        );
        assert_eq!(int.combined_by(ReduceOp::Band), Some(DType::I32));
        assert_eq!(Elements::Bytes.combined_by(ReduceOp::Bxor), Some(DType::U8));
        assert_eq!(
            (
                Elements::Bytes.combined_by(ReduceOp::Sum),
                Elements::Truth.combined_by(ReduceOp::Max)
            ),
            (None, None)
        );
        assert_eq!(Elements::Truth.combined_by(ReduceOp::Lor), Some(DType::U8));
        assert_eq!(Elements::Opaque.combined_by(ReduceOp::Max), None);
    }
}
