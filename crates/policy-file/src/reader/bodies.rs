//! A section of response bodies: the requests whose responses it covers, and the way in which their bodies are read.

use std::fmt;
use std::time::Duration;

use reattempt::PeekBodyLayer;
use reattempt::classify::{self, Classification, Outcome, RequestView};

use super::Problems;
use super::conditions::{Conditions, DESTINATION, METHOD, PATH};
use super::field::{Field, Kind, did_you_mean, field};
use super::fields::Fields;
use super::node::Table;

type Rule = fn(Outcome<'_>) -> Option<Classification>;

/// The rules on bodies, by the names of their services.
static RULES: [(&str, Rule); 10] = [
    ("aws-json", classify::aws_json),
    ("aws-xml", classify::aws_xml),
    ("bulk-all-rejected", classify::bulk_all_rejected),
    ("connect", classify::connect),
    ("github", classify::github),
    ("google", classify::google),
    ("openai", classify::openai),
    ("shopify", classify::shopify),
    ("slack", classify::slack),
    ("stripe", classify::stripe),
];

static NAMES: [&str; RULES.len()] = {
    let (mut names, mut place) = ([""; RULES.len()], 0);
    while place < RULES.len() {
        names[place] = RULES[place].0;
        place += 1;
    }
    names
};

field! {
    UP_TO = "up_to": Kind::Bytes,
        "The length up to which a body is read, such as \"64 KiB\" or a number of bytes. With 0, no body is read. Default: the program's, usually 64 KiB.";
    WITHIN = "within": Kind::Duration,
        "The time for which a body of unknown length is held, for errors at least 1s. Default: the program's, usually \"100ms\".";
    RULES_OF = "rules": Kind::Words(&NAMES),
        "The services whose rules judge a whole body, in this order, after the program's own. Default: none.";
}

/// The fields of a section of bodies.
pub(super) static FIELDS: &[&Field] = &[&DESTINATION, &METHOD, &PATH, &UP_TO, &WITHIN, &RULES_OF];

/// The way in which the response bodies of some requests are read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BodySection {
    /// The length in bytes up to which a body is read, or `None` for the program's.
    pub up_to: Option<usize>,
    /// The time for which a body of unknown length is held, or `None` for the program's.
    pub within: Option<Duration>,
    /// The names of the services whose rules judge whole bodies.
    pub rules: Vec<&'static str>,
    conditions: Conditions,
    pub(crate) line: usize,
}

impl BodySection {
    /// Returns `true` if the section covers the response to this request, as it is sent to a server.
    pub fn matches(&self, request: RequestView<'_>) -> bool {
        self.conditions.matches(request)
    }

    /// Returns the program's layer with the settings of this section.
    pub fn layer(&self, program: PeekBodyLayer) -> PeekBodyLayer {
        let layer = self.up_to.into_iter().fold(program, PeekBodyLayer::up_to);
        let layer = self.within.into_iter().fold(layer, PeekBodyLayer::within);
        let rules = self.rules.iter().filter_map(|name| rule_named(name));
        rules.fold(layer, |layer, rule| layer.classify(rule))
    }
}

/// The output lists the conditions.
impl fmt::Display for BodySection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.conditions.fmt(f)
    }
}

/// Returns the section in a table, or `None` if a problem was reported.
pub(super) fn read(place: &str, (table, line): (&Table, usize), problems: &mut Problems) -> Option<BodySection> {
    let (mut seen, before) = (Vec::new(), problems.len());
    let mut fields = Fields::new(place.to_owned(), table, problems, &mut seen);
    let conditions = Conditions::read(&mut fields);
    let (up_to, within) = (fields.bytes(&UP_TO), fields.duration(&WITHIN));
    let rules = fields.parsed(&RULES_OF, |word| {
        let known = NAMES.into_iter().find(|name| *name == word);
        known.ok_or_else(|| format!("it must be one of {}{}", NAMES.join(", "), did_you_mean(word, NAMES)))
    });
    fields.finish(&[FIELDS]);
    (problems.len() == before).then_some(BodySection { up_to, within, rules, conditions, line })
}

fn rule_named(name: &str) -> Option<Rule> {
    RULES.iter().find(|(own, _)| *own == name).map(|(_, rule)| *rule)
}
