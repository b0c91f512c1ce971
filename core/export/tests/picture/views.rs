//! Pictures of a part of a run, and of runs with more messages than arrows could show.

use std::sync::Arc;

use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;
use roundelay_core::schedule::Schedule;
use roundelay_core::syntax::Source;
use roundelay_pictures::spacetime::{Drawing, Units, View, html, rounds, svg, view};
use roundelay_simulate::{Machine, Timeline, simulate};

use super::elements::{Element, elements};
use super::runs::{ordered, run, schedule, source};

fn on_time(schedule: &Schedule) -> Timeline {
    run(schedule, 64 << 20, RankId(0), 1.0)
}

fn count(all: &[Element], tag: &str, class: &str) -> usize {
    all.iter().filter(|e| e.is(tag, class)).count()
}

fn titles(all: &[Element]) -> impl Iterator<Item = &str> {
    all.iter().filter(|e| e.tag == "title").skip(1).map(|e| e.text.as_str())
}

/// The words of the legend.
fn legend(all: &[Element]) -> Vec<&str> {
    let words = all.iter().filter(|e| e.is("text", "small") && e.get("x") == Some("38"));
    words.map(|e| e.text.as_str()).collect()
}

#[test]
fn many_messages_are_colors_unless_arrows_are_asked_for() {
    for (name, nranks, wanted) in [
        ("RingAllReduce", 8, View::Arrows),
        ("RingAllReduce", 32, View::Arrows),
        ("RingAllReduce", 64, View::Matrix),
        ("MeshAllReduce", 8, View::Matrix),
        ("MeshAllReduce", 4, View::Arrows),
        ("MeshAllReduce", 64, View::Matrix),
    ] {
        let schedule = schedule(name, nranks);
        let line = on_time(&schedule);
        let drawing = Drawing { title: name, ..Drawing::default() };
        let (chosen, messages) = view(&schedule, &line, &drawing);
        assert_eq!(chosen, wanted, "{name} on {nranks}");
        let picture = svg(&schedule, &line, &drawing);
        let words = format!("{messages} messages are too many for arrows: colors say how much.");
        assert_eq!(picture.contains(&words), wanted == View::Matrix, "{name} on {nranks}");
        for asked in [View::Arrows, View::Matrix] {
            let drawing = Drawing { view: Some(asked), ..drawing.clone() };
            assert_eq!(view(&schedule, &line, &drawing).0, asked);
            let all = elements(&svg(&schedule, &line, &drawing));
            let arrows = count(&all, "path", "down") + count(&all, "path", "up");
            assert_eq!(arrows > 0, asked == View::Arrows, "{name} on {nranks}");
            assert!(!all.iter().any(|e| e.text.contains("too many")), "{name} on {nranks}");
        }
    }
}

/// Every pair that exchanges data is a cell with the sum of it, and every row has the sum that its rank sends.
#[test]
fn a_matrix_has_what_goes_from_whom_to_whom() {
    let schedule = schedule("RingAllReduce", 64);
    let line = on_time(&schedule);
    let drawing = Drawing { title: "64", ..Drawing::default() };
    let all = elements(&svg(&schedule, &line, &drawing));
    let titles: Vec<_> = titles(&all).collect();
    for rank in 0..64 {
        let cell = format!("rank {rank} to rank {}: 126 MiB", (rank + 1) % 64);
        assert_eq!(titles.iter().filter(|t| **t == cell).count(), 1, "{cell}");
        let row = format!("rank {rank}: 126 MiB sent, 126 MiB received");
        assert_eq!(titles.iter().filter(|t| t.starts_with(&row)).count(), 1, "{row}");
    }
    assert_eq!(titles.len(), 128);
    let words = legend(&all);
    let most = "sends or receives to reduce, up to 25 GB/s a rank, the more of both";
    assert_eq!(words[..2], [most, "sends or receives to copy"]);

    let page = html(&schedule, &line, &drawing);
    let start = page.find("<svg").expect("a picture");
    let end = page.find("</svg>").expect("its end") + "</svg>".len();
    let all = elements(&page[start..end]);
    assert_eq!(count(&all, "g", "round"), 126);
    // The whole, and each round.
    let cells = all.iter().filter(|e| e.text.starts_with("rank 5 to rank 6: "));
    assert_eq!(cells.count(), 1 + 126);
}

/// The time axis shows what the ranks do with the data, and when each round begins.
#[test]
fn a_matrix_tells_reductions_from_copies_and_has_rounds() {
    let schedule = schedule("RingAllReduce", 64);
    let line = on_time(&schedule);
    let picture = svg(&schedule, &line, &Drawing { title: "64", ..Drawing::default() });
    let all = elements(&picture);
    let columns = |class: &str| {
        let cells = all.iter().filter(|e| e.is("path", class) && e.get("transform").is_none());
        let path = cells.max_by_key(|e| e.get("d").map_or(0, str::len)).expect(class);
        let squares = path.get("d").unwrap().split('z').filter(|square| !square.is_empty());
        let x = |square: &str| square[1..].split(' ').next().unwrap().parse::<f64>().unwrap();
        squares.map(x).collect::<Vec<_>>()
    };
    let least = |all: &[f64]| all.iter().copied().fold(f64::MAX, f64::min);
    let (reduces, copies) = (columns("r5"), columns("l5"));
    let middle = least(&copies);
    assert!(reduces.iter().all(|x| *x < middle), "reduce-scatter, then all-gather");
    let lines = all.iter().find(|e| e.is("path", "rounds")).expect("rounds");
    assert_eq!(lines.get("d").unwrap().matches('M').count(), 126);
    let mut numbers =
        all.iter().filter(|e| e.is("text", "tick")).filter_map(|e| e.text.parse().ok());
    assert!(numbers.any(|number: u32| number > 64), "the number of a round");
}

/// Ranks are below each other as they lie on the ring, if they do.
#[test]
fn rows_are_in_the_order_of_the_ring() {
    let names = |schedule: &Schedule| {
        let all = elements(&svg(schedule, &on_time(schedule), &Drawing::default()));
        let names = all.iter().filter(|e| e.is("text", "name") && e.text.starts_with("rank "));
        let names = names.map(|e| e.text["rank ".len()..].parse().unwrap());
        let told = all.iter().any(|e| e.text == "The ranks are in the order of the ring.");
        (names.collect::<Vec<u32>>(), told)
    };
    let ring = [0, 3, 1, 2, 7, 5, 6, 4];
    assert_eq!(names(&ordered("RingAllReduce", &ring)), (ring.to_vec(), true));
    assert_eq!(names(&ordered("RingAllReduce", &[0, 1, 2])), (vec![0, 1, 2], false));
    assert!(!names(&schedule("RecursiveDoublingAllReduce", 4)).1);
}

/// The critical path is one line from the start of the run to its end.
#[test]
fn the_critical_path_is_a_line_from_end_to_end() {
    let schedule = schedule("RingAllReduce", 8);
    let machine = Machine::new(Arc::new("full_mesh(8, 25GB/s, 2us)".parse().unwrap()));
    let ran = simulate(&schedule, &machine, 1 << 20, DType::U8, true).unwrap();
    let line = ran.timeline.unwrap();
    for view in [View::Arrows, View::Matrix] {
        let drawing = Drawing { critical: &ran.critical, view: Some(view), ..Drawing::default() };
        let all = elements(&svg(&schedule, &line, &drawing));
        assert_eq!(legend(&all).last(), Some(&"the critical path"));
        let path = all.iter().find(|e| e.is("path", "critical")).expect("the path");
        let d = path.get("d").unwrap();
        assert_eq!(d.matches('M').count(), 1, "{d}");
        assert_eq!(d.matches('H').count(), 14, "a step for each round");
        let axis = all.iter().find(|e| e.is("rect", "row") || e.is("rect", "band")).expect("a row");
        let number = |name: &str| axis.get(name).unwrap().parse::<f64>().unwrap();
        let (left, wide) = (number("x"), number("width"));
        let ends = [d[1..].split(' ').next(), d.rsplit('H').next()];
        let [start, end] = ends.map(|end| end.unwrap().parse::<f64>().unwrap());
        assert!((start - left).abs() < 0.2 && (end - left - wide).abs() < 0.2, "{d}");
    }
    let without = svg(&schedule, &line, &Drawing::default());
    assert!(!without.contains("class=\"critical\""));
}

/// All arrows of a slice are in one group, so that a pointer on one of them shows all.
#[test]
fn a_slice_is_a_group() {
    let schedule = schedule("RingAllReduce", 8);
    let all = elements(&svg(&schedule, &on_time(&schedule), &Drawing::default()));
    let groups: Vec<_> = (0..all.len()).filter(|at| all[*at].is("g", "slice")).collect();
    assert_eq!(groups.len(), 8, "a block of each rank");
    for (at, end) in groups.iter().zip(groups[1..].iter().copied().chain([all.len()])) {
        let arrows = count(&all[*at..end], "path", "down") + count(&all[*at..end], "path", "up");
        assert_eq!(arrows, 14, "twice around the ring, but for two steps");
    }
}

#[test]
fn a_row_stands_for_several_of_very_many_ranks() {
    let schedule = schedule("RingAllReduce", 200);
    let line = on_time(&schedule);
    let picture = svg(&schedule, &line, &Drawing { title: "200", ..Drawing::default() });
    let all = elements(&picture);
    assert!(picture.contains("A row stands for 2 ranks, and shows their average."));
    assert_eq!(count(&all, "rect", "row"), 100);
    assert!(titles(&all).any(|t| t.starts_with("ranks 198 to 199: ")));
    assert!(picture.len() < 500_000, "{}", picture.len());
}

#[test]
fn some_ranks_and_some_rounds() {
    let schedule = schedule("RingAllReduce", 64);
    let line = on_time(&schedule);
    assert_eq!(rounds(&schedule, &line), 126);
    let ranks = vec![RankId(5), RankId(4), RankId(6), RankId(4)];
    let drawing = Drawing { title: "part", ranks, rounds: Some(3..=10), ..Drawing::default() };
    assert_eq!(view(&schedule, &line, &drawing), (View::Arrows, 16));
    let picture = svg(&schedule, &line, &drawing);
    let all = elements(&picture);
    assert!(picture.contains(">3 of 64 ranks, rounds 3 to 10 of 126, 16 messages, "));
    assert!(picture.contains(">16 messages from or to ranks that are not shown are not drawn.<"));
    let names: Vec<_> = all.iter().filter(|e| e.is("text", "name")).map(|e| &*e.text).collect();
    assert_eq!(names, ["rank 4", "rank 5", "rank 6"]);
    for ends in ["4 to 5, ", "5 to 6, "] {
        assert_eq!(titles(&all).filter(|t| t.starts_with(ends)).count(), 8, "{ends}");
    }
    // Nothing sticks out of the time that is drawn.
    let number = |e: &Element, name: &str| e.get(name).unwrap().parse::<f64>().unwrap();
    let axis = all.iter().find(|e| e.is("rect", "band")).expect("a band");
    let (left, right) = (number(axis, "x"), number(axis, "x") + number(axis, "width"));
    let bars = all.windows(2).filter(|p| p[0].is("rect", "transfer") && p[1].tag == "title");
    for bar in bars.map(|p| &p[0]) {
        let (from, to) = (number(bar, "x"), number(bar, "x") + number(bar, "width"));
        assert!(from >= left - 0.11 && to <= right + 0.71, "{from} to {to} of {left} to {right}");
    }
    let page = html(&schedule, &line, &drawing);
    assert_eq!(page.matches("<section ").count(), 8);
    assert!(page.contains(">Round 3 of 126: 2 messages, 2 MiB, "));
    assert!(page.contains(">Round 10 of 126: ") && !page.contains(">Round 11 of 126"));
    assert!(page.contains("max=\"8\"") && page.contains("data-round=\"8\""));
}

#[test]
fn a_picture_is_as_wide_as_it_is_asked_to_be() {
    let schedule = schedule("RingAllReduce", 64);
    let line = on_time(&schedule);
    for view in [View::Arrows, View::Matrix] {
        for width in [1200, 4000] {
            let drawing = Drawing {
                title: "wide",
                width: Some(width),
                view: Some(view),
                ..Drawing::default()
            };
            let all = elements(&svg(&schedule, &line, &drawing));
            assert_eq!(all[0].get("width"), Some(&*width.to_string()), "{view:?}");
        }
    }
}

/// Copies and reductions differ by more than by color, in bars and in arrows.
#[test]
fn copies_and_reductions_are_told_apart_without_colors() {
    let schedule = schedule("RingAllReduce", 8);
    let line = on_time(&schedule);
    let picture = svg(&schedule, &line, &Drawing { title: "8", ..Drawing::default() });
    let all = elements(&picture);
    assert!(picture.contains(".transfer.reduces{fill:url(#folds)}"));
    assert!(picture.contains(".copies{stroke:#0063a6;stroke-dasharray:"));
    for tag in ["path", "rect"] {
        let count = |class: &str, word: &str| {
            let titled = all.windows(2).filter(|p| p[1].tag == "title" && p[0].is(tag, class));
            titled.filter(|p| p[1].text.contains(&format!(": {word} "))).count()
        };
        let home = if tag == "rect" { 8 } else { 0 };
        assert_eq!(count("reduces", "fold"), 7 * 8, "{tag}");
        assert_eq!(count("copies", "copy"), 7 * 8 + home, "{tag}");
        assert_eq!(count("reduces", "copy") + count("copies", "fold"), 0, "{tag}");
    }
    let legend = legend(&all);
    for words in [
        "copies from or to another rank",
        "reduces with another rank",
        "data to copy",
        "data to reduce",
    ] {
        assert!(legend.contains(&words), "{legend:?}");
    }
}

#[test]
fn the_legend_has_nothing_only_where_something_idles() {
    let nothing = |late: RankId, times: f64| {
        let schedule = schedule("RingAllReduce", 8);
        let line = run(&schedule, 64 << 20, late, times);
        let picture = svg(&schedule, &line, &Drawing { title: "8", ..Drawing::default() });
        let all = elements(&picture);
        // Each swatch has an edge, for the ground alone is hard to see.
        assert!(count(&all, "rect", "frame") > 2 && picture.contains(".frame{fill:none;stroke:"));
        legend(&all).contains(&"does nothing")
    };
    assert!(!nothing(RankId(0), 1.0));
    // The others are done before the rank that is late.
    assert!(nothing(RankId(3), 3.0));
}

#[test]
fn a_page_has_the_statements_of_the_author() {
    let schedule = schedule("RingAllReduce", 4);
    let line = on_time(&schedule);
    let source = source("RingAllReduce");
    let with = Drawing { title: "4", source: Some(&source), ..Drawing::default() };
    let page = html(&schedule, &line, &with);
    let first = page.split("<section ").nth(1).expect("the first round");
    let reduce = "<code>reduce(left.block[b], local.block[b]);</code> \
                  <span class=\"place\">ring.coll:27</span>";
    let heading = format!("<p class=\"statement\">{reduce}<b>, 4 times</b></p>");
    assert!(first.contains(&heading), "{first}");
    assert_eq!(first.matches(&format!("<td>{reduce}</td>")).count(), 4);
    assert!(first.contains("<code>fold 1.output["), "{first}");
    let without = html(&schedule, &line, &Drawing { source: None, ..with.clone() });
    assert!(!without.contains("reduce(left") && without.contains(">ring.coll:27<"));
    // Another file's lines say nothing of this one's.
    let other = Source::from_text("other.coll", source.text().unwrap());
    let other = html(&schedule, &line, &Drawing { source: Some(&other), ..with.clone() });
    assert!(!other.contains("reduce(left"));
}

#[test]
fn sizes_have_the_units_that_are_asked_for() {
    let schedule = schedule("RingAllReduce", 4);
    let line = on_time(&schedule);
    let of = |units| html(&schedule, &line, &Drawing { title: "4", units, ..Drawing::default() });
    assert!(of(Units::Binary).contains(">Round 1 of 6: 4 messages, 64 MiB, "));
    assert!(of(Units::Decimal).contains(">Round 1 of 6: 4 messages, 67.11 MB, "));
}
