//! A fault that the executor refuses, or would run without a check, is an error at its exact place; a fault that it
//! ignores is a warning.

use roundelay_export::exchange::mscclpp::Text;
use serde_json::{Value as Json, json};

use super::{read, two_ranks};

/// `code line:column title` of the first error.
fn first(text: &Text) -> String {
    let all = text.errors.iter().chain(&text.warnings);
    all.map(|error| {
        let place = text.source.location(error.primary);
        format!("{} {}:{} {}", error.code, place.line, place.column, error.title)
    })
    .next()
    .unwrap_or_default()
}

#[test]
fn what_is_refused() {
    let mut differ = Vec::new();
    for (from, to, expected) in [
        ("\"nop\"", "\"nopp\"", "E0801 5:14 no op is called `nopp`"),
        (
            "\"name\": \"nop\"",
            "\"name\": \"nop\", \"deps\": []",
            "E0801 5:21 no key of an op is called `deps`",
        ),
        (
            "\"nop\"",
            "\"glres\"",
            "E0801 5:14 `glres` works on a switch, for which schedules have no operation",
        ),
        ("\"inplace\": true, ", "", "E0801 1:1 the plan without `inplace`"),
        (
            "\"inplace\": true",
            "\"inplace\": 1",
            "E0801 1:92 `inplace` is true or false, and this is a number",
        ),
        (
            "\"reuse_resources\"",
            "\"version\": 1, \"reuse_resources\"",
            "E0801 1:98 no key of the plan is called `version`",
        ),
        ("\"Simple\"", "\"LL128\"", "E0801 1:71 no `protocol` is called `LL128`"),
        (
            "{\"id\": 0, \"input",
            "{\"id\": 1, \"input",
            "E0801 2:18 gpu 1 stands where rank 0 looks for itself",
        ),
        (
            "\"input_chunks\": 2",
            "\"input_chunks\": 0",
            "E0801 2:37 `input_chunks` is 0, and the executor divides the size of a call by it",
        ),
        (
            "\"output_chunks\": 2",
            "\"output_chunks\": 0",
            "E0801 2:57 `output_chunks` is 0, and the executor divides the size of a call by it",
        ),
        ("\"collective\"", "\"colletive\"", "E0801 1:32 a plan in the form of MSCCL++ up to 0.7"),
        (
            "\"input_chunks\": 2",
            "\"input_chunks\": 2.5",
            "E0801 2:37 `input_chunks` is a whole number that fits 64 bits",
        ),
        (
            "{\"id\": 0, \"ops\"",
            "{\"id\": 3, \"ops\"",
            "E0801 3:27 threadblock 3 stands where block 0 is looked for",
        ),
        (
            "\"buffer_id\": 0",
            "\"buffer_id\": 2",
            "E0801 4:100 `buffer_id` is 2, and there are 2 buffers that this block refers to",
        ),
        ("\"index\": 1", "\"index\": -1", "E0801 4:57 `index` is -1, and the least is 0"),
        (
            "\"channel_ids\": [0]",
            "\"channel_ids\": [1]",
            "E0801 6:40 `channel_ids` is 1, and there are 1 such channels of this block",
        ),
        (
            "\"channel_ids\": [0]",
            "\"channel_ids\": [0, 0]",
            "E0801 6:5 a `signal` with one channel twice",
        ),
        (
            "\"connected_to\": [1]",
            "\"connected_to\": [0]",
            "E0801 16:60 rank 0 is no peer of itself",
        ),
        (
            "\"connected_to\": [1]",
            "\"connected_to\": [2]",
            "E0801 16:60 `connected_to` is 2, and the most is 1",
        ),
        (
            "[\"memory\"]}, {\"rank\"",
            "[\"port\"]}, {\"rank\"",
            "E0801 15:27 buffer 0 of a peer is not reached by memory",
        ),
        (
            "\"memory\"},\n    {\"name\": \"nop\"}",
            "\"port\"},\n    {\"name\": \"nop\"}",
            "E0801 4:100 `buffer_id` is 0, and there are 0 buffers that this block refers to",
        ),
        (
            "\"name\": \"res\"",
            "\"name\": \"rre\"",
            "E0801 9:73 no key of a chunk of a peer is called `type`",
        ),
        ("\"size\": 1", "\"size\": 2", "E0208 4:5 an op on 1 and on 2 chunks"),
        ("\"nop\"}", "\"nop\", \"name\": \"nop\"}", "E0801 5:21 an op has the key `name` twice"),
        ("\"nop\"", "nop", "E0801 5:14 no value of JSON begins so"),
        ("18446744073709551615}", "18446744073709551615", "E0801 37:1 the file ends in the middle"),
        (
            "18446744073709551615}",
            "18446744073709551616}",
            "E0801 36:136 `max_message_size` is 18446744073709551616, and the most is 18446744073709551615",
        ),
        (
            "18446744073709551615}",
            "18446744073709551615}}",
            "E0801 36:157 the plan ends here, and something follows",
        ),
    ] {
        let changed = two_ranks().replacen(from, to, 1);
        let text = read(&changed);
        let told = if text.program.is_some() { "taken".to_owned() } else { first(&text) };
        if told != expected {
            differ.push(format!("{from} -> {to}: {told}, not {expected}"));
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
    let bytes = roundelay_export::exchange::mscclpp::read("plan.json", b"{\"name\": \"\xff\"}");
    assert_eq!(first(&bytes), "E0801 1:11 the file is not UTF-8 text");
    let help = read(&two_ranks().replacen("\"nop\"", "\"nopp\"", 1));
    let help = roundelay_core::render::render(&help.errors[0], &help.source, false);
    assert!(help.contains("did you mean `nop`?"), "{help}");
}

fn plan() -> Json {
    serde_json::from_str(&two_ranks()).expect("it is JSON")
}

fn refused(plan: &Json, expected: &str) {
    let text = read(&plan.to_string());
    let told = text.errors.first().map_or("", |error| &error.title).to_owned();
    assert!(text.program.is_none() && told.contains(expected), "{expected}: {told}");
}

/// Limits at which the executor throws, and buffers that it fills without a check of the end.
#[test]
fn limits() {
    let mut long = plan();
    let block = &mut long["gpus"][0]["threadblocks"][0];
    let ops = block["ops"].as_array_mut().expect("a list");
    while ops.len() < 64 {
        ops.push(json!({"name": "nop"}));
    }
    assert!(read(&long.to_string()).program.is_some(), "64 ops are taken");
    let ops = long["gpus"][0]["threadblocks"][0]["ops"].as_array_mut().expect("a list");
    ops.push(json!({"name": "nop"}));
    refused(&long, "block 0 of rank 0 has 65 ops, and the executor takes 64");

    let channels = |count: usize, of_op: usize| {
        let mut wide = plan();
        wide["gpus"][0]["channels"][0]["connected_to"] = json!(vec![1; 20]);
        let block = &mut wide["gpus"][0]["threadblocks"][0];
        block["channels"][0]["channel_ids"] = json!((0..count).collect::<Vec<_>>());
        block["ops"][2]["channel_ids"] = json!((0..of_op).collect::<Vec<_>>());
        wide
    };
    assert!(read(&channels(16, 8).to_string()).program.is_some());
    refused(&channels(17, 8), "17 memory channels of a block, and the executor has room for 16");
    refused(&channels(16, 9), "9 channels of an op, and the executor has room for 8");

    let mut barrier = plan();
    let op = json!({"name": "barrier", "barrier_id": 16, "num_threadblocks": 1});
    barrier["gpus"][0]["threadblocks"][0]["ops"][1] = op;
    refused(&barrier, "`barrier_id` is 16, and the most is 15");
}

#[test]
fn what_is_passed_over() {
    let told = |change: &dyn Fn(&mut Json), expected: &str| {
        let mut plan = plan();
        change(&mut plan);
        let text = read(&plan.to_string());
        let mut all = text.warnings.clone();
        if let Some(program) = &text.program {
            all.extend(program.verdict(&text.source).warnings);
        }
        assert!(
            all.iter().any(|one| one.title.contains(expected)),
            "{expected}: {all:#?} {:#?}",
            text.errors
        );
    };
    assert_eq!(read(&two_ranks()).warnings, []);
    let op = |plan: &mut Json, at: usize, with: Json| {
        plan["gpus"][0]["threadblocks"][0]["ops"][at] = with;
    };
    told(
        &|plan| plan["gpus"][0]["threadblocks"][0]["ops"][5]["reduce_op"] = json!("min"),
        "`reduce_op` is `min`",
    );
    let flush = json!({"name": "flush", "channel_ids": [0], "channel_type": "memory"});
    told(&|plan| op(plan, 1, flush.clone()), "a `flush`, which does nothing");
    told(
        &|plan| plan["gpus"][0]["threadblocks"][0]["ops"][0]["name"] = json!("pws"),
        "a `pws` over memory, which sends no signal",
    );
    told(
        &|plan| plan["collective"] = json!("sendrecv"),
        "what `sendrecv` must have at its end is not compared",
    );
    told(&|plan| plan["buffer_alignment"] = json!(4), "chunks that are aligned to 4 bytes");
    told(&|plan| plan["reuse_resources"] = json!(true), "scratch that plans share");
    let unheard = |plan: &mut Json| {
        plan["gpus"][0]["channels"][0]["connected_to"] = json!([1, 1]);
        let block = &mut plan["gpus"][0]["threadblocks"][0];
        block["channels"][0]["channel_ids"] = json!([0, 1]);
        block["ops"][7]["channel_ids"] = json!([0, 1]);
    };
    told(&unheard, "a signal that nobody waits for");
}
