//! The stores that there are, by the scheme of their locations.

use std::collections::BTreeMap;
use std::sync::Arc;

use treeline_core::Result;

use crate::LocationStore;
use crate::location::{refused, scheme_of};

/// One store a scheme. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Locations {
    stores: BTreeMap<&'static str, Arc<dyn LocationStore>>,
}

impl Locations {
    /// A registry of nothing.
    pub fn new() -> Locations {
        Locations::default()
    }

    /// The same registry with a store for one more scheme (in lower case).
    #[must_use]
    pub fn with(mut self, scheme: &'static str, store: Arc<dyn LocationStore>) -> Locations {
        self.stores.insert(scheme, store);
        self
    }

    /// The store of a qualified location; none where its scheme has none.
    pub fn get(&self, location: &str) -> Option<&dyn LocationStore> {
        self.stores.get(scheme_of(location)).map(Arc::as_ref)
    }

    /// The store of a qualified location. [`treeline_core::Error::Invalid`] names the schemes that there are.
    pub fn require(&self, location: &str) -> Result<&dyn LocationStore> {
        self.get(location).ok_or_else(|| {
            let schemes: Vec<&str> = self.stores.keys().copied().collect();
            let reason = format!(
                "has a scheme that this server cannot reach; it has: {}",
                schemes.join(", ")
            );
            refused(location, &reason)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AllowedRoots, LocalFiles};

    #[test]
    fn an_unknown_scheme_is_answered_with_the_known_ones() {
        let data = tempfile::tempdir().unwrap();
        let local = LocalFiles::new(AllowedRoots::new(None, data.path()));
        let locations = Locations::new().with("file", Arc::new(local));
        assert!(locations.get("file:/tmp/a").is_some());
        assert!(locations.get("s3://bucket/a").is_none());
        let error = locations.require("s3://bucket/a").unwrap_err().to_string();
        assert!(
            error.contains("s3://bucket/a") && error.ends_with("it has: file"),
            "{error}"
        );
    }
}
