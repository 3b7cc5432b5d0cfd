//! The results of a run, as a table and as a plot.

use std::error::Error;
use std::path::Path;

use reattempt_picture::{Axis, Figure, Panel, Series, Shape};

use crate::client::Budget;
use crate::{BETWEEN_CALLS, CLIENTS, OUTAGE, PROCESSES, STORE_DIES};

/// The calls of all clients per second.
pub(crate) const CALLS_PER_SECOND: f64 = (PROCESSES * CLIENTS) as f64 / BETWEEN_CALLS.as_secs() as f64;

/// The results of a run with one kind of budget.
pub(crate) struct Figures {
    budget: Budget,
    seconds: Vec<Second>,
    asked: u64,
    granted: u64,
    alone: u64,
}

#[derive(Default, Clone)]
struct Second {
    /// The attempts that arrived at the server.
    arrivals: u64,
    /// The calls that started, and the number of these that finally failed.
    begun: u64,
    lost: u64,
    /// The calls that succeeded in this second.
    succeeded: u64,
}

impl Figures {
    /// Adds the counts of all processes to the arrivals at the server.
    pub(crate) fn new(budget: Budget, arrivals: Vec<u64>, processes: &[Vec<u64>]) -> Self {
        let seconds = arrivals.into_iter().map(|arrivals| Second { arrivals, ..Second::default() }).collect();
        let mut figures = Self { budget, seconds, asked: 0, granted: 0, alone: 0 };
        for counts in processes {
            let Some((&[asked, granted, alone], of_calls)) = counts.split_first_chunk() else { continue };
            figures.asked += asked;
            figures.granted += granted;
            figures.alone += alone;
            for (second, counts) in figures.seconds.iter_mut().zip(of_calls.chunks_exact(3)) {
                second.begun += counts[0];
                second.lost += counts[1];
                second.succeeded += counts[2];
            }
        }
        figures
    }

    /// Returns the calls that were lost, in percent.
    pub(crate) fn lost(&self) -> f64 {
        lost(&self.seconds)
    }

    /// Returns the same for calls that started at least five seconds after the outage.
    pub(crate) fn lost_after(&self) -> f64 {
        let after = usize::try_from(OUTAGE[1] + 5).unwrap_or(usize::MAX);
        lost(self.seconds.get(after..).unwrap_or_default())
    }

    /// Returns the maximum number of arrivals in a second, as a multiple of the normal number.
    fn peak(&self) -> f64 {
        let most = self.seconds.iter().map(|second| second.arrivals).max();
        most.unwrap_or(0) as f64 / CALLS_PER_SECOND
    }

    fn attempts_of_a_call(&self) -> f64 {
        sum(&self.seconds, |it| it.arrivals) / sum(&self.seconds, |it| it.begun).max(1.0)
    }
}

fn sum(seconds: &[Second], of: fn(&Second) -> u64) -> f64 {
    seconds.iter().map(of).sum::<u64>() as f64
}

fn lost(seconds: &[Second]) -> f64 {
    100.0 * sum(seconds, |it| it.lost) / sum(seconds, |it| it.begun).max(1.0)
}

/// Prints the table.
pub(crate) fn print(all: &[Figures]) {
    println!("budget   peak load   calls lost   lost after   attempts a call   asked   granted   alone");
    for figures in all {
        let (name, peak, lost, after) = (figures.budget.name(), figures.peak(), figures.lost(), figures.lost_after());
        print!("{name:6} {peak:11.2} {lost:10.1} % {after:10.1} % {:17.2}", figures.attempts_of_a_call());
        match figures.budget {
            Budget::Fleet => println!(" {:7} {:9} {:7}", figures.asked, figures.granted, figures.alone),
            _ => println!(),
        }
    }
}

/// Plots the arrivals and the successes over time, in the laboratory's style.
pub(crate) fn draw(all: &[Figures], path: &Path) -> Result<(), Box<dyn Error>> {
    let highest = all.iter().map(Figures::peak).fold(0.0, f64::max);
    // The axis ends at a tick above the highest value.
    let top = highest.ceil();
    let band = |name: &str, color, [from, to]: [u64; 2]| {
        let shape = Shape::Band(vec![(from as f64, 0.0, top), (to as f64, 0.0, top)]);
        Series { name: name.to_owned(), color, shape }
    };
    let panel = |figures: &Figures| {
        let line = |name: &str, color, of: fn(&Second) -> u64| {
            let points = (0_u32..).zip(&figures.seconds);
            let points = points.map(|(at, second)| (f64::from(at), of(second) as f64 / CALLS_PER_SECOND));
            Series { name: name.to_owned(), color, shape: Shape::Line(points.collect()) }
        };
        let store = (figures.budget == Budget::Fleet).then(|| band("the store is dead", 3, STORE_DIES));
        Panel {
            title: figures.budget.title().to_owned(),
            x: Axis::from_zero("time, s"),
            y: Axis { at_least: Some((0.0, top)), ..Axis::from_zero("× the normal load") },
            series: [band("outage", 7, OUTAGE)]
                .into_iter()
                .chain(store)
                .chain([
                    line("attempts that arrive", 1, |second| second.arrivals),
                    line("calls that succeed", 0, |second| second.succeeded),
                ])
                .collect(),
        }
    };
    let figure = Figure {
        title: "A thousand real clients, an outage, and a store that dies in it".to_owned(),
        panels: all.iter().map(panel).collect(),
        columns: 3,
    };
    Ok(figure.save(path)?)
}
