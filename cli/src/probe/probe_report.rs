//! The report of a probe: for people, as one document, and as a topology.

use std::fmt::Write as _;

use roundelay_core::units::{count, rate_text, time_text};
use serde_json::json;

use super::blame::Blamed;
use super::facts::HostFacts;
use super::pairings::Pair;
use super::survey::{Fault, Measured, ProbeFinding, Survey, median, rate, rounded};
use crate::report::{quoted, within_a_page};
use crate::streams::{is_verbose, print, print_json, remark};
use crate::topo::aligned;

/// Prints what is known without traffic.
pub(super) fn before(survey: &Survey<'_>) {
    let (hosts, ranks) = (survey.facts.len(), survey.job.nranks());
    let none = survey.facts.iter().all(|facts| facts.interface.is_none());
    let none = if none { ", which tells no interface and no retransmits" } else { "" };
    let by = survey.job.carrier();
    remark(&format!("{}, {}, by {by}{none}", count(hosts, "host"), count(ranks, "rank")));
    tell(&survey.without_traffic());
}

fn tell<'f>(findings: impl IntoIterator<Item = &'f ProbeFinding>) {
    for finding in findings {
        let fault = format!("{:?}", finding.fault).to_lowercase();
        print(&within_a_page(&format!("{fault:<7}{}", finding.text), 7));
    }
}

/// Prints the findings; those without traffic have been printed before.
fn for_people(survey: &Survey<'_>, findings: &[ProbeFinding]) {
    tell(findings.iter().filter(|finding| finding.fault < Fault::Mtu));
    let share = |link: &Measured| link.rate / survey.expected(link);
    let slowest = survey.links.iter().min_by(|(_, a), (_, b)| share(a).total_cmp(&share(b)));
    if let (true, Some(((from, to), link))) = (findings.is_empty(), slowest) {
        print(&format!(
            "well   all {} have their rate; the slowest has {} of {}, host {from} to host {to}",
            count(survey.links.len(), "measured direction"),
            rate(link.rate),
            rate(survey.expected(link))
        ));
    }
    if is_verbose() {
        print(table(survey).trim_end());
    }
    let from = match survey.topology() {
        Some(name) => format!("the bound of {name}"),
        None => "the median of all directions".to_owned(),
    };
    remark(&within_a_page(
        &format!("measured in {} of pairs, against {from}", count(survey.rounds, "round")),
        0,
    ));
    remark(&format!("roundelay select AllReduce --topology {}", quoted(&line(survey, findings))));
}

/// Prints the report.
pub(super) fn show(survey: &Survey<'_>, findings: &[ProbeFinding], as_json: bool) {
    if !as_json {
        return for_people(survey, findings);
    }
    let host = |(host, facts): (usize, &HostFacts)| json!({ "host": host, "rank": survey.job.firsts()[host], "facts": facts });
    let link = |((from, to), link): (&Pair, &Measured)| {
        let expected = survey.expected(link);
        json!({ "from": from, "to": to, "measured": link, "expected": expected })
    };
    print_json(&json!({
        "ok": findings.is_empty(),
        "nranks": survey.job.nranks(),
        "carrier": survey.job.carrier(),
        "rounds": survey.rounds,
        "against": survey.topology(),
        "findings": findings,
        "topology": line(survey, findings),
        "hosts": survey.facts.iter().enumerate().map(host).collect::<Vec<_>>(),
        "links": survey.links.iter().map(link).collect::<Vec<_>>(),
    }));
}

/// Returns all directions, for a report that tells all.
fn table(survey: &Survey<'_>) -> String {
    let mut rows = vec![
        ["from", "to", "rate", "expected", "latency", "sent again"].map(str::to_owned).to_vec(),
    ];
    for ((from, to), link) in &survey.links {
        let again = link.retransmits.map_or_else(|| "-".to_owned(), |again| again.to_string());
        rows.push(vec![
            from.to_string(),
            to.to_string(),
            rate(link.rate),
            rate(survey.expected(link)),
            latency(link.latency),
            again,
        ]);
    }
    let mut text = String::new();
    aligned(&rows, &mut text);
    text
}

fn latency(seconds: f64) -> String {
    time_text(rounded(seconds * 1e9))
}

/// Returns the topology of the hosts as a text that `--topology` takes: a port for each on one switch. Its rate is that of
/// the slowest end, which every collective passes; a slow pair is in the list of links alone.
fn line(survey: &Survey<'_>, findings: &[ProbeFinding]) -> String {
    let slow = |finding: &&ProbeFinding| {
        finding.fault == Fault::Slow
            && !matches!(finding.part, Blamed::Pair(..) | Blamed::Direction(..))
    };
    let slowest = findings.iter().filter(slow).filter_map(|finding| finding.share);
    let rate = survey.usual * slowest.fold(1.0, f64::min);
    let half = median(survey.links.values().map(|link| link.latency)) / 2.0;
    format!("crossbar({}, {}, {})", survey.facts.len(), rate_text(rounded(rate)), latency(half))
}

/// Returns the topology of the hosts as a list of links: each has a port to a switch, slow ends have their rate, and slow
/// pairs a link of their own, which is shorter than the way over the switch.
pub(super) fn links(survey: &Survey<'_>, findings: &[ProbeFinding]) -> String {
    let time = median(survey.links.values().map(|link| link.latency));
    let mut text = format!("ranks {}\nswitch net\n", survey.facts.len());
    let share = |explains: &dyn Fn(Blamed) -> bool| {
        let slow = findings.iter().filter(|f| f.fault == Fault::Slow && explains(f.part));
        slow.filter_map(|finding| finding.share).fold(1.0, f64::min)
    };
    // Writing to a string does not fail.
    for host in 0..survey.facts.len() {
        let ends = [
            (Blamed::Sender(host), format!("{host} -> net")),
            (Blamed::Receiver(host), format!("net -> {host}")),
        ];
        for (end, ends) in ends {
            let its = share(&|part| part == end || part == Blamed::Host(host));
            let (rate, half) = (rate_text(rounded(survey.usual * its)), latency(time / 2.0));
            _ = writeln!(text, "{ends} {rate} {half}");
        }
    }
    for (pair, link) in &survey.links {
        let own =
            |part| matches!(part, Blamed::Pair(..) | Blamed::Direction(..)) && part.explains(*pair);
        if share(&own) < 1.0 {
            let (rate, time) = (rate_text(rounded(link.rate)), latency(link.latency));
            _ = writeln!(text, "{} -> {} {rate} {time}", pair.0, pair.1);
        }
    }
    text
}
