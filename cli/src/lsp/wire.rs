//! Messages on standard input and output, whose lengths the client says before. A client that says wrong lengths gets an
//! error and no memory: a message has a limit, and room is taken as its bytes arrive.

use std::io::{self, BufRead, Read};
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, spawn};

use crossbeam_channel::{Receiver, Sender, bounded};
use lsp_server::{Connection, Message};

/// The largest message in bytes: a source of the largest size, in which every byte is escaped.
const LARGEST: u64 = 128 << 20;
/// The most bytes of all headers of a message.
const HEADERS: u64 = 1 << 12;

/// The threads that read and write the messages of a client.
pub(super) struct Wire {
    reader: JoinHandle<io::Result<()>>,
    writer: JoinHandle<io::Result<()>>,
    trouble: Arc<OnceLock<String>>,
}

/// Connects the server with standard input and output.
pub(super) fn connect() -> (Connection, Wire) {
    let (sender, out) = bounded(0);
    let (input, receiver) = bounded(0);
    let trouble = Arc::new(OnceLock::new());
    let found = trouble.clone();
    let reader = spawn(move || {
        let end = read_all(&mut io::stdin().lock(), &input);
        // It is there before the server sees that no message comes any more.
        end.inspect_err(|why| _ = found.set(why.to_string()))
    });
    let writer = spawn(move || write_all(&out));
    (Connection { sender, receiver }, Wire { reader, writer, trouble })
}

impl Wire {
    /// Returns why a message could not be read, if that is known.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.get().cloned()
    }

    /// Waits for the last message.
    ///
    /// # Errors
    /// Where a message could not be read or written.
    pub(super) fn join(self) -> io::Result<()> {
        let ended = |thread: JoinHandle<io::Result<()>>| match thread.join() {
            Ok(end) => end,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        ended(self.writer).and(ended(self.reader))
    }
}

fn read_all(input: &mut impl BufRead, messages: &Sender<Message>) -> io::Result<()> {
    while let Some(message) = read(input)? {
        let last = matches!(&message, Message::Notification(notice) if notice.method == "exit");
        // The server that does not listen any more has ended the session.
        if messages.send(message).is_err() || last {
            break;
        }
    }
    Ok(())
}

fn write_all(messages: &Receiver<Message>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    messages.iter().try_for_each(|message| message.write(&mut out))
}

/// Reads one message; `None` where the client has ended.
fn read(input: &mut impl BufRead) -> io::Result<Option<Message>> {
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut headers = input.by_ref().take(HEADERS);
    let mut length: Option<u64> = None;
    let mut begun = false;
    loop {
        let mut line = Vec::new();
        headers.read_until(b'\n', &mut line)?;
        if line.is_empty() && !begun && headers.limit() > 0 {
            return Ok(None);
        }
        begun = true;
        let Some(line) = line.strip_suffix(b"\n") else {
            let why = if headers.limit() == 0 { "have no end" } else { "are cut off" };
            return Err(wrong(format!("the headers of a message {why}")));
        };
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else {
            return Err(wrong(format!("`{line}` is no header of a message")));
        };
        if !name.eq_ignore_ascii_case("content-length") {
            continue;
        }
        let value = value.trim();
        let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        if !digits || length.is_some() {
            return Err(wrong(format!("`{value}` is no length of a message")));
        }
        // A number that no integer holds is too large as well.
        length = Some(value.parse().unwrap_or(u64::MAX));
    }
    let length = length.ok_or_else(|| wrong("a message without a length".to_owned()))?;
    if length > LARGEST {
        return Err(wrong(format!("a message of {length} bytes; the largest has {LARGEST}")));
    }
    let mut body = Vec::new();
    input.by_ref().take(length).read_to_end(&mut body)?;
    if (body.len() as u64) < length {
        let got = body.len();
        return Err(wrong(format!("a message of {length} bytes is cut off after {got}")));
    }
    let message = serde_json::from_slice(&body);
    message
        .map(Some)
        .map_err(|why| wrong(format!("a message that is no JSON of the protocol: {why}")))
}

#[cfg(test)]
mod tests {
    use super::read;

    fn told(text: &[u8]) -> String {
        match read(&mut &*text) {
            Ok(None) => "the end".to_owned(),
            Ok(Some(message)) => format!("{message:?}"),
            Err(why) => why.to_string(),
        }
    }

    #[test]
    fn lengths_that_are_wrong_are_told() {
        let body = r#"{"method":"exit"}"#;
        assert!(told(format!("Content-Length: 17\r\n\r\n{body}").as_bytes()).contains("exit"));
        assert!(
            told(format!("X: y\ncontent-length:17\n\n{body} more").as_bytes()).contains("exit")
        );
        assert_eq!(told(b""), "the end");
        for (text, why) in [
            ("Content-Length: 100000000000000\r\n\r\n", "100000000000000 bytes; the largest"),
            ("Content-Length: 99999999999999999999999\r\n\r\n", "the largest has 134217728"),
            ("Content-Length: -1\r\n\r\n", "`-1` is no length"),
            ("Content-Length: +1\r\n\r\n", "`+1` is no length"),
            ("Content-Length: \r\n\r\n", "`` is no length"),
            ("Content-Length: 1e9\r\n\r\n", "`1e9` is no length"),
            ("Content-Length: 1\r\nContent-Length: 2\r\n\r\n", "`2` is no length"),
            ("garbage\r\n\r\n", "`garbage` is no header"),
            ("\r\n", "without a length"),
            ("X: y\r\n\r\n", "without a length"),
            ("Content-Length: 17\r\n", "cut off"),
            ("Content-Length: 17", "cut off"),
            ("Content-Length: 17\r\n\r\n{", "cut off after 1"),
            ("Content-Length: 100000000\r\n\r\n{", "cut off after 1"),
            ("Content-Length: 2\r\n\r\n{}", "no JSON of the protocol"),
            ("Content-Length: 2\r\n\r\n\u{e9}", "no JSON of the protocol"),
        ] {
            assert!(told(text.as_bytes()).contains(why), "{text:?}: {}", told(text.as_bytes()));
        }
        assert!(told(&b"a".repeat(1 << 20)).contains("have no end"));
        assert!(told(&b"a:b\n".repeat(1 << 20)).contains("have no end"));
        let deep = [b"Content-Length: 100000\n\n", &*b"[".repeat(100_000)].concat();
        assert!(told(&deep).contains("no JSON"));
    }
}
