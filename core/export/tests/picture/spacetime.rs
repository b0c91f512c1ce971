//! Pictures of runs.

use expect_test::expect_file;
use roundelay_core::ids::RankId;
use roundelay_core::schedule::{OpKind, Schedule};
use roundelay_pictures::spacetime::{Drawing, View, html, svg};
use roundelay_simulate::{Message, Span, Timeline, TimelineState};

use super::elements::{Element, elements};
use super::runs::{run, schedule};

const NAMES: [(&str, u32); 6] = [
    ("RingAllReduce", 1),
    ("RingAllReduce", 2),
    ("RingAllReduce", 8),
    ("TwistedRingAllReduce", 8),
    ("MeshAllReduce", 8),
    ("RecursiveDoublingAllReduce", 4),
];

/// Pixels that rounding takes.
const CLOSE: f64 = 0.11;

/// A picture with arrows, however many they are.
fn arrows_of(title: &str) -> Drawing<'_> {
    Drawing { title, view: Some(View::Arrows), ..Drawing::default() }
}

fn on_time(schedule: &Schedule) -> Timeline {
    run(schedule, 1 << 20, RankId(0), 1.0)
}

/// Data from rank to rank.
fn data<'t>(schedule: &'t Schedule, line: &'t Timeline) -> impl Iterator<Item = &'t Message> {
    line.messages.iter().filter(|m| schedule.op(m.op).kind == OpKind::Move && m.from != m.to)
}

fn signals<'t>(schedule: &'t Schedule, line: &'t Timeline) -> impl Iterator<Item = &'t Message> {
    line.messages.iter().filter(|m| schedule.op(m.op).kind == OpKind::Post && m.from != m.to)
}

fn number(element: &Element, name: &str) -> f64 {
    let text = element.get(name).unwrap_or_else(|| panic!("{} has no {name}", element.tag));
    text.parse().expect(text)
}

/// Returns the ends of every arrow of that class, with its title. Samples of the legend have none.
fn arrows(all: &[Element], class: &str) -> Vec<([f64; 4], String)> {
    let titled = all.windows(2).filter(|pair| pair[1].tag == "title" && pair[0].is("path", class));
    titled
        .map(|pair| {
            let line = pair[0].get("d").expect("a line");
            let ends: Vec<f64> =
                line[1..].split([' ', 'L']).map(|n| n.parse().expect(line)).collect();
            (ends.try_into().expect("two ends"), pair[1].text.clone())
        })
        .collect()
}

/// The band of each rank: its upper and lower end.
fn bands(all: &[Element], nranks: u32) -> Vec<(f64, f64)> {
    let all = all.iter().filter(|e| e.is("rect", "band")).take(nranks as usize);
    all.map(|e| (number(e, "y"), number(e, "y") + number(e, "height"))).collect()
}

/// Returns the beginning of the time axis, and its length.
fn axis(all: &[Element]) -> (f64, f64) {
    let band = all.iter().find(|e| e.is("rect", "band")).expect("a band");
    (number(band, "x"), number(band, "width"))
}

#[test]
fn every_message_is_an_arrow_from_band_to_band_at_its_time() {
    for (name, nranks) in NAMES {
        let schedule = schedule(name, nranks);
        for late in [1.0, 3.0] {
            let line = run(&schedule, 1 << 20, RankId(0), late);
            let picture = svg(&schedule, &line, &arrows_of(name));
            let all = elements(&picture);
            let (bands, (left, wide)) = (bands(&all, nranks), axis(&all));
            let mut drawn: Vec<_> =
                ["up", "down"].iter().flat_map(|class| arrows(&all, class)).collect();
            assert_eq!(drawn.len(), data(&schedule, &line).count(), "{name} on {nranks}");
            for message in data(&schedule, &line) {
                let x = |seconds: f64| left + wide * seconds / line.seconds;
                let within = |y: f64, rank: RankId| {
                    let (top, bottom) = bands[rank.index()];
                    (top - CLOSE..=bottom + CLOSE).contains(&y)
                };
                let mine = |([from_x, from_y, to_x, to_y], title): &([f64; 4], String)| {
                    (from_x - x(message.flows)).abs() < CLOSE
                        && (to_x - x(message.end)).abs() < CLOSE
                        && within(*from_y, message.from)
                        && within(*to_y, message.to)
                        && title.starts_with(&format!("{} to {}, ", message.from, message.to))
                        && title.contains(".coll:")
                };
                let at = drawn.iter().position(mine);
                drawn.swap_remove(at.unwrap_or_else(|| panic!("{name}: no arrow of {message:?}")));
            }
            assert_eq!(arrows(&all, "signal").len(), signals(&schedule, &line).count(), "{name}");
        }
    }
}

/// A reader can follow an arrow over the bars between its ends: it is above them, with a halo, and above all halos.
#[test]
fn arrows_are_above_bars_and_halos() {
    for (name, nranks) in NAMES {
        let schedule = schedule(name, nranks);
        let all = elements(&svg(&schedule, &on_time(&schedule), &arrows_of(name)));
        let titled = |at: usize| all.get(at + 1).is_some_and(|e| e.tag == "title");
        let bars = |e: &Element| ["transfer", "local", "idle"].iter().any(|c| e.is("rect", c));
        let last = |of: &dyn Fn(&Element) -> bool| {
            all.iter().enumerate().filter(|(at, e)| of(e) && titled(*at)).map(|(at, _)| at).last()
        };
        let halos: Vec<_> = (0..all.len()).filter(|at| all[*at].is("path", "halo")).collect();
        let arrows: Vec<_> = (0..all.len())
            .filter(|at| ["up", "down"].iter().any(|class| all[*at].is("path", class)))
            .collect();
        let below = last(&bars).into_iter().chain(last(&|e| e.is("path", "signal")));
        for at in below {
            assert!(halos.iter().all(|halo| *halo > at), "{name} on {nranks}");
        }
        assert!(arrows.iter().all(|arrow| halos.iter().all(|halo| halo < arrow)), "{name}");
        for arrow in arrows {
            let line = all[arrow].get("d").expect("a line");
            let round = all[..arrow].iter().rfind(|e| e.is("g", "round"));
            let round = round.and_then(|e| e.get("data-round"));
            let mine = |at: &&usize| {
                all[**at].get("data-round") == round && all[**at].get("d").unwrap().contains(line)
            };
            assert_eq!(halos.iter().filter(mine).count(), 1, "{name} on {nranks}: {line}");
        }
    }
}

#[test]
fn every_op_is_a_bar_in_the_band_of_its_rank() {
    for (name, nranks) in NAMES {
        let schedule = schedule(name, nranks);
        let line = on_time(&schedule);
        let all = elements(&svg(&schedule, &line, &arrows_of(name)));
        let (bands, (left, wide)) = (bands(&all, nranks), axis(&all));
        for (state, class) in [
            (TimelineState::Transfer, "transfer"),
            (TimelineState::Local, "local"),
            (TimelineState::Idle, "idle"),
        ] {
            let titled = all.windows(2).filter(|p| p[1].tag == "title" && p[0].is("rect", class));
            let bars: Vec<_> = titled.map(|pair| &pair[0]).collect();
            let spans: Vec<_> = line.spans.iter().filter(|s| s.state == state).collect();
            assert_eq!(bars.len(), spans.len(), "{name} on {nranks}, {class}");
            for span in spans {
                let (top, bottom) = bands[schedule.streams[span.stream.index()].rank.index()];
                let x = left + wide * span.start / line.seconds;
                let width = wide * (span.end - span.start) / line.seconds;
                let fits = |bar: &&Element| {
                    (number(bar, "x") - x).abs() < CLOSE
                        && (number(bar, "width") - width).abs() < CLOSE
                        && number(bar, "y") >= top - CLOSE
                        && number(bar, "y") + number(bar, "height") <= bottom + CLOSE
                };
                assert!(bars.iter().any(fits), "{name}: no bar of {span:?}");
            }
        }
    }
}

#[test]
fn a_title_is_text() {
    let schedule = schedule("RingAllReduce", 2);
    let line = on_time(&schedule);
    let title = "a <b> & \"c\" </title></svg><script>'d'\u{1}";
    let escaped = "a &lt;b&gt; &amp; \"c\" &lt;/title&gt;&lt;/svg&gt;&lt;script&gt;'d' ";
    let picture = svg(&schedule, &line, &arrows_of(title));
    let all = elements(&picture);
    assert_eq!(all[1].text, escaped);
    let name = all.iter().find(|e| e.is("text", "title")).expect("a title");
    assert_eq!(name.text, escaped);
    let page = html(&schedule, &line, &arrows_of(title));
    assert!(page.contains(&format!("<h1>{escaped}</h1>")));
    assert_eq!(page.matches("<script>").count(), 1);
}

/// A rank that is slow is behind the others, but not in another round.
#[test]
fn rounds_are_steps_however_late_a_rank_is() {
    let schedule = schedule("RingAllReduce", 8);
    for late in [1.0, 10.0] {
        let line = run(&schedule, 1 << 20, RankId(3), late);
        let picture = svg(&schedule, &line, &arrows_of("late"));
        assert!(picture.contains(">8 ranks, 14 rounds, 112 messages, "), "{late}");
        let page = html(&schedule, &line, &arrows_of("late"));
        for round in 1..=14 {
            let section = page.split("<section ").nth(round).expect("a section of each round");
            assert!(section.contains(&format!(">Round {round} of 14: 8 messages, ")), "{round}");
            let sent =
                (0..8).filter(|r| section.contains(&format!("<td>{r} to {}</td>", (r + 1) % 8)));
            assert_eq!(sent.count(), 8, "{round}");
        }
        assert_eq!(page.matches("<section ").count(), 14);
    }
}

/// The page loads no file, and has the elements that the script looks for.
#[test]
fn a_page_needs_nothing_else() {
    let schedule = schedule("TwistedRingAllReduce", 4);
    let page = html(&schedule, &on_time(&schedule), &arrows_of("a page"));
    let start = page.find("<svg").expect("a picture");
    let end = page.find("</svg>").expect("its end") + "</svg>".len();
    elements(&page[start..end]);
    let rest = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for outside in ["http", "src=", "href", "@import", "fetch("] {
        assert!(!rest.contains(outside), "{outside}");
    }
    let (_, script) = page.split_once("<script>").expect("a script");
    for id in script.split("find(\"").skip(1).filter_map(|s| s.split('"').next()) {
        assert_eq!(page.matches(&format!(" id=\"{id}\"")).count(), 1, "{id}");
    }
    for mark in ["class=\"run\"", "class=\"names\"", "data-round=\"6\"", "role=\"status\""] {
        assert!(page.contains(mark), "{mark}");
    }
}

#[test]
fn large_ones_stay_small_and_say_what_is_missing() {
    let schedule_of = |nranks| schedule("RingAllReduce", nranks);
    let schedule = schedule_of(64);
    let line = run(&schedule, 64 << 20, RankId(0), 1.0);
    let picture = svg(&schedule, &line, &arrows_of("64"));
    let all = elements(&picture);
    let drawn = arrows(&all, "up").len() + arrows(&all, "down").len();
    assert_eq!(drawn, 2 * 63 * 64);
    assert!(picture.contains("16128 signals are not drawn."));
    assert!(picture.len() < 3_000_000, "{}", picture.len());

    let schedule = schedule_of(200);
    let line = run(&schedule, 64 << 20, RankId(0), 1.0);
    let picture = svg(&schedule, &line, &arrows_of("200"));
    assert!(picture.contains("79600 messages are too many for arrows and are not drawn."));
    assert!(arrows(&elements(&picture), "down").is_empty());
    assert!(picture.len() < 3_000_000, "{}", picture.len());
    let page = html(&schedule, &line, &arrows_of("200"));
    assert!(page.contains("<p>175 more are not listed.</p>") && page.len() < 6_000_000);
}

#[test]
fn many_streams_share_rows() {
    let picture = |streams: u32| {
        let mut schedule = schedule("RingAllReduce", 40);
        // A picture looks at a stream's number alone: the only one becomes the last of many.
        for stream in &mut schedule.streams {
            stream.index = streams - 1;
        }
        svg(&schedule, &on_time(&schedule), &arrows_of("streams"))
    };
    let shared = picture(30);
    assert!(shared.contains("Up to 30 streams of a rank share 5 rows."));
    let all = elements(&shared);
    let bands = bands(&all, 40);
    let bars: Vec<_> = all.iter().filter(|e| e.is("rect", "transfer")).collect();
    // The last two are the legend's: a copy, and a reduction.
    assert_eq!(bars.len(), 40 * 78 + 2);
    for bar in &bars[..bars.len() - 2] {
        let (top, bottom) = (number(bar, "y"), number(bar, "y") + number(bar, "height"));
        let within = bands.iter().any(|band| top >= band.0 - CLOSE && bottom <= band.1 + CLOSE);
        assert!(within, "{top} to {bottom}");
    }
    assert!(!picture(2).contains("share"));
}

/// A thousand slivers of an op are one bar, and messages that lie on one another one arrow.
#[test]
fn what_is_narrower_than_a_pixel_is_merged() {
    let schedule = schedule("RingAllReduce", 2);
    let mut line = on_time(&schedule);
    let whole = svg(&schedule, &line, &arrows_of("merged"));
    let slivers = |span: &Span| {
        let (span, each) = (*span, (span.end - span.start) / 1000.0);
        let start = move |i| span.start + each * f64::from(i);
        (0..1000).map(move |i| Span { start: start(i), end: start(i + 1), ..span })
    };
    line.spans = line.spans.iter().flat_map(slivers).collect();
    line.messages = line.messages.iter().flat_map(|m| [*m; 2]).collect();
    let all = elements(&svg(&schedule, &line, &arrows_of("merged")));
    let whole = elements(&whole);
    for class in ["transfer", "local"] {
        let bars = |all: &[Element]| all.iter().filter(|e| e.is("rect", class)).count();
        assert_eq!(bars(&all), bars(&whole), "{class}");
    }
    assert!(all.iter().any(|e| e.tag == "title" && e.text.ends_with(": 1000 ops")));
    for class in ["up", "down"] {
        let (merged, whole) = (arrows(&all, class), arrows(&whole, class));
        assert_eq!(merged.len(), whole.len(), "{class}");
        assert!(merged.iter().all(|(_, title)| title.contains(", 1 MiB, ")));
        assert!(merged.iter().all(|(_, title)| title.ends_with(": 2 messages")));
    }
}

#[test]
fn a_run_that_takes_no_time_has_a_picture() {
    let schedule = schedule("RingAllReduce", 1);
    let line = Timeline { nranks: 1, ..Timeline::default() };
    let picture = svg(&schedule, &line, &arrows_of("nothing"));
    elements(&picture);
    assert!(picture.contains(">1 rank, 0 rounds, 0 messages, 0 ns<"));
    assert!(!picture.contains("NaN") && !picture.contains("inf"));
    assert!(
        html(&schedule, &line, &arrows_of("nothing"))
            .contains(">No rounds: nothing travels, 0 ns<")
    );
}

#[test]
fn a_ring_of_three() {
    let schedule = schedule("RingAllReduce", 3);
    let line = run(&schedule, 300_000, RankId(1), 2.0);
    let picture =
        svg(&schedule, &line, &arrows_of("RingAllReduce on 3 ranks, rank 1 at half the speed"));
    assert_eq!(
        picture,
        svg(&schedule, &line, &arrows_of("RingAllReduce on 3 ranks, rank 1 at half the speed"))
    );
    expect_file!["ring_of_three.svg"].assert_eq(&picture);
}
