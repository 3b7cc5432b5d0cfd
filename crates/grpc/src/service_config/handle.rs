//! The service config of a channel as it stands now, changed while calls are under way.
//!
//! The handle can be given another config, or none, at any time. Calls read the policy of a method without a lock
//! and without allocation. The handle also holds the throttle of the channel.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use super::{MethodConfig, ServiceConfig, ServiceConfigErrors};
use crate::Throttle;

/// The service config that is in force on a channel, which can be replaced at any time.
///
/// Clones share it: keep one to [`update`](Self::update), give others away. A call keeps what it was
/// given at its start, whatever becomes of the config meanwhile (rule CALL-6).
///
/// The config is what was chosen last, be that a valid one or the client's default, where none is
/// supplied; an invalid one changes nothing (rule SC-6). As long as nothing has been chosen at all
/// there is no config, not even the default, and calls have to fail: that state is that of an
/// [`unresolved`](Self::unresolved) handle only.
///
/// The throttle stays the same over all changes. A config with the same `retryThrottling` leaves its
/// bucket alone, and one with other numbers keeps its level, as a part of what it can hold.
///
/// ```
/// use reattempt_grpc::{ServiceConfig, ServiceConfigHandle};
///
/// let handle = ServiceConfigHandle::new(ServiceConfig::default());
/// let text = r#"{ "methodConfig": [{ "name": [{}], "timeout": "2s" }] }"#;
/// handle.update(ServiceConfig::parse(text))?;
/// let method = handle.for_method("/inventory.Stock/Count")?.unwrap();
/// assert_eq!(method.timeout.unwrap().as_secs(), 2);
///
/// // A file with an error in it, for example.
/// handle.update(ServiceConfig::parse("[]")).unwrap_err();
/// assert!(handle.for_method("/inventory.Stock/Count")?.is_some(), "the last good one stays");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ServiceConfigHandle {
    shared: Arc<Shared>,
}

struct Shared {
    /// In force where none is supplied.
    default: Arc<ServiceConfig>,
    in_force: ArcSwap<Choice>,
    throttle: Throttle,
    /// Held by whoever changes the config, so that config and throttle change in the same order.
    changing: Mutex<()>,
}

type Choice = Result<Arc<ServiceConfig>, NoServiceConfig>;

impl ServiceConfigHandle {
    /// A handle on which none has been supplied so far, so that `default` is in force.
    pub fn new(default: ServiceConfig) -> Self {
        let default = Arc::new(default);
        Self::of(Ok(Arc::clone(&default)), default)
    }

    /// A handle for which nothing has been chosen yet: there is no config before the first
    /// [`update`](Self::update) with a valid one, or [`use_default`](Self::use_default).
    ///
    /// For configs that come with the resolution of a name, which has not ended yet.
    pub fn unresolved(default: ServiceConfig) -> Self {
        Self::of(Err(NoServiceConfig { errors: None }), Arc::new(default))
    }

    fn of(choice: Choice, default: Arc<ServiceConfig>) -> Self {
        let throttling = choice.as_ref().ok().and_then(|config| config.retry_throttling());
        let shared = Shared {
            default,
            in_force: ArcSwap::from_pointee(choice),
            throttle: Throttle::new(throttling),
            changing: Mutex::new(()),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Puts the config that has been read in force; one that is invalid changes nothing.
    ///
    /// Takes what [`ServiceConfig::parse`], [`load`](ServiceConfig::load) or a
    /// [`lenient`](ServiceConfig::lenient) reader returns.
    ///
    /// # Errors
    ///
    /// The errors that it was given.
    pub fn update(
        &self,
        read: Result<ServiceConfig, ServiceConfigErrors>,
    ) -> Result<(), ServiceConfigErrors> {
        match read {
            Ok(config) => {
                self.choose(Arc::new(config));
                Ok(())
            }
            Err(errors) => {
                self.note(&errors);
                Err(errors)
            }
        }
    }

    /// No config is supplied, or no more: the default is in force.
    pub fn use_default(&self) {
        self.choose(Arc::clone(&self.shared.default));
    }

    fn choose(&self, config: Arc<ServiceConfig>) {
        let _changing = self.shared.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.throttle.configure(config.retry_throttling());
        self.shared.in_force.store(Arc::new(Ok(config)));
    }

    /// Where nothing has been chosen, calls are to be told why.
    fn note(&self, errors: &ServiceConfigErrors) {
        let _changing = self.shared.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.shared.in_force.load().is_err() {
            let errors = Some(Arc::new(errors.clone()));
            self.shared.in_force.store(Arc::new(Err(NoServiceConfig { errors })));
        }
    }

    /// The config that is in force.
    ///
    /// # Errors
    ///
    /// If nothing has been chosen yet.
    pub fn current(&self) -> Result<Arc<ServiceConfig>, NoServiceConfig> {
        Choice::clone(&self.shared.in_force.load())
    }

    /// Returns the policy of a method in the config in force, by its path: "/service/method". See
    /// [`ServiceConfig::for_method`].
    ///
    /// Never allocates or waits. The policy returned does not change with later configs.
    ///
    /// # Errors
    ///
    /// If nothing has been chosen yet.
    #[inline]
    pub fn for_method(&self, path: &str) -> Result<Option<Arc<MethodConfig>>, NoServiceConfig> {
        match &**self.shared.in_force.load() {
            Ok(config) => Ok(config.entry(path).map(Arc::clone)),
            Err(none) => Err(none.clone()),
        }
    }

    /// The throttle of all calls, the same for as long as the handle lives (rule THR-1).
    pub fn throttle(&self) -> &Throttle {
        &self.shared.throttle
    }
}

/// The empty config as the default.
impl Default for ServiceConfigHandle {
    fn default() -> Self {
        Self::new(ServiceConfig::default())
    }
}

impl From<ServiceConfig> for ServiceConfigHandle {
    fn from(default: ServiceConfig) -> Self {
        Self::new(default)
    }
}

impl fmt::Debug for ServiceConfigHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceConfigHandle")
            .field("current", &self.current())
            .field("throttle", &self.shared.throttle)
            .finish_non_exhaustive()
    }
}

/// No service config has been chosen yet, so that calls have to fail with UNAVAILABLE (rule SC-6).
#[derive(Debug, Clone)]
pub struct NoServiceConfig {
    errors: Option<Arc<ServiceConfigErrors>>,
}

impl NoServiceConfig {
    /// Returns the errors of the config that was supplied last, if any was supplied.
    pub fn errors(&self) -> Option<&ServiceConfigErrors> {
        self.errors.as_deref()
    }
}

impl fmt::Display for NoServiceConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.errors {
            Some(_) => "no valid service config has been supplied yet",
            None => "no service config has been chosen yet",
        })
    }
}

impl Error for NoServiceConfig {
    /// Returns the errors of the config that was supplied last.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.errors.as_deref().map(|errors| errors as &(dyn Error + 'static))
    }
}
