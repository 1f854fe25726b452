//! The description of one operation.

use crosspoint_exchange::refusal::Shown;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::server::access::Needs;

/// Makes the schema of a type with a given generator.
pub(super) type Make = fn(&mut SchemaGenerator) -> Schema;

/// What the headers of a trace are.
pub(super) const TRACE: &str = "The trace that it belongs to, as W3C Trace Context spells it.";
pub(super) const STATE: &str =
    "What tracing systems have noted about the trace; kept up to 512 bytes and handed on to agents.";

/// The name of the tokens of agents and callers in the description.
pub(super) const TOKEN: &str = "token";

const JSON: &str = "application/json";
const BYTES: &str = "application/octet-stream";
/// The media type of an answer without a body.
const NOTHING: &str = "";

/// Statuses that can answer any request, because they concern its connection, its head or the server.
const ALWAYS: [u16; 7] = [403, 408, 414, 429, 431, 500, 503];

/// Those among them that are answered before the path was read, and so have our own shape at every door.
const BEFORE_THE_PATH: [u16; 3] = [408, 429, 503];

/// One method of one path. Its id is the name of its handler.
pub(super) struct Operation {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    id: &'static str,
    tag: &'static str,
    summary: &'static str,
    description: Option<&'static str>,
    parameters: Vec<Value>,
    body: Option<Body>,
    answers: Vec<Answer>,
    refusals: Vec<u16>,
    /// The shape of its refusals, if that is the shape of a contract.
    refused_as: Option<Make>,
    /// Who may ask for it, where there are tokens.
    pub(crate) needs: Needs,
}

struct Body {
    description: &'static str,
    required: bool,
    content: Vec<(&'static str, Make, Value)>,
}

struct Answer {
    status: u16,
    description: &'static str,
    media: &'static str,
    make: Make,
    headers: Value,
}

impl Operation {
    pub(super) fn get(path: &'static str, id: &'static str, tag: &'static str, summary: &'static str) -> Operation {
        Operation::new("GET", path, id, tag, summary)
    }

    pub(super) fn post(path: &'static str, id: &'static str, tag: &'static str, summary: &'static str) -> Operation {
        Operation::new("POST", path, id, tag, summary)
    }

    pub(super) fn new(
        method: &'static str,
        path: &'static str,
        id: &'static str,
        tag: &'static str,
        summary: &'static str,
    ) -> Operation {
        let (description, parameters, body) = (None, Vec::new(), None);
        let (answers, refusals, refused_as) = (Vec::new(), ALWAYS.to_vec(), None);
        let needs = Needs::Admin;
        Operation {
            method,
            path,
            id,
            tag,
            summary,
            description,
            parameters,
            body,
            answers,
            refusals,
            refused_as,
            needs,
        }
    }

    pub(super) fn describe(mut self, description: &'static str) -> Operation {
        self.description = Some(description);
        self
    }

    /// Adds a parameter of the path.
    pub(super) fn path(self, name: &str, description: &str, schema: &Value) -> Operation {
        self.parameter("path", name, description, schema, true)
    }

    /// Adds an optional parameter of the query.
    pub(super) fn query(self, name: &str, description: &str, schema: &Value) -> Operation {
        self.parameter("query", name, description, schema, false)
    }

    /// Adds a required parameter of the query.
    pub(super) fn query_required(self, name: &str, description: &str, schema: &Value) -> Operation {
        self.parameter("query", name, description, schema, true)
    }

    pub(super) fn header(self, name: &str, description: &str, schema: &Value) -> Operation {
        self.parameter("header", name, description, schema, false)
    }

    fn parameter(mut self, location: &str, name: &str, description: &str, schema: &Value, required: bool) -> Operation {
        self.parameters.push(json!({
            "name": name, "in": location, "description": description, "required": required, "schema": schema,
        }));
        self
    }

    /// Sets the required body.
    pub(super) fn body<T: JsonSchema>(self, description: &'static str, example: Value) -> Operation {
        self.takes(description, true, vec![(JSON, make::<T>, example)])
    }

    /// Sets an optional body.
    pub(super) fn body_if_any<T: JsonSchema>(self, description: &'static str, example: Value) -> Operation {
        self.takes(description, false, vec![(JSON, make::<T>, example)])
    }

    /// Sets a body that is a document of any contract.
    pub(super) fn document(self, example: Value) -> Operation {
        let stream = json!("event: started\ndata: {\"request_id\": \"r-1\"}\n\n");
        let content =
            vec![(JSON, make::<Value> as Make, example), ("text/event-stream", make::<Value> as Make, stream)];
        self.takes(
            "The document: JSON, or the events of a run.stream. Its kind is detected, whatever the type says.",
            true,
            content,
        )
    }

    /// Sets a body of raw bytes.
    pub(super) fn bytes(self, description: &'static str) -> Operation {
        let any = |_: &mut SchemaGenerator| Schema::default();
        self.takes(description, true, vec![(BYTES, any, json!("hello"))])
    }

    fn takes(
        mut self,
        description: &'static str,
        required: bool,
        content: Vec<(&'static str, Make, Value)>,
    ) -> Operation {
        self.body = Some(Body { description, required, content });
        // Refused for its content, or for its size.
        self.refuses(&[400, 413])
    }

    pub(super) fn answers<T: JsonSchema>(self, status: u16, description: &'static str) -> Operation {
        self.answers_with::<T>(status, description, json!({}))
    }

    /// Adds an answer with headers.
    pub(super) fn answers_with<T: JsonSchema>(
        self,
        status: u16,
        description: &'static str,
        headers: Value,
    ) -> Operation {
        self.gives(Answer { status, description, media: JSON, make: make::<T>, headers })
    }

    /// Adds an answer that is text of another media type.
    pub(super) fn answers_text(self, media: &'static str, description: &'static str) -> Operation {
        let (make, headers) = (make::<String> as Make, json!({}));
        self.gives(Answer { status: 200, description, media, make, headers })
    }

    /// Adds an answer of raw bytes.
    pub(super) fn answers_bytes(self, status: u16, description: &'static str, headers: Value) -> Operation {
        let any = |_: &mut SchemaGenerator| Schema::default();
        self.gives(Answer { status, description, media: BYTES, make: any, headers })
    }

    /// Adds an answer of server-sent events. The schema describes one event.
    pub(super) fn answers_events<T: JsonSchema>(self, description: &'static str) -> Operation {
        self.answers_events_with::<T>(description, json!({}))
    }

    /// Like `answers_events`, with headers.
    pub(super) fn answers_events_with<T: JsonSchema>(self, description: &'static str, headers: Value) -> Operation {
        let (media, make) = ("text/event-stream", make::<T> as Make);
        self.gives(Answer { status: 200, description, media, make, headers })
    }

    /// Adds an answer without a body.
    pub(super) fn answers_nothing(self, status: u16, description: &'static str) -> Operation {
        let any = |_: &mut SchemaGenerator| Schema::default();
        self.gives(Answer { status, description, media: NOTHING, make: any, headers: json!({}) })
    }

    fn gives(mut self, answer: Answer) -> Operation {
        // A status of an answer is not listed as a refusal, unless the answer says that it may be one.
        self.refusals.retain(|status| *status != answer.status);
        self.answers.push(answer);
        self
    }

    /// Adds the statuses with which it may be refused, beside those of all requests.
    pub(super) fn refuses(mut self, statuses: &[u16]) -> Operation {
        self.refusals.extend(statuses);
        self.refusals.sort_unstable();
        self.refusals.dedup();
        self
    }

    /// Sets the shape of its refusals. Refusals from before the path was read have our own shape.
    pub(super) fn refuses_as<T: JsonSchema>(mut self) -> Operation {
        self.refused_as = Some(make::<T>);
        self
    }

    /// Says who may ask for it, where there are tokens. Without this only those who administer the server may.
    pub(super) fn needs(mut self, needs: Needs) -> Operation {
        self.needs = needs;
        self
    }

    /// Returns its entry in the description.
    pub(super) fn described(&self, schemas: &mut SchemaGenerator) -> Value {
        let mut responses = Map::new();
        for answer in &self.answers {
            responses.insert(answer.status.to_string(), answer.described(schemas));
        }
        let unknown = Some(401).filter(|_| self.needs != Needs::Nothing);
        for status in self.refusals.iter().chain(&unknown) {
            responses.insert(status.to_string(), refused(*status, self.refused_as, schemas));
        }
        let mut described = json!({
            "operationId": self.id, "tags": [self.tag], "summary": self.summary, "responses": responses,
        });
        if let Some(description) = self.description {
            described["description"] = json!(description);
        }
        if !self.parameters.is_empty() {
            described["parameters"] = json!(self.parameters);
        }
        if self.needs != Needs::Nothing {
            described["security"] = json!([{}, { TOKEN: [self.needs.name()] }]);
        }
        if let Some(body) = &self.body {
            described["requestBody"] = body.described(schemas);
        }
        described
    }
}

/// Returns the schema of a type.
pub(super) fn make<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Schema {
    schemas.subschema_for::<T>()
}

impl Body {
    fn described(&self, schemas: &mut SchemaGenerator) -> Value {
        let mut content = Map::new();
        for (media, make, example) in &self.content {
            content.insert((*media).to_owned(), json!({ "schema": make(schemas), "example": example }));
        }
        json!({ "description": self.description, "required": self.required, "content": content })
    }
}

impl Answer {
    fn described(&self, schemas: &mut SchemaGenerator) -> Value {
        let mut described = json!({ "description": self.description });
        if self.media != NOTHING {
            let content = json!({ "schema": (self.make)(schemas) });
            described["content"] = json!({ self.media: content });
        }
        if self.headers.as_object().is_some_and(|headers| !headers.is_empty()) {
            described["headers"] = self.headers.clone();
        }
        described
    }
}

fn refused(status: u16, shape: Option<Make>, schemas: &mut SchemaGenerator) -> Value {
    let description = match status {
        400 => "The request cannot be read, or asks for what there is not; `at` and `hint` say what to mend.",
        401 => "The token is missing, unknown, or that of another; nothing was done.",
        403 => "It is meant for another server, or comes from a web page of another site; nothing was done.",
        404 => "There is no such thing.",
        408 => "The request did not arrive in time; nothing was done.",
        409 => "It contradicts what there is.",
        413 => "The body is longer than `[limits] body_bytes`.",
        414 => "The address is longer than `[limits] url_bytes`.",
        416 => "There are no bytes in the range; `Content-Range` says how many there are.",
        429 => "There is as much as there may be, of jobs or agents, or of this address or caller; nothing was done.",
        431 => "The headers are longer than `[limits] header_bytes`.",
        500 => "A fault of ours; whether the request was carried out is not known.",
        503 => "Something is full, cannot be written, or about to stop; `repeat` says whether to send it again.",
        504 => "It has not ended within `[server] sync_wait_seconds`, and goes on; the same request again joins it.",
        _ => "It was refused.",
    };
    let ours: Make = make::<Shown<'static>>;
    let schema = match shape {
        None => json!(ours(schemas)),
        Some(shape) if BEFORE_THE_PATH.contains(&status) => json!({ "anyOf": [shape(schemas), ours(schemas)] }),
        Some(shape) => json!(shape(schemas)),
    };
    let mut described = json!({ "description": description, "content": { JSON: { "schema": schema } } });
    if [429, 503].contains(&status) {
        described["headers"] = json!({
            "Retry-After": { "description": "When to come again, in seconds.", "schema": { "type": "integer" } },
        });
    }
    described
}
