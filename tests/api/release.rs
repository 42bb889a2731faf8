//! What a release must not hold: the places where tests can stop it, and the rules that they can switch off.

use anyhow::{Result, ensure};
use treeline_tests::binary;

/// Names that only a build with the feature `test-hooks` has in it. The binary that all these suites run is the one that
/// is shipped, so it is enough to look into that.
#[test]
fn the_release_binary_has_no_sync_point_and_no_mutant() -> Result<()> {
    let bytes = std::fs::read(binary()?)?;
    let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    ensure!(holds("If-None-Match"), "texts of the binary can be found at all");
    for name in [
        "create.parent_locked",
        "update.written",
        "drop.children_checked",
        "purge.claimed",
        "migrate.begun",
        "m-version-predicate",
        "m-lock-then-look",
        "m-idempotency-tx",
        "m-feed-tx",
        "TREELINE_MUTANTS",
        "TREELINE_TEST_LISTEN",
        "test-clock-skew",
        "test-hold",
    ] {
        ensure!(!holds(name), "the release binary knows `{name}`");
    }
    Ok(())
}
