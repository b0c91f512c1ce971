//! Clients that choose: hints that are switched off, lights of proofs, pages of codes; and the files beside a text.

use super::*;

const CALLER: &str = "\
use \"lib.coll\";

algorithm Both(slices: int = 2) -> AllReduce {
    view slice = output.split(slices);
    scratch inbox: 3 like slice;
    RingAllReduce() on (input, output);
}
";

fn hints(client: &mut Client) -> Vec<String> {
    let all =
        json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let asked = json!({ "textDocument": { "uri": ADDRESS }, "range": all });
    let hints = client.ask("textDocument/inlayHint", asked).unwrap();
    hints.as_array().unwrap().iter().map(|h| h["label"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn hints_are_switched_off_one_by_one() {
    let mut client = Client::with(json!({
        "capabilities": { "workspace": { "inlayHint": { "refreshSupport": true } } },
        "initializationOptions": { "hints": { "signals": false } },
    }));
    client.open(RING);
    client.proved();
    assert_eq!(hints(&mut client), ["every nranks", "each count / nranks"]);
    let set = json!({ "settings": { "roundelay": { "hints": { "counts": false } } } });
    client.tell("workspace/didChangeConfiguration", set);
    let hints = hints(&mut client);
    assert_eq!(hints, ["needed", "implied", "needed", "needed", "each count / nranks"]);
    client.end();
}

#[test]
fn lengths_are_those_of_the_collective() {
    let mut client = Client::start();
    for (collective, length) in [
        ("AllGather", "each count"),
        ("ReduceScatter", "each count / nranks"),
        ("AllReduce", "each count / nranks"),
    ] {
        let text = format!(
            "algorithm A() -> {collective} {{\n    view block = output.split(nranks);\n    view half = block[0].split(nranks + 1);\n}}\n"
        );
        client.open(&text);
        let hints = hints(&mut client);
        let halves = format!("{length} / (nranks + 1)");
        assert_eq!(hints, [length, halves.as_str()], "{collective}");
    }
    client.end();
}

/// Each proof has its states: under way, held, refused; and a text with errors is none.
#[test]
fn lights_follow_the_proof() {
    let mut client = Client::with(json!({
        "capabilities": {},
        "initializationOptions": { "proofs": true, "lenses": true },
    }));
    let light = |client: &Client| loop {
        if let Message::Notification(Notification { method, params }) = client.message()
            && method == "roundelay/proof"
        {
            assert_eq!(params["uri"], ADDRESS);
            return params["algorithms"][0].clone();
        }
    };
    client.open(RING);
    assert_eq!(light(&client)["state"], "proving");
    let held = light(&client);
    assert_eq!((&held["state"], &held["name"]), (&json!("every"), &json!("Mine")));
    assert_eq!(held["range"]["start"], json!({ "line": 1, "character": 10 }));
    assert_eq!(held["counts"][7], json!({ "nranks": 8, "proved": true }));
    let lenses =
        client.ask("textDocument/codeLens", json!({ "textDocument": { "uri": ADDRESS } })).unwrap();
    let commands: Vec<_> = (0..3).map(|at| lenses[at]["command"]["command"].clone()).collect();
    assert_eq!(commands, ["", "roundelay.picture", "roundelay.run"]);
    assert_eq!(lenses[1]["command"]["arguments"], json!([ADDRESS, "Mine"]));

    client.change(&RING.replacen("        right.RxDataSignal();\n", "", 1));
    assert_eq!(light(&client)["state"], "proving");
    let refused = light(&client);
    assert_eq!(refused["state"], "refused");
    let counts = [1, 2, 3].map(|at| refused["counts"][at - 1]["proved"].clone());
    assert_eq!(counts, [true, false, false]);
    // A count for which it cannot even be laid out is tried, too.
    client.change(&RING.replace("(ring.position - round) % nranks", "nranks"));
    assert_eq!(light(&client)["state"], "proving");
    let counts = light(&client)["counts"].clone();
    assert_eq!([1, 2].map(|at| counts[at - 1]["proved"].clone()), [true, false]);
    client.change(&RING.replace("left.RxAck", "left.RxAk"));
    assert_eq!(light(&client)["state"], "broken");
    client.end();
}

#[test]
fn a_code_has_its_page_and_its_meaning() {
    let mut client = Client::with(json!({
        "capabilities": {},
        "initializationOptions": { "explain": true },
    }));
    let text = RING.replace("left.RxAck", "left.RxAk");
    client.open(&text);
    let found = client.diagnostics();
    assert_eq!(found[0]["codeDescription"]["href"], "roundelay-explain:/E0105.md");
    let page = client.ask("roundelay/explain", json!({ "code": "E0105" })).unwrap();
    assert!(page.as_str().unwrap().starts_with("# E0105: "), "{page}");
    assert!(client.ask("roundelay/explain", json!({ "code": "E9999" })).is_err());
    let hover = client.at("textDocument/hover", &text, "RxAk", &json!({})).unwrap();
    let said = hover["contents"]["value"].as_str().unwrap();
    assert!(said.contains("`roundelay explain E0105` says more"), "{said}");
    // A word that is a keyword has the meaning that the glossary gives it.
    let hover = client.at("textDocument/hover", &text, "view block", &json!({})).unwrap();
    let said = hover["contents"]["value"].as_str().unwrap();
    assert!(said.contains("*view*: A name for a region"), "{said}");
    client.end();
}

/// A signal that is missing is put in by one edit, after which the text is proved.
#[test]
fn a_missing_signal_is_put_in() {
    let mut client = Client::start();
    let text = RING.replacen("        left.RxAck();\n", "", 1);
    client.open(&text);
    let found = client.proved();
    let asked = json!({ "textDocument": { "uri": ADDRESS }, "range": found[0]["range"], "context": { "diagnostics": [] } });
    let fixes = client.ask("textDocument/codeAction", asked).unwrap();
    assert!(
        fixes[0]["title"].as_str().unwrap().contains("with `left.RxAck();` after line 9"),
        "{fixes}"
    );
    let edit = &fixes[0]["edit"]["changes"][ADDRESS][0];
    assert_eq!(edit["newText"], ";\n        left.RxAck();");
    client.end();
}

#[test]
fn other_files_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).expect("a folder");
        std::fs::write(&path, text).expect("a file");
        format!("file://{}", path.display())
    };
    let used = write("lib.coll", &RING.replace("algorithm Mine", "pub algorithm Mine"));
    let caller = write("a b/caller.coll", CALLER).replace(' ', "%20");
    write("target/hidden.coll", &RING.replace("Mine", "MineToo"));
    write("broken.coll", "algorithm Mined() -> AllReduce { copy(");
    let root = format!("file://{}", folder.path().display());
    let mut client = Client::with(
        json!({ "capabilities": {}, "workspaceFolders": [{ "uri": root, "name": "w" }] }),
    );
    let symbols = client.ask("workspace/symbol", json!({ "query": "mn" })).unwrap();
    let names: Vec<_> = symbols.as_array().unwrap().iter().map(|s| s["name"].clone()).collect();
    assert_eq!(names, ["Mine", "Mined"]);
    assert_eq!(symbols[0]["location"]["uri"], used);
    let symbols = client.ask("workspace/symbol", json!({ "query": "both" })).unwrap();
    assert_eq!(symbols[0]["location"]["uri"], caller);

    // An algorithm of a used source, and one of the library.
    let text = "use \"../lib.coll\";\nalgorithm Outer() -> AllReduce {\n    Mine() on (input, output);\n    RingAllReduce() on (input, output);\n}\n";
    let open = json!({ "uri": caller, "languageId": "coll", "version": 0, "text": text });
    client.tell("textDocument/didOpen", json!({ "textDocument": open }));
    let at = |line: u32| json!({ "textDocument": { "uri": caller }, "position": { "line": line, "character": 6 } });
    let place = client.ask("textDocument/definition", at(2)).unwrap();
    assert_eq!((&place["uri"], &place["range"]["start"]["line"]), (&json!(used), &json!(1)));
    let place = client.ask("textDocument/definition", at(3)).unwrap();
    let file = place["uri"].as_str().unwrap().strip_prefix("file://").unwrap().to_owned();
    let line = place["range"]["start"]["line"].as_u64().unwrap() as usize;
    let copy = std::fs::read_to_string(&file).expect("a copy of the library's source");
    assert!(copy.lines().nth(line).unwrap().starts_with("pub algorithm RingAllReduce("), "{file}");
    let hover = client.ask("textDocument/hover", at(2)).unwrap();
    assert!(
        hover["contents"]["value"].as_str().unwrap().contains("AllReduce on a ring."),
        "{hover}"
    );
    client.end();
}

/// The knowledge of a text is there for a page, too, which has no protocol.
#[test]
fn the_knowledge_needs_no_protocol() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/ide/Cargo.toml");
    let manifest = std::fs::read_to_string(manifest).expect("the crate of the knowledge");
    let of = manifest.split("[dependencies]").nth(1).expect("it depends on the compiler");
    assert!(of.contains("roundelay-core") && !of.contains("lsp"), "{of}");
}
