//! The effect of a `Move` on memory on a CPU: the loops of the crate `roundelay-arithmetic`. In models of the engines'
//! protocols loom checks every access.

#[cfg(all(test, loom))]
pub use model::{Kernel, copy};
#[cfg(not(all(test, loom)))]
pub use roundelay_arithmetic::{Kernel, copy};
pub use roundelay_arithmetic::{MAX_SOURCES, MoveForm, Stores, last_level_cache};

#[cfg(all(test, loom))]
mod model {
    use roundelay_arithmetic::{MoveForm, Stores};
    use roundelay_core::dtype::{DType, NoSuchOp, ReduceOp};

    use crate::model_memory::touched;

    /// The moves of one dtype and reduce op.
    #[derive(Clone, Copy)]
    pub struct Kernel(roundelay_arithmetic::Kernel);

    impl Kernel {
        pub fn new(dtype: DType, op: ReduceOp) -> Result<Self, NoSuchOp> {
            roundelay_arithmetic::Kernel::new(dtype, op).map(Self)
        }

        pub fn size(&self) -> usize {
            self.0.size()
        }

        pub fn width(&self) -> usize {
            self.0.width()
        }

        /// # Safety
        /// The promises of the kernel that this method calls.
        pub unsafe fn run(
            &self,
            srcs: &[*const u8],
            dsts: &[*mut u8],
            len: usize,
            form: MoveForm,
            divide: Option<u32>,
            stores: Stores,
        ) {
            touched(srcs, dsts, len * self.size());
            // SAFETY: the caller promises it.
            unsafe { self.0.run(srcs, dsts, len, form, divide, stores) };
        }
    }

    /// # Safety
    /// The promises of the copy that this function calls.
    pub unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize, stores: Stores) {
        touched(&[src], &[dst], bytes);
        // SAFETY: the caller promises it.
        unsafe { roundelay_arithmetic::copy(dst, src, bytes, stores) };
    }
}
