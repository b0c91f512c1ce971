//! A client that opens, changes and asks, as an editor does.

mod choices;

use std::time::Duration;

use lsp_server::{Connection, Message, Notification, Request, RequestId, Response};
use serde_json::{Value, json};

const ADDRESS: &str = "file:///programs/ring%20one.coll";

const RING: &str = "\
/// AllReduce on a ring.
algorithm Mine(ring: Ring) -> AllReduce {
    let left = ring.left;
    let right = ring.right;
    view block = output.split(nranks);
    copy(local.input, local.output); // 🐌 every rank
    for round in 0..nranks - 1 {
        let b = (ring.position - round - 1) % nranks;
        right.TxAck();
        left.RxAck();
        reduce(left.block[b], local.block[b]);
        left.TxDataSignal();
        right.RxDataSignal();
    }
    for round in 0..nranks - 1 {
        let b = (ring.position - round) % nranks;
        right.TxAck();
        left.RxAck();
        copy(left.block[b], local.block[b]);
        left.TxDataSignal();
        right.RxDataSignal();
    }
}
";

/// The client's end of a session.
struct Client {
    connection: Connection,
    server: Option<std::thread::JoinHandle<Result<(), String>>>,
    asked: i32,
    version: i32,
}

impl Client {
    fn start() -> Self {
        Self::with(json!({ "capabilities": {} }))
    }

    /// Starts a session with these parameters of `initialize`.
    fn with(params: Value) -> Self {
        let (ours, theirs) = Connection::memory();
        let server = Some(std::thread::spawn(move || super::serve(&theirs)));
        let mut client = Self { connection: ours, server, asked: 0, version: 0 };
        let about = client.ask("initialize", params).expect("it starts");
        assert_eq!(about["serverInfo"]["name"], "roundelay");
        client.tell("initialized", json!({}));
        client
    }

    fn tell(&self, method: &str, params: Value) {
        let notice = Notification { method: method.to_owned(), params };
        self.connection.sender.send(notice.into()).expect("the server is there");
    }

    fn message(&self) -> Message {
        self.connection.receiver.recv_timeout(Duration::from_secs(30)).expect("an answer in time")
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.asked += 1;
        let id = RequestId::from(self.asked);
        let request = Request { id: id.clone(), method: method.to_owned(), params };
        self.connection.sender.send(request.into()).expect("the server is there");
        loop {
            match self.message() {
                Message::Response(Response { id: of, result, error }) if of == id => {
                    return error.map_or(Ok(result.unwrap_or_default()), |why| Err(why.message));
                }
                // Diagnostics of a text may come before the answer.
                _ => {}
            }
        }
    }

    /// Asks about a place: the first time that `near` stands in the text, and so many letters behind it.
    fn at(&mut self, method: &str, text: &str, near: &str, more: &Value) -> Result<Value, String> {
        let before = &text[..text.find(near).expect(near)];
        let line = before.matches('\n').count();
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let character = before[start..].encode_utf16().count();
        let mut params = json!({
            "textDocument": { "uri": ADDRESS },
            "position": { "line": line, "character": character },
        });
        params.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        self.ask(method, params)
    }

    fn open(&mut self, text: &str) {
        let document = json!({ "uri": ADDRESS, "languageId": "coll", "version": 0, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
    }

    fn change(&mut self, text: &str) {
        self.version += 1;
        let document = json!({ "uri": ADDRESS, "version": self.version });
        let changes = json!([{ "text": text }]);
        self.tell(
            "textDocument/didChange",
            json!({ "textDocument": document, "contentChanges": changes }),
        );
    }

    /// Returns the next diagnostics of the present version.
    fn diagnostics(&self) -> Vec<Value> {
        loop {
            if let Message::Notification(Notification { method, params }) = self.message()
                && method == "textDocument/publishDiagnostics"
                && params["version"] == self.version
            {
                return params["diagnostics"].as_array().expect("a list").clone();
            }
        }
    }

    /// Waits for the proof: the diagnostics at once, and those with the proof.
    fn proved(&self) -> Vec<Value> {
        assert_eq!(self.diagnostics(), Vec::<Value>::new(), "the names and types are right");
        self.diagnostics()
    }

    fn end(mut self) {
        self.ask("shutdown", Value::Null).expect("it ends");
        self.tell("exit", Value::Null);
        self.server.take().unwrap().join().expect("no panic").expect("a session without errors");
    }
}

/// The line, from 0, on which a text is first.
fn line_of(text: &str, near: &str) -> usize {
    text[..text.find(near).expect(near)].matches('\n').count()
}

fn codes(diagnostics: &[Value]) -> Vec<&str> {
    diagnostics.iter().map(|one| one["code"].as_str().expect("a code")).collect()
}

#[test]
fn a_text_is_examined_and_proved_while_it_changes() {
    let mut client = Client::start();
    client.open(RING);
    assert_eq!(client.proved(), Vec::<Value>::new());

    // A name is wrong: the error is there at once, at the word, with a correction.
    let misspelt = RING.replace("left.RxAck", "left.RxAk");
    client.change(&misspelt);
    let found = client.diagnostics();
    assert_eq!(codes(&found), ["E0105"]);
    let line = |text: &str, near: &str| text[..text.find(near).unwrap()].matches('\n').count();
    let start = &found[0]["range"]["start"];
    assert_eq!(
        (start["line"].clone(), start["character"].clone()),
        (line(&misspelt, "RxAk").into(), 13.into())
    );
    let range = found[0]["range"].clone();
    let asked = json!({ "textDocument": { "uri": ADDRESS }, "range": range, "context": { "diagnostics": [] } });
    let fixes = client.ask("textDocument/codeAction", asked).unwrap();
    assert_eq!(fixes[0]["title"], "did you mean `RxAck`?");
    assert_eq!(fixes[0]["edit"]["changes"][ADDRESS][0]["newText"], "RxAck");
    let edits = fixes[0]["edit"]["changes"][ADDRESS].as_array().unwrap();
    assert_eq!(edits.len(), 2, "one cause is mended at each of its places");

    // A signal is missing: the proof says so, with the other place.
    let unsafe_ring = RING.replacen("        right.RxDataSignal();\n", "", 1);
    client.change(&unsafe_ring);
    let found = client.proved();
    assert_eq!(codes(&found)[0], "E0303");
    assert!(found[0]["message"].as_str().unwrap().contains("\nhelp: "), "{}", found[0]["message"]);

    // A change before the proof ends: the older text's proof is not told.
    for round in 0..20 {
        client.change(&format!("{unsafe_ring}// {round}\n"));
    }
    client.change(RING);
    assert_eq!(client.proved(), Vec::<Value>::new());
    client.tell("textDocument/didClose", json!({ "textDocument": { "uri": ADDRESS } }));
    client.end();
}

#[test]
fn names_are_found_and_renamed() {
    let mut client = Client::start();
    client.open(RING);
    client.proved();
    let hover = client.at("textDocument/hover", RING, "left.RxAck", &json!({})).unwrap();
    let said = hover["contents"]["value"].as_str().unwrap();
    assert!(
        said.starts_with("`left` is a peer") && said.contains("let left = ring.left;"),
        "{said}"
    );
    let hover = client.at("textDocument/hover", RING, "Mine", &json!({})).unwrap();
    let said = hover["contents"]["value"].as_str().unwrap();
    for words in ["AllReduce on a ring.", "proved Mine at 8 ranks", "proved for every nranks >= 2"]
    {
        assert!(said.contains(words), "{words} in {said}");
    }
    assert!(!said.contains("ring = "), "the proof is of rings in any order: {said}");
    let hover = client.at("textDocument/hover", RING, "TxAck", &json!({})).unwrap();
    assert!(hover["contents"]["value"].as_str().unwrap().starts_with("posts an ack"), "{hover}");
    assert!(hover["contents"]["value"].as_str().unwrap().contains("needed: rank "), "{hover}");

    let definition = client.at("textDocument/definition", RING, "block[b]", &json!({})).unwrap();
    assert_eq!(definition["range"]["start"], json!({ "line": 4, "character": 9 }));
    let context = json!({ "context": { "includeDeclaration": true } });
    let places = client.at("textDocument/references", RING, "block[b]", &context).unwrap();
    assert_eq!(places.as_array().unwrap().len(), 5);

    let named = json!({ "newName": "piece" });
    let edit = client.at("textDocument/rename", RING, "block = ", &named).unwrap();
    let edits = edit["changes"][ADDRESS].as_array().unwrap();
    assert_eq!(edits.len(), 5);
    for (taken, why) in [
        ("left", "cannot be the name"),
        ("for", "is not a name"),
        ("two words", "is not a name"),
        ("rank", "cannot be the name"),
    ] {
        let named = json!({ "newName": taken });
        let refused = client.at("textDocument/rename", RING, "block = ", &named).unwrap_err();
        assert!(refused.contains(why), "{taken}: {refused}");
    }
    let refused = client.at("textDocument/rename", RING, "nranks", &json!({ "newName": "n" }));
    assert!(refused.unwrap_err().contains("not declared"));

    // A name behind letters of two UTF-16 units has its column in these units.
    let text = RING.replacen("right.TxAck", "/* \u{1F40C}\u{1F40C} */ right.TxAck", 1);
    client.change(&text);
    client.proved();
    let places = client.at("textDocument/references", &text, "right.TxAck", &json!({})).unwrap();
    let behind =
        json!({ "line": line_of(&text, "*/ right"), "character": "        /* SSSS */ ".len() });
    assert_eq!(places[1]["range"]["start"], behind);
    client.end();
}

/// A Broadcast that is right for roots below 6 alone is wrong at 7 ranks and more.
#[test]
fn proofs_are_of_every_root() {
    let mut client = Client::start();
    let text = "algorithm Star(root: Rank = 0, k: int = 1) -> Broadcast {
        let from = if root < 6 { root } else { 0 };
        if rank == root { copy(local.input, local.output); }
        if rank == from {
            for d in 1..nranks { peer((from + d) % nranks).TxAck(); }
            for d in 1..nranks { peer((from + d) % nranks).RxDataSignal(); }
        } else {
            peer(from).RxAck();
            copy(peer(from).output, local.output);
            peer(from).TxDataSignal();
        }
        require k > 0, \"positive\";
    }";
    client.open(text);
    assert_eq!(client.proved(), Vec::<Value>::new());
    let hover = client.at("textDocument/hover", text, "Star", &json!({})).unwrap();
    let said = hover["contents"]["value"].as_str().unwrap();
    assert!(said.contains("proved Star at 6 ranks"), "{said}");
    assert!(said.contains("for root 0..=5, k = 1"), "{said}");
    client.end();
}

/// Files that use each other twice at every level are compiled once each, while a text is examined.
#[cfg(unix)]
#[test]
fn used_files_are_compiled_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let right = "pub algorithm B() -> AllReduce { copy(local.input, local.output); }\n";
    for level in 0..30 {
        let next = level + 1;
        let text = format!("use \"u{next}.coll\";\nuse \"./u{next}.coll\";\n{right}");
        std::fs::write(folder.path().join(format!("u{level}.coll")), text).expect("a file");
    }
    std::fs::write(folder.path().join("u30.coll"), right).expect("a file");
    let mut client = Client::start();
    let used = folder.path().join("u0.coll");
    let text = |path: &str| format!("use \"{path}\";\n{}", right.replace("B()", "A()"));
    client.open(&text(used.to_str().unwrap()));
    assert_eq!(client.diagnostics(), Vec::<Value>::new());
    client.change(&text("/etc/passwd"));
    let found = client.diagnostics();
    assert_eq!(codes(&found), ["E0122"]);
    assert!(!found[0]["message"].as_str().unwrap().contains("root:"), "{found:?}");
    client.end();
}

#[test]
fn parts_are_listed_folded_completed_and_formatted() {
    let mut client = Client::start();
    client.open(RING);
    client.proved();
    let whole = json!({ "textDocument": { "uri": ADDRESS } });
    let symbols = client.ask("textDocument/documentSymbol", whole.clone()).unwrap();
    assert_eq!((&symbols[0]["name"], &symbols[0]["detail"]), (&"Mine".into(), &"AllReduce".into()));
    assert_eq!(symbols[0]["children"].as_array().unwrap().len(), 8);
    let folds = client.ask("textDocument/foldingRange", whole.clone()).unwrap();
    assert_eq!(folds.as_array().unwrap().len(), 3);
    let lenses = client.ask("textDocument/codeLens", whole.clone()).unwrap();
    let title = lenses[0]["command"]["title"].as_str().unwrap();
    assert_eq!(title, "proved for every nranks >= 2 · 14 steps · one order");

    let range =
        json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let asked = json!({ "textDocument": { "uri": ADDRESS }, "range": range });
    let hints = client.ask("textDocument/inlayHint", asked).unwrap();
    let hints: Vec<_> =
        hints.as_array().unwrap().iter().map(|h| h["label"].as_str().unwrap()).collect();
    assert_eq!(
        hints,
        ["needed", "implied", "needed", "needed", "every nranks", "each count / nranks"]
    );

    // Tokens are relative to each other: their lines add up to the last one's.
    let colored = client.ask("textDocument/semanticTokens/full", whole).unwrap();
    let numbers: Vec<u64> =
        colored["data"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    let lines: u64 = numbers.chunks(5).map(|token| token[0]).sum();
    assert_eq!(lines as usize, line_of(RING, "right.RxDataSignal();\n    }\n}"));
    assert_eq!(numbers[..5], [1, 0, "algorithm".len() as u64, 0, 0]);
    assert_eq!(numbers[5..10], [0, "algorithm ".len() as u64, 4, 1, 0]);

    let call =
        client.at("textDocument/signatureHelp", RING, "local.output); // ", &json!({})).unwrap();
    assert_eq!(call["signatures"][0]["label"], "copy(from, to)");
    assert_eq!(call["activeParameter"], 1);

    let labels = |items: Value| -> Vec<String> {
        let items = items.as_array().unwrap().clone();
        items.iter().map(|item| item["label"].as_str().unwrap().to_owned()).collect()
    };
    let text = RING.replacen("right.TxAck", "right.", 1);
    client.change(&text);
    let members = labels(
        client.at("textDocument/completion", &text, "();\n        left.Rx", &json!({})).unwrap(),
    );
    for member in ["TxAck", "RxDataSignal", "block", "output", "rank"] {
        assert!(members.iter().any(|known| known == member), "{member} in {members:?}");
    }
    for (given, behind) in [("\"\"", "\"); for round"), ("\"dgx", "); for round")] {
        let text = RING.replacen("for round", &format!("let m = machine({given}); for round"), 1);
        client.change(&text);
        let at = client.at("textDocument/completion", &text, behind, &json!({})).unwrap();
        assert_eq!(at[0]["textEdit"]["newText"], "\"dgx-h100\"", "{at}");
        assert!(labels(at).contains(&"mi300x".to_owned()));
    }
    let text = format!("#[{RING}");
    client.change(&text);
    let asked =
        json!({ "textDocument": { "uri": ADDRESS }, "position": { "line": 0, "character": 2 } });
    let attributes = client.ask("textDocument/completion", asked).unwrap();
    let told = attributes[0]["documentation"]["value"].as_str().unwrap();
    assert!(told.contains("no in-place form"), "{attributes}");
    client.change(RING);
    let all =
        labels(client.at("textDocument/completion", RING, "copy(local.input", &json!({})).unwrap());
    for word in ["left", "RingAllReduce", "parallel", "copy"] {
        assert!(all.iter().any(|known| known == word), "{word}");
    }

    let options = json!({ "textDocument": { "uri": ADDRESS }, "options": { "tabSize": 4, "insertSpaces": true } });
    client.change(&RING.replace("    let left = ring.left;", "let   left=ring.left ;"));
    let edits = client.ask("textDocument/formatting", options.clone()).unwrap();
    assert_eq!(edits[0]["newText"], RING);
    client.change(RING);
    assert_eq!(client.ask("textDocument/formatting", options).unwrap(), json!([]));
    client.end();
}

/// In Rust the programs of macros have names and proofs, and their errors are the macro's own.
#[test]
fn programs_in_macros_have_names_and_verdicts() {
    let mut client = Client::start();
    let uri = "file:///src/lib.rs";
    let text = format!(
        "use roundelay::collective; // \u{1F40C}\n\ncollective! {{\n{RING}}}\n\nfn left() {{}}\n"
    );
    let open = |text: &str| json!({ "textDocument": { "uri": uri, "languageId": "rust", "version": 0, "text": text } });
    client.tell("textDocument/didOpen", open(&text));
    assert_eq!(client.proved(), Vec::<Value>::new());
    let line = line_of(&text, "left.RxAck");
    let place =
        json!({ "textDocument": { "uri": uri }, "position": { "line": line, "character": 10 } });
    let definition = client.ask("textDocument/definition", place.clone()).unwrap();
    assert_eq!(definition["range"]["start"]["line"], line_of(&text, "let left"));
    let mut all = place;
    all["context"] = json!({ "includeDeclaration": true });
    let places = client.ask("textDocument/references", all).unwrap();
    assert_eq!(
        places.as_array().unwrap().len(),
        RING.matches("left").count() - "ring.left".matches("left").count()
    );
    let mut named = json!({ "newName": "before" });
    named["textDocument"] = json!({ "uri": uri });
    named["position"] = json!({ "line": line, "character": 10 });
    let edit = client.ask("textDocument/rename", named).unwrap();
    assert_eq!(edit["changes"][uri].as_array().unwrap().len(), places.as_array().unwrap().len());
    let whole = json!({ "textDocument": { "uri": uri } });
    let lenses = client.ask("textDocument/codeLens", whole).unwrap();
    assert_eq!(lenses[0]["range"]["start"]["line"], line_of(&text, "algorithm Mine"));
    let options = json!({ "textDocument": { "uri": uri }, "options": { "tabSize": 4, "insertSpaces": true } });
    assert_eq!(client.ask("textDocument/formatting", options).unwrap(), Value::Null);

    client.tell("textDocument/didOpen", open(&text.replace("left.RxAck", "left.RxAk")));
    assert_eq!(client.diagnostics(), Vec::<Value>::new());
    client.end();
}

#[test]
fn malformed_messages_get_errors_and_nothing_ends() {
    let mut client = Client::start();
    assert!(client.ask("textDocument/hover", json!({ "textDocument": 7 })).is_err());
    assert!(client.ask("no/such", Value::Null).unwrap_err().contains("no method"));
    let elsewhere = json!({ "textDocument": { "uri": "file:///not/open.coll" } });
    assert!(
        client.ask("textDocument/documentSymbol", elsewhere).unwrap_err().contains("is not open")
    );
    client.tell("textDocument/didChange", json!({ "nothing": true }));
    client.tell("workspace/didChangeConfiguration", Value::Null);
    client.open(RING);
    client.proved();
    // A place far outside of the text.
    let far = json!({ "textDocument": { "uri": ADDRESS }, "position": { "line": 9999, "character": 9999 } });
    for method in ["hover", "definition", "references", "completion", "prepareRename"] {
        client.ask(&format!("textDocument/{method}"), far.clone()).expect(method);
    }
    client.end();

    // A client that is gone ends the session.
    let client = Client::start();
    let Client { connection, server, .. } = client;
    drop(connection);
    server.unwrap().join().expect("no panic").expect("an end without errors");
}

/// After any edits the server's answer is that of a fresh check.
#[test]
fn random_edits_leave_the_answer_of_a_fresh_check() {
    let mut client = Client::start();
    client.open(RING);
    client.proved();
    let mut random = fastrand::Rng::with_seed(12345);
    let mut random = |below: usize| random.usize(..below);
    let words = [
        "left", ".", "(", ")", "{", "}", "RxAck", ";", "🐌", "\n", "for", " ", "0..", "block[b]",
        "\"", "/*",
    ];
    let mut text = RING.to_owned();
    for _ in 0..300 {
        let places: Vec<usize> =
            text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let (a, b) = (random(places.len()), random(4));
        let (start, end) = (places[a], places[(a + b).min(places.len() - 1)]);
        text.replace_range(start..end, words[random(words.len())]);
        client.change(&text);
    }
    let found = codes(&client.diagnostics()).join(" ");
    let files = roundelay::tools::FilesOnDisk::for_source("");
    let fresh = super::document::Document::new(ADDRESS.parse().unwrap(), 0, &text, &files);
    let fresh: Vec<_> = fresh.errors.iter().map(|error| error.code.as_str()).collect();
    assert_eq!(found, fresh.join(" "));
    assert!(!found.is_empty());
    client.change(RING);
    assert_eq!(client.proved(), Vec::<Value>::new());
    client.end();
}
