//! The structures are those of the headers, and the program keeps its signals.

use std::ffi::c_int;
use std::fmt::Write as _;
use std::mem::offset_of;
use std::process::Command;
use std::ptr::null;

use super::functions::{
    ContextParams, EndpointFacts, EndpointParams, Received, RequestParams, Status, TransportName,
    WorkerFacts, WorkerParams,
};
use super::library::Library;

/// The fields of a structure, by their names in the header, with their offsets here; and the size up to the last one.
type Layout = (&'static str, Vec<(&'static str, usize)>);

macro_rules! layout {
    ($ours:ident = $theirs:literal { $($field:ident: $name:literal),* $(,)? }) => {
        ($theirs, vec![$(($name, offset_of!($ours, $field))),*])
    };
}

fn layouts() -> Vec<Layout> {
    vec![
        layout!(ContextParams = "ucp_params_t" {
            mask: "field_mask", features: "features", request_size: "request_size",
            request_init: "request_init", request_cleanup: "request_cleanup",
            tag_sender_mask: "tag_sender_mask", shared_workers: "mt_workers_shared",
            endpoints: "estimated_num_eps", ranks_of_node: "estimated_num_ppn", name: "name",
        }),
        layout!(WorkerParams = "ucp_worker_params_t" {
            mask: "field_mask", threads: "thread_mode", cpus: "cpu_mask", events: "events",
            user_data: "user_data", event_fd: "event_fd", flags: "flags", name: "name",
            alignment: "am_alignment", client: "client_id",
        }),
        layout!(WorkerFacts = "ucp_worker_attr_t" {
            mask: "field_mask", threads: "thread_mode", address_flags: "address_flags",
            address: "address", address_len: "address_length", header: "max_am_header",
            name: "name", text: "max_debug_string",
        }),
        layout!(EndpointParams = "ucp_ep_params_t" {
            mask: "field_mask", address: "address", errors: "err_mode", lost: "err_handler.cb",
            lost_with: "err_handler.arg", user_data: "user_data", flags: "flags",
            socket: "sockaddr", request: "conn_request", name: "name",
            own_socket: "local_sockaddr",
        }),
        layout!(RequestParams = "ucp_request_param_t" {
            mask: "op_attr_mask", flags: "flags", request: "request", call: "cb",
            datatype: "datatype", user_data: "user_data", reply: "reply_buffer",
            memory: "memory_type", received: "recv_info", registered: "memh",
        }),
        layout!(Received = "ucp_tag_recv_info_t" { tag: "sender_tag", len: "length" }),
        layout!(EndpointFacts = "ucp_ep_attr_t" {
            mask: "field_mask", name: "name", sockets: "local_sockaddr",
        }),
    ]
}

/// What later headers have beside those.
fn later() -> Vec<Layout> {
    vec![
        layout!(EndpointFacts = "ucp_ep_attr_t" {
            transports: "transports.entries", count: "transports.num_entries",
            size: "transports.entry_size", user_data: "user_data",
        }),
        layout!(TransportName = "ucp_transport_entry_t" {
            transport: "transport_name", device: "device_name",
        }),
    ]
}

/// The offsets, one a line; the masks and the size of a result, too.
fn written(layouts: &[Layout]) -> (String, String) {
    let (mut program, mut ours) = (String::new(), String::new());
    for (theirs, fields) in layouts {
        for (name, offset) in fields {
            writeln!(program, "at({theirs}, {name});").expect("it is text");
            writeln!(ours, "{theirs}.{name} {offset}").expect("it is text");
        }
    }
    (program, ours)
}

/// A C program prints the offsets of the header's structures, where there is a header.
#[test]
fn structures_are_those_of_the_header() {
    let ((all, ours), (more, ours_later)) = (written(&layouts()), written(&later()));
    let masks = [
        ("UCP_PARAM_FIELD_FEATURES", ContextParams::FEATURES),
        ("UCP_PARAM_FIELD_TAG_SENDER_MASK", ContextParams::SENDERS),
        ("UCP_WORKER_PARAM_FIELD_THREAD_MODE", WorkerParams::THREADS),
        ("UCP_WORKER_ATTR_FIELD_THREAD_MODE", WorkerFacts::THREADS),
        ("UCP_WORKER_ATTR_FIELD_ADDRESS", WorkerFacts::ADDRESS),
        ("UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS", WorkerFacts::ADDRESS_FLAGS),
        ("UCP_WORKER_ADDRESS_FLAG_NET_ONLY", WorkerFacts::OF_NETWORK.into()),
        ("UCP_EP_PARAM_FIELD_REMOTE_ADDRESS", EndpointParams::ADDRESS),
        ("UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE", EndpointParams::ERRORS),
        ("UCP_EP_PARAM_FIELD_ERR_HANDLER", EndpointParams::LOST),
        ("UCP_ERR_HANDLING_MODE_PEER", EndpointParams::PEER.into()),
        ("UCP_OP_ATTR_FIELD_FLAGS", RequestParams::FLAGS.into()),
        ("UCP_OP_ATTR_FLAG_NO_IMM_CMPL", RequestParams::ALWAYS_REQUEST.into()),
        ("UCP_EP_CLOSE_FLAG_FORCE", RequestParams::FORCED.into()),
        ("UCP_FEATURE_TAG", super::functions::TAGGED),
        ("UCP_FEATURE_WAKEUP", super::functions::WAKES),
        ("UCS_THREAD_MODE_SERIALIZED", super::functions::SERIALIZED.into()),
        ("-UCS_ERR_MESSAGE_TRUNCATED", (-super::functions::TRUNCATED) as u64),
        ("-UCS_ERR_NOT_CONNECTED", (-super::functions::NOT_CONNECTED) as u64),
        ("-UCS_ERR_BUSY", (-super::functions::BUSY) as u64),
        ("-UCS_ERR_LAST", (-super::functions::LEAST) as u64),
        ("UCS_INPROGRESS", super::functions::UNDER_WAY as u64),
        ("sizeof(ucs_status_t)", size_of::<Status>() as u64),
    ];
    let (mut values, mut wanted) = (String::new(), ours);
    for (name, value) in masks {
        writeln!(values, "value({name});").expect("it is text");
        writeln!(wanted, "{name} {value}").expect("it is text");
    }
    let text = format!(
        "#include <stddef.h>\n#include <stdio.h>\n#include <ucp/api/ucp.h>\n\
         #define at(type, field) printf(\"%s.%s %zu\\n\", #type, #field, offsetof(type, field))\n\
         #define value(name) printf(\"%s %lld\\n\", #name, (long long)(name))\n\
         int main(void) {{\n{all}{values}\n\
         #if UCP_API_VERSION >= UCP_VERSION(1, 22)\n{more}\n#endif\nreturn 0; }}\n"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let [source, program] = ["layout.c", "layout"].map(|name| folder.path().join(name));
    std::fs::write(&source, text).expect("it is written");
    let there = Command::new("cc").arg("-E").arg("-o/dev/null").arg(&source).output();
    if !there.is_ok_and(|output| output.status.success()) {
        println!("the structures are not compared: there is no C compiler with UCX's header");
        return;
    }
    let built = Command::new("cc").arg(&source).arg("-o").arg(&program).output().expect("it runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let told = Command::new(&program).output().expect("it runs").stdout;
    let told = String::from_utf8(told).expect("it is text");
    let rest = told.strip_prefix(&wanted).unwrap_or_else(|| panic!("{told}\nand not\n{wanted}"));
    assert!(rest.is_empty() || rest == ours_later, "{rest}\nand not\n{ours_later}");
}

/// Returns the handler of each signal.
fn handlers() -> Vec<libc::sighandler_t> {
    let handler = |signal: c_int| {
        // SAFETY: zeros are a value of the type; nothing is set, and there is room for the answer.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, null(), &raw mut action);
            action.sa_sigaction
        }
    };
    // The system's library keeps 32 and 33 for itself.
    (1..32).map(handler).collect()
}

/// The library would take the signals of errors when it is loaded.
#[test]
fn the_program_keeps_its_signals() {
    const CHILD: &str = "ROUNDELAY_TEST_SIGNALS";
    if std::env::var_os(CHILD).is_some() {
        let before = handlers();
        if let Err(error) = Library::get() {
            println!("signals are not compared: {error}");
            return;
        }
        assert_eq!(handlers(), before);
        return;
    }
    // Another test may have loaded the library in this process.
    let this = std::env::current_exe().expect("it runs");
    let test = "ucx::tests::the_program_keeps_its_signals";
    let mut child = Command::new(this);
    let told = child.args(["--exact", test, "--nocapture"]).env(CHILD, "1");
    let told = told.env_remove("UCX_HANDLE_ERRORS").output();
    let told = told.expect("it ends");
    println!("{}", String::from_utf8_lossy(&told.stdout));
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
}
