//! What one test has counted: the metrics of a process are one for all the tests that run in it at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use metrics::atomics::AtomicU64;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Metadata, Recorder, SharedString, Unit};

/// The counters of one test, those that were counted at all.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<HashMap<Key, Arc<AtomicU64>>>);

impl Counts {
    /// Lives as long as the process, as threads of a runtime may that count here.
    pub(crate) fn new() -> &'static Counts {
        Box::leak(Box::default())
    }

    /// How often the database has said this, as operators see it.
    pub(crate) fn errors(&self, kind: &'static str) -> u64 {
        let labels = vec![Label::new("error", kind)];
        self.of(&Key::from_parts("treeline_database_errors_total", labels))
    }

    /// How often another host has become the primary.
    pub(crate) fn failovers(&self) -> u64 {
        self.of(&Key::from_name("treeline_database_failovers_total"))
    }

    fn of(&self, key: &Key) -> u64 {
        let counters = self.0.lock().unwrap();
        let counter = counters.get(key);
        counter.map_or(0, |counter| counter.load(std::sync::atomic::Ordering::Acquire))
    }
}

impl Recorder for Counts {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let mut counters = self.0.lock().unwrap();
        Counter::from_arc(Arc::clone(counters.entry(key.clone()).or_default()))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}
