//! Names, their rules per kind, and aliases of model versions.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A name as the database keeps it: 1 to 256 characters, no control characters, and no white space at either end,
/// because MySQL's `utf8mb4_bin` would hold `'a'` and `'a '` for equal while the others would not.
///
/// A kind narrows this further with its [`NameRule`] where names are given; where they are looked up, a name that
/// no rule would have let in simply is not there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    /// The longest name of any kind, in characters. A kind's own rule is narrower.
    pub const CHARS_MAX: usize = 256;

    /// Takes a name that no kind's rule is known for. [`Error::Invalid`] if the database could not keep it.
    pub fn new(text: impl Into<String>) -> Result<Name> {
        let text = text.into();
        match flaw(&text) {
            None => Ok(Name(text)),
            Some(reason) => Err(Error::invalid("name", format!("`{}` {reason}", shortened(&text)))),
        }
    }

    /// The name of version `number` of a model.
    pub fn of_number(number: u32) -> Name {
        Name(number.to_string())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Name {
    type Error = Error;

    fn try_from(text: String) -> Result<Name> {
        Name::new(text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0
    }
}

/// What names of a kind may look like (contract 1.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// ASCII letters, digits and `_`, 1 to 64; `system` is reserved.
    Metalake,
    /// Also `-`, not in front; `*` and `system` are reserved.
    Catalog,
    /// Also `/` and `=`, not in front; `*` is reserved.
    Default,
    /// As [`NameRule::Default`] without `/`.
    NoSlash,
    /// A decimal number, given by the store and never by a client.
    Number,
}

impl NameRule {
    /// The longest name that a client may give, in characters.
    pub const CHARS_MAX: usize = 64;

    /// Checks a name that a client gives to something new. [`Error::Invalid`] tells an ill-formed name from a
    /// reserved one.
    pub fn check(self, text: &str) -> Result<Name> {
        if self.reserved().contains(&text) {
            return Err(Error::invalid("name", format!("`{text}` is reserved")));
        }
        let length = text.chars().count();
        let mut characters = text.chars();
        let well_formed = characters.next().is_some_and(is_word)
            && characters.all(|character| is_word(character) || self.extra().contains(&character))
            && length <= NameRule::CHARS_MAX;
        if !well_formed {
            let reason = format!(
                "`{}` is ill-formed: 1 to {} characters of {}, beginning with a letter, a digit or `_`",
                shortened(text),
                NameRule::CHARS_MAX,
                self.alphabet(),
            );
            return Err(Error::invalid("name", reason));
        }
        Name::new(text)
    }

    /// The same as a regular expression, but for the reserved names.
    pub const fn pattern(self) -> &'static str {
        match self {
            NameRule::Metalake => r"^[A-Za-z0-9_]{1,64}$",
            NameRule::Catalog => r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$",
            NameRule::Default => r"^[A-Za-z0-9_][A-Za-z0-9_/=-]{0,63}$",
            NameRule::NoSlash => r"^[A-Za-z0-9_][A-Za-z0-9_=-]{0,63}$",
            NameRule::Number => r"^[0-9]{1,64}$",
        }
    }

    fn reserved(self) -> &'static [&'static str] {
        match self {
            NameRule::Metalake => &["system"],
            NameRule::Catalog => &["*", "system"],
            NameRule::Default | NameRule::NoSlash => &["*"],
            NameRule::Number => &[],
        }
    }

    fn extra(self) -> &'static [char] {
        match self {
            NameRule::Metalake | NameRule::Number => &[],
            NameRule::Catalog => &['-'],
            NameRule::Default => &['/', '=', '-'],
            NameRule::NoSlash => &['=', '-'],
        }
    }

    fn alphabet(self) -> &'static str {
        match self {
            NameRule::Metalake => "A-Z a-z 0-9 _",
            NameRule::Catalog => "A-Z a-z 0-9 _ -",
            NameRule::Default => "A-Z a-z 0-9 _ / = -",
            NameRule::NoSlash => "A-Z a-z 0-9 _ = -",
            NameRule::Number => "0-9",
        }
    }
}

/// Another name of a model version, unique in its model: not blank, and never a number, so that a look-up by alias
/// cannot be mistaken for one by number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Alias(String);

impl Alias {
    /// Takes an alias from outside. [`Error::Invalid`] if it is blank, a number, or nothing that a database keeps.
    pub fn new(text: impl Into<String>) -> Result<Alias> {
        let text = text.into();
        let reason = match flaw(&text) {
            Some(reason) => Some(reason),
            None if text.parse::<i128>().is_ok() => Some("is a number; numbers name versions"),
            None => None,
        };
        match reason {
            None => Ok(Alias(text)),
            Some(reason) => Err(Error::invalid(
                "aliases",
                format!("`{}` {reason}", shortened(&text)),
            )),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Alias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Alias {
    type Error = Error;

    fn try_from(text: String) -> Result<Alias> {
        Alias::new(text)
    }
}

impl From<Alias> for String {
    fn from(alias: Alias) -> String {
        alias.0
    }
}

/// Why the database could not keep this text as a name.
fn flaw(text: &str) -> Option<&'static str> {
    if text.trim().is_empty() {
        Some("is blank")
    } else if text.trim() != text {
        Some("has white space at an end")
    } else if text.chars().any(char::is_control) {
        Some("has a control character")
    } else if text.chars().count() > Name::CHARS_MAX {
        Some("is longer than 256 characters")
    } else {
        None
    }
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// Keeps an error readable when the name is not.
fn shortened(text: &str) -> String {
    const SHOWN_MAX: usize = 80;
    match text.char_indices().nth(SHOWN_MAX) {
        None => text.escape_debug().to_string(),
        Some((end, _)) => format!("{}…", text[..end].escape_debug()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_four_characters_are_a_name_and_sixty_five_are_not() {
        for rule in [
            NameRule::Metalake,
            NameRule::Catalog,
            NameRule::Default,
            NameRule::NoSlash,
        ] {
            assert!(rule.check(&"a".repeat(64)).is_ok());
            assert!(rule.check(&"a".repeat(65)).is_err());
            assert!(rule.check("").is_err());
            assert!(rule.check(" a").is_err());
            assert!(rule.check("a ").is_err());
            assert!(rule.check("-a").is_err());
            assert!(rule.check("ä").is_err());
        }
    }

    #[test]
    fn each_rule_has_its_alphabet_and_its_reserved_words() {
        assert!(NameRule::Metalake.check("a-b").is_err());
        assert!(NameRule::Catalog.check("a-b").is_ok());
        assert!(NameRule::Catalog.check("a=b").is_err());
        assert!(NameRule::Default.check("a/b=c-d").is_ok());
        assert!(NameRule::NoSlash.check("a/b").is_err());
        assert!(
            NameRule::Metalake
                .check("system")
                .unwrap_err()
                .to_string()
                .contains("reserved")
        );
        assert!(
            NameRule::Catalog
                .check("*")
                .unwrap_err()
                .to_string()
                .contains("reserved")
        );
    }

    #[test]
    fn an_alias_is_never_a_number() {
        assert!(Alias::new("prod").is_ok());
        for text in ["", " ", "1", "-1", "+7", "99999999999999999999", " prod"] {
            assert!(Alias::new(text).is_err(), "{text}");
        }
    }
}
