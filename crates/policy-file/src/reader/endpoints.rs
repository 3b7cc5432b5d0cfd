//! An endpoints section: a list of equivalent servers.

use std::time::Duration;

use reattempt::endpoints::Endpoints;

use super::field::{Field, Kind, field};
use super::fields::Fields;
use super::node::{Node, Value};
use super::{Problem, Problems};

field! {
    URLS = "urls": Kind::Texts, "The base URLs of the servers. Either this or `dns` is required.";
    DNS = "dns": Kind::Text, "A host name with its port, whose addresses are the servers: \"orders.internal:8080\".";
    INTERVAL = "interval": Kind::Duration, "The time between two look-ups of `dns`. Default \"30s\".";
    BASE = "base": Kind::Text,
        "The base URL for which requests are written. Default: the first of `urls`, or http:// with `dns`.";
}

/// The fields of an endpoints section.
pub(super) static FIELDS: &[&Field] = &[&URLS, &DNS, &INTERVAL, &BASE];

/// An endpoints section of a policy file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointsSection {
    /// The name of the section.
    pub name: String,
    /// The base URLs of the servers. With a `dns` name, the list contains one `http` URL with that name, which is used
    /// until the first look-up succeeds.
    pub urls: Vec<String>,
    /// The base URL that requests contain. It is replaced with the base URL of a server.
    pub base: String,
    /// The host name and port that resolve to the servers, and the interval between look-ups.
    pub dns: Option<(String, Duration)>,
}

/// Returns the sections, except those with problems.
pub(super) fn read_all(node: &Node, problems: &mut Problems) -> Vec<EndpointsSection> {
    let Value::Table(sections) = &node.value else {
        let reason = format!("must be a table of sections, such as [endpoints.orders], but it is {}", node.value);
        problems.push(Problem::new(Some(node.line), "endpoints", reason));
        return Vec::new();
    };
    sections.iter().filter_map(|(name, node)| read(name, node, problems)).collect()
}

fn read(name: &str, node: &Node, problems: &mut Problems) -> Option<EndpointsSection> {
    let path = format!("endpoints.{}", super::node::plain(name));
    let Value::Table(table) = &node.value else {
        let reason = format!("must be a table, but it is {}", node.value);
        problems.push(Problem::new(Some(node.line), path, reason));
        return None;
    };
    let (mut seen, before) = (Vec::new(), problems.len());
    let mut fields = Fields::new(path.clone(), table, problems, &mut seen);
    let (has_urls, has_dns) = (fields.has(&URLS), fields.has(&DNS));
    let mut urls = fields.parsed(&URLS, |url| match Endpoints::urls([url]) {
        Ok(_) => Ok(url.to_owned()),
        Err(error) => Err(error.to_string()),
    });
    if !urls.is_empty() {
        if let Err(error) = Endpoints::urls(&urls) {
            fields.problem(URLS.name, format!("is no list of servers: {error}"));
        }
    } else if has_urls && fields.is_right() {
        fields.problem(URLS.name, "must be a list of at least one base URL");
    }
    let dns = fields.text(&DNS).map(str::to_owned);
    let interval = fields.duration(&INTERVAL);
    if let Some(dns) = &dns {
        if let Err(error) = Endpoints::dns(dns, Duration::MAX) {
            fields.problem(DNS.name, format!("is no host name with a port: {error}"));
        }
        if has_urls {
            fields.problem(DNS.name, "must not be set beside `urls`");
        }
        urls = vec![format!("http://{dns}")];
    }
    if interval.is_some() && !has_dns {
        fields.problem(INTERVAL.name, "is the time between two look-ups of `dns`, which is not set");
    }
    if interval.is_some_and(|interval| interval < Duration::from_secs(1)) {
        fields.problem(INTERVAL.name, "must be at least 1s");
    }
    let base = fields.text(&BASE).map(str::to_owned);
    if let Some(base) = &base {
        let of_these = || Endpoints::urls(&urls).ok()?.base(base).err();
        if let Some(error) = Endpoints::urls([base]).err().or_else(of_these) {
            fields.problem(BASE.name, format!("is no base URL: {error}"));
        }
    }
    fields.finish(&[FIELDS]);
    if problems.len() == before && urls.is_empty() {
        problems.push(Problem::new(Some(node.line), path, "has no servers: set `urls` or `dns`"));
    }
    let base = base.or_else(|| urls.first().cloned())?;
    let dns = dns.map(|dns| (dns, interval.unwrap_or(Duration::from_secs(30))));
    (problems.len() == before).then(|| EndpointsSection { name: name.to_owned(), urls, base, dns })
}
