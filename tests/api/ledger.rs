//! What clients were told, beside what the database holds: a register a thing, with its last acknowledged value and
//! the write that nobody has answered yet.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde_json::Value;
use treeline_tests::Rows;

/// The registers of one writer, or of all of them together.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    registers: BTreeMap<String, Register>,
}

/// No value stands for a thing that is not there.
#[derive(Debug, Default)]
struct Register {
    acknowledged: Option<String>,
    pending: Option<Option<String>>,
}

impl Ledger {
    /// A write is about to be sent.
    pub(crate) fn begin(&mut self, key: &str, value: Option<String>) {
        self.registers.entry(key.to_owned()).or_default().pending = Some(value);
    }

    /// The write that was sent last was answered with success.
    pub(crate) fn acknowledge(&mut self, key: &str) {
        let register = self.registers.entry(key.to_owned()).or_default();
        if let Some(value) = register.pending.take() {
            register.acknowledged = value;
        }
    }

    /// What was acknowledged last; none for what is not there.
    pub(crate) fn known(&self, key: &str) -> Option<&str> {
        self.registers.get(key)?.acknowledged.as_deref()
    }

    /// Compares with what is there after a crash: what was acknowledged, or what was pending, and nothing else.
    /// What is there becomes what is known.
    pub(crate) fn reconcile(&mut self, actual: &BTreeMap<String, String>) -> Result<()> {
        for (key, register) in &mut self.registers {
            let found = actual.get(key).cloned();
            let pending = register.pending.take();
            ensure!(
                found == register.acknowledged || Some(&found) == pending.as_ref(),
                "`{key}` is {found:?}; acknowledged was {:?}, pending {pending:?}",
                register.acknowledged,
            );
            register.acknowledged = found;
        }
        let invented = actual.keys().find(|key| !self.registers.contains_key(*key));
        ensure!(invented.is_none(), "nobody wrote {invented:?}");
        Ok(())
    }
}

/// The registers as the database has them: the property `p` of each fileset, the properties of the schema, and how
/// many versions each model has.
pub(crate) fn registers_in(rows: &Rows) -> Result<BTreeMap<String, String>> {
    let mut registers = BTreeMap::new();
    for fileset in rows.live("fileset") {
        let value = properties(fileset)?["p"].as_str().unwrap_or("none").to_owned();
        registers.insert(format!("fileset {}", text(&fileset["name"])), value);
    }
    for schema in rows.live("schema") {
        for (key, value) in properties(schema)?.as_object().into_iter().flatten() {
            registers.insert(format!("schema {key}"), text(value).to_owned());
        }
    }
    for model in rows.live("model") {
        let versions = rows
            .live("model_version")
            .filter(|version| version["parent_id"] == model["id"])
            .count();
        registers.insert(format!("model {}", text(&model["name"])), versions.to_string());
    }
    Ok(registers)
}

fn properties(entity: &Value) -> Result<Value> {
    let payload: Value = serde_json::from_str(text(&entity["payload"]))?;
    Ok(payload["properties"].clone())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
