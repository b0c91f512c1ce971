//! The address of the code that called the library of which this is a part.

/// The most calls that are under way between the program's and the look at the stack.
#[cfg(target_env = "gnu")]
const FRAMES: usize = 64;

/// A file of machine code in this process.
#[cfg(target_env = "gnu")]
struct CodeFile {
    /// The address at which the file begins.
    begin: usize,
    /// The number that an address in the file is less than in memory.
    shift: usize,
    path: String,
}

/// Returns the file and the address there of the innermost call on the stack that is in another file than this
/// function, as tools take them that tell the lines of addresses: `/home/me/train+0x1139`.
#[cfg(target_env = "gnu")]
pub(super) fn address() -> Option<String> {
    let mut stack = [std::ptr::null_mut(); FRAMES];
    // SAFETY: there is room for as many addresses.
    let depth = unsafe { libc::backtrace(stack.as_mut_ptr(), FRAMES as libc::c_int) };
    let stack = stack.get(..usize::try_from(depth).ok()?)?;
    let own = CodeFile::of((address as fn() -> Option<String>) as usize)?;
    let mut calls = stack.iter().map(|next| {
        // The stack has the places behind the calls.
        let at = next.addr().wrapping_sub(1);
        CodeFile::of(at).map(|file| (file, at))
    });
    let (file, at) = calls.find_map(|found| found.filter(|(file, _)| file.begin != own.begin))?;
    Some(format!("{}+{:#x}", file.path, at.wrapping_sub(file.shift)))
}

#[cfg(target_env = "gnu")]
impl CodeFile {
    /// Returns the file that has the code at an address.
    fn of(at: usize) -> Option<Self> {
        /// `ET_EXEC`: a program whose addresses are those in the file.
        const FIXED: u16 = 2;
        /// The place of the type in the head of a file.
        const TYPE: usize = 16;

        // SAFETY: null pointers are values of its fields.
        let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: any address may be asked for.
        if unsafe { libc::dladdr(std::ptr::without_provenance(at), &raw mut found) } == 0 {
            return None;
        }
        if found.dli_fname.is_null() || found.dli_fbase.is_null() {
            return None;
        }
        // SAFETY: the loader has mapped the head of the file there, and keeps its path.
        let (kind, path) = unsafe {
            let kind = found.dli_fbase.wrapping_byte_add(TYPE).cast::<[u8; 2]>().read();
            (u16::from_ne_bytes(kind), std::ffi::CStr::from_ptr(found.dli_fname))
        };
        let begin = found.dli_fbase.addr();
        let shift = if kind == FIXED { 0 } else { begin };
        Some(Self { begin, shift, path: path.to_string_lossy().into_owned() })
    }
}

/// Returns nothing: this C library does not tell the calls on the stack.
#[cfg(not(target_env = "gnu"))]
pub(super) fn address() -> Option<String> {
    None
}
