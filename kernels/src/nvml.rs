//! NVIDIA's library NVML, which comes with the driver: the kinds and the links of its GPUs. It needs no CUDA and no rights.

use std::ffi::{CStr, c_char, c_int, c_longlong, c_uint, c_void};
use std::mem::transmute;
use std::path::Path;
use std::ptr::null_mut;

use crate::loaded_library::LoadedLibrary;

/// The name of the library, as the loader finds it.
pub const NVML: &str = "libnvidia-ml.so.1";

/// The most GPUs, and the most links of a kind of a GPU, that are asked for.
const GPUS: c_uint = 64;
const LINKS: c_uint = 36;
/// Fields of chip-to-chip links: their number, whether one is on, and its most megabytes a second.
const C2C_COUNT: c_uint = 170;
const C2C_STATUS: c_uint = 171;
const C2C_BANDWIDTH: c_uint = 172;

/// A GPU, as NVML tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NvmlGpu {
    /// The address on the PCI bus, such as `0000:1B:00.0`.
    pub busid: String,
    /// The CUDA capability, such as 90.
    pub sm: u32,
    /// The address of the other end of each `NVLink` that is on.
    pub nvlinks: Vec<String>,
    /// The megabytes a second of each chip-to-chip link that is on.
    pub c2c: Vec<u32>,
}

type Device = *mut c_void;

/// `nvmlPciInfo_t`.
#[repr(C)]
struct PciInfo {
    legacy: [c_char; 16],
    numbers: [c_uint; 5],
    busid: [u8; 32],
}

/// `nvmlFieldValue_t`.
#[repr(C)]
struct Field {
    id: c_uint,
    scope: c_uint,
    times: [c_longlong; 2],
    kind: c_uint,
    result: c_int,
    /// A union: its first four bytes are the number, of the fields that are asked for.
    value: [c_uint; 2],
}

type Number = unsafe extern "C" fn(*mut c_uint) -> c_int;
type Handle = unsafe extern "C" fn(c_uint, *mut Device) -> c_int;
type Pci = unsafe extern "C" fn(Device, *mut PciInfo) -> c_int;
type Capability = unsafe extern "C" fn(Device, *mut c_int, *mut c_int) -> c_int;
type State = unsafe extern "C" fn(Device, c_uint, *mut c_uint) -> c_int;
type Ability = unsafe extern "C" fn(Device, c_uint, c_uint, *mut c_uint) -> c_int;
type Remote = unsafe extern "C" fn(Device, c_uint, *mut PciInfo) -> c_int;
type Fields = unsafe extern "C" fn(Device, c_int, *mut Field) -> c_int;
type Plain = unsafe extern "C" fn() -> c_int;

/// Asks the library for the GPUs that this process may see; `None` where the system has no such library.
///
/// # Errors
/// The reason why the library does not answer, such as a driver that is not loaded.
pub fn gpus(library: &Path) -> Option<Result<Vec<NvmlGpu>, String>> {
    let library = LoadedLibrary::open(library, libc::RTLD_NOW | libc::RTLD_LOCAL).ok()?;
    Some(ask(&library))
}

fn ask(library: &LoadedLibrary) -> Result<Vec<NvmlGpu>, String> {
    /// Finds a function of a type.
    macro_rules! find {
        ($name:literal, $kind:ty) => {{
            let at = library.symbol($name);
            if at.is_null() {
                return Err(format!("it has no {}", $name.to_string_lossy()));
            }
            // SAFETY: the library has this function by its public header, of this type.
            unsafe { transmute::<*mut c_void, $kind>(at) }
        }};
    }
    let begin = find!(c"nvmlInit_v2", Plain);
    let end = find!(c"nvmlShutdown", Plain);
    let count = find!(c"nvmlDeviceGetCount_v2", Number);
    let by_index = find!(c"nvmlDeviceGetHandleByIndex_v2", Handle);
    let asked = Asked {
        pci: find!(c"nvmlDeviceGetPciInfo_v3", Pci),
        capability: find!(c"nvmlDeviceGetCudaComputeCapability", Capability),
        state: find!(c"nvmlDeviceGetNvLinkState", State),
        ability: find!(c"nvmlDeviceGetNvLinkCapability", Ability),
        remote: find!(c"nvmlDeviceGetNvLinkRemotePciInfo_v2", Remote),
        fields: find!(c"nvmlDeviceGetFieldValues", Fields),
    };
    // SAFETY: it may be called at any time, and an end follows.
    match unsafe { begin() } {
        0 => {}
        code => return Err(format!("nvmlInit_v2 returns {code}")),
    }
    let (mut number, mut gpus) = (0, Vec::new());
    // SAFETY: the argument outlives the call.
    if unsafe { count(&raw mut number) } == 0 {
        for index in 0..number.min(GPUS) {
            let mut device = null_mut();
            // SAFETY: the argument outlives the call. A GPU that this process may not see has no handle.
            if unsafe { by_index(index, &raw mut device) } == 0 {
                gpus.extend(asked.gpu(device));
            }
        }
    }
    // SAFETY: no handle is used any more.
    _ = unsafe { end() };
    Ok(gpus)
}

/// The functions that tell of a GPU.
struct Asked {
    pci: Pci,
    capability: Capability,
    state: State,
    ability: Ability,
    remote: Remote,
    fields: Fields,
}

impl Asked {
    fn gpu(&self, device: Device) -> Option<NvmlGpu> {
        let mut at = PciInfo::empty();
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the handle is the library's, and the arguments outlive the calls.
        let told = unsafe {
            [
                (self.pci)(device, &raw mut at),
                (self.capability)(device, &raw mut major, &raw mut minor),
            ]
        };
        if told != [0, 0] {
            return None;
        }
        let links = if major >= 6 { LINKS } else { 0 };
        let c2c = if major >= 9 { self.field(device, C2C_COUNT, 0).unwrap_or(0) } else { 0 };
        let c2c =
            (0..c2c.min(LINKS)).filter(|link| self.field(device, C2C_STATUS, *link) == Some(1));
        Some(NvmlGpu {
            busid: at.text(),
            sm: (major * 10 + minor).try_into().ok()?,
            nvlinks: (0..links).filter_map(|link| self.end_of(device, link)).collect(),
            c2c: c2c.filter_map(|link| self.field(device, C2C_BANDWIDTH, link)).collect(),
        })
    }

    /// Returns the other end of an `NVLink` that is on, and over which GPUs reach each other.
    fn end_of(&self, device: Device, link: c_uint) -> Option<String> {
        let (mut on, mut able, mut end) = (0, 0, PciInfo::empty());
        // SAFETY: the handle is the library's, and the arguments outlive the calls.
        let told = unsafe {
            [
                (self.state)(device, link, &raw mut on),
                (self.ability)(device, link, 0, &raw mut able),
                (self.remote)(device, link, &raw mut end),
            ]
        };
        (told == [0; 3] && on == 1 && able == 1).then(|| end.text())
    }

    /// Returns the number in a field of a device or of one of its links.
    fn field(&self, device: Device, id: c_uint, scope: c_uint) -> Option<c_uint> {
        let mut field = Field { id, scope, times: [0; 2], kind: 0, result: -1, value: [0; 2] };
        // SAFETY: the handle is the library's, and the argument is one field, which outlives the call.
        let told = unsafe { (self.fields)(device, 1, &raw mut field) };
        (told == 0 && field.result == 0).then_some(field.value[0])
    }
}

impl PciInfo {
    fn empty() -> Self {
        Self { legacy: [0; 16], numbers: [0; 5], busid: [0; 32] }
    }

    /// Returns the address as `/sys` has it: the library's domain has eight digits.
    fn text(&self) -> String {
        let text = CStr::from_bytes_until_nul(&self.busid).map(CStr::to_string_lossy);
        let text = text.unwrap_or_default().to_lowercase();
        match text.strip_prefix("0000") {
            Some(rest) if text.len() == "00000000:00:00.0".len() => rest.to_owned(),
            _ => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// A library of the public functions, with two GPUs: of the first, links 0 and 2 are on, and one of two chip-to-chip
    /// links.
    const LIBRARY: &str = r#"
#include <stdio.h>
#include <string.h>
typedef struct { char legacy[16]; unsigned n[5]; char busid[32]; } Pci;
typedef struct { unsigned id, scope; long long times[2]; unsigned kind; int result; union { double d; unsigned u; } v; } Field;
int nvmlInit_v2(void) { return INIT; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *)(long)(i + 1); return i == 1 ? 4 : 0; }
int nvmlDeviceGetPciInfo_v3(void *d, Pci *p) { sprintf(p->busid, "00000000:%02X:00.0", (unsigned)(long)d + 25); return 0; }
int nvmlDeviceGetCudaComputeCapability(void *d, int *a, int *b) { *a = d == (void *)1 ? 9 : 5; *b = 0; return 0; }
int nvmlDeviceGetNvLinkState(void *d, unsigned l, unsigned *on) { *on = l != 1; return l < 3 ? 0 : 2; }
int nvmlDeviceGetNvLinkCapability(void *d, unsigned l, unsigned c, unsigned *able) { *able = c == 0; return 0; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *d, unsigned l, Pci *p) { strcpy(p->busid, "fffffff:ffff:ff"); return 0; }
int nvmlDeviceGetFieldValues(void *d, int n, Field *f) {
    f->result = n == 1 ? 0 : 3;
    f->v.u = f->id == 170 ? 2 : f->id == 171 ? f->scope == 1 : f->id == 172 ? 56376 : 0;
    return 0;
}
"#;

    #[test]
    fn a_library_is_asked() {
        let folder = tempfile::tempdir().expect("a folder");
        let build = |name: &str, flags: &[&str]| {
            let (source, library) = (folder.path().join("nvml.c"), folder.path().join(name));
            std::fs::write(&source, LIBRARY).expect("a source");
            let mut cc = Command::new("cc");
            cc.args(["-shared", "-fPIC", "-w", "-o"]).arg(&library).arg(&source).args(flags);
            assert!(cc.status().expect("a C compiler").success());
            library
        };
        let found = gpus(&build("nvml.so", &["-DINIT=0"])).expect("it loads").expect("it answers");
        let first = NvmlGpu {
            busid: "0000:1a:00.0".to_owned(),
            sm: 90,
            nvlinks: vec!["fffffff:ffff:ff".to_owned(); 2],
            c2c: vec![56_376],
        };
        let old = NvmlGpu { busid: "0000:1c:00.0".to_owned(), sm: 50, ..NvmlGpu::default() };
        assert_eq!(found, [first, old]);
        let refused = gpus(&build("without.so", &["-DINIT=9"])).expect("it loads");
        assert_eq!(refused.expect_err("no driver"), "nvmlInit_v2 returns 9");
        let other = build("other.so", &["-DINIT=0", "-DnvmlShutdown=other"]);
        assert!(gpus(&other).expect("it loads").expect_err("no end").contains("nvmlShutdown"));
        assert_eq!(gpus("/nowhere.so".as_ref()), None);
    }
}
