//! Copies, with ordinary or with streaming stores.

/// The kind of stores to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stores {
    /// Through the caches: the written bytes are read again before they would leave the caches.
    Cached,
    /// Past the caches, whole lines at a time: a line is not read before it is overwritten, and displaces nothing. For
    /// destinations beyond [`super::last_level_cache`]. Without SSE2 it equals `Cached`.
    Streaming,
}

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// Copies `bytes` from `src` to `dst`; does nothing where they are equal. Streaming stores are complete when it
/// returns: a signal posted afterwards is seen after them, as it is after ordinary stores.
///
/// # Safety
/// Both pointers are valid for `bytes` bytes, and equal or apart; no other thread writes `src` or touches `dst`
/// meanwhile.
pub unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize, stores: Stores) {
    // SAFETY: the caller promises it.
    unsafe { copy_unfenced(dst, src, bytes, stores) };
    fence(stores);
}

/// Orders streaming stores before all later accesses; without it a signal could overtake them.
pub(super) fn fence(stores: Stores) {
    #[cfg(target_arch = "x86_64")]
    if stores == Stores::Streaming {
        // SAFETY: every x86-64 has SSE.
        unsafe { std::arch::x86_64::_mm_sfence() };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = stores;
}

/// Copies as [`copy`] does, without the fence, which the caller adds.
///
/// # Safety
/// The promises of [`copy`].
pub(super) unsafe fn copy_unfenced(dst: *mut u8, src: *const u8, bytes: usize, stores: Stores) {
    if src == dst.cast_const() {
        return;
    }
    // SAFETY: the pointers are not equal, hence apart.
    unsafe {
        match stores {
            #[cfg(target_arch = "x86_64")]
            Stores::Streaming => stream(dst, src, bytes),
            _ => std::ptr::copy_nonoverlapping(src, dst, bytes),
        }
    }
}

/// Copies whole lines of `dst` by streaming stores, and the bytes before and after them by ordinary stores.
///
/// # Safety
/// The promises of [`copy`], and the two are apart.
#[cfg(target_arch = "x86_64")]
unsafe fn stream(dst: *mut u8, src: *const u8, bytes: usize) {
    let head = dst.align_offset(LINE).min(bytes);
    let lines = (bytes - head) / LINE;
    let tail = head + lines * LINE;
    // SAFETY: head, lines and tail are the `bytes` of both; `dst + head` is the start of a line, if any line is left;
    // the CPU has the instructions of the function that is called.
    unsafe {
        std::ptr::copy_nonoverlapping(src, dst, head);
        // One store writes a whole line where the CPU has such a store: a line written in halves may leave before it is
        // whole.
        if std::arch::is_x86_feature_detected!("avx512f") {
            stream_whole(dst.add(head), src.add(head), lines);
        } else {
            stream_quarters(dst.add(head), src.add(head), lines);
        }
        std::ptr::copy_nonoverlapping(src.add(tail), dst.add(tail), bytes - tail);
    }
}

/// # Safety
/// Both pointers are valid for `lines` lines, and apart; `dst` is the start of a line.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
#[expect(clippy::cast_ptr_alignment, reason = "loads need no alignment, and lines have it")]
unsafe fn stream_whole(dst: *mut u8, src: *const u8, lines: usize) {
    use std::arch::x86_64::{__m512i, _mm512_loadu_si512, _mm512_stream_si512};
    for line in 0..lines {
        // SAFETY: the access is within the lines of both; the destination is aligned.
        unsafe {
            let bits = _mm512_loadu_si512(src.cast::<__m512i>().add(line));
            _mm512_stream_si512(dst.cast::<__m512i>().add(line), bits);
        }
    }
}

/// # Safety
/// Both pointers are valid for `lines` lines, and apart; `dst` is the start of a line.
#[cfg(target_arch = "x86_64")]
#[expect(clippy::cast_ptr_alignment, reason = "loads need no alignment, and lines have it")]
unsafe fn stream_quarters(dst: *mut u8, src: *const u8, lines: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    for part in (0..4 * lines).step_by(4) {
        // SAFETY: the accesses are within the lines of both; the destination is aligned; every x86-64 has SSE2.
        unsafe {
            let from = src.cast::<__m128i>().add(part);
            let bits = [0, 1, 2, 3].map(|quarter| _mm_loadu_si128(from.add(quarter)));
            for (quarter, bits) in bits.into_iter().enumerate() {
                _mm_stream_si128(dst.cast::<__m128i>().add(part + quarter), bits);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_copied_and_no_other() {
        let src: Vec<u8> = (0..1000u32).map(|i| (i * 7 + i / 256) as u8).collect();
        for stores in [Stores::Cached, Stores::Streaming] {
            for to in 0..LINE {
                for (from, bytes) in
                    [(0, 0), (0, 1), (3, 63), (1, 64), (0, 65), (to, 300), (5, 777)]
                {
                    let mut dst = vec![0xaa_u8; 1000];
                    let at = dst.as_ptr().align_offset(LINE) + to;
                    // SAFETY: `from + bytes` and `at + bytes` are at most 64 + 63 + 777 < 1000.
                    unsafe {
                        copy(dst.as_mut_ptr().add(at), src.as_ptr().add(from), bytes, stores);
                    }
                    assert_eq!(dst[at..][..bytes], src[from..][..bytes]);
                    assert!(dst[..at].iter().chain(&dst[at + bytes..]).all(|&b| b == 0xaa));
                }
            }
        }
    }
}
