//! The buffers of C: addresses and lengths, as slices for as long as a call may use them.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::{Deref, DerefMut};
use std::slice;

use roundelay::float8::{F8E4M3, F8E5M2};
use roundelay::half::{bf16, f16};
use roundelay::{Call, DType, Element, RankId, World};
use roundelay_core::collective::Alias;

use crate::codes::{Called, dtype};
use crate::requests;
use crate::status::{Outcome, bad, null};
use crate::worlds;

/// Bytes of a caller, which a call has until it is done.
struct Bytes {
    at: *mut u8,
    len: usize,
}

// SAFETY: bytes may be read and written from any thread; no other code accesses them until the call is done.
unsafe impl Send for Bytes {}

impl Bytes {
    /// Makes bytes; empty ones need no address.
    fn new(at: *mut u8, len: usize, name: &str) -> Outcome<Self> {
        match (at.is_null(), len) {
            // Aligned for every element type.
            (_, 0) => Ok(Self { at: std::ptr::NonNull::<u64>::dangling().as_ptr().cast(), len }),
            (true, _) => Err(null(name)),
            (false, len) if isize::try_from(len).is_ok() => Ok(Self { at, len }),
            _ => Err(bad(format!("`{name}` of {len} bytes"), "no memory is so large")),
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the caller that runs a call with these bytes promises that they are valid.
        unsafe { slice::from_raw_parts(self.at, self.len) }
    }
}

impl DerefMut for Bytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the caller that runs a call with these bytes promises that they are valid, and that no other code
        // accesses them.
        unsafe { slice::from_raw_parts_mut(self.at, self.len) }
    }
}

/// The buffers of a call.
enum Buffers {
    Apart(Bytes, Bytes),
    InPlace(Bytes),
}

/// A call with its buffers.
pub(crate) struct PlacedCall {
    call: Call,
    buffers: Buffers,
}

impl PlacedCall {
    /// Makes a call of the rank of `world`: in place where the addresses say so.
    pub(crate) fn new(
        world: &World,
        called: Called,
        input: *const u8,
        output: *mut u8,
    ) -> Outcome<Self> {
        worlds::placed(world, Self::checked(world, called, input, output))
    }

    fn checked(world: &World, called: Called, input: *const u8, output: *mut u8) -> Outcome<Self> {
        let call = called.call()?;
        let (nranks, rank, root) = (world.nranks(), RankId(world.rank().id()), RankId(call.root));
        let unit = call.count.checked_mul(call.dtype.size() as u64);
        let bytes = |units: u32| {
            let bytes = unit.and_then(|unit| unit.checked_mul(u64::from(units)));
            bytes.and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(|| {
                let what = format!("{units} times {} elements of {}", call.count, call.dtype);
                bad(what, "no memory is so large")
            })
        };
        let inputs = bytes(call.collective.input_units(rank, nranks, root))?;
        let outputs = bytes(call.collective.output_units(rank, nranks, root))?;
        let alias = call.collective.alias(rank, root);
        let (before_input, before_output) = alias.starts();
        let whole = input.addr().wrapping_sub(bytes(before_input)?);
        let one = alias != Alias::Apart
            && whole == output.addr().wrapping_sub(bytes(before_output)?)
            && inputs > 0;
        let buffers = if one {
            // The larger buffer holds the smaller one.
            let at = if inputs > outputs { input.cast_mut() } else { output };
            Buffers::InPlace(Bytes::new(at, inputs.max(outputs), "output")?)
        } else {
            let input = Bytes::new(input.cast_mut(), inputs, "input")?;
            let output = Bytes::new(output, outputs, "output")?;
            let (from, to) = (input.at.addr(), output.at.addr());
            if inputs > 0 && outputs > 0 && from < to + outputs && to < from + inputs {
                let what = format!("input and output of {} overlap", call.collective);
                let fix = "keep them apart, or place them as roundelay.h says of calls in place";
                return Err(bad(what, fix));
            }
            Buffers::Apart(input, output)
        };
        Ok(Self { call, buffers })
    }

    /// Makes the call.
    ///
    /// # Safety
    /// The buffers are valid, and no other code accesses them meanwhile.
    pub(crate) unsafe fn run(self, world: &World) -> Result<(), roundelay::Error> {
        let mut rank = world.rank();
        match self.buffers {
            Buffers::Apart(input, mut output) => rank.call_bytes(self.call, &input, &mut output),
            Buffers::InPlace(mut buffer) => rank.call_bytes_in_place(self.call, &mut buffer),
        }
    }

    /// Starts the call.
    ///
    /// # Safety
    /// The buffers are valid, and no other code accesses them, until the call is done.
    pub(crate) unsafe fn start(self, world: &World) -> u64 {
        let calls = world.nonblocking();
        requests::held(match self.buffers {
            Buffers::Apart(input, output) => Box::new(calls.call_bytes(self.call, input, output)),
            Buffers::InPlace(buffer) => Box::new(calls.call_bytes_in_place(self.call, buffer)),
        })
    }
}

/// Returns bytes to read.
///
/// # Safety
/// The bytes are valid for as long as the slice is used.
pub(crate) unsafe fn read<'a>(at: *const u8, len: usize, name: &str) -> Outcome<&'a [u8]> {
    // SAFETY: the caller's promise.
    if at.is_null() { Err(null(name)) } else { Ok(unsafe { slice::from_raw_parts(at, len) }) }
}

/// Returns bytes to write.
///
/// # Safety
/// The bytes are valid, and no other code accesses them, for as long as the slice is used.
pub(crate) unsafe fn write<'a>(at: *mut u8, len: usize, name: &str) -> Outcome<&'a mut [u8]> {
    // SAFETY: the caller's promise.
    if at.is_null() { Err(null(name)) } else { Ok(unsafe { slice::from_raw_parts_mut(at, len) }) }
}

/// Returns a text of C.
///
/// # Errors
/// The pointer is null, or the text is not UTF-8; the error calls it `name`.
///
/// # Safety
/// The text ends with a zero, and is there for as long as it is used.
pub unsafe fn text<'a>(at: *const c_char, name: &str) -> Outcome<&'a str> {
    if at.is_null() {
        return Err(null(name));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(at) };
    text.to_str().map_err(|_| bad(format!("`{name}` is not UTF-8"), "give a text in UTF-8"))
}

/// Reads a number of C texts.
///
/// # Errors
/// The errors of [`text`].
///
/// # Safety
/// `at` points to `number` texts, which each end with a zero.
pub unsafe fn texts<'a>(
    at: *const *const c_char,
    number: u64,
    name: &str,
) -> Outcome<Vec<&'a str>> {
    if number > 0 && at.is_null() {
        return Err(null(name));
    }
    // SAFETY: the caller's promise.
    (0..number as usize).map(|n| unsafe { text(at.add(n).read_unaligned(), name) }).collect()
}

/// An operation on elements of a type.
trait Typed {
    /// Returns the rank that does it.
    fn rank(&self) -> RankId;

    unsafe fn of<T: Element>(self, at: *mut T, len: usize) -> Outcome<()>;
}

struct Sending<'w>(&'w World, u32);
struct Receiving<'w>(&'w World, u32);

impl Typed for Sending<'_> {
    fn rank(&self) -> RankId {
        RankId(self.0.rank().id())
    }

    unsafe fn of<T: Element>(self, at: *mut T, len: usize) -> Outcome<()> {
        // SAFETY: the caller's promise.
        Ok(self.0.send(unsafe { slice::from_raw_parts(at, len) }, self.1)?)
    }
}

impl Typed for Receiving<'_> {
    fn rank(&self) -> RankId {
        RankId(self.0.rank().id())
    }

    unsafe fn of<T: Element>(self, at: *mut T, len: usize) -> Outcome<()> {
        // SAFETY: the caller's promise.
        Ok(self.0.recv(unsafe { slice::from_raw_parts_mut(at, len) }, self.1)?)
    }
}

unsafe fn typed(does: impl Typed, at: *mut c_void, count: u64, code: c_int) -> Outcome<()> {
    let dtype = dtype(code)?;
    let bytes = count.saturating_mul(dtype.size() as u64);
    let bytes = Bytes::new(at.cast(), usize::try_from(bytes).unwrap_or(usize::MAX), "buffer")?;
    if !bytes.at.addr().is_multiple_of(dtype.size()) {
        let (what, rank) = ("buffer", does.rank());
        return Err(roundelay::EngineError::MisalignedBuffer { what, rank, dtype }.into());
    }
    let (at, len) = (bytes.at, count as usize);
    // SAFETY: the caller's promise, aligned, and any bits are a value.
    unsafe {
        match dtype {
            DType::I8 => does.of::<i8>(at.cast(), len),
            DType::U8 => does.of::<u8>(at.cast(), len),
            DType::I32 => does.of::<i32>(at.cast(), len),
            DType::U32 => does.of::<u32>(at.cast(), len),
            DType::I64 => does.of::<i64>(at.cast(), len),
            DType::U64 => does.of::<u64>(at.cast(), len),
            DType::F16 => does.of::<f16>(at.cast(), len),
            DType::Bf16 => does.of::<bf16>(at.cast(), len),
            DType::F32 => does.of::<f32>(at.cast(), len),
            DType::F64 => does.of::<f64>(at.cast(), len),
            DType::F8E4M3 => does.of::<F8E4M3>(at.cast(), len),
            DType::F8E5M2 => does.of::<F8E5M2>(at.cast(), len),
        }
    }
}

/// # Safety
/// The buffer has `count` elements, which no thread writes meanwhile.
pub(crate) unsafe fn send(
    world: &World,
    buffer: *const c_void,
    count: u64,
    dtype: c_int,
    to: u32,
) -> Outcome<()> {
    // SAFETY: the caller's promise; the sent elements are only read.
    unsafe { typed(Sending(world, to), buffer.cast_mut(), count, dtype) }
}

/// # Safety
/// The buffer has `count` elements, which no other thread accesses meanwhile.
pub(crate) unsafe fn recv(
    world: &World,
    buffer: *mut c_void,
    count: u64,
    dtype: c_int,
    from: u32,
) -> Outcome<()> {
    // SAFETY: the caller's promise.
    unsafe { typed(Receiving(world, from), buffer, count, dtype) }
}
