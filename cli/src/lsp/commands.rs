//! The lenses that run something: *simulate* and *run*, each a call of the command itself, whose output the editor shows.

use std::io::{Read, Write as _};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use lsp_server::{ErrorCode, Message, Notification, RequestId, Response};
use lsp_types::notification::{Notification as _, ShowMessage};
use lsp_types::{ExecuteCommandParams, MessageType, ShowMessageParams, Uri};

use super::document::{Document, Documents};

/// The commands, each with the subcommand that it runs.
const COMMANDS: [(&str, &[&str]); 2] = [
    (
        "roundelay.simulate",
        &["simulate", "--topology", "full_mesh(4, 25GB/s, 2us)", "--bytes", "1M"],
    ),
    ("roundelay.execute", &["run", "--nranks", "4"]),
];

/// The time after which a command is ended.
const LIMIT: Duration = Duration::from_secs(60);

/// Returns the names of the commands.
pub(super) fn names() -> Vec<String> {
    COMMANDS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// Runs a command on a thread of its own, which answers the request and shows the output.
///
/// # Errors
/// Why the request makes no sense.
pub(super) fn run(
    documents: &Documents,
    out: &Sender<Message>,
    id: RequestId,
    asked: &ExecuteCommandParams,
) -> Result<(), String> {
    let known = COMMANDS.iter().find(|(name, _)| *name == asked.command);
    let (_, args) = known.ok_or_else(|| format!("no command {}", asked.command))?;
    let text = |at: usize| asked.arguments.get(at).and_then(|value| value.as_str());
    let (Some(uri), Some(algorithm)) = (text(0), text(1)) else {
        return Err(
            "its arguments are the address of a text and the name of an algorithm".to_owned()
        );
    };
    let uri: Uri = uri.parse().map_err(|_| format!("{uri} is no address"))?;
    let document =
        documents.get(uri.as_str()).ok_or_else(|| format!("{} is not open", uri.as_str()))?;
    let (source, text) = given(document);
    let mut command = Command::new(std::env::current_exe().map_err(|why| why.to_string())?);
    command.arg(args[0]).arg(source).args(["--algorithm", algorithm]).args(&args[1..]);
    let out = out.clone();
    std::thread::spawn(move || {
        let response = match output(&mut command, &text) {
            Ok((ok, message)) => {
                let typ = if ok { MessageType::INFO } else { MessageType::ERROR };
                let shown = ShowMessageParams { typ, message: message.clone() };
                // A client that is gone does not wait for it.
                _ = out.send(Notification::new(ShowMessage::METHOD.to_owned(), shown).into());
                Response::new_ok(id, message)
            }
            Err(why) => Response::new_err(id, ErrorCode::RequestFailed as i32, why),
        };
        _ = out.send(response.into());
    });
    Ok(())
}

/// Returns the source for the command: the file where it holds the text of the editor, else standard input.
fn given(document: &Document) -> (String, String) {
    let text = document.source.text().unwrap_or_default();
    let name = document.source.name();
    if std::fs::read_to_string(name).is_ok_and(|saved| saved == text) {
        return (name.to_owned(), String::new());
    }
    ("-".to_owned(), text.to_owned())
}

/// Returns whether a command succeeded, and its output or its errors.
fn output(command: &mut Command, text: &str) -> Result<(bool, String), String> {
    let failed = |why: std::io::Error| why.to_string();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let mut input = child.stdin.take().expect("it is piped");
    // A command that ends early does not read all of it.
    _ = input.write_all(text.as_bytes());
    drop(input);
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let [out, err] = [out.map(whole), err.map(whole)];
    let start = Instant::now();
    let status = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if start.elapsed() < LIMIT => std::thread::sleep(Duration::from_millis(10)),
            None => {
                _ = child.kill();
                return Err(format!("it takes longer than {} s", LIMIT.as_secs()));
            }
        }
    };
    let shown = if status.success() { out } else { err };
    let shown = shown.and_then(|text| text.join().ok()).unwrap_or_default();
    Ok((status.success(), shown.trim_end().to_owned()))
}

/// Reads all of a pipe on a thread of its own, so that the other end never waits.
fn whole(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
