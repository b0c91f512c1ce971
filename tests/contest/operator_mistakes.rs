//! Mistakes in an operator's text, one at a time: each has an error of its own, or a wrong result.

use roundelay_export::contest::operator::Profile;

use crate::contest::executable::{Call, Door, Executable};
use crate::contest::export::{place, with_driver};
use crate::contest::operators::alone;

/// A mistake in an operator's text: a statement, what stands in its place, and what the stub says; `differs` where the
/// result alone is wrong.
struct Mistake(&'static str, &'static str, &'static str);

/// Mistakes of statements that each run comes to. `Mutant()` of a statement says which mistake is made.
const MISTAKES: &[Mistake] = &[
    Mistake(
        "return run_.flagsAt + flag * run_.rounds + passed++ % run_.rounds;",
        "return run_.flagsAt + (flag ^ (way & 1)) * run_.rounds + passed++ % run_.rounds;",
        "every stream waits for another",
    ),
    Mistake(
        "return run_.flagsAt + flag * run_.rounds + passed++ % run_.rounds;",
        "passed++; return run_.flagsAt + kind * run_.rounds;",
        "lost",
    ),
    Mistake(
        "return run_.flagsAt + flag * run_.rounds + passed++ % run_.rounds;",
        "passed++; return CHANNEL_NOTIFIES;",
        "notify 4 of 4",
    ),
    Mistake(
        "return Done(HcommChannelNotifyRecordOnThread(Thread(index_), Channel(peer), notify));",
        "return HCCL_SUCCESS;",
        "every stream waits for another",
    ),
    Mistake(
        "return Done(HcommChannelNotifyRecordOnThread(Thread(index_), Channel(peer), notify));",
        "return Done(HcommChannelNotifyRecordOnThread(Thread(index_), Channel(run_.rank), notify));",
        "a channel that it never acquired",
    ),
    Mistake(
        "return Done(HcommChannelNotifyWaitOnThread(Thread(index_), Channel(peer), Notify(peer, kind, 0), FOREVER));",
        "return HCCL_SUCCESS;",
        "lost",
    ),
    Mistake(
        "return Done(HcommChannelNotifyWaitOnThread(Thread(index_), Channel(peer), Notify(peer, kind, 0), FOREVER));",
        "return Done(HcommThreadNotifyWaitOnThread(Thread(index_), 9, FOREVER));",
        "notify 9 of 1",
    ),
    Mistake(
        "const HcclResult ended = Done(HcommBatchModeEnd(\"\"));",
        "const HcclResult ended = HCCL_SUCCESS;",
        "a batch is open after the call",
    ),
    Mistake(
        "const HcclResult ended = Done(HcommBatchModeEnd(\"\"));",
        "const HcclResult ended = Done(HcommBatchModeEnd(\"other\"));",
        "the end of a batch that was not begun by that tag",
    ),
    Mistake(
        "HcclResult result = Done(HcommBatchModeStart(\"\"));",
        "HcclResult result = HCCL_SUCCESS;",
        "a task outside of a batch",
    ),
    Mistake("offset += run_.layout.output;", "offset += run_.layout.output / 2;", "differs"),
    Mistake(
        "const u64 unitBytes = MostBytes(resources.bytes);",
        "const u64 unitBytes = resources.bytes;",
        "memory that is not its own",
    ),
    Mistake(
        "run.count = std::min(most, call.count - done);",
        "run.count = call.count - done < most ? call.count - done - 1 : most; \
         if (run.count == 0) { break; }",
        "differs",
    ),
    Mistake(
        "return Done(HcommThreadNotifyRecordOnThread(Thread(index_), Thread(slave), 0));",
        "return HCCL_SUCCESS;",
        "every stream waits for another",
    ),
    Mistake(
        "return Done(HcommThreadNotifyRecordOnThread(Thread(index_), Thread(slave), 0));",
        "return Done(HcommThreadNotifyRecordOnThread(Thread(index_), 1000, 0));",
        "a thread that was never acquired",
    ),
    Mistake(
        "return Done(HcommThreadNotifyRecordOnThread(Thread(index_), Thread(slave), 0));",
        "return Done(HcommThreadNotifyRecordOnThread(Thread(index_), 1, 0));",
        "a thread of rank",
    ),
    Mistake(
        "wanted[i].notifyNum = CHANNEL_NOTIFIES;",
        "wanted[i].notifyNum = 65;",
        "65 notifies of a channel, and 64 is the most",
    ),
    Mistake(
        "wanted[i].notifyNum = CHANNEL_NOTIFIES;",
        "wanted[i].notifyNum = CHANNEL_NOTIFIES + all.rank;",
        "have different numbers of notifies",
    ),
    Mistake(
        "wanted[i].remoteRank = peers[i];",
        "wanted[i].remoteRank = all.rank;",
        "a channel to rank",
    ),
    Mistake(
        "CHK_RET(HcclChannelDescInit(wanted.data(), many));",
        "wanted.assign(many, HcclChannelDesc());",
        "a descriptor without HcclChannelDescInit",
    ),
    Mistake(
        "CHK_RET(HcclThreadAcquire(comm, ENGINE, 1, MAIN_NOTIFIES, all.threads));",
        "ThreadHandle many[41]; CHK_RET(HcclThreadAcquire(comm, ENGINE, 41, 1, many));",
        "41 threads of 40",
    ),
    Mistake(
        "CHK_RET(HcclThreadAcquire(comm, ENGINE, 1, MAIN_NOTIFIES, all.threads));",
        "CHK_RET(HcclThreadAcquire(comm, ENGINE, 1, 64, all.threads));",
        "65 notifies of 64",
    ),
    Mistake(
        "CHK_RET(HcclThreadAcquire(comm, ENGINE, 1, MAIN_NOTIFIES, all.threads));",
        "CHK_RET(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, 1, MAIN_NOTIFIES, all.threads));",
        "threads of an engine that the product has not",
    ),
    Mistake(
        "all.buffers[peers[i]] = u64(reinterpret_cast<uintptr_t>(buffer));",
        "all.buffers[peers[i]] = all.buffers[all.rank];",
        "memory that is not in the HCCL buffer of rank",
    ),
    Mistake(
        "CHK_RET(main.CopyLocal({own + i * bytes, bytes}, {call.input + i * stride + at, bytes}));",
        "CHK_RET(main.CopyLocal({own + i * bytes, bytes}, {all_of(resources, run.rank), bytes}));",
        "memory that is not its own",
    ),
    Mistake(
        "if (aclrtRecordNotify(pair.begun, stream) != 0) {",
        "if (aclrtRecordNotify(nullptr, stream) != 0) {",
        "a notify of the runtime that was never made",
    ),
    Mistake(
        "run.op = call.op;",
        "run.op = HCOMM_REDUCE_PROD;",
        "a reduction of a type or by an op that the engine has not",
    ),
    Mistake(
        "CHK_RET(Submit(call));",
        "if (HcommAcquireComm(call.communicator) != 0) { return HCCL_E_UNAVAIL; }",
        "a lock that cannot be taken",
    ),
];

/// Returns the text with all mistakes in it, of which a variable of the environment chooses one.
fn with_mistakes(text: &str) -> String {
    let head = "#include <cstdlib>
inline int Mutant() {
    static const char* const named = std::getenv(\"MUTANT\");
    return named == nullptr ? 0 : std::atoi(named);
}
#include <mutex>
";
    let mut text = text.replacen("#include <mutex>\n", head, 1);
    let helper = "inline u64 all_of(const Resources& all, u32 rank) { return all.buffers[(rank + 1) % RANKS]; }\n";
    text = text.replacen(
        "// Where the parts of an HCCL buffer lie",
        &format!("{helper}// Where the parts of an HCCL buffer lie"),
        1,
    );
    let numbered: Vec<_> = (1..).zip(MISTAKES).collect();
    for same in numbered.chunk_by(|one, other| one.1.0 == other.1.0) {
        let right = same[0].1.0;
        // Declarations and heads of blocks keep their form: the mistake becomes a condition inside.
        let inside = |text: &'static str| {
            let value = text.split_once(" = ").map_or(text, |(_, value)| value);
            let value = value.trim_start_matches("if (").trim_end_matches(") {");
            value.trim_end_matches(';').to_owned()
        };
        let declares = right.starts_with("const ") || right.starts_with("HcclResult ");
        let chosen = if declares || right.starts_with("if (") {
            let wrong = same.iter().map(|(nth, Mistake(_, wrong, _))| {
                format!("Mutant() == {nth} ? ({}) : ", inside(wrong))
            });
            let value = format!("{}({})", wrong.collect::<String>(), inside(right));
            match right.split_once(" = ") {
                Some((declared, _)) => format!("{declared} = {value};"),
                None => format!("if ({value}) {{"),
            }
        } else {
            let wrong = same.iter().map(|(nth, Mistake(_, wrong, _))| {
                format!("if (Mutant() == {nth}) {{ {wrong} }} else ")
            });
            format!("{}{{ {right} }}", wrong.collect::<String>())
        };
        assert_eq!(text.matches(right).count(), 1, "`{right}`");
        text = text.replacen(right, &chosen, 1);
    }
    text
}

/// Each mistake shows, in its own way.
#[test]
fn each_mistake_has_its_own_error() {
    // At two ranks, both ways share a channel.
    let ring = || place("TwistedRingAllReduce", "full_mesh(2)", 2, &[]).expect("it is right");
    let text = with_mistakes(&alone(&ring(), Profile::A2).expect("it is exported").source);
    let text = with_driver(&text, "TwistedRingAllReduce", Profile::A2, true);
    let program = Executable::compile_for(Door::Hcomm(Profile::A2), &text, "Ring")
        .unwrap_or_else(|log| panic!("{log}"));
    // Two calls, the second in two passes.
    let counts = &[100, 700];
    let call = |seed| Call { nranks: 2, counts, ccl: 2048, seed: Some(seed), ..Call::default() };
    let inputs: Vec<Vec<u8>> = [100_u8, 200]
        .iter()
        .zip(counts)
        .flat_map(|(from, count)| {
            let value = move |rank: u8| {
                let float = f32::from(from + rank) + 0.5;
                (0..*count).flat_map(|i| (float + i as f32).to_le_bytes()).collect::<Vec<u8>>()
            };
            (0..2).map(value)
        })
        .collect();
    let right = program.run(&call(0), &inputs).expect("it is right").0;
    for (nth, Mistake(_, wrong, said)) in (1..).zip(MISTAKES) {
        let run = |seed| program.run(&Call { mutant: nth, ..call(seed) }, &inputs);
        let found = (0..8).map(run).any(|ran| match ran {
            Ok((outputs, _)) => *said == "differs" && outputs != right,
            Err(why) => why.contains(said),
        });
        assert!(found, "{nth}, `{wrong}`: {:?}", run(0).map(|_| "it ran"));
    }
}
