//! The schemas and examples of bodies, from the types that read and write them.

use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};
use treeline_core::kinds::{Catalog, Fileset, Metalake, Model, ModelVersion, Schema};
use treeline_core::{Audit, Entity, EntityId, Kind, Name, Payload, Version as RowVersion};

use crate::envelope::ErrorBody;
use crate::kinds::{FileInfo, ModelVersionLink};
use crate::local_locks::LocalLocks;
use crate::operations::Verb;
use crate::system::{Configs, HealthReport, SecretProviders, Version};
use crate::wire::{Create, Identifier, Listing, Moment, SwitchBody, Updates, Wire};

/// What is generated so far: requests and answers have rules of their own for what may be left out.
pub(super) struct Schemas {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
}

/// A body that clients send.
pub(super) struct RequestDocs {
    pub schema: Value,
    pub example: Value,
}

/// A body that clients get.
pub(super) struct AnswerDocs {
    pub schema: Value,
    pub example: Option<Value>,
    /// Whether it comes with the tag of an entity.
    pub tagged: bool,
}

impl Schemas {
    pub(super) fn new() -> Schemas {
        let generator = |contract: Contract| {
            let mut settings = SchemaSettings::draft2020_12();
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
            settings.contract = contract;
            settings.into_generator()
        };
        let mut schemas = Schemas {
            requests: generator(Contract::Deserialize),
            answers: generator(Contract::Serialize),
        };
        schemas.answer::<ErrorBody<'_>>();
        schemas
    }

    /// All named schemas, in the order of their names.
    pub(super) fn into_components(mut self) -> Map<String, Value> {
        let mut named = self.requests.take_definitions(true);
        named.append(&mut self.answers.take_definitions(true));
        named.sort_keys();
        named
    }

    fn request<T: JsonSchema>(&mut self) -> Value {
        self.requests.subschema_for::<T>().to_value()
    }

    fn answer<T: JsonSchema>(&mut self) -> Value {
        self.answers.subschema_for::<T>().to_value()
    }

    /// The body of a create.
    pub(super) fn of_create(&mut self, kind: Kind) -> RequestDocs {
        match kind {
            Kind::Metalake => self.create_docs::<Metalake>(),
            Kind::Catalog => self.create_docs::<Catalog>(),
            Kind::Schema => self.create_docs::<Schema>(),
            Kind::Fileset => self.create_docs::<Fileset>(),
            Kind::Model => self.create_docs::<Model>(),
            Kind::ModelVersion => RequestDocs {
                schema: self.request::<ModelVersionLink>(),
                example: parsed(ModelVersionLink::EXAMPLE),
            },
        }
    }

    fn create_docs<W: Create>(&mut self) -> RequestDocs {
        RequestDocs {
            schema: self.request::<W::Body>(),
            example: parsed(W::CREATE_EXAMPLE),
        }
    }

    /// The body of an alter.
    pub(super) fn of_alter(&mut self, kind: Kind) -> RequestDocs {
        match kind {
            Kind::Metalake => self.alter_docs::<Metalake>(),
            Kind::Catalog => self.alter_docs::<Catalog>(),
            Kind::Schema => self.alter_docs::<Schema>(),
            Kind::Fileset => self.alter_docs::<Fileset>(),
            Kind::Model => self.alter_docs::<Model>(),
            Kind::ModelVersion => self.alter_docs::<ModelVersion>(),
        }
    }

    fn alter_docs<W: Wire>(&mut self) -> RequestDocs {
        RequestDocs {
            schema: self.request::<Updates<W::Update>>(),
            example: parsed(W::ALTER_EXAMPLE),
        }
    }

    /// The body of a switch.
    pub(super) fn of_switch(&mut self) -> RequestDocs {
        RequestDocs {
            schema: self.request::<SwitchBody>(),
            example: json!({ "inUse": false }),
        }
    }

    /// The body of a success.
    pub(super) fn of_success(&mut self, verb: Verb) -> AnswerDocs {
        let tagged = |docs: AnswerDocs| AnswerDocs { tagged: true, ..docs };
        match verb {
            Verb::List(kind) => self.of_list(kind),
            Verb::Create(Kind::ModelVersion) | Verb::Switch(_) => tagged(bare(done())),
            Verb::Create(kind) | Verb::Alter(kind) => tagged(self.of_entity(kind, Moment::Written)),
            Verb::Load(kind) => tagged(self.of_entity(kind, Moment::Read)),
            Verb::Drop(_) => bare(enveloped("dropped", &json!({ "type": "boolean" }))),
            Verb::TestNew | Verb::TestExisting => {
                bare(json!({ "anyOf": [done(), self.answer::<ErrorBody<'_>>()] }))
            }
            Verb::FileLocation => bare(enveloped("fileLocation", &json!({ "type": "string" }))),
            Verb::Uri => bare(enveloped("uri", &json!({ "type": "string" }))),
            Verb::Files => bare(enveloped("files", &array(&self.answer::<FileInfo<'_>>()))),
            Verb::Version => bare(enveloped("version", &self.answer::<Version>())),
            Verb::Me => bare(enveloped("principal", &json!({ "type": "string" }))),
            Verb::Health => bare(self.answer::<HealthReport>()),
            Verb::Configs => bare(self.answer::<Configs>()),
            Verb::SecretProviders => bare(self.answer::<SecretProviders>()),
            Verb::LocalLocks => bare(enveloped("locks", &self.answer::<LocalLocks<'_>>())),
        }
    }

    fn of_list(&mut self, kind: Kind) -> AnswerDocs {
        match kind {
            Kind::Metalake => self.list_docs::<Metalake>(),
            Kind::Catalog => self.list_docs::<Catalog>(),
            Kind::Schema => self.list_docs::<Schema>(),
            Kind::Fileset => self.list_docs::<Fileset>(),
            Kind::Model => self.list_docs::<Model>(),
            Kind::ModelVersion => {
                let number = json!({ "type": "integer", "minimum": 0 });
                let version = self.answer::<<ModelVersion as Wire>::Shown<'_>>();
                let (numbers, infos) = (
                    enveloped("versions", &array(&number)),
                    enveloped("infos", &array(&version)),
                );
                bare(json!({ "anyOf": [numbers, infos] }))
            }
        }
    }

    fn list_docs<W: Create>(&mut self) -> AnswerDocs {
        let mut whole = || enveloped(W::KIND.row().segment, &array(&self.answer::<W::Shown<'_>>()));
        match W::LISTING {
            Listing::Full => bare(whole()),
            Listing::NamesOrDetails => {
                let whole = whole();
                bare(json!({ "anyOf": [self.identifiers(), whole] }))
            }
            Listing::Names => bare(self.identifiers()),
        }
    }

    fn identifiers(&mut self) -> Value {
        enveloped("identifiers", &array(&self.answer::<Identifier<'_>>()))
    }

    fn of_entity(&mut self, kind: Kind, moment: Moment) -> AnswerDocs {
        match kind {
            Kind::Metalake => self.entity_docs::<Metalake>("lake", moment),
            Kind::Catalog => self.entity_docs::<Catalog>("files", moment),
            Kind::Schema => self.entity_docs::<Schema>("sales", moment),
            Kind::Fileset => self.entity_docs::<Fileset>("orders", moment),
            Kind::Model => self.entity_docs::<Model>("ranking", moment),
            Kind::ModelVersion => self.entity_docs::<ModelVersion>("0", moment),
        }
    }

    fn entity_docs<W: Wire>(&mut self, name: &str, moment: Moment) -> AnswerDocs {
        let key = W::KIND.row().json_key;
        let example =
            sample::<W>(name).map(|entity| json!({ "code": 0, key: to_value(W::show(&entity, moment)) }));
        let schema = enveloped(key, &self.answer::<W::Shown<'_>>());
        AnswerDocs {
            schema,
            example,
            tagged: false,
        }
    }
}

/// An entity with every field filled.
fn sample<P: Payload>(name: &str) -> Option<Entity<P>> {
    Some(Entity {
        id: EntityId::new(481_036_337_152).ok()?,
        version: RowVersion::FIRST,
        name: Name::new(name).ok()?,
        in_use: true,
        payload: P::sample(),
        audit: Audit {
            creator: "anonymous".to_owned(),
            created_at_ms: 1_787_393_730_123,
            last_modifier: None,
            last_modified_at_ms: None,
        },
    })
}

fn to_value(shown: impl Serialize) -> Value {
    serde_json::to_value(shown).unwrap_or(Value::Null)
}

/// An example; a test reads each into its type.
fn parsed(example: &str) -> Value {
    serde_json::from_str(example).unwrap_or(Value::Null)
}

fn bare(schema: Value) -> AnswerDocs {
    AnswerDocs {
        schema,
        example: None,
        tagged: false,
    }
}

fn done() -> Value {
    json!({ "type": "object", "required": ["code"], "properties": { "code": { "const": 0 } } })
}

fn enveloped(key: &str, value: &Value) -> Value {
    json!({
        "type": "object",
        "required": ["code", key],
        "properties": { "code": { "const": 0 }, key: value },
    })
}

fn array(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}
