//! Group commit.
