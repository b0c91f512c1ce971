//! The addresses of the spaces of memory.

use crate::program::Space;

/// The generic address of offset 0 of shared memory, local memory, parameter space and constant memory. Windows of
/// global memory are below them.
const SHARED: u64 = 0x7f01_0000_0000;
/// The distance of the shared memories of the blocks of a cluster: the first one is that of the thread's own block.
pub(super) const SHARED_EACH: u64 = 1 << 24;
const LOCAL: u64 = 0x7f02_0000_0000;
const PARAM: u64 = 0x7f03_0000_0000;
const CONST: u64 = 0x7f04_0000_0000;
/// The address of the first module's variables on a device in global memory, and the distance to the next ones.
pub(crate) const VARIABLES: u64 = 0x7f10_0000_0000;
const VARIABLES_EACH: u64 = 1 << 32;
/// The end of the addresses that windows may have.
pub(crate) const END_OF_WINDOWS: u64 = SHARED;

/// The address in shared memory, generic or not, of what is at an address, in the block of a cluster with that number.
pub(crate) fn shared_of(address: u64, rank: u32) -> u64 {
    let space = address & !(u64::from(u32::MAX));
    space
        + u64::from(rank).wrapping_add(1).wrapping_mul(SHARED_EACH) % (1 << 32)
        + address % SHARED_EACH
}

/// The number of the block in a cluster that has an address of shared memory; none for the thread's own block.
pub(crate) fn rank_of_shared(address: u64) -> Option<u32> {
    ((address & u64::from(u32::MAX)) / SHARED_EACH).checked_sub(1).map(|rank| rank as u32)
}

/// The space of a generic address, and the generic address of its offset 0.
pub(crate) fn space_of(address: u64) -> (Space, u64) {
    match address {
        ..SHARED | VARIABLES.. => (Space::Global, 0),
        SHARED..LOCAL => (Space::Shared, SHARED),
        LOCAL..PARAM => (Space::Local, LOCAL),
        PARAM..CONST => (Space::Param, PARAM),
        CONST..VARIABLES => (Space::Const, CONST),
    }
}

/// The address of the variables of a module on a device in global memory, by their number.
pub(crate) fn variables_at(number: u32) -> u64 {
    VARIABLES + u64::from(number) * VARIABLES_EACH
}

/// The generic address of offset 0 of a space.
pub(crate) fn generic(space: Space) -> u64 {
    match space {
        Space::Generic | Space::Global => 0,
        Space::Shared => SHARED,
        Space::Local => LOCAL,
        Space::Param => PARAM,
        Space::Const => CONST,
    }
}
