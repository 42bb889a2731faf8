//! What each client sends next, as the bytes that go over the wire.

use std::fmt::Write as _;

use crate::options::{Options, Work};

/// The catalog of the planted tree.
pub(crate) const CATALOG: &str = "models";

/// Its schema.
pub(crate) const SCHEMA: &str = "s";

/// The model that all writers contend for.
pub(crate) const HOT_MODEL: &str = "hot";

/// What a model of the benchmark keeps, as the database holds it: about 400 bytes.
pub(crate) const MODEL: &str = include_str!("model.json");

/// The property that updates set. Its values have one length, so that a row keeps its size.
const COUNTER: &str = "counter";

/// The next requests of one client.
#[derive(Debug)]
pub(crate) struct Requests {
    work: Work,
    client: usize,
    /// `/api/metalakes/…/models`, where models are created.
    collection: String,
    /// The same with a slash: a name behind it is a model.
    items: String,
    /// The rows that this client may change: these, and no other client's.
    own_rows: Vec<usize>,
    rows: usize,
    tag: String,
    /// The part of a create's body behind the name.
    kept: String,
    count: u64,
    request: String,
    body: String,
}

impl Requests {
    pub(crate) fn new(options: &Options, client: usize) -> Requests {
        let metalake = &options.metalake;
        let collection = format!("/api/metalakes/{metalake}/catalogs/{CATALOG}/schemas/{SCHEMA}/models");
        let kept = MODEL
            .trim_end()
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix(r#","latest_version":0}"#));
        Requests {
            work: options.work,
            client,
            items: format!("{collection}/"),
            collection,
            own_rows: (client..options.rows).step_by(options.clients).collect(),
            rows: options.rows,
            tag: options.tag.clone(),
            kept: kept.unwrap_or_default().to_owned(),
            count: 0,
            request: String::new(),
            body: String::new(),
        }
    }

    /// Writing into a text cannot fail, so its results say nothing.
    pub(crate) fn next(&mut self) -> &[u8] {
        let Requests {
            collection,
            items,
            tag,
            kept,
            client,
            request,
            body,
            ..
        } = self;
        self.count += 1;
        let count = self.count;
        request.clear();
        body.clear();
        match self.work {
            Work::Plant | Work::Health => get(request, "/health", ""),
            Work::Read => get(request, items, &row_name(fastrand::usize(0..self.rows))),
            Work::Create => {
                let _ = write!(body, r#"{{"name":"{tag}-{client}-{count}",{kept}}}"#);
                with_body(request, "POST", collection, "", body);
            }
            Work::Update => {
                let row = self.own_rows[fastrand::usize(0..self.own_rows.len())];
                set_property(body, COUNTER, count);
                with_body(request, "PUT", items, &row_name(row), body);
            }
            Work::Hot => {
                set_property(body, &writer_property(*client), count);
                with_body(request, "PUT", items, HOT_MODEL, body);
            }
        }
        request.as_bytes()
    }
}

/// A create, as bytes.
pub(crate) fn post(collection: &str, body: &str) -> Vec<u8> {
    let mut request = String::new();
    with_body(&mut request, "POST", collection, "", body);
    request.into_bytes()
}

/// The name of a planted row.
pub(crate) fn row_name(row: usize) -> String {
    format!("m{row}")
}

/// The property of the hot model that this client alone sets.
pub(crate) fn writer_property(client: usize) -> String {
    format!("writer-{client}")
}

fn get(request: &mut String, path: &str, name: &str) {
    let _ = write!(request, "GET {path}{name} HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

fn with_body(request: &mut String, method: &str, path: &str, name: &str, body: &str) {
    let _ = write!(
        request,
        "{method} {path}{name} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
}

fn set_property(body: &mut String, property: &str, value: u64) {
    let _ = write!(
        body,
        r#"{{"updates":[{{"@type":"setProperty","property":"{property}","value":"{value:012}"}}]}}"#
    );
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::Value;

    use super::*;

    fn requests(work: Work, client: usize, clients: usize) -> Requests {
        let options = Options {
            work,
            servers: Vec::new(),
            metalake: "m".to_owned(),
            clients,
            duration: Duration::from_secs(1),
            rows: 10,
            tag: "t".to_owned(),
        };
        Requests::new(&options, client)
    }

    fn head_and_body(request: &[u8]) -> (String, Value) {
        let text = String::from_utf8(request.to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("Content-Length: {}\r", body.len()))
                || head.ends_with(&format!("Content-Length: {}", body.len())),
            "{text}"
        );
        (head.to_owned(), serde_json::from_str(body).unwrap())
    }

    #[test]
    fn each_create_has_another_name_and_the_whole_model() {
        let mut requests = requests(Work::Create, 3, 4);
        let kept: Value = serde_json::from_str(MODEL).unwrap();
        for name in ["t-3-1", "t-3-2"] {
            let (head, body) = head_and_body(requests.next());
            assert!(head.starts_with("POST /api/metalakes/m/catalogs/models/schemas/s/models HTTP/1.1\r\n"));
            assert_eq!(body["name"], name);
            assert_eq!(body["properties"], kept["properties"]);
            assert_eq!(body["comment"], kept["comment"]);
        }
    }

    #[test]
    fn no_two_clients_update_one_row() {
        let mut owners = [None; 10];
        for client in 0..4 {
            let mut requests = requests(Work::Update, client, 4);
            for _ in 0..100 {
                let (head, _) = head_and_body(requests.next());
                let path = head.split(' ').nth(1).unwrap();
                let row: usize = path.rsplit('m').next().unwrap().parse().unwrap();
                assert_eq!(*owners[row].get_or_insert(client), client, "row {row}");
            }
        }
        assert!(owners.iter().all(Option::is_some));
    }

    #[test]
    fn a_writer_of_the_hot_row_changes_its_own_property_each_time() {
        let mut requests = requests(Work::Hot, 2, 4);
        let (_, first) = head_and_body(requests.next());
        let (_, second) = head_and_body(requests.next());
        assert_eq!(first["updates"][0]["property"], "writer-2");
        assert_ne!(first["updates"][0]["value"], second["updates"][0]["value"]);
    }
}
