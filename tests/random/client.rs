//! One client: it asks, waits for the answer, and logs both.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use hyper::Method;
use serde_json::{Value, json};
use treeline_core::Kind;
use treeline_history::{Operation, Outcome, Tag, Verb};
use treeline_tests::{Answer, Client};

use crate::Stop;
use crate::deck::{CATALOGS, Card, Deck, Shape, is_ours};
use crate::fleet::Addresses;
use crate::log::{Log, Unanswered};

/// The code of a 503.
const CANNOT_SERVE: i64 = 1002;

/// A client with a connection of its own to one server.
pub(crate) struct RandomClient {
    client: Client,
    number: u32,
    server: usize,
    addresses: Addresses,
    shape: Shape,
    log: Log,
    /// The state of each path that it was told last.
    seen: HashMap<(Kind, Vec<String>), Tag>,
    /// Filesets that it has asked for. Each has a directory of its own, so that only names are fought for.
    directories: u64,
}

impl RandomClient {
    pub(crate) fn new(number: u32, addresses: &Addresses, shape: &Shape, log: &Log) -> RandomClient {
        let (server, client) = addresses.client(number as usize);
        RandomClient {
            client,
            number,
            server,
            addresses: addresses.clone(),
            shape: shape.clone(),
            log: log.clone(),
            seen: HashMap::new(),
            directories: 0,
        }
    }

    /// The server that it asks.
    pub(crate) fn server(&self) -> usize {
        self.server
    }

    /// Makes what stays: the metalake and the catalogs.
    pub(crate) async fn plant(&mut self) -> Result<()> {
        let metalake = vec![self.shape.metalake.clone()];
        let mut cards = vec![Card::new(Verb::Create, Kind::Metalake, metalake.clone())];
        for (catalog, _) in CATALOGS {
            let path = metalake.iter().cloned().chain([catalog.to_owned()]).collect();
            cards.push(Card::new(Verb::Create, Kind::Catalog, path));
        }
        for card in cards {
            let operation = self.ask(&card).await?;
            ensure!(
                operation.outcome == Outcome::Ok,
                "cannot plant the tree: {operation:?}"
            );
        }
        Ok(())
    }

    /// Asks for one thing after the other until the time is over.
    pub(crate) async fn play(&mut self, mut deck: Deck, stop: &Stop) -> Result<()> {
        while !stop.is_now() {
            self.ask(&deck.next()).await?;
        }
        Ok(())
    }

    /// Makes something of a name of its own, and asks again within this if it is told "not now". Whether it did.
    pub(crate) async fn writes_again(&mut self, within: Duration) -> Result<bool> {
        let (catalog, _) = CATALOGS[0];
        let begun = Instant::now();
        for attempt in 0.. {
            let name = format!("after{}x{attempt}", self.number);
            let path = vec![self.shape.metalake.clone(), catalog.to_owned(), name];
            let server = self.server;
            let operation = self.ask(&Card::new(Verb::Create, Kind::Schema, path)).await?;
            // One that did not answer at all has handed its client to the next.
            if operation.outcome == Outcome::Ok || self.server != server || begun.elapsed() > within {
                return Ok(operation.outcome == Outcome::Ok && self.server == server);
            }
        }
        Ok(false)
    }

    /// Lists every collection and loads every path. Nobody writes any more, so this is what is left.
    pub(crate) async fn read_everything(&mut self) -> Result<()> {
        for (kind, path) in self.shape.collections() {
            self.ask(&Card::new(Verb::List, kind, path)).await?;
        }
        for (kind, path) in self.shape.paths() {
            self.ask(&Card::new(Verb::Load, kind, path)).await?;
        }
        Ok(())
    }

    async fn ask(&mut self, card: &Card) -> Result<Operation> {
        let mut operation = Operation::new(card.verb, card.kind.as_str(), card.path.clone());
        operation.process = self.number;
        operation.server = u32::try_from(self.server)?;
        operation.sets.extend(card.sets.clone());
        operation.new_name.clone_from(&card.new_name);
        operation.cascade = card.cascade;
        let key = (card.kind, card.path.clone());
        operation.if_match = self.seen.get(&key).copied().filter(|_| card.is_pinned);

        let (method, path, body) = self.request(card);
        let pinned = operation.if_match.map(|tag| format!("\"{tag}\""));
        let headers: Vec<(&str, &str)> = pinned.iter().map(|tag| ("if-match", tag.as_str())).collect();
        operation.begun = self.log.now();
        let sent = self.client.send(method, &path, &headers, &body);
        let answer = match card.patience {
            Some(patience) => tokio::time::timeout(patience, sent).await.ok(),
            None => Some(sent.await),
        };
        operation.ended = self.log.now();

        match answer {
            Some(Ok(answer)) => {
                if answer.status == 503 && !says_when(&answer) {
                    self.log.note(|oddities| oddities.bare += 1);
                }
                read(&mut operation, card.kind, &answer)?;
            }
            // Its server is gone; whether it has done anything, nobody knows. The next one will do.
            Some(Err(_)) => {
                let unanswered = Unanswered {
                    server: self.server,
                    begun: operation.begun,
                    ended: operation.ended,
                };
                self.log.note(|oddities| oddities.unanswered.push(unanswered));
                (self.server, self.client) = self.addresses.client(self.server + 1);
            }
            // It was the client that hung up.
            None => {}
        }
        if let (Some(id), Some(version)) = (operation.id, operation.version) {
            let (kind, mut path) = key;
            if let Some(name) = &card.new_name {
                path.pop();
                path.push(name.clone());
            }
            self.seen.insert((kind, path), Tag { id, version });
        }
        self.log.add(&operation)?;
        Ok(operation)
    }

    fn request(&mut self, card: &Card) -> (Method, String, String) {
        let above = if card.verb == Verb::List {
            &card.path[..]
        } else {
            &card.path[..card.path.len() - 1]
        };
        let lineage = card.kind.lineage();
        let segments: String = lineage
            .iter()
            .zip(above)
            .map(|(kind, name)| format!("/{}/{name}", kind.row().segment))
            .collect();
        let collection = format!("/api{segments}/{}", card.kind.row().segment);
        let name = card.path.last().map_or("", String::as_str);
        let entity = format!("{collection}/{name}");
        match card.verb {
            Verb::Create => (Method::POST, collection, self.body(card, name).to_string()),
            Verb::Load => (Method::GET, entity, String::new()),
            Verb::List => (Method::GET, collection, String::new()),
            Verb::Set | Verb::Rename => (Method::PUT, entity, update(card).to_string()),
            Verb::Drop => {
                let mode = if card.cascade { "?cascade=true" } else { "" };
                (Method::DELETE, format!("{entity}{mode}"), String::new())
            }
        }
    }

    fn body(&mut self, card: &Card, name: &str) -> Value {
        let mut body = json!({ "name": name });
        if let Some((key, value)) = &card.sets {
            body["properties"] = json!({ key: value });
        }
        match card.kind {
            Kind::Catalog => {
                let catalog = CATALOGS.iter().find(|(catalog, _)| *catalog == name);
                body["type"] = json!(catalog.map(|(_, leaf)| leaf.as_str()));
            }
            Kind::Fileset => {
                self.directories += 1;
                let directory = format!("{}-{}", self.number, self.directories);
                body["storageLocation"] = json!(self.shape.files.join(directory));
            }
            Kind::Metalake | Kind::Schema | Kind::Model | Kind::ModelVersion => {}
        }
        body
    }
}

fn update(card: &Card) -> Value {
    let change = match (&card.new_name, &card.sets) {
        (Some(name), _) => json!({"@type": "rename", "newName": name}),
        (None, Some((key, value))) => json!({"@type": "setProperty", "property": key, "value": value}),
        (None, None) => Value::Null,
    };
    json!({ "updates": [change] })
}

/// Whether a 503 is that of a server which knows that it cannot serve now.
fn says_when(answer: &Answer) -> bool {
    answer.code() == Some(CANNOT_SERVE) && answer.headers.contains_key("retry-after")
}

/// What the answer says.
fn read(operation: &mut Operation, kind: Kind, answer: &Answer) -> Result<()> {
    operation.status = Some(answer.status);
    operation.code = answer.code();
    if answer.status != 200 {
        operation.outcome = Outcome::Refused;
        return Ok(());
    }
    operation.outcome = Outcome::Ok;
    match operation.operation {
        Verb::List => {
            let identifiers = answer.json["identifiers"].as_array().into_iter().flatten();
            let names = identifiers.filter_map(|identifier| identifier["name"].as_str());
            operation.names = Some(names.map(str::to_owned).collect());
        }
        Verb::Drop => operation.dropped = answer.json["dropped"].as_bool(),
        Verb::Create | Verb::Load | Verb::Set | Verb::Rename => {
            let tag = answer.tag()?;
            operation.id = Some(tag.id.get());
            operation.version = Some(u64::try_from(tag.version.get())?);
            let properties = answer.json[kind.row().json_key]["properties"].as_object();
            let ours = properties.into_iter().flatten().filter(|(key, _)| is_ours(key));
            let ours = ours.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()));
            operation.properties = Some(ours.collect());
        }
    }
    Ok(())
}
