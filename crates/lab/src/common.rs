//! The options that every command has: seed, JSON and pictures.

use std::path::PathBuf;

use clap::Args;

use crate::error::LabError;
use crate::picture::{self, Figure};

/// The options that every command has.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Common {
    /// Seed of all random numbers: the same seed gives the same results [default: 1; get: none]
    #[arg(long, global = true, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Draw a picture: SVG or PNG, depending on the file's extension; may be repeated
    #[arg(long, global = true, value_name = "FILE", value_parser = picture::parse_path)]
    plot: Vec<PathBuf>,
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

    /// Draws the figure into every requested file.
    pub(crate) fn write_pictures(&self, figure: impl FnOnce() -> Figure) -> Result<(), LabError> {
        if self.plot.is_empty() {
            return Ok(());
        }
        let figure = figure();
        self.plot.iter().try_for_each(|path| Ok(figure.save(path)?))
    }
}
