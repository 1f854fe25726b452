//! Named pieces of output (ALL-10).
//!
//! Contracts differ in what they say of a piece: a path and an operation, a name and a media type, or only an id. What
//! a contract cannot say of a piece is carried under the piece's name, so that a piece that is removed or added on the
//! way stays removed or added.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use crate::content::Json;
use crate::json::{Type, Value, push_known, push_name, push_quoted};
use crate::kind::Contract;

/// One named piece of output.
#[derive(Clone, PartialEq, Eq)]
pub struct Artifact<'s> {
    /// The name, which is a path in some contracts; a JSON string.
    pub name: Json<'s>,
    /// The media type, if it differs from what the name's extension stands for.
    pub media_type: Option<Json<'s>>,
    /// What is done to the file, unless the file is new.
    pub operation: Option<Json<'s>>,
    /// The whole content, where it is at hand.
    pub content: Option<Json<'s>>,
    /// Members without a home, each with the contract it belongs to.
    pub own: Vec<(Contract, String, Json<'s>)>,
}

impl fmt::Debug for Artifact<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Artifact[{:?}, content {:?}]", self.name, self.content)
    }
}

/// How a contract's documents list artifacts.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    /// An array of objects.
    Objects(Names),
    /// An array of names.
    Names,
}

/// Says for each name whether the contract takes it.
pub(crate) type Fits = fn(&[Cow<'_, str>]) -> Vec<bool>;

/// How a contract names the members of an artifact.
#[derive(Clone, Copy)]
pub(crate) struct Names {
    pub(crate) contract: Contract,
    pub(crate) name: &'static str,
    pub(crate) media_type: Option<&'static str>,
    pub(crate) operation: Option<&'static str>,
    /// Which names the contract takes, judged together as one list. An artifact whose name it does not take is carried
    /// whole. Without this function the contract takes all names.
    pub(crate) fits: Option<Fits>,
}

/// What is left of one artifact after a contract has written what it can.
pub(crate) struct Left<'j, 's> {
    artifact: &'j Artifact<'s>,
    /// The artifact's place in the list, where nothing of it was written.
    whole: Option<usize>,
    media_type: bool,
    operation: bool,
    content: bool,
    /// Whether the content had to be made up.
    made_content: bool,
    own_of: Option<Contract>,
}

impl Form {
    /// Writes the list, and returns what the contract could not say.
    pub(crate) fn write<'j, 's>(self, artifacts: &'j [Artifact<'s>]) -> (String, Vec<Left<'j, 's>>) {
        let mut out = String::from("[");
        let mut left = Vec::new();
        let fits = self.fits(artifacts);
        let repeated = repeated_names(artifacts);
        for (at, artifact) in artifacts.iter().enumerate() {
            if fits.get(at) == Some(&false) {
                left.push(Left::whole(artifact, at));
                continue;
            }
            if out.len() > 1 {
                out.push(',');
            }
            left.push(self.write_one(&mut out, artifact));
        }
        out.push(']');
        // All artifacts that share a name are listed, so that each finds its own part again.
        let any = left.iter().any(Left::says_something);
        left.retain(|left| any && (left.says_something() || repeated.contains(left.artifact.name.get())));
        (out, left)
    }

    /// Returns for each artifact whether it fits. Empty where all fit.
    fn fits(self, artifacts: &[Artifact<'_>]) -> Vec<bool> {
        let Form::Objects(Names { fits: Some(fits), .. }) = self else { return Vec::new() };
        let names: Vec<Cow<'_, str>> =
            artifacts.iter().map(|artifact| artifact.name.text().unwrap_or_default()).collect();
        fits(&names)
    }

    fn write_one<'j, 's>(self, out: &mut String, artifact: &'j Artifact<'s>) -> Left<'j, 's> {
        let mut left = Left { whole: None, own_of: None, made_content: false, ..Left::whole(artifact, 0) };
        match self {
            Form::Names => out.push_str(artifact.name.get()),
            Form::Objects(names) => {
                out.push('{');
                push_known(out, names.name);
                out.push_str(artifact.name.get());
                if let Some(member) = names.media_type {
                    push_known(out, member);
                    match &artifact.media_type {
                        Some(own) => out.push_str(own.get()),
                        None => push_quoted(out, media_type(&artifact.name.text().unwrap_or_default())),
                    }
                    left.media_type = false;
                }
                if let Some(member) = names.operation {
                    push_known(out, member);
                    out.push_str(artifact.operation.as_ref().map_or("\"create\"", Json::get));
                    left.operation = false;
                }
                push_known(out, "content");
                out.push_str(artifact.content.as_ref().map_or("\"\"", Json::get));
                (left.content, left.made_content) = (false, artifact.content.is_none());
                // A value that its member cannot hold is not written in place of what the contract demands.
                let is_known =
                    |name: &str| name == "content" || Some(name) == names.media_type || Some(name) == names.operation;
                let own =
                    artifact.own.iter().filter(|(contract, name, _)| *contract == names.contract && !is_known(name));
                for (_, name, value) in own {
                    push_name(out, name);
                    out.push_str(value.get());
                }
                left.own_of = Some(names.contract);
                out.push('}');
            }
        }
        left
    }

    /// Reads one item of the list.
    pub(crate) fn read<'s>(self, item: Value<'_, 's>) -> Option<Artifact<'s>> {
        let Form::Objects(names) = self else {
            return (item.kind() == Type::String).then(|| Artifact::named(Json::new(item.source())));
        };
        let name = item.get(names.name).filter(|name| name.kind() == Type::String)?;
        let mut artifact = Artifact::named(Json::new(name.source()));
        let file_name = artifact.name.text().unwrap_or_default().into_owned();
        for (name, value) in item.members() {
            let json = Json::new(value.source());
            let is = |member: Option<&str>| member.is_some_and(|member| name == *member);
            if name == *names.name {
                continue;
            } else if let (true, Some(own)) = (is(names.media_type), value.text()) {
                artifact.media_type = (own != *media_type(&file_name)).then_some(json);
            } else if let (true, Some(own)) = (is(names.operation), value.text()) {
                artifact.operation = (own != *"create").then_some(json);
            } else if name == *"content" && value.kind() == Type::String {
                artifact.content = Some(json);
            } else {
                artifact.own.push((names.contract, name.decode().into_owned(), json));
            }
        }
        Some(artifact)
    }
}

impl<'s> Artifact<'s> {
    pub(crate) fn into_owned(self) -> Artifact<'static> {
        Artifact {
            name: self.name.into_owned(),
            media_type: self.media_type.map(Json::into_owned),
            operation: self.operation.map(Json::into_owned),
            content: self.content.map(Json::into_owned),
            own: self.own.into_iter().map(|(contract, name, value)| (contract, name, value.into_owned())).collect(),
        }
    }

    fn named(name: Json<'s>) -> Artifact<'s> {
        Artifact { name, media_type: None, operation: None, content: None, own: Vec::new() }
    }
}

/// Returns the media type that the name's extension stands for.
pub fn media_type(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default();
    match extension.as_str() {
        "md" | "markdown" => "text/markdown",
        "json" => "application/json",
        "html" | "htm" => "text/html",
        "csv" => "text/csv",
        "xml" => "application/xml",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "pdf" => "application/pdf",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        _ => "text/plain",
    }
}

impl<'j, 's> Left<'j, 's> {
    /// Everything of the artifact at this place of the list.
    pub(crate) fn whole(artifact: &'j Artifact<'s>, at: usize) -> Left<'j, 's> {
        Left {
            artifact,
            whole: Some(at),
            media_type: true,
            operation: true,
            content: true,
            made_content: false,
            own_of: None,
        }
    }

    fn own(&self) -> impl Iterator<Item = &(Contract, String, Json<'s>)> {
        self.artifact.own.iter().filter(|(contract, ..)| Some(*contract) != self.own_of)
    }

    fn says_something(&self) -> bool {
        let artifact = self.artifact;
        self.whole.is_some()
            || self.made_content
            || (self.media_type && artifact.media_type.is_some())
            || (self.operation && artifact.operation.is_some())
            || (self.content && artifact.content.is_some())
            || self.own().next().is_some()
    }

    /// Writes what is left in the form in which it is carried.
    pub(crate) fn push(&self, out: &mut String) {
        out.push('{');
        push_known(out, "name");
        out.push_str(self.artifact.name.get());
        let parts = [
            ("type", self.media_type, &self.artifact.media_type),
            ("operation", self.operation, &self.artifact.operation),
            ("content", self.content, &self.artifact.content),
        ];
        for (name, left, value) in parts {
            if let Some(value) = value.as_ref().filter(|_| left) {
                push_name(out, name);
                out.push_str(value.get());
            }
        }
        if self.made_content {
            push_name(out, "no_content");
            out.push_str("true");
        }
        if let Some(at) = self.whole {
            push_name(out, "at");
            out.push_str(&at.to_string());
        }
        self.push_own(out);
        out.push('}');
    }

    fn push_own(&self, out: &mut String) {
        if self.own().next().is_none() {
            return;
        }
        push_name(out, "fields");
        out.push('[');
        for (contract, name, value) in self.own() {
            if !out.ends_with('[') {
                out.push(',');
            }
            out.push('[');
            push_quoted(out, contract.name());
            out.push(',');
            push_quoted(out, name);
            out.push(',');
            out.push_str(value.get());
            out.push(']');
        }
        out.push(']');
    }
}

/// One artifact as it was read from what was carried.
pub(crate) struct Carried<'s> {
    artifact: Artifact<'s>,
    at: Option<usize>,
    no_content: bool,
}

impl<'s> Carried<'s> {
    /// Reads what [`Left::push`] wrote. Anything that does not have that form was not carried by us.
    pub(crate) fn read(item: Value<'_, 's>) -> Option<Carried<'s>> {
        let known = ["name", "type", "operation", "content", "no_content", "at", "fields"];
        if item.members().any(|(name, _)| known.iter().all(|known| name != **known)) {
            return None;
        }
        let text = |name: &str| item.get(name).filter(|value| value.kind() == Type::String);
        let json = |name: &str| text(name).map(|value| Json::new(value.source()));
        let mut artifact = Artifact::named(json("name")?);
        artifact.media_type = json("type");
        artifact.operation = json("operation");
        if artifact.operation.as_ref().is_some_and(|operation| operation.get() != "\"update\"") {
            return None;
        }
        artifact.content = json("content");
        for own in item.get("fields").into_iter().flat_map(Value::items) {
            let parts: Vec<Value<'_, 's>> = own.items().collect();
            let [contract, name, value] = parts[..] else { return None };
            let contract = Contract::from_name(&contract.text()?.decode())?;
            artifact.own.push((contract, name.text()?.decode().into_owned(), Json::new(value.source())));
        }
        let at = item.get("at").and_then(Value::integer).and_then(|at| usize::try_from(at).ok());
        let no_content = item.get("no_content").and_then(Value::boolean) == Some(true);
        Some(Carried { artifact, at, no_content })
    }
}

/// Names that occur more than once, as they are spelled.
fn repeated_names<'j>(artifacts: &'j [Artifact<'_>]) -> BTreeSet<&'j str> {
    let mut seen = BTreeSet::new();
    if artifacts.len() < 2 {
        return seen;
    }
    artifacts.iter().map(|artifact| artifact.name.get()).filter(|name| !seen.insert(*name)).collect()
}

/// Joins what a document lists with what was carried of it. A carried piece that is no longer listed was removed.
pub(crate) fn joined<'s>(mut listed: Vec<Artifact<'s>>, carried: Vec<Carried<'s>>) -> Vec<Artifact<'s>> {
    let (mut whole, parts): (Vec<_>, Vec<_>) = carried.into_iter().partition(|carried| carried.at.is_some());
    let mut positions: BTreeMap<String, VecDeque<usize>> = BTreeMap::new();
    for (position, piece) in listed.iter().enumerate() {
        positions.entry(piece.name.text().unwrap_or_default().into_owned()).or_default().push_back(position);
    }
    for part in parts {
        let name = part.artifact.name.text().unwrap_or_default().into_owned();
        if let Some(position) = positions.get_mut(&name).and_then(VecDeque::pop_front) {
            listed[position].complete(part);
        }
    }
    whole.sort_by_key(|carried| carried.at);
    let mut listed = listed.into_iter();
    let mut all = Vec::new();
    for carried in whole {
        let before = carried.at.unwrap_or(0).saturating_sub(all.len());
        all.extend(listed.by_ref().take(before));
        all.push(carried.artifact);
    }
    all.extend(listed);
    all
}

impl<'s> Artifact<'s> {
    /// What the document says takes precedence over what was carried.
    fn complete(&mut self, part: Carried<'s>) {
        let empty = self.content.as_ref().is_none_or(|content| content.get() == "\"\"");
        if part.no_content && empty {
            self.content = None;
        }
        self.media_type = self.media_type.take().or(part.artifact.media_type);
        self.operation = self.operation.take().or(part.artifact.operation);
        self.content = self.content.take().or(part.artifact.content);
        let there: BTreeSet<(Contract, String)> =
            self.own.iter().map(|(contract, name, _)| (*contract, name.clone())).collect();
        let more = part.artifact.own.into_iter();
        self.own.extend(more.filter(|(contract, name, _)| !there.contains(&(*contract, name.clone()))));
    }
}

/// The name under which artifacts are carried.
pub(crate) const CARRIED: &str = "artifacts";
