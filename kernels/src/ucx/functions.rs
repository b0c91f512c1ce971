//! The functions of UCX that this crate calls, and the structures that they take. A structure begins with a mask of the
//! fields that are set, so that a library may know more fields than these, or fewer.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// A result: 0, 1 for what is under way, or less than 0 for an error. The library's type has one byte.
pub(super) type Status = i8;
/// An object of the library.
pub(super) type Object = *mut c_void;

/// The errors of a message that is longer than its receive, of a worker that has something to do, and of a rank without an
/// endpoint; and the least error: a pointer from there on is an error.
pub(super) const TRUNCATED: Status = -9;
pub(super) const BUSY: Status = -15;
pub(super) const NOT_CONNECTED: Status = -24;
pub(super) const UNDER_WAY: Status = 1;
pub(super) const LEAST: isize = -100;

/// The parts of the library, in [`ContextParams::features`].
pub(super) const TAGGED: u64 = 1 << 0;
pub(super) const WAKES: u64 = 1 << 4;

/// The parameters of a context.
#[repr(C)]
#[derive(Debug)]
pub(super) struct ContextParams {
    pub(super) mask: u64,
    pub(super) features: u64,
    pub(super) request_size: usize,
    pub(super) request_init: usize,
    pub(super) request_cleanup: usize,
    pub(super) tag_sender_mask: u64,
    pub(super) shared_workers: c_int,
    pub(super) endpoints: usize,
    pub(super) ranks_of_node: usize,
    pub(super) name: *const c_char,
    pub(super) number_on_node: usize,
}

impl ContextParams {
    pub(super) const FEATURES: u64 = 1 << 0;
    pub(super) const SENDERS: u64 = 1 << 4;
}

/// The parameters of a worker.
#[repr(C)]
#[derive(Debug)]
pub(super) struct WorkerParams {
    pub(super) mask: u64,
    pub(super) threads: c_uint,
    pub(super) cpus: [u64; 16],
    pub(super) events: c_uint,
    pub(super) user_data: Object,
    pub(super) event_fd: c_int,
    pub(super) flags: u64,
    pub(super) name: *const c_char,
    pub(super) alignment: usize,
    pub(super) client: u64,
}

impl WorkerParams {
    pub(super) const THREADS: u64 = 1 << 0;
}

/// Several threads call, one at a time.
pub(super) const SERIALIZED: c_uint = 1;

/// The facts that a worker tells.
#[repr(C)]
#[derive(Debug)]
pub(super) struct WorkerFacts {
    pub(super) mask: u64,
    pub(super) threads: c_uint,
    pub(super) address_flags: u32,
    pub(super) address: Object,
    pub(super) address_len: usize,
    pub(super) header: usize,
    pub(super) name: [c_char; 32],
    pub(super) text: usize,
}

impl WorkerFacts {
    pub(super) const THREADS: u64 = 1 << 0;
    pub(super) const ADDRESS: u64 = 1 << 1;
    pub(super) const ADDRESS_FLAGS: u64 = 1 << 2;
    /// The address is of the network alone, not of the memory of this machine.
    pub(super) const OF_NETWORK: u32 = 1 << 0;
}

/// A function that hears that the other end of an endpoint is lost.
pub(super) type Lost = unsafe extern "C" fn(Object, Object, Status);

/// An address of a socket.
#[repr(C)]
#[derive(Debug)]
pub(super) struct SocketAddress {
    pub(super) at: *const c_void,
    pub(super) len: u32,
}

/// The parameters of an endpoint.
#[repr(C)]
#[derive(Debug)]
pub(super) struct EndpointParams {
    pub(super) mask: u64,
    pub(super) address: *const c_void,
    pub(super) errors: c_uint,
    pub(super) lost: Option<Lost>,
    pub(super) lost_with: Object,
    pub(super) user_data: Object,
    pub(super) flags: c_uint,
    pub(super) socket: SocketAddress,
    pub(super) request: Object,
    pub(super) name: *const c_char,
    pub(super) own_socket: SocketAddress,
}

impl EndpointParams {
    pub(super) const ADDRESS: u64 = 1 << 0;
    pub(super) const ERRORS: u64 = 1 << 1;
    pub(super) const LOST: u64 = 1 << 2;
    /// The mode of [`Self::errors`] in which a peer may be lost.
    pub(super) const PEER: c_uint = 1;
}

/// The parameters of an operation.
#[repr(C)]
#[derive(Debug)]
pub(super) struct RequestParams {
    pub(super) mask: u32,
    pub(super) flags: u32,
    pub(super) request: Object,
    pub(super) call: Object,
    pub(super) datatype: u64,
    pub(super) user_data: Object,
    pub(super) reply: Object,
    pub(super) memory: c_uint,
    pub(super) received: *mut Received,
    pub(super) registered: Object,
    pub(super) far_datatype: u64,
    pub(super) far: *const c_void,
    pub(super) far_count: usize,
}

impl RequestParams {
    pub(super) const FLAGS: u32 = 1 << 4;
    /// An operation gives a request even where it ends at once.
    pub(super) const ALWAYS_REQUEST: u32 = 1 << 16;
    /// The flag of a close that waits for no other.
    pub(super) const FORCED: u32 = 1 << 0;
}

/// The message that a receive got.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) tag: u64,
    pub(super) len: usize,
}

/// A transport of an endpoint, and its device.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct TransportName {
    pub(super) transport: *const c_char,
    pub(super) device: *const c_char,
}

/// The facts that an endpoint tells.
#[repr(C)]
#[derive(Debug)]
pub(super) struct EndpointFacts {
    pub(super) mask: u64,
    pub(super) name: [c_char; 32],
    pub(super) sockets: [[u64; 16]; 2],
    pub(super) transports: *mut TransportName,
    pub(super) count: c_uint,
    pub(super) size: usize,
    pub(super) user_data: Object,
}

impl EndpointFacts {
    pub(super) const TRANSPORTS: u64 = 1 << 3;
}

/// Returns a structure whose fields are zeros and nulls.
///
/// # Safety
/// Zeros are a value of the type.
pub(super) unsafe fn empty<T>() -> T {
    // SAFETY: the caller's promise.
    unsafe { std::mem::zeroed() }
}

macro_rules! functions {
    ($($name:ident $symbol:literal ($($arg:ty),*) $(-> $result:ty)?;)*) => {
        /// Pointers to the functions.
        #[derive(Clone, Debug)]
        pub(super) struct UcxFunctions {
            $(pub(super) $name: unsafe extern "C" fn($($arg),*) $(-> $result)?,)*
        }

        impl UcxFunctions {
            /// Returns a library's functions.
            ///
            /// # Errors
            /// The name of the first that it lacks.
            pub(super) fn of(symbol: &dyn Fn(&CStr) -> Object) -> Result<Self, &'static str> {
                Ok(Self { $($name: {
                    let found = symbol($symbol);
                    if found.is_null() {
                        return Err($symbol.to_str().unwrap_or_default());
                    }
                    // SAFETY: UCX keeps the arguments and the result of a function of this name.
                    unsafe {
                        std::mem::transmute::<Object, unsafe extern "C" fn($($arg),*) $(-> $result)?>(found)
                    }
                },)* })
            }
        }
    };
}

functions! {
    version c"ucp_get_version_string" () -> *const c_char;
    status_string c"ucs_status_string" (Status) -> *const c_char;
    config_read c"ucp_config_read" (*const c_char, *const c_char, *mut Object) -> Status;
    config_release c"ucp_config_release" (Object);
    init c"ucp_init_version" (c_uint, c_uint, *const ContextParams, Object, *mut Object) -> Status;
    cleanup c"ucp_cleanup" (Object);
    worker_create c"ucp_worker_create" (Object, *const WorkerParams, *mut Object) -> Status;
    worker_destroy c"ucp_worker_destroy" (Object);
    worker_query c"ucp_worker_query" (Object, *mut WorkerFacts) -> Status;
    release_address c"ucp_worker_release_address" (Object, Object);
    progress c"ucp_worker_progress" (Object) -> c_uint;
    descriptor c"ucp_worker_get_efd" (Object, *mut c_int) -> Status;
    arm c"ucp_worker_arm" (Object) -> Status;
    signal c"ucp_worker_signal" (Object) -> Status;
    endpoint_create c"ucp_ep_create" (Object, *const EndpointParams, *mut Object) -> Status;
    endpoint_query c"ucp_ep_query" (Object, *mut EndpointFacts) -> Status;
    endpoint_flush c"ucp_ep_flush_nbx" (Object, *const RequestParams) -> Object;
    endpoint_close c"ucp_ep_close_nbx" (Object, *const RequestParams) -> Object;
    send c"ucp_tag_send_nbx" (Object, *const c_void, usize, u64, *const RequestParams) -> Object;
    receive c"ucp_tag_recv_nbx" (Object, Object, usize, u64, u64, *const RequestParams) -> Object;
    check c"ucp_request_check_status" (Object) -> Status;
    received c"ucp_tag_recv_request_test" (Object, *mut Received) -> Status;
    cancel c"ucp_request_cancel" (Object, Object);
    free c"ucp_request_free" (Object);
}
