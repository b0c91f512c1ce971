//! Right plans of several kinds: plans that are written here, and plans that are made from algorithms of the library.

use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::syntax::Source;
use roundelay_core::verify::Proved;
use roundelay_export::exchange::mscclpp;
use serde_json::{Value as Json, json};

use super::two_ranks;

/// The plan of an algorithm of the library, if it has one.
pub(super) fn exported(file: &str, name: &str, nranks: u32, in_place: bool) -> String {
    let (file, text) = roundelay_library::SOURCES
        .iter()
        .find(|(known, _)| known.ends_with(file))
        .unwrap_or_else(|| panic!("{file}"));
    let source = Source::from_text(*file, text);
    let load = |path: &str| Err(format!("{path} is not there"));
    let dependencies = Dependencies { prelude: roundelay_library::SOURCES, load: &load };
    let checked = roundelay_core::compile_with(&source, Frontend::File, &dependencies);
    let checked = checked.unwrap_or_else(|errors| panic!("{file}: {errors:#?}"));
    let all = checked.algorithms.into_iter().map(|one| Configured::new(one, &source));
    let algorithm = all.into_iter().find(|one| one.name() == name).expect("it is in the file");
    let schedule = algorithm.schedule(nranks).expect("it is laid out");
    let proved = Proved::new(schedule).expect("it is right");
    mscclpp::export(&proved, in_place).unwrap_or_else(|all| panic!("{name}: {all:#?}"))
}

pub(super) fn chunk(letter: &str, index: usize) -> Json {
    json!({"type": letter, "index": index, "size": 1})
}

pub(super) fn far(id: usize, index: usize) -> Json {
    json!({"buffer_id": id, "index": index, "size": 1})
}

pub(super) fn data(name: &str, srcs: &[Json], dsts: &[Json]) -> Json {
    match name {
        "copy" | "cpkt" | "upkt" => json!({"name": name, "src_buff": srcs, "dst_buff": dsts}),
        _ => json!({"name": name, "src_buff": srcs, "dst_buff": dsts, "channel_type": "memory"}),
    }
}

pub(super) fn nop() -> Json {
    json!({"name": "nop"})
}

pub(super) fn signal(name: &str, id: usize) -> Json {
    json!({"name": name, "channel_ids": [id], "channel_type": "memory"})
}

pub(super) fn semaphore(name: &str, id: usize) -> Json {
    json!({"name": name, "semaphore_ids": [id]})
}

/// A signal, a wait or a flush over a port.
pub(super) fn port(name: &str, ids: &[usize]) -> Json {
    json!({"name": name, "channel_ids": ids, "channel_type": "port"})
}

/// A put over ports.
pub(super) fn sent(name: &str, srcs: &[Json], dsts: &[Json], ids: &[usize]) -> Json {
    json!({"name": name, "src_buff": srcs, "dst_buff": dsts, "channel_ids": ids, "channel_type": "port"})
}

/// Returns a plan of two ranks with one or two blocks each, which reduce to all; each rank has two channels to the other
/// over memory and two over ports, and a peer's scratch, input and output as buffers 0, 1 and 2.
pub(super) fn plan(head: &Json, blocks: impl Fn(usize) -> Vec<Vec<Json>>) -> Json {
    let gpu = |rank: usize| {
        let peer = 1 - rank;
        let refs = ["memory", "port"]
            .map(|way| json!({"access_channel_type": way, "remote_buffer_ids": [0, 1, 2]}));
        let own = ["memory", "port"].map(|way| json!({"channel_type": way, "channel_ids": [0, 1]}));
        let block = |(id, ops): (usize, Vec<Json>)| json!({"id": id, "ops": ops, "channels": own, "remote_buffer_refs": refs});
        let channels = ["memory", "port"]
            .map(|way| json!({"channel_type": way, "connected_to": [peer, peer]}));
        let remote = |letter: &str| json!({"rank": peer, "type": letter, "access_channel_types": ["memory", "port"]});
        json!({
            "id": rank,
            "input_chunks": 2,
            "output_chunks": 2,
            "scratch_chunks": 4,
            "threadblocks": blocks(rank).into_iter().enumerate().map(block).collect::<Vec<_>>(),
            "channels": channels,
            "remote_buffers": [remote("s"), remote("i"), remote("o")],
            "semaphores": [{"init_value": 0}, {"init_value": 1}],
        })
    };
    let mut plan = json!({
        "name": "made", "collective": "allreduce", "protocol": "Simple", "inplace": true,
        "gpus": [gpu(0), gpu(1)],
    });
    for (key, value) in head.as_object().expect("an object") {
        plan[key] = value.clone();
    }
    plan
}

/// Each rank reduces one chunk: it receives and sends packets.
pub(super) fn packets(doubled: bool) -> Json {
    let head = json!({"protocol": "LL", "use_double_scratch_buffer": doubled});
    plan(&head, |rank| {
        let peer = 1 - rank;
        vec![vec![
            data("ppkt", &[chunk("i", peer)], &[far(0, 0)]),
            data("respkt", &[chunk("i", rank), chunk("s", 0)], &[chunk("i", rank), far(0, 1)]),
            data("upkt", &[chunk("s", 1)], &[chunk("i", peer)]),
        ]]
    })
}

/// Each rank sends its whole input, and reduces the arriving data.
pub(super) fn one_shot(doubled: bool) -> Json {
    let head = json!({"protocol": "LL", "use_double_scratch_buffer": doubled});
    plan(&head, |_| {
        let send = |at| data("ppkt", &[chunk("i", at)], &[far(0, at)]);
        let reduce = |at| data("repkt", &[chunk("i", at), chunk("s", at)], &[chunk("i", at)]);
        vec![vec![send(0), send(1), reduce(0), reduce(1)]]
    })
}

/// Two blocks copy a chunk each, and each reduces the chunk that the other has copied.
pub(super) fn barrier() -> Json {
    plan(&json!({"inplace": false}), |_| {
        let block = |own: usize| {
            let other = 1 - own;
            vec![
                data("copy", &[chunk("i", own)], &[chunk("s", own)]),
                json!({"name": "barrier", "barrier_id": 3, "num_threadblocks": 2}),
                signal("signal", own),
                signal("wait", own),
                nop(),
                data("rre", &[chunk("i", other), far(0, other)], &[chunk("o", other)]),
                nop(),
                signal("signal", own),
                signal("wait", own),
            ]
        };
        vec![block(0), block(1)]
    })
}

/// One block sends, and another reduces, stretch by stretch: a semaphore that begins at 1 lets the first go on.
pub(super) fn pipeline() -> Json {
    plan(&json!({}), |rank| {
        let peer = 1 - rank;
        let turn = |ops: Vec<Json>| json!({"name": "pipeline", "iter_context": {"unit_size": 1024, "num_chunks": 1}, "ops": ops});
        let send = turn(vec![
            semaphore("sem_acquire", 1),
            nop(),
            data("put", &[chunk("i", peer)], &[far(0, 0)]),
            nop(),
            signal("signal", 0),
            signal("wait", 0),
            nop(),
            semaphore("sem_release", 0),
        ]);
        let reduce = turn(vec![
            semaphore("sem_acquire", 0),
            nop(),
            data("res", &[chunk("i", rank), chunk("s", 0)], &[chunk("i", rank), far(1, rank)]),
            nop(),
            signal("rlxsignal", 1),
            signal("rlxwait", 1),
            nop(),
            semaphore("sem_release", 1),
        ]);
        vec![vec![send], vec![reduce]]
    })
}

/// Two blocks share each op, half a chunk each.
pub(super) fn shared() -> Json {
    plan(&json!({"inplace": false}), |_| {
        let block = |id: usize| {
            let mut get = data("get", &[far(1, 1)], &[chunk("s", 1)]);
            let mut rre = data("rre", &[chunk("i", 0), far(1, 0)], &[chunk("o", 0)]);
            let mut re = data("re", &[chunk("i", 1), chunk("s", 1)], &[chunk("o", 1)]);
            for op in [&mut get, &mut rre, &mut re] {
                op["tbg_info"] = json!({"tb_id": id, "tbg_size": 2});
            }
            let talk = || [signal("signal", id), signal("wait", id), nop()];
            [&talk()[..], &[get, rre, nop(), re, nop()], &talk()].concat()
        };
        vec![block(0), block(1)]
    })
}

/// Each rank sends a chunk over a port, adds up the one that comes, and sends the sum; the second put is told by a signal
/// of its own.
pub(super) fn port_sums() -> Json {
    plan(&json!({}), |rank| {
        let peer = 1 - rank;
        vec![vec![
            port("signal", &[0]),
            port("wait", &[0]),
            nop(),
            sent("pws", &[chunk("i", peer)], &[far(0, 0)], &[0]),
            port("wait", &[0]),
            nop(),
            data("re", &[chunk("i", rank), chunk("s", 0)], &[chunk("i", rank)]),
            nop(),
            sent("put", &[chunk("i", rank)], &[far(1, rank)], &[0]),
            port("signal", &[0]),
            port("wait", &[0]),
            nop(),
        ]]
    })
}

/// Each rank sends both chunks in one op, over a channel each, and says that it has read those that came.
pub(super) fn port_pairs() -> Json {
    plan(&json!({}), |_| {
        let both = |letter: &str| [chunk(letter, 0), chunk(letter, 1)];
        let [own, come] = [both("i"), both("s")];
        let reduce = |at: usize| data("re", &[own[at].clone(), come[at].clone()], &own[at..=at]);
        vec![vec![
            signal("signal", 0),
            signal("wait", 0),
            nop(),
            sent("pws", &own, &[far(0, 0), far(0, 1)], &[0, 1]),
            port("wait", &[0, 1]),
            nop(),
            data("copy", &come[..1], &[chunk("s", 2)]),
            data("copy", &come[1..], &[chunk("s", 3)]),
            nop(),
            port("signal", &[0, 1]),
            port("wait", &[0, 1]),
            nop(),
            reduce(0),
            reduce(1),
        ]]
    })
}

/// As before, with both puts merged on one channel: two threads enter them.
pub(super) fn port_merged() -> Json {
    let mut plan = port_pairs();
    for gpu in 0..2 {
        let ops = plan["gpus"][gpu]["threadblocks"][0]["ops"].as_array_mut().expect("a list");
        ops[3]["channel_ids"] = json!([0, 0]);
        ops[4]["channel_ids"] = json!([0]);
        ops.insert(5, port("wait", &[0]));
    }
    plan
}

/// A put that is flushed, whose source is written again before the peer answers.
pub(super) fn port_flush() -> Json {
    plan(&json!({"inplace": false}), |rank| {
        let peer = 1 - rank;
        vec![vec![
            data("copy", &[chunk("i", 0)], &[chunk("s", 0)]),
            signal("signal", 0),
            signal("wait", 0),
            nop(),
            sent("pwsf", &[chunk("s", 0)], &[far(0, 1)], &[0]),
            nop(),
            data("copy", &[chunk("i", 1)], &[chunk("s", 0)]),
            nop(),
            sent("pwsf", &[chunk("s", 0)], &[far(0, 2)], &[1]),
            port("wait", &[0, 1]),
            nop(),
            data("re", &[chunk("i", rank), chunk("s", 1 + rank)], &[chunk("o", rank)]),
            data("re", &[chunk("i", peer), chunk("s", 1 + peer)], &[chunk("o", peer)]),
            nop(),
            signal("signal", 1),
            signal("wait", 1),
        ]]
    })
}

/// Packets go over ports as they lie in scratch: one block waits for them, and another has made them.
pub(super) fn port_packets() -> Json {
    let head = json!({"protocol": "LL", "use_double_scratch_buffer": true});
    plan(&head, |_| {
        let reduce =
            |at, from| data("repkt", &[chunk("i", at), chunk("s", from)], &[chunk("i", at)]);
        let made = vec![
            data("cpkt", &[chunk("i", 0)], &[chunk("s", 0)]),
            data("cpkt", &[chunk("i", 1)], &[chunk("s", 1)]),
            nop(),
            sent("ppkt", &[chunk("s", 0)], &[far(0, 2)], &[0]),
            reduce(0, 2),
        ];
        let waits = vec![sent("rppkt", &[chunk("s", 1)], &[far(0, 3)], &[1]), reduce(1, 3)];
        vec![made, waits]
    })
}

/// Returns all plans, by name.
pub(super) fn all() -> Vec<(String, Json)> {
    let parse = |text: &str| serde_json::from_str(text).expect("it is JSON");
    let mut all: Vec<(String, Json)> = vec![
        ("two ranks".to_owned(), parse(&two_ranks())),
        ("packets".to_owned(), packets(true)),
        ("one shot".to_owned(), one_shot(true)),
        ("barrier".to_owned(), barrier()),
        ("pipeline".to_owned(), pipeline()),
        ("shared".to_owned(), shared()),
        ("port sums".to_owned(), port_sums()),
        ("port pairs".to_owned(), port_pairs()),
        ("port merged".to_owned(), port_merged()),
        ("port flush".to_owned(), port_flush()),
        ("port packets".to_owned(), port_packets()),
    ];
    for (file, name, nranks, in_place) in [
        ("ring.coll", "RingAllReduce", 2, true),
        ("ring.coll", "RingReduceScatter", 3, false),
        ("ring.coll", "RingAllGather", 3, true),
        ("twisted_ring.coll", "TwistedRingAllReduce", 2, false),
        ("mesh.coll", "MeshAllGather", 2, false),
        ("mesh.coll", "MeshAllToAll", 2, false),
    ] {
        let text = exported(file, name, nranks, in_place);
        all.push((format!("{name} {nranks} {in_place}"), parse(&text)));
    }
    all
}
