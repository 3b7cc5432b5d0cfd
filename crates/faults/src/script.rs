//! Scripts, which determine the arrivals that get faults.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use crate::arriving::Arriving;
use crate::chances::Chances;

/// A kind of fault, such as [`ServiceFault`](crate::ServiceFault). Only faults convert into a [`Step`]. This trait is
/// sealed.
pub trait Fault: Clone + Default + fmt::Debug + Sealed {}

pub trait Sealed {}

/// A list of faults. Each fault applies to the next arrival, unless its [`Step`] selects other arrivals.
///
/// An arrival gets the fault of the first unused step that selects it. If no step does, a random fault may be drawn
/// ([`Script::chances`]). If none is drawn, the arrival gets the fault set with [`Script::otherwise`]. By default, it
/// gets no fault. An array or a vector of faults converts into a script.
///
/// Every step must be used before the [`Faults`](crate::Faults) are dropped, or the test fails.
///
/// ```
/// use http::StatusCode;
/// use reattempt_faults::{Script, ServiceFault, Step};
///
/// let busy = ServiceFault::Status(StatusCode::SERVICE_UNAVAILABLE);
/// let script = Script::new([Step::new(busy.clone()).times(2), Step::new(busy).call("pay-7")]);
/// # drop(script);
/// ```
///
/// `Script::default()` has no steps.
#[derive(Debug, Clone)]
pub struct Script<F> {
    pub(crate) steps: Vec<Step<F>>,
    pub(crate) chances: Option<Chances<F>>,
    pub(crate) otherwise: Option<F>,
    pub(crate) may_remain: bool,
}

impl<F> Script<F> {
    /// Creates a script with these steps.
    pub fn new<S: Into<Step<F>>>(steps: impl IntoIterator<Item = S>) -> Self {
        Self { steps: steps.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Adds random faults, for arrivals that no step selects.
    #[must_use]
    pub fn chances(mut self, chances: Chances<F>) -> Self {
        self.chances = Some(chances);
        self
    }

    /// Sets the fault for arrivals that neither a step nor a random fault selects. Default: no fault.
    ///
    /// For a server, this is the usual reply, which is also sent after [`Faults::recover`](crate::Faults::recover).
    #[must_use]
    pub fn otherwise(mut self, fault: F) -> Self {
        self.otherwise = Some(fault);
        self
    }

    /// Lets the test pass even if some steps were not used.
    #[must_use]
    pub fn may_remain(mut self) -> Self {
        self.may_remain = true;
        self
    }
}

impl<F> Default for Script<F> {
    fn default() -> Self {
        Self { steps: Vec::new(), chances: None, otherwise: None, may_remain: false }
    }
}

impl<F, S: Into<Step<F>>, const N: usize> From<[S; N]> for Script<F> {
    fn from(steps: [S; N]) -> Self {
        Self::new(steps)
    }
}

impl<F, S: Into<Step<F>>> From<Vec<S>> for Script<F> {
    fn from(steps: Vec<S>) -> Self {
        Self::new(steps)
    }
}

/// A fault, and the arrivals to which it applies.
///
/// By default, a step applies to the next arrival. A fault converts into a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step<F> {
    pub(crate) fault: F,
    delay: Duration,
    /// `None` means any number of arrivals, but at least one.
    times: Option<u32>,
    call: Option<String>,
    connection: Option<usize>,
    during: Option<Range<Duration>>,
}

impl<F> Step<F> {
    /// Creates a step for the next arrival.
    pub fn new(fault: F) -> Self {
        let (delay, times) = (Duration::ZERO, Some(1));
        Self { fault, delay, times, call: None, connection: None, during: None }
    }

    /// Delays the fault. A service or server waits after it has read the request; a connector waits before it connects.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Applies the fault to `times` arrivals. Zero is raised to one.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times.max(1));
        self
    }

    /// Applies the fault to every arrival that the step selects. If the step selects no arrival at all, the test fails.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.times = None;
        self
    }

    /// Selects the arrivals of the call with this name, as described at [`Arrival::call`](crate::Arrival).
    #[must_use]
    pub fn call(mut self, name: impl Into<String>) -> Self {
        self.call = Some(name.into());
        self
    }

    /// Selects the arrivals on this connection, counted from 1.
    #[must_use]
    pub fn connection(mut self, number: usize) -> Self {
        self.connection = Some(number);
        self
    }

    /// Selects the arrivals in this period, counted from the creation of the ledger.
    #[must_use]
    pub fn during(mut self, period: Range<Duration>) -> Self {
        self.during = Some(period);
        self
    }

    /// Returns the period of a recorded step, which selects only by time.
    #[cfg(feature = "toml")]
    pub(crate) fn recorded_period(&self) -> Option<Range<Duration>> {
        let is_plain = self.times.is_none() && self.delay.is_zero() && self.call.is_none() && self.connection.is_none();
        self.during.clone().filter(|_| is_plain)
    }

    fn selects(&self, arriving: &Arriving<'_>) -> bool {
        self.call.as_deref().is_none_or(|call| arriving.call == Some(call))
            && self.connection.is_none_or(|connection| arriving.connection == connection)
            && self.during.as_ref().is_none_or(|period| period.contains(&arriving.at))
    }
}

impl<F: Fault> From<F> for Step<F> {
    fn from(fault: F) -> Self {
        Self::new(fault)
    }
}

impl<F: fmt::Debug> fmt::Display for Step<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.fault)?;
        if let Some(call) = &self.call {
            write!(f, ", call {call:?}")?;
        }
        if let Some(connection) = self.connection {
            write!(f, ", connection {connection}")?;
        }
        match &self.during {
            Some(period) => write!(f, ", from {:?} to {:?}", period.start, period.end),
            None => Ok(()),
        }
    }
}

/// The state of a running script.
#[derive(Debug)]
pub(crate) struct Player<F> {
    script: Script<F>,
    /// The number of arrivals to which each step has applied.
    taken: Vec<u32>,
    arrivals: u64,
    calls: HashMap<String, u64>,
    /// `true` once all faults have ended.
    recovered: bool,
}

impl<F: Fault> Player<F> {
    pub(crate) fn new(script: Script<F>) -> Self {
        let taken = vec![0; script.steps.len()];
        Self { script, taken, arrivals: 0, calls: HashMap::new(), recovered: false }
    }

    /// Takes the first unused step that selects the arrival, if `accepts` returns `true` for its fault.
    pub(crate) fn take_if(&mut self, arriving: &Arriving<'_>, accepts: impl Fn(&F) -> bool) -> Option<(F, Duration)> {
        if self.recovered {
            return None;
        }
        let mut steps = self.script.steps.iter().zip(&mut self.taken);
        let (step, taken) =
            steps.find(|(step, taken)| step.times.is_none_or(|times| **taken < times) && step.selects(arriving))?;
        accepts(&step.fault).then(|| {
            *taken = taken.saturating_add(1);
            (step.fault.clone(), step.delay)
        })
    }

    /// Takes the fault for an arrival, with the delay before it.
    pub(crate) fn take(&mut self, arriving: &Arriving<'_>, accepts: impl Fn(&F) -> bool) -> (F, Duration) {
        self.arrivals += 1;
        let of_call = self.calls.entry(arriving.call.unwrap_or_default().to_owned()).or_default();
        *of_call += 1;
        let (arrivals, of_call) = (self.arrivals, *of_call);
        self.take_if(arriving, accepts).unwrap_or_else(|| {
            let chances = self.script.chances.as_ref().filter(|_| !self.recovered);
            let drawn = chances.and_then(|chances| chances.draw(arriving, arrivals, of_call));
            let fault = drawn.or_else(|| self.script.otherwise.clone());
            (fault.unwrap_or_default(), Duration::ZERO)
        })
    }
}

impl<F: Fault> Player<F> {
    /// Allows the remaining steps to be unused.
    pub(crate) fn allow_rest(&mut self) {
        self.script.may_remain = true;
    }

    /// Ends all faults.
    pub(crate) fn recover(&mut self) {
        self.recovered = true;
    }

    /// Finds the first fault that meets a condition. Returns the number of its step, from 1, or `Some(None)` for a
    /// fault outside the steps.
    pub(crate) fn find(&self, is: impl Fn(&F) -> bool) -> Option<Option<usize>> {
        let Script { steps, chances, otherwise, .. } = &self.script;
        let step = steps.iter().position(|step| is(&step.fault));
        let mut others = chances.iter().flat_map(Chances::faults).chain(otherwise);
        step.map(|index| Some(index + 1)).or_else(|| others.any(is).then_some(None))
    }

    /// Returns each unused step as text.
    pub(crate) fn unused(&self) -> Vec<String> {
        if self.script.may_remain {
            return Vec::new();
        }
        let steps = self.script.steps.iter().zip(&self.taken).enumerate();
        let unused = steps.filter(|(_, (step, taken))| **taken < step.times.unwrap_or(1));
        let words = |(index, (step, taken)): (usize, (&Step<F>, &u32))| {
            let times = step.times.map_or("any number of".to_owned(), |times| times.to_string());
            format!("step {}: {step}: used {taken} of {times} times", index + 1)
        };
        unused.map(words).collect()
    }
}
