//! Who made and last changed an entity, and when.

use serde::{Deserialize, Serialize};

/// The audit of one row. Times are milliseconds since 1970 on the database's clock, which all servers share;
/// they tell people when something happened and never order anything: versions do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// The principal that created the entity.
    pub creator: String,
    /// When it was created.
    pub created_at_ms: i64,
    /// The principal of the last effective change; none until the first.
    pub last_modifier: Option<String>,
    /// When that change was made; none until the first.
    pub last_modified_at_ms: Option<i64>,
}
