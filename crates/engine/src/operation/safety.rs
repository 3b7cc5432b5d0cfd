//! The facts about an operation that decide if it may be carried out twice, and how it waits.

/// The facts about an operation that its caller states.
#[derive(Debug, Clone, Copy)]
pub(super) struct Safety {
    /// `true` if waits do not need a tokio runtime.
    pub(super) own_timer: bool,
    /// `true` if the operation may be carried out twice.
    pub(super) repeatable: bool,
    /// `true` if the operation follows redirects, so that no failure is a proof.
    pub(super) redirects: Option<bool>,
}

impl Default for Safety {
    fn default() -> Self {
        Self { own_timer: false, repeatable: true, redirects: None }
    }
}
