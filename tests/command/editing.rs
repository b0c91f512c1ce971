//! The commands that stay while an author edits: `watch` and `lsp`.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::call::{binary, roundelay};

/// A process that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const RIGHT: &str = "\
algorithm Swap() -> AllGather {
    view block = output.split(nranks);
    let other = peer((rank + 1) % nranks);
    require nranks == 2, \"two ranks swap\";
    copy(local.input, local.block[rank]);
    other.TxAck();
    other.RxAck();
    copy(other.input, local.block[other.rank]);
    other.TxDataSignal();
    other.RxDataSignal();
}
";

/// Waits for a line that contains `words`.
fn line(lines: &Receiver<String>, words: &str) -> String {
    let mut seen = Vec::new();
    loop {
        let Ok(line) = lines.recv_timeout(Duration::from_secs(60)) else {
            panic!("no `{words}` in {seen:?}");
        };
        if line.contains(words) {
            return line;
        }
        seen.push(line);
    }
}

#[test]
fn a_source_is_checked_again_when_it_is_saved() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("swap.coll");
    std::fs::write(&path, RIGHT).expect("a file");
    let mut command = binary();
    command.arg("watch").arg(&path).args(["-n", "2"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut watching = Running(command.spawn().expect("it starts"));
    let (tell, lines) = channel();
    let pipes: [Box<dyn std::io::Read + Send>; 2] = [
        Box::new(watching.0.stdout.take().expect("a pipe")),
        Box::new(watching.0.stderr.take().expect("a pipe")),
    ];
    for pipe in pipes {
        let tell = tell.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
    }
    line(&lines, "proved Swap");
    // As an editor saves: a new file in place of the old one.
    let new = folder.path().join("new");
    std::fs::write(&new, RIGHT.replace("    other.RxAck();\n", "")).expect("a file");
    std::fs::rename(&new, &path).expect("it is renamed");
    line(&lines, "error[E03");
    std::fs::write(&path, RIGHT).expect("a file");
    line(&lines, "proved Swap");

    roundelay(&["watch", "RingAllReduce"]).refused(2, "E0001");
}

/// Sends a message of the protocol.
fn send(to: &mut impl std::io::Write, message: &serde_json::Value) {
    let text = message.to_string();
    write!(to, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the server reads");
    to.flush().expect("the server reads");
}

/// Reads a message of the protocol.
fn receive(from: &mut BufReader<impl std::io::Read>) -> serde_json::Value {
    let (mut length, mut line) = (0, String::new());
    loop {
        line.clear();
        from.read_line(&mut line).expect("a header");
        match line.trim().strip_prefix("Content-Length: ") {
            Some(number) => length = number.parse().expect("a number"),
            None if line.trim().is_empty() => break,
            None => {}
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).expect("a body");
    serde_json::from_slice(&body).expect("JSON")
}

#[test]
fn a_server_speaks_over_pipes_and_ends_as_the_protocol_says() {
    use serde_json::json;
    let mut command = binary();
    command.arg("lsp").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = Running(command.spawn().expect("it starts"));
    let mut to = server.0.stdin.take().expect("a pipe");
    let mut from = BufReader::new(server.0.stdout.take().expect("a pipe"));
    let start = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "capabilities": {} } });
    send(&mut to, &start);
    let about = receive(&mut from);
    assert_eq!(about["result"]["capabilities"]["hoverProvider"], true, "{about}");
    send(&mut to, &json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }));
    let text =
        json!({ "uri": "file:///swap.coll", "languageId": "coll", "version": 7, "text": RIGHT });
    let open = json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": { "textDocument": text } });
    send(&mut to, &open);
    for _ in ["at once", "with the proof"] {
        let told = receive(&mut from);
        assert_eq!(told["params"]["version"], 7, "{told}");
        assert_eq!(told["params"]["diagnostics"], json!([]), "{told}");
    }
    // Lenses run the command on the text of the editor; a command that is not there is refused.
    let lens = |id: u32, command: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "workspace/executeCommand", "params": { "command": command, "arguments": ["file:///swap.coll", "Swap"] } });
    send(&mut to, &lens(10, "roundelay.nothing"));
    assert!(
        receive(&mut from)["error"]["message"].as_str().expect("an error").contains("no command")
    );
    send(&mut to, &lens(11, "roundelay.execute"));
    let shown = receive(&mut from);
    assert_eq!(shown["method"], "window/showMessage", "{shown}");
    let refused = shown["params"]["message"].as_str().expect("a text").to_owned();
    assert!(refused.contains("two ranks swap"), "four ranks are refused: {refused}");
    assert_eq!(receive(&mut from)["result"], refused);
    send(&mut to, &json!({ "jsonrpc": "2.0", "id": 2, "method": "shutdown" }));
    assert_eq!(receive(&mut from)["id"], 2);
    send(&mut to, &json!({ "jsonrpc": "2.0", "method": "exit" }));
    assert_eq!(server.0.wait().expect("it ends").code(), Some(0));

    // What is no message of the protocol ends the server with an error, and no panic.
    for (text, why) in [
        ("Content-Length: 5\r\n\r\n{nope", "no JSON of the protocol"),
        ("Content-Length: 100000000000000\r\n\r\n{}", "100000000000000 bytes; the largest has"),
        ("Content-Length: -1\r\n\r\n{}", "`-1` is no length"),
        ("Content-Length: 1000\r\n\r\n{}", "cut off after 2"),
        ("what\r\n\r\n", "`what` is no header"),
    ] {
        let call = super::call::with_input(&["lsp"], text.as_bytes());
        assert_eq!(call.code, 2, "{}", call.err);
        assert!(call.err.contains("E0507") && call.err.contains(why), "{text}: {}", call.err);
    }
}

/// The first Ctrl-C ends a check with the results so far, within one proof too.
#[test]
#[cfg(target_os = "linux")]
fn an_interrupted_check_says_what_is_known() {
    let mut command = binary();
    // For weaker signals the ops of all ranks are replayed, which takes long.
    command.args(["check", "RingAllReduce", "-n", "2,1500", "--signals", "link-shared"]);
    command.args(["--format", "json"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut check = Running(command.spawn().expect("it starts"));
    std::thread::sleep(Duration::from_secs(2));
    let mut kill = std::process::Command::new("kill");
    kill.args(["-INT", &check.0.id().to_string()]);
    assert!(kill.status().expect("kill is there").success());
    let mut told = String::new();
    check.0.stdout.take().expect("a pipe").read_to_string(&mut told).expect("a report");
    assert_eq!(check.0.wait().expect("it ends").code(), Some(130));
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    let checked = &told["algorithms"][0];
    assert_eq!((&checked["ok"], &checked["stopped"]), (&false.into(), &1500.into()), "{told}");
    assert_eq!(checked["proved"], serde_json::json!([2]), "{told}");
    assert_eq!(checked["every_nranks"]["from"], 2, "{told}");
}
