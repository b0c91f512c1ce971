use roundelay_core::schedule::text;

use super::*;

/// A GPU of round numbers, without a cache.
fn gpu() -> Gpu {
    Gpu {
        name: "A GPU".to_owned(),
        multiprocessors: 10,
        bandwidth: 1e12,
        memory: 1 << 40,
        cache: 0,
        cache_bandwidth: 4e12,
        memory_latency: 1e-6,
        instruction: 0.0,
        step: 0.1e-6,
        signal: 2e-6,
        line: 0.5e-6,
        line128: 1e-6,
        launch: 5e-6,
        graph_launch: 3e-6,
    }
}

const SHAPE: LaunchShape = LaunchShape { parts: 10, in_flight: 100_000, graph: false };

/// Rank 1 copies the data that rank 0 has copied.
const CHAIN: &str = "\
schedule Chain AllReduce nranks 2 root 0
rank 0 stream 0
  copy 0.input[0..1] -> 0.output[0..1] @0
  post data 0->1 @0
rank 1 stream 0
  wait data 0->1 @0
  copy 0.output[0..1] -> 1.output[0..1] @0
";

/// A chain of two ranks through a slot.
const SLOT: &str = "\
schedule Slot AllReduce nranks 2 root 0
scratch slot slots 1 width 1
rank 0 stream 0
  copy 0.input[0..1] -> 1.slot#0@0[0..1] @0
  post tail 0->1 @0
rank 1 stream 0
  wait tail 0->1 @0
  copy 1.slot#0@0[0..1] -> 1.output[0..1] @0
";

fn estimate(text: &str, protocol: Protocol, gpu: &Gpu, shape: LaunchShape) -> Estimate {
    let schedule = text::parse(text).expect("a schedule");
    let walk = WalkCost { start: 1000.0, r#move: 200.0, operand: 0.0, signal: 100.0 };
    let lines = (protocol, |_| protocol.has_lines());
    Estimate::of_schedule(&schedule, (1_000_000, 4), lines, (gpu, &walk), shape)
}

fn assert_us(found: f64, expected: f64) {
    assert!((found * 1e6 - expected).abs() < 1e-6, "{} us, and not {expected}", found * 1e6);
}

#[test]
fn a_chain_takes_two_moves_a_signal_and_a_launch() {
    let found = estimate(CHAIN, Protocol::Direct, &gpu(), SHAPE);
    // 4 MB read and 4 MB written at 1 TB/s: 8 us each; the loads alone would allow twice that rate.
    assert_us(found.moving, 16.0);
    // Two moves of 1.1 us, a post and a wait of 0.1 us.
    assert_us(found.latency, 2.4);
    assert_us(found.signals, 2.0);
    assert_us(found.time, 5.0 + 20.4);
    assert_eq!((found.waits, found.traffic, found.touched), (1, 16_000_000, 16_000_000));
    assert_eq!(found.in_flight, 2_000_000);
}

#[test]
fn few_loads_under_way_are_the_limit() {
    // 100 KB in each microsecond: 40 us for 4 MB.
    let found = estimate(CHAIN, Protocol::Direct, &gpu(), LaunchShape { parts: 1, ..SHAPE });
    assert_us(found.moving, 80.0);
}

#[test]
fn what_the_cache_holds_moves_at_its_rate() {
    let found = estimate(CHAIN, Protocol::Direct, &Gpu { cache: 16_000_000, ..gpu() }, SHAPE);
    // The cache's rate would be 2 us a move, and the loads take 4 us.
    assert_us(found.moving, 8.0);
    let found = estimate(CHAIN, Protocol::Direct, &Gpu { cache: 15_999_999, ..gpu() }, SHAPE);
    assert_us(found.moving, 16.0);
}

#[test]
fn a_graph_launches_sooner() {
    let found = estimate(CHAIN, Protocol::Direct, &gpu(), LaunchShape { graph: true, ..SHAPE });
    assert_us(found.time, 3.0 + 20.4);
}

#[test]
fn lines_save_a_signal_and_have_more_bytes() {
    let [plain, lined, wide] = [Protocol::Simple, Protocol::Ll, Protocol::Ll128]
        .map(|protocol| estimate(SLOT, protocol, &gpu(), SHAPE));
    assert_us(plain.signals, 2.0);
    assert_us(lined.signals, 0.5);
    assert_us(wide.signals, 1.0);
    assert_us(plain.latency, 2.4);
    assert_us(lined.latency, 2.2);
    assert_us(wide.latency, 2.2);
    // 4 MB and 8 MB of lines, once written and once read; and 8334 times 512 bytes for 480 of data.
    assert_us(plain.moving, 16.0);
    assert_us(lined.moving, 24.0);
    assert_us(wide.moving, 8.0 + 8334.0 * 1024e-6);
    let traffic = [plain, lined, wide].map(|estimate| estimate.traffic);
    assert_eq!(traffic, [16_000_000, 24_000_000, 8_000_000 + 8334 * 1024]);
}

#[test]
fn moves_at_one_time_share_memory() {
    let text = "\
schedule Two AllReduce nranks 2 root 0
rank 0 stream 0
  copy 0.input[0..1/4] -> 0.output[0..1/4] @0
rank 1 stream 0
  copy 1.input[0..1] -> 1.output[0..1] @0
";
    // 2 MB beside 8 MB: 4 us at half of 1 TB/s each, then 6 MB alone.
    let found = estimate(text, Protocol::Direct, &gpu(), SHAPE);
    assert_us(found.moving, 4.0 + 6.0);
    // Each stream's loads bring 0.2 TB/s of loads, so 0.4 TB/s of traffic: neither stream slows the other.
    let few = LaunchShape { parts: 2, ..SHAPE };
    assert_us(estimate(text, Protocol::Direct, &gpu(), few).moving, 20.0);
}

#[test]
fn what_one_cannot_use_the_others_have() {
    let text = "\
schedule Two AllReduce nranks 2 root 0
rank 0 stream 0
  fold 0.output[0..1], 1.input[0..1] -> 0.output[0..1] @0
rank 1 stream 0
  copy 1.input[0..1] -> 1.output[0..1] @0
";
    // 0.3 TB/s of loads: 0.45 TB/s for the traffic of two loads and a store, 0.6 TB/s for a copy, to which memory
    // leaves 0.55.
    let found = estimate(text, Protocol::Direct, &gpu(), LaunchShape { parts: 3, ..SHAPE });
    let copied = 8e6 / 0.55e12;
    assert!(copied < 12e6 / 0.45e12, "the reduce is the slower one");
    assert_us(found.moving, 12e6 / 0.45e12 * 1e6);
}

#[test]
fn posts_meet_waits_in_their_order() {
    let text = "\
schedule Two AllReduce nranks 2 root 0
rank 0 stream 0
  post data 0->1 @0
  copy 0.input[0..1] -> 0.output[0..1] @0
  post data 0->1 @0
rank 1 stream 0
  wait data 0->1 @0
  wait data 0->1 @0
";
    let found = estimate(text, Protocol::Direct, &gpu(), SHAPE);
    assert_us(found.moving, 8.0);
    // A post, a move, a post; the second of two consecutive waits is no step.
    assert_us(found.latency, 0.1 + 1.1 + 0.1);
    assert_eq!(found.waits, 1, "the first is over by then");
}

#[test]
fn gpus_have_names() {
    for name in Gpu::NAMES {
        let gpu = Gpu::find(name).expect("it is one of them");
        assert_eq!(gpu.name, name);
        assert!(gpu.assumptions()[0].starts_with(name));
        assert!(gpu.cache_bandwidth > gpu.bandwidth);
    }
    assert_eq!(Gpu::find("h200"), None);
}

#[test]
fn moves_wait_for_the_walk_to_them() {
    let text = "\
schedule Two AllReduce nranks 1 root 0
rank 0 stream 0
  copy 0.input[0..1/2] -> 0.output[0..1/2] @0
  copy 0.input[1/2..1] -> 0.output[1/2..1] @0
";
    let ns = |instruction: f64| Gpu { instruction: instruction * 1e-9, ..gpu() };
    // 1000 instructions before the launch's first op, 200 for each move: 4 MB at 1 TB/s and 1.1 us each.
    assert_us(estimate(text, Protocol::Direct, &ns(1.0), SHAPE).time, 5.0 + 1.0 + 0.2 + 2.0 * 5.1);
    // The walk to the second one takes longer than the first one.
    assert_us(
        estimate(text, Protocol::Direct, &ns(100.0), SHAPE).time,
        5.0 + 100.0 + 20.0 + 20.0 + 5.1,
    );
}

#[test]
fn signals_are_shown_when_the_next_op_is_found() {
    let text = "\
schedule Two AllReduce nranks 2 root 0
rank 0 stream 0
  post data 0->1 @0
rank 1 stream 0
  wait data 0->1 @0
  copy 1.input[0..1] -> 1.output[0..1] @0
";
    let slow = Gpu { instruction: 100e-9, ..gpu() };
    let found = estimate(text, Protocol::Direct, &slow, SHAPE);
    // The post arrives at 112.1 us. The wait is shown after 100 us to begin, 10 us for it, and 20 us for the move behind it.
    assert_us(found.time, 5.0 + 130.0 + 0.1 + 9.1);
}

#[test]
fn the_walk_is_a_few_entries_ahead() {
    let mut text = "schedule Many AllReduce nranks 1 root 0\nrank 0 stream 0\n".to_owned();
    text += "  copy 0.input[0..1] -> 0.output[0..1] @0\n";
    text += &"  copy 0.input[0..1/1000000] -> 0.output[0..1/1000000] @0\n".repeat(30);
    // A walk of 2 us for each move, and a first move of 81.1 us, which begins at 12 us.
    let slow = Gpu { instruction: 10e-9, bandwidth: 1e11, ..gpu() };
    let time = estimate(&text, Protocol::Direct, &slow, SHAPE).time * 1e6;
    // Eight moves are found before it ends at 93.1 us, and all others behind it.
    let last = 93.1 + 22.0 * 2.0 + 1.1;
    assert!((time - 5.0 - last).abs() < 0.01, "{time}");
}
