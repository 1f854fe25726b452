//! What a document itself has at the member of a home, whatever is carried in it.

use super::shape::{Is, Member};
use super::{Codec, WriteContext};
use crate::content::Json;
use crate::job::Home;
use crate::json::Value;
use crate::kind::Kind;

/// Returns the value at the member of a home, in the spelling of the home. A value that the contract would write in
/// another way is none: it is no id or no name that the contract allows.
pub(crate) fn literal(
    kind: Kind,
    home: Home,
    root: Value<'_, '_>,
    context: &WriteContext<'_>,
    is_whole: impl Fn(Value<'_, '_>) -> bool,
) -> Option<Json<'static>> {
    let shape = super::of(kind.contract()).shapes.iter().find(|shape| shape.kind == kind)?;
    let (value, codec) = place(shape.members, home, root)?;
    let held = codec.read(value.source());
    let is_allowed = home.holds().accepts(value) && codec.write(&held, context) == value.source();
    (is_allowed && is_whole(value)).then(|| Json::new(held.into_owned()))
}

/// Returns the value at the member of a home, and how it is spelled there.
fn place<'t, 's>(members: &'static [Member], home: Home, object: Value<'t, 's>) -> Option<(Value<'t, 's>, Codec)> {
    members.iter().find_map(|member| {
        if let Is::Block(inner) = &member.is {
            return place(inner, home, object.get(member.name)?);
        }
        let Is::Home(held, codec) = &member.is else { return None };
        if *held == home { Some((object.get(member.name)?, *codec)) } else { None }
    })
}
