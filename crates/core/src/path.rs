//! The full name of an entity.

use std::fmt;

use crate::{Error, Kind, Name, Result};

/// The names from the metalake down to one entity, and its kind. Two paths are equal when they name the same thing
/// at one moment; what they resolve to may change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    kind: Kind,
    names: Vec<Name>,
}

impl Path {
    /// The path of a metalake.
    pub fn metalake(name: Name) -> Path {
        Path {
            kind: Kind::Metalake,
            names: vec![name],
        }
    }

    /// Looks a path up by its segments, top first. A segment that no rule would have let in cannot exist, so the
    /// answer is [`Error::NotFound`] of that level, without asking the database.
    ///
    /// # Panics
    /// If there are not as many segments as `kind` has levels: the router decides that, not the client.
    pub fn of(kind: Kind, segments: &[&str]) -> Result<Path> {
        let lineage = kind.lineage();
        assert_eq!(lineage.len(), segments.len(), "{kind} needs one segment a level");
        let mut names = Vec::with_capacity(segments.len());
        for (level, segment) in lineage.into_iter().zip(segments) {
            let name = Name::new(*segment).map_err(|_| Error::not_found(level, segments.join(".")))?;
            names.push(name);
        }
        Ok(Path { kind, names })
    }

    /// The path of a child.
    ///
    /// # Panics
    /// If `kind` does not hang under this path's kind.
    #[must_use]
    pub fn child(&self, kind: Kind, name: Name) -> Path {
        assert_eq!(
            kind.parent(),
            Some(self.kind),
            "{kind} does not hang under {}",
            self.kind
        );
        let mut names = self.names.clone();
        names.push(name);
        Path { kind, names }
    }

    /// The path above; none for a metalake.
    pub fn parent(&self) -> Option<Path> {
        let kind = self.kind.parent()?;
        Some(Path {
            kind,
            names: self.names[..self.names.len() - 1].to_vec(),
        })
    }

    /// The same place under another name.
    #[must_use]
    pub fn renamed(&self, name: Name) -> Path {
        let mut names = self.names.clone();
        names.pop();
        names.push(name);
        Path {
            kind: self.kind,
            names,
        }
    }

    /// The kind of what the path names.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The last name.
    #[expect(clippy::expect_used, reason = "every constructor puts at least one name")]
    pub fn name(&self) -> &Name {
        self.names.last().expect("a path has a name")
    }

    /// The names, top first; one for each level of the kind.
    pub fn names(&self) -> &[Name] {
        &self.names
    }

    /// The kinds and names, top first.
    pub fn levels(&self) -> impl Iterator<Item = (Kind, &Name)> {
        self.kind.lineage().into_iter().zip(&self.names)
    }

    /// The path of the ancestor (or self) of that kind.
    ///
    /// # Panics
    /// If `kind` is not on this path.
    #[must_use]
    pub fn up_to(&self, kind: Kind) -> Path {
        let depth = kind.lineage().len();
        assert_eq!(
            self.kind.lineage().get(depth - 1),
            Some(&kind),
            "{kind} is not above {}",
            self.kind
        );
        Path {
            kind,
            names: self.names[..depth].to_vec(),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (level, name) in self.names.iter().enumerate() {
            if level > 0 {
                f.write_str(".")?;
            }
            name.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_that_cannot_be_a_name_is_not_found_at_its_level() {
        let error = Path::of(Kind::Schema, &["ml", " ", "s"]).unwrap_err();
        assert!(matches!(
            error,
            Error::NotFound {
                what: crate::Missing::Entity(Kind::Catalog),
                ..
            }
        ));
    }

    #[test]
    fn child_and_parent_are_each_others_inverse() {
        let catalog = Path::of(Kind::Catalog, &["ml", "c"]).unwrap();
        let schema = catalog.child(Kind::Schema, Name::new("s").unwrap());
        assert_eq!(schema.to_string(), "ml.c.s");
        assert_eq!(schema.parent(), Some(catalog.clone()));
        assert_eq!(schema.up_to(Kind::Catalog), catalog);
    }
}
