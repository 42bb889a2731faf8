//! The one way to what keeps files: each call has a deadline, a span and a metric, and none is made inside a transaction.

use std::time::Duration;

use tokio::time::{Instant, timeout};
use tracing::Instrument;
use treeline_connectors::{LocationStore, Locations};
use treeline_core::{Error, Result};

/// The stores of locations, behind the wrapper. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Places {
    stores: Locations,
    call_max: Duration,
}

impl Places {
    pub(super) fn new(stores: Locations, call_max: Duration) -> Places {
        Places { stores, call_max }
    }

    /// Whether there is a store for that location.
    pub(super) fn reach(&self, location: &str) -> bool {
        self.stores.get(location).is_some()
    }

    /// Asks the store of a location for one thing. Past the deadline nobody waits for it any longer, and what it still
    /// does is nothing that a repeat could not do too.
    pub(super) async fn call<'a, T, F>(
        &'a self,
        action: &'static str,
        location: &'a str,
        call: impl FnOnce(&'a dyn LocationStore) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let store = self.stores.require(location)?;
        treeline_storage::require_no_transaction(action);
        let begun = Instant::now();
        let span = tracing::debug_span!("location", action, location);
        let answered = timeout(self.call_max, call(store).instrument(span)).await;
        let outcome = match &answered {
            Ok(Ok(_)) => "done",
            Ok(Err(_)) => "failed",
            Err(_) => "late",
        };
        metrics::histogram!("treeline_location_call_seconds", "action" => action, "outcome" => outcome)
            .record(begun.elapsed().as_secs_f64());
        answered.unwrap_or_else(|_| {
            let waited = self.call_max.as_millis();
            Err(Error::Unavailable {
                reason: format!("`{location}` has not answered within {waited} ms"),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use treeline_connectors::{AllowedRoots, LocalFiles, Stat};

    use super::*;

    #[tokio::test]
    async fn what_keeps_files_is_never_called_inside_a_transaction() {
        let machine = tempfile::tempdir().unwrap();
        let local = LocalFiles::new(AllowedRoots::new(None, &machine.path().join("data")));
        let places = Places::new(
            Locations::new().with("file", Arc::new(local)),
            Duration::from_secs(10),
        );
        let location = format!("file:{}", machine.path().join("files").display());
        let stat = async move || {
            places
                .call("stat", &location, |store| store.stat(&location))
                .await
        };
        assert_eq!(stat().await, Ok(Stat::Absent));
        let inside = tokio::spawn(async move { treeline_storage::in_transaction(stat()).await });
        assert!(inside.await.unwrap_err().is_panic());
    }
}
