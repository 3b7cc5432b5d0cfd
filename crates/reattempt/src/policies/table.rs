//! The table of policies, and the choice of a policy for each request.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use reattempt_engine::classify::RequestView;
use reattempt_engine::protocol::RequestProtocol;

use super::PolicyStack;

/// A condition on a request.
type Matches = Box<dyn Fn(RequestView<'_>) -> bool + Send + Sync>;

/// A function that returns the number of a request's policy.
type Choose = Box<dyn Fn(RequestView<'_>) -> usize + Send + Sync>;

/// A list of policies with the conditions under which they apply.
///
/// The first policy whose condition is true applies. If no condition is true, the default applies. The conditions run
/// at the start of each call and must not block.
pub struct PolicyTable<P: RequestProtocol> {
    /// The policies. The default comes first.
    pub(super) stacks: Vec<PolicyStack<P>>,
    /// The conditions, each with the index of its policy.
    routes: Vec<(Matches, usize)>,
    /// The function that replaces the conditions.
    choose: Option<Choose>,
    /// A value that is kept alive while clients use the policies.
    _owner: Option<Arc<dyn Any + Send + Sync>>,
}

impl<P: RequestProtocol> PolicyTable<P> {
    /// Creates a table whose only policy applies to every request.
    pub fn new(default: PolicyStack<P>) -> Self {
        Self { stacks: vec![default], routes: Vec::new(), choose: None, _owner: None }
    }

    /// Adds a policy and its condition, after those added earlier.
    pub fn or(
        mut self,
        stack: PolicyStack<P>,
        matches: impl Fn(RequestView<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.routes.push((Box::new(matches), self.stacks.len()));
        self.stacks.push(stack);
        self
    }

    /// Adds another condition for the most recently added policy, or for the default if there is none.
    pub fn or_if(mut self, matches: impl Fn(RequestView<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.routes.push((Box::new(matches), self.stacks.len() - 1));
        self
    }

    /// Sets a function that chooses the policy in place of the conditions. By default, the conditions are tried one by
    /// one; with thousands of policies, an index is faster.
    ///
    /// The function returns the number of the policy: 0 for the default, 1 for the first policy that was
    /// [added](Self::or), and so on. An unknown number is the default's.
    ///
    /// ```
    /// use reattempt::Http;
    /// use reattempt::policies::{PolicyStack, PolicyTable};
    ///
    /// let mut table = PolicyTable::new(PolicyStack::new(Http::new()));
    /// let mut numbers = std::collections::HashMap::new();
    /// for (number, path) in ["/orders", "/stock"].into_iter().enumerate() {
    ///     table = table.or(PolicyStack::new(Http::new()), |_| false);
    ///     numbers.insert(path, number + 1);
    /// }
    /// let table = table.choose_by(move |request| numbers.get(request.path()).copied().unwrap_or(0));
    /// ```
    pub fn choose_by(self, choose: impl Fn(RequestView<'_>) -> usize + Send + Sync + 'static) -> Self {
        Self { choose: Some(Box::new(choose)), ..self }
    }

    /// Keeps a value, for example the task that replaces the table, alive while the table is current or a client uses
    /// it.
    pub fn owned_by(self, owner: Arc<dyn Any + Send + Sync>) -> Self {
        Self { _owner: Some(owner), ..self }
    }

    /// Returns the index of the policy for a request.
    #[inline]
    pub(super) fn choose(&self, request: RequestView<'_>) -> usize {
        if let Some(choose) = &self.choose {
            let number = choose(request);
            return if number < self.stacks.len() { number } else { 0 };
        }
        let route = self.routes.iter().find(|(matches, _)| matches(request));
        route.map_or(0, |(_, place)| *place)
    }
}

impl<P: RequestProtocol + fmt::Debug> fmt::Debug for PolicyTable<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyTable").field("stacks", &self.stacks).finish_non_exhaustive()
    }
}
