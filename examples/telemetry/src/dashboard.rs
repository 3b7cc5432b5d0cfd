//! The panels of `grafana.json`, asked of a real Prometheus, and a page that draws them.

use std::error::Error;
use std::fmt::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use reattempt_picture::{Axis, Figure, PictureError, Series, Shape};
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::time::sleep;

/// The dashboard that users import.
const DASHBOARD: &str = include_str!("../grafana.json");

/// The variables of the dashboard, as Grafana would fill them in for this run.
const VARIABLES: [(&str, &str); 2] = [("$__rate_interval", "4s"), ("$server", ".*")];

/// A Prometheus that scrapes one client every half second. It is killed when it is dropped.
pub(crate) struct Prometheus {
    address: SocketAddr,
    folder: PathBuf,
    _process: Child,
}

/// A panel, with the series of all its queries: each has a name and points in seconds.
pub(crate) struct Panel {
    title: String,
    description: String,
    /// The label of the vertical axis.
    unit: String,
    series: Vec<(String, Vec<(f64, f64)>)>,
}

impl Prometheus {
    pub(crate) async fn start(program: &Path, client: SocketAddr) -> Result<Self, Box<dyn Error>> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let folder = std::env::temp_dir().join(format!("reattempt-telemetry-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let settings = folder.join("prometheus.yml");
        let scrape = "global: { scrape_interval: 500ms, scrape_timeout: 400ms }\nscrape_configs:\n";
        std::fs::write(
            &settings,
            format!("{scrape}  - job_name: client\n    static_configs: [{{ targets: [\"{client}\"] }}]\n"),
        )?;
        let process = Command::new(program)
            .arg(format!("--config.file={}", settings.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        Ok(Self { address, folder, _process: process })
    }

    /// Returns all panels of the dashboard with the data of the last seconds.
    ///
    /// # Errors
    /// Returns an error if a panel has no data, or if Prometheus does not respond within ten seconds.
    pub(crate) async fn panels(&self, http: &reqwest::Client) -> Result<Vec<Panel>, Box<dyn Error>> {
        // The last scrape.
        sleep(Duration::from_secs(1)).await;
        let dashboard: Value = serde_json::from_str(DASHBOARD)?;
        let panels = dashboard["panels"].as_array().ok_or("the dashboard has no panels")?;
        let mut drawn = Vec::new();
        for panel in panels {
            let title = panel["title"].as_str().ok_or("a panel has no title")?;
            let mut series = Vec::new();
            for target in panel["targets"].as_array().ok_or_else(|| format!("{title}: no queries"))? {
                let query = target["expr"].as_str().ok_or_else(|| format!("{title}: a query has no text"))?;
                series.extend(self.query(http, query, target["legendFormat"].as_str().unwrap_or_default()).await?);
            }
            let points = series.iter().flat_map(|(_, points)| points).filter(|(_, value)| value.is_finite()).count();
            if points < 2 {
                return Err(format!("the panel \"{title}\" is empty").into());
            }
            let description = panel["description"].as_str().ok_or_else(|| format!("{title}: no description"))?;
            let defaults = &panel["fieldConfig"]["defaults"];
            let unit = match (defaults["custom"]["axisLabel"].as_str(), defaults["unit"].as_str()) {
                (Some(label), _) => label,
                (None, Some("s")) => "seconds",
                (None, Some(_)) => "per second",
                (None, None) => return Err(format!("{title}: the vertical axis has no label").into()),
            };
            let (title, description, unit) = (title.to_owned(), description.to_owned(), unit.to_owned());
            drawn.push(Panel { title, description, unit, series });
        }
        Ok(drawn)
    }

    async fn query(
        &self,
        http: &reqwest::Client,
        query: &str,
        legend: &str,
    ) -> Result<Vec<(String, Vec<(f64, f64)>)>, Box<dyn Error>> {
        let query = VARIABLES.iter().fold(query.to_owned(), |query, (name, value)| query.replace(name, value));
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs_f64();
        let url = format!("http://{}/api/v1/query_range", self.address);
        let range = [("start", format!("{:.3}", now - 9.0)), ("end", format!("{now:.3}")), ("step", "0.5".to_owned())];
        let request = http.get(url).query(&range).query(&[("query", &query)]).timeout(Duration::from_secs(10));
        let answer: Value = request.send().await?.json().await?;
        let results = answer["data"]["result"].as_array().ok_or_else(|| format!("{query}: {answer}"))?;
        let series = results.iter().map(|result| {
            let mut name = legend.to_owned();
            for (label, value) in result["metric"].as_object().into_iter().flatten() {
                name = name.replace(&format!("{{{{{label}}}}}"), value.as_str().unwrap_or_default());
            }
            let points = result["values"].as_array().into_iter().flatten();
            let points = points.filter_map(|point| Some((point[0].as_f64()?, point[1].as_str()?.parse().ok()?)));
            (name, points.collect())
        });
        Ok(series.collect())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Returns a page with the panels and their descriptions, three in a row as in the dashboard.
pub(crate) fn html(panels: &[Panel]) -> Result<String, PictureError> {
    let mut page =
        "<!doctype html><meta charset=utf-8><title>reattempt</title><style>body{font:13px sans-serif;display:grid;\
                    grid-template-columns:repeat(3,1fr);gap:12px}svg{width:100%;height:auto}</style>"
            .to_owned();
    let points = |panel: &Panel| panel.series.iter().flat_map(|(_, points)| points.clone()).collect::<Vec<_>>();
    let began = panels.iter().flat_map(points).map(|(at, _)| at).fold(f64::MAX, f64::min);
    for panel in panels {
        let _ = write!(page, "<section>{}<p>{}</p></section>", figure(panel, began).svg()?, panel.description);
    }
    Ok(page)
}

/// Draws a panel with its axes. Its time begins with the first value of all panels.
fn figure(panel: &Panel, began: f64) -> Figure {
    let series = panel.series.iter().enumerate().map(|(color, (name, points))| {
        let points = points.iter().filter(|(_, value)| value.is_finite()).map(|(at, value)| (at - began, *value));
        Series { name: name.clone(), color, shape: Shape::Line(points.collect()) }
    });
    let drawn = reattempt_picture::Panel {
        title: String::new(),
        x: Axis::from_zero("time, s"),
        y: Axis::from_zero(&*panel.unit),
        series: series.collect(),
    };
    Figure { title: panel.title.clone(), panels: vec![drawn], columns: 1 }
}
