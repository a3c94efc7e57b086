//! The figures as Markdown, between the markers of a page.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::contender::{Contender, Store, Workers};
use crate::entry::{folder, root};
use crate::measure::{IN_FLIGHT, Turn, median};
use crate::rest::Rest;
use crate::verdict::{Ratio, trips_of};

const BEGIN: &str = "<!-- compare:begin -->\n";
const END: &str = "<!-- compare:end -->";

/// The page with these figures in the place of those that it had.
pub(crate) fn filled(page: &str, figures: &str) -> String {
    let (before, rest) = page.split_once(BEGIN).expect("a marker where the figures begin");
    let (_, after) = rest.split_once(END).expect("a marker where they end");
    format!("{before}{BEGIN}\n{figures}\n{END}{after}")
}

pub(crate) fn targets(ratios: &[Ratio], rests: &[Rest]) -> String {
    let mut text = "| target | in flight | measured (rounds) | |\n|---|---|---|---|\n".to_owned();
    for ratio in ratios {
        let (Some(target), Some(is_reached)) = (ratio.target, ratio.is_reached()) else { continue };
        let Ratio { store, in_flight, to, median, spread: [least, most], .. } = ratio;
        let word = word(is_reached);
        let (target, median, spread) =
            (number(target), number(*median), format!("{}–{}", number(*least), number(*most)));
        line(
            &mut text,
            &format!("{store}: at least {target} of {to} | {in_flight} | {median} ({spread}) | {word}"),
        );
    }
    for rest in rests {
        let (Some(may), Some([first, _])) = (trips_of(rest), rest.trips) else { continue };
        let Rest { store, contender, .. } = rest;
        if *contender == Contender::Peer {
            let word = if first == may { "as was said" } else { "**not as was said**" };
            line(
                &mut text,
                &format!("{store}: trips of the peer's first message, {may} | – | {first} | {word}"),
            );
        } else {
            let word = word(first <= may);
            line(
                &mut text,
                &format!("{store}: trips of a first message, at most {may} | – | {first} | {word}"),
            );
        }
    }
    text
}

fn word(is_reached: bool) -> &'static str {
    if is_reached { "reached" } else { "**missed**" }
}

pub(crate) fn throughput(turns: &[Turn]) -> String {
    let mut text = "| store | in flight | | messages/s (rounds) | p50, ms | p95 | p99 | server CPU per message, µs |\n|---|---|---|---|---|---|---|---|\n".to_owned();
    for store in Store::ALL {
        for in_flight in IN_FLIGHT {
            for contender in store.contenders() {
                let wanted = (store, *contender, in_flight);
                let of = |turn: &&Turn| (turn.store, turn.contender, turn.in_flight) == wanted;
                let turns: Vec<&Turn> = turns.iter().filter(of).collect();
                if turns.is_empty() {
                    continue;
                }
                let rates: Vec<f64> = turns.iter().map(|turn| turn.rate).collect();
                let [least, most] =
                    [f64::min, f64::max].map(|of| rates.iter().copied().reduce(of).expect("some"));
                let [p50, p95, p99] =
                    [0, 1, 2].map(|at| millis(median(turns.iter().map(|turn| turn.latency[at]).collect())));
                let cpu = median(turns.iter().map(|turn| turn.cpu).collect()).as_micros();
                let refused: u64 = turns.iter().map(|turn| turn.refused).sum();
                let refused = if refused > 0 { format!(", {refused} refused") } else { String::new() };
                let rate = format!("{:.0} ({least:.0}–{most:.0}){refused}", median(rates));
                line(
                    &mut text,
                    &format!("{store} | {in_flight} | {contender} | {rate} | {p50} | {p95} | {p99} | {cpu}"),
                );
            }
        }
    }
    text
}

pub(crate) fn times(ratios: &[Ratio]) -> String {
    let mut text = "| store | pushonce to | 1 in flight | 16 | 64 |\n|---|---|---|---|---|\n".to_owned();
    for level in ratios.chunks(IN_FLIGHT.len()) {
        let Ratio { store, to, .. } = &level[0];
        let cells = level.iter().map(|ratio| {
            let [least, most] = ratio.spread.map(number);
            format!("{} ({least}–{most})", number(ratio.median))
        });
        line(&mut text, &format!("{store} | {to} | {}", cells.collect::<Vec<_>>().join(" | ")));
    }
    text
}

pub(crate) fn at_rest(rests: &[Rest], messages: u64) -> String {
    let mut text = format!(
        "| store | | trips: first, duplicate | start to first ack, ms | MiB, then | after {messages} messages | peak |\n|---|---|---|---|---|---|---|\n"
    );
    for Rest { store, contender, started_in, memory, trips } in rests {
        let trips = trips.map_or("–".to_owned(), |[first, duplicate]| format!("{first}, {duplicate}"));
        let [then, after, peak] = memory.map(|kib| format!("{:.1}", kib as f64 / 1024.0));
        let started = millis(*started_in);
        line(&mut text, &format!("{store} | {contender} | {trips} | {started} | {then} | {after} | {peak}"));
    }
    text
}

pub(crate) fn settings(workers: &[(Store, Vec<(Workers, f64)>)]) -> String {
    let mut text =
        "| store | taken: processes × threads | messages/s, 16 in flight | the others |\n|---|---|---|---|\n"
            .to_owned();
    for (store, tried) in workers {
        let [(best, rate), others @ ..] = &**tried else { continue };
        let others = others
            .iter()
            .map(|(workers, rate)| format!("{workers}: {rate:.0}"))
            .collect::<Vec<_>>()
            .join(", ");
        line(&mut text, &format!("{store} | {best} | {rate:.0} | {others}"));
    }
    text
}

fn line(text: &mut String, cells: &str) {
    writeln!(text, "| {cells} |").expect("a text");
}

fn number(number: f64) -> String {
    if number < 3.0 { format!("{number:.2}") } else { format!("{number:.1}") }
}

fn millis(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1000.0)
}

/// Where the page and the plot of a run go: those of the docs are for a whole run only.
pub(crate) fn destination(is_whole: bool) -> std::path::PathBuf {
    if is_whole { root().join("docs") } else { folder() }
}

pub(crate) fn write(figures: &str, to: &Path) {
    let page = fs::read_to_string(root().join("docs/benchmarks.md")).expect("the page");
    fs::write(to.join("benchmarks.md"), filled(&page, figures)).expect("a file");
}
