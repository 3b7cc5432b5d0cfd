//! The plan of one run: layers, calls and the servers' acts.

/// A layer with its settings; times are in milliseconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Layer {
    Retry {
        attempts: u32,
        delay: u64,
        attempt_timeout: Option<u64>,
        clone_per_call: bool,
        redirects_below: Option<bool>,
    },
    Hedge {
        delay: u64,
    },
    Resume {
        attempts: u32,
        delay: u64,
    },
    /// A fallback to a second server of the cluster, optionally with its own retries.
    Backup {
        retries: bool,
        redirects_below: Option<bool>,
    },
    /// A fallback that is a function.
    Spare,
    Follow {
        /// `true` if the policy clones bodies, so that a 307 is followed whatever the body.
        clones: bool,
    },
    /// Guards in one layer.
    Guards {
        kinds: Vec<Kind>,
        attempt_timeout: Option<u64>,
    },
    /// Several servers, each of which is the rest of the stack.
    Endpoints {
        servers: usize,
        source: Source,
        /// `true` if the second half of the servers is another tier.
        tiers: bool,
        ejects: bool,
        attempt_timeout: Option<u64>,
        /// The treatment of requests for other hosts.
        foreign: Foreign,
        /// `true` if the servers' URLs have a path.
        prefix: bool,
    },
    /// A service that makes a call of its own in each `call`.
    Nested,
    /// A service that answers some requests without sending them.
    Answers,
    /// A service that drops request bodies unread.
    DropsBodies,
    /// Short bodies are read as part of their attempt, those of unknown length for this time.
    Peek {
        within: u64,
    },
    LoadShed,
    Limit(usize),
    Buffer(usize),
    Timeout(u64),
}

/// The treatment of requests that are for no server of a set of URLs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Foreign {
    Pass,
    Refuse,
    Base,
}

/// A source of several servers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Source {
    /// Base URLs.
    Urls,
    List,
    /// A look-up whose answers differ, fail, hang or panic.
    LookUp,
}

/// A kind of guard.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Breaker,
    /// Calls wait for their tokens.
    Rate,
    /// Calls without a token are refused.
    RateNoQueue,
    Bulkhead,
    BulkheadQueue,
    Adaptive,
    Throttle,
    SendRate,
    Pace,
    PaceNoQueue,
    /// Calls wait for the end of the pause.
    Pause,
    /// Calls during the pause are refused.
    PauseNoQueue,
}

impl Kind {
    /// Returns `true` if calls wait for the guard.
    pub(crate) fn makes_wait(self) -> bool {
        matches!(self, Self::Rate | Self::BulkheadQueue | Self::Adaptive | Self::SendRate | Self::Pace | Self::Pause)
    }
}

/// A server's act on one arrival.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Act {
    pub(crate) answer: Answer,
    /// The time until the response, in milliseconds.
    pub(crate) after: u64,
    /// `true` if the server carries out the request.
    pub(crate) works: bool,
    /// `true` if it does so before that time, otherwise after it.
    pub(crate) early: bool,
    /// `true` if the server reads the body first. A working server always does.
    pub(crate) reads: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Answer {
    Ok,
    /// The head is sent at once, and the body later.
    SlowBody,
    /// The body breaks off.
    TornBody,
    /// A version of a file, or its missing rest if that is what the request asks for. See [`file`](super::file).
    File {
        version: u8,
        /// The maximum number of bytes of this response, after which the body breaks.
        bytes: usize,
        slow: bool,
    },
    SeeOther,
    TemporaryRedirect,
    /// A redirect to another host.
    SeeOtherHost,
    TooMany {
        retry_after: Option<u64>,
    },
    Unavailable,
    Error,
    NotConnected,
    Lost,
    Hang,
    Panic,
    /// Panics in `call`.
    PanicInCall,
}

/// The state of a server instance when it is first polled for readiness.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Readiness {
    Now,
    After(u64),
    Never,
    Panic,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Method {
    Get,
    Put,
    Post,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Content {
    Empty,
    Memory,
    Streamed,
}

/// The reason why a POST may be repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mark {
    None,
    Key,
    Repeatable,
}

/// The target of a request.
pub(crate) const TARGETS: [&str; 9] = [
    "http://one.example/api/",
    "http://one.example/api/things?page=2",
    "/api/things",
    "http://evil.example/api/",
    "http://one.example@evil.example/api/",
    "http://one.example/api/../admin",
    "/%2e%2e/admin",
    "http://two.example/api/..%2fadmin",
    "*",
];

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Call {
    /// The index of its target.
    pub(crate) target: usize,
    pub(crate) method: Method,
    pub(crate) content: Content,
    pub(crate) mark: Mark,
    pub(crate) starts: u64,
    pub(crate) deadline: Option<u64>,
    pub(crate) dropped_after: Option<u64>,
}

/// Everything that happens in one run.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// From the outside in.
    pub(crate) layers: Vec<Layer>,
    pub(crate) calls: Vec<Call>,
    /// The acts of all servers in order of arrival. Afterwards they serve.
    pub(crate) acts: Vec<Act>,
    /// The instances' states in the order in which they are polled. Afterwards each is ready at once.
    pub(crate) readiness: Vec<Readiness>,
    /// `true` where an observer, a budget or a permit panics, in the order in which they are called.
    pub(crate) upsets: Vec<bool>,
    /// The statuses of [`Layer::Answers`], `None` where it sends the request.
    pub(crate) own_answers: Vec<Option<u16>>,
}

impl Act {
    pub(crate) const SERVES: Self = Self { answer: Answer::Ok, after: 0, works: true, early: true, reads: true };
}

impl Call {
    pub(crate) const GET: Self = Self {
        target: 0,
        method: Method::Get,
        content: Content::Empty,
        mark: Mark::None,
        starts: 0,
        deadline: None,
        dropped_after: None,
    };

    /// Returns `true` if each set of servers sends it to one of them.
    pub(crate) fn is_for_base(&self) -> bool {
        self.target < 3
    }

    /// Returns `true` if no server may carry it out twice.
    pub(crate) fn is_unsafe(&self) -> bool {
        self.method == Method::Post && self.mark == Mark::None
    }
}

impl Plan {
    /// Returns `true` if a matching layer is outside the layer with this index.
    pub(crate) fn is_below(&self, index: usize, of: impl Fn(&Layer) -> bool) -> bool {
        self.layers[..index].iter().any(of)
    }
}
