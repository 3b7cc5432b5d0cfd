//! The file's sections of response bodies, which each attempt looks up.

use std::sync::Arc;

use arc_swap::ArcSwap;
use reattempt::PeekBodyLayer;
use reattempt::classify::RequestView;

use crate::reader::{BodySection, Document};

/// The current sections, each with its layer.
pub(crate) struct Bodies {
    pub(crate) program: PeekBodyLayer,
    sections: ArcSwap<Vec<(BodySection, PeekBodyLayer)>>,
}

impl Bodies {
    /// Creates the sections of a document on the program's layer.
    pub(crate) fn new(program: Option<PeekBodyLayer>, document: &Document) -> Self {
        let this = Self { program: program.unwrap_or_default(), sections: ArcSwap::default() };
        this.replace(document);
        this
    }

    /// Applies a document.
    pub(crate) fn replace(&self, document: &Document) {
        let layer = |section: &BodySection| (section.clone(), section.layer(self.program.clone()));
        self.sections.store(Arc::new(document.bodies.iter().map(layer).collect()));
    }

    /// Returns the layer of the first section that covers a request.
    pub(crate) fn layer_of(&self, request: RequestView<'_>) -> Option<PeekBodyLayer> {
        let sections = self.sections.load();
        sections.iter().find(|(section, _)| section.matches(request)).map(|(_, layer)| layer.clone())
    }
}
