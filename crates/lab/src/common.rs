//! The options that every command has, and the output of every command: text or JSON, pictures and a page.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use crate::error::LabError;
use crate::page;
use crate::picture::{self, Figure};
use crate::text;

/// The options that every command has.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Common {
    /// Seed of all random numbers: the same seed gives the same results [default: 1; get: none]
    #[arg(long, global = true, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    json: bool,
    /// Draw a picture: SVG or PNG, depending on the file's extension; may be repeated
    #[arg(long, global = true, value_name = "FILE", value_parser = picture::parse_path)]
    plot: Vec<PathBuf>,
    /// Write a page with the tables and the picture, for a browser; it loads nothing
    #[arg(long, global = true, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The heading of the page.
    #[arg(skip)]
    pub(crate) heading: String,
}

impl Common {
    /// Returns the seed of simulations.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// Fails if a picture is requested, for commands that draw none.
    pub(crate) fn no_picture(&self) -> Result<(), LabError> {
        match self.plot.is_empty() {
            true => Ok(()),
            false => Err(LabError::new("--plot: this command draws no picture")),
        }
    }

    /// Returns `true` if the result is printed as text.
    pub(crate) fn prints_text(&self) -> bool {
        !self.json
    }

    /// Prints the result, as JSON or with `print`, and writes the requested pictures and the page.
    pub(crate) fn show(
        &self,
        out: &mut dyn Write,
        document: &impl Serialize,
        figure: Option<&dyn Fn() -> Figure>,
        print: impl FnOnce(&mut dyn Write) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        match self.json {
            true => text::json(out, document)?,
            false => print(out)?,
        }
        if self.plot.is_empty() && self.html.is_none() {
            return Ok(());
        }
        let figure = figure.map(|figure| figure());
        for path in &self.plot {
            if let Some(figure) = &figure {
                figure.save(path)?;
                wrote(path);
            }
        }
        if let Some(path) = &self.html {
            let page = page::page(&self.heading, document, figure.as_ref())?;
            std::fs::write(path, page)
                .map_err(|error| LabError::new(format!("cannot write {}: {error}", path.display())))?;
            wrote(path);
        }
        Ok(())
    }
}

fn wrote(path: &Path) {
    anstream::eprintln!("wrote {}", path.display());
}
