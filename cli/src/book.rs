//! `roundelay book`: the book that is packed into the command, served on the loopback address.

use clap::Args;
use roundelay_core::diagnostics::Code;
use tiny_http::{Header, Request, Response, Server, StatusCode};

use crate::report::Failure;
use crate::streams::{note, print};

#[derive(Args)]
pub(crate) struct BookFlags {
    /// Open the book in the browser of this machine
    #[arg(long)]
    open: bool,
    /// The port on the loopback address [default: one that is free]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
}

/// A file of the book: its path below the book's root, and its bytes in the form of gzip.
type PackedFile = (&'static str, &'static [u8]);

/// The files of the book that `ROUNDELAY_BOOK` named when the command was built; empty without it.
const FILES: &[PackedFile] = include!(concat!(env!("OUT_DIR"), "/book.rs"));

/// Serves the book until the process is ended. Nothing is written.
pub(crate) fn main(flags: &BookFlags) -> Result<bool, Failure> {
    if FILES.is_empty() {
        let title = "this `roundelay` was built without the book";
        return Err(Failure::usage(Code::BadCall, title).with_help(
            "in a clone, `cargo xtask book --command` builds one that has it; the pages are also Markdown, in book/src",
        ));
    }
    let server = Server::http(("127.0.0.1", flags.port)).map_err(|why| {
        Failure::usage(Code::BadFlag, format!("port {} cannot be used: {why}", flags.port))
            .with_help("without --port, a free port is taken")
    })?;
    let port = server.server_addr().to_ip().map_or(flags.port, |address| address.port());
    let address = format!("http://127.0.0.1:{port}/");
    print(&address);
    note("the book is there until this command ends".to_owned());
    if flags.open
        && let Err(why) = open::that_detached(&address)
    {
        note(format!("note: no browser was opened: {why}"));
    }
    for request in server.incoming_requests() {
        // A reader who has left gets no answer.
        let _ = answer(request);
    }
    Ok(true)
}

fn answer(request: Request) -> std::io::Result<()> {
    let path = request.url().split(['?', '#']).next().unwrap_or_default().trim_start_matches('/');
    let path = if path.is_empty() || path.ends_with('/') {
        format!("{path}index.html")
    } else {
        path.to_owned()
    };
    let Ok(at) = FILES.binary_search_by_key(&path.as_str(), |(name, _)| name) else {
        return request.respond(Response::from_string("no such page").with_status_code(404));
    };
    let bytes = FILES[at].1;
    let header = |name: &str, value: &str| {
        Header::from_bytes(name, value).expect("these are words without line breaks")
    };
    let headers = vec![header("content-type", kind(&path)), header("content-encoding", "gzip")];
    request.respond(Response::new(StatusCode(200), headers, bytes, Some(bytes.len()), None))
}

/// Returns the media type of a file.
fn kind(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "wasm" => "application/wasm",
        "woff2" => "font/woff2",
        _ => "text/plain; charset=utf-8",
    }
}
