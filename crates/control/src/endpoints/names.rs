//! The names of endpoints by their numbers, for reports and errors.
//!
//! An attempt that succeeds needs no name, so calls carry numbers. The layer that reports a failure looks up the name,
//! and by then the endpoint may be gone.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use super::trail::EndpointId;

/// The maximum number of names kept for endpoints that have left their sets.
const REMEMBERED: usize = 1024;

/// The names of all endpoints of the process.
#[derive(Default)]
struct Names {
    by_id: HashMap<EndpointId, Arc<str>>,
    gone: VecDeque<EndpointId>,
}

fn names() -> MutexGuard<'static, Names> {
    static NAMES: LazyLock<Mutex<Names>> = LazyLock::new(Mutex::default);
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number and the name of an endpoint.
pub(crate) struct Named {
    pub(crate) id: EndpointId,
    pub(crate) name: Arc<str>,
}

impl Named {
    /// Assigns a new number to this name.
    pub(crate) fn new(name: Arc<str>) -> Self {
        let id = EndpointId::next();
        names().by_id.insert(id, Arc::clone(&name));
        Self { id, name }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let mut names = names();
        names.gone.push_back(self.id);
        if names.gone.len() > REMEMBERED
            && let Some(oldest) = names.gone.pop_front()
        {
            names.by_id.remove(&oldest);
        }
    }
}

impl EndpointId {
    /// Returns the name of the endpoint. Returns `None` if the name was forgotten, because the endpoint and then a
    /// thousand others have left their sets.
    pub fn name(self) -> Option<Arc<str>> {
        names().by_id.get(&self).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of endpoints that have left their sets are kept for a while, but not forever.
    #[test]
    fn names_of_the_gone_are_bounded() {
        let [first, last] = ["first", "last"].map(|name| Named::new(name.into()));
        let (first_id, last_id) = (first.id, last.id);
        drop(first);
        assert_eq!(first_id.name().as_deref(), Some("first"));
        (0..REMEMBERED).for_each(|_| drop(Named::new("another".into())));
        drop(last);
        assert_eq!(first_id.name(), None);
        assert_eq!(last_id.name().as_deref(), Some("last"));
        assert_eq!(names().gone.len(), REMEMBERED);
    }
}
