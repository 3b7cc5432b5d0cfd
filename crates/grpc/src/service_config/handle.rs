//! A channel's current service config, which can be replaced while calls are in flight, and the channel's throttle.
//!
//! Calls look up a method's policy without locking or allocating.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use super::{MethodConfig, ServiceConfig, ServiceConfigErrors};
use crate::RetryThrottle;

/// A channel's current service config, which can be replaced at any time.
///
/// Clones share the config: keep one clone to [`update`](Self::update) it, and pass the others to layers. A call uses
/// the policy in force when it starts.
///
/// | event | config in force |
/// |---|---|
/// | [`new`](Self::new), [`use_default`](Self::use_default) | the default |
/// | [`update`](Self::update) with a valid config | that config |
/// | [`update`](Self::update) with an invalid one | unchanged |
/// | [`unresolved`](Self::unresolved), until `use_default` or a valid `update` | none, not even the default; calls must fail |
///
/// The [`throttle`](Self::throttle) survives all changes. If `retryThrottling` changes, the bucket stays filled to the
/// same fraction.
///
/// ```
/// # use reattempt_grpc::{ServiceConfig, ServiceConfigHandle};
///
/// let handle = ServiceConfigHandle::new(ServiceConfig::default());
/// let text = r#"{ "methodConfig": [{ "name": [{}], "timeout": "2s" }] }"#;
/// handle.update(ServiceConfig::parse(text))?;
/// let method = handle.for_method("/inventory.Stock/Count")?.unwrap();
/// assert_eq!(method.timeout.unwrap().as_secs(), 2);
///
/// // An invalid config changes nothing.
/// handle.update(ServiceConfig::parse("[]")).unwrap_err();
/// assert!(handle.for_method("/inventory.Stock/Count")?.is_some(), "the last good one stays");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// CALL-6, SC-6
#[derive(Clone)]
pub struct ServiceConfigHandle {
    shared: Arc<Shared>,
}

struct Shared {
    /// The config in force until another one is supplied.
    default: Arc<ServiceConfig>,
    in_force: ArcSwap<Choice>,
    throttle: RetryThrottle,
    /// Held during a change, so that config and throttle change in the same order.
    changing: Mutex<()>,
}

type Choice = Result<Arc<ServiceConfig>, NoServiceConfig>;

impl ServiceConfigHandle {
    /// Creates a handle with `default` in force.
    pub fn new(default: ServiceConfig) -> Self {
        let default = Arc::new(default);
        Self::of(Ok(Arc::clone(&default)), default)
    }

    /// Creates a handle without a config, for configs that come from name resolution.
    ///
    /// The first [`update`](Self::update) with a valid config, or [`use_default`](Self::use_default), ends this state.
    pub fn unresolved(default: ServiceConfig) -> Self {
        Self::of(Err(NoServiceConfig { errors: None }), Arc::new(default))
    }

    fn of(choice: Choice, default: Arc<ServiceConfig>) -> Self {
        let throttling = choice.as_ref().ok().and_then(|config| config.retry_throttling());
        let shared = Shared {
            default,
            in_force: ArcSwap::from_pointee(choice),
            throttle: RetryThrottle::new(throttling),
            changing: Mutex::new(()),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Replaces the config in force.
    ///
    /// Pass the whole result of [`ServiceConfig::parse`], [`load`](ServiceConfig::load) or a
    /// [`lenient`](ServiceConfig::lenient) reader, without `?`. A handle without a config stores the errors and reports
    /// them to failing calls.
    ///
    /// # Errors
    ///
    /// If `read` is an error, this method returns it, and the config in force is unchanged.
    pub fn update(&self, read: Result<ServiceConfig, ServiceConfigErrors>) -> Result<(), ServiceConfigErrors> {
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

    /// Reverts to the default config. Call it when the config source no longer supplies a config.
    pub fn use_default(&self) {
        self.choose(Arc::clone(&self.shared.default));
    }

    fn choose(&self, config: Arc<ServiceConfig>) {
        let _changing = self.shared.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.throttle.configure(config.retry_throttling());
        self.shared.in_force.store(Arc::new(Ok(config)));
    }

    /// Stores the errors for calls that fail because no config is in force.
    fn note(&self, errors: &ServiceConfigErrors) {
        let _changing = self.shared.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.shared.in_force.load().is_err() {
            let errors = Some(Arc::new(errors.clone()));
            self.shared.in_force.store(Arc::new(Err(NoServiceConfig { errors })));
        }
    }

    /// Returns the config in force.
    ///
    /// # Errors
    ///
    /// Returns an error if an [`unresolved`](Self::unresolved) handle has no config yet.
    pub fn current(&self) -> Result<Arc<ServiceConfig>, NoServiceConfig> {
        Choice::clone(&self.shared.in_force.load())
    }

    /// Returns the policy of a method in the config in force, as [`ServiceConfig::for_method`] does.
    ///
    /// This method neither allocates nor blocks. Later configs do not change the returned policy.
    ///
    /// # Errors
    ///
    /// Returns an error if an [`unresolved`](Self::unresolved) handle has no config yet.
    #[inline]
    pub fn for_method(&self, path: &str) -> Result<Option<Arc<MethodConfig>>, NoServiceConfig> {
        match &**self.shared.in_force.load() {
            Ok(config) => Ok(config.entry(path).map(Arc::clone)),
            Err(none) => Err(none.clone()),
        }
    }

    /// Returns the throttle for all calls on the channel. A new config does not replace it.
    // THR-1
    pub fn throttle(&self) -> &RetryThrottle {
        &self.shared.throttle
    }
}

/// A handle whose default is the empty config.
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

/// The error returned by a [`ServiceConfigHandle`] that has no config yet. Calls must fail with UNAVAILABLE.
// SC-6
#[derive(Debug, Clone)]
pub struct NoServiceConfig {
    errors: Option<Arc<ServiceConfigErrors>>,
}

impl NoServiceConfig {
    /// Returns the errors in the last invalid config, if there was one.
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
    /// Returns the errors in the last config supplied.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.errors.as_deref().map(|errors| errors as &(dyn Error + 'static))
    }
}
