//! Grants against a plain list of every token there ever was.

use std::time::Duration;

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::core::{Batch, Command, Core, GrantCommand, Mode, Origin, Reply, Room};
use crate::id::{Ids, Seq};
use crate::keys::Keys;
use crate::machine::End;
use crate::retention::{Ended, Jumps, Rule};

const SALT: Salt = Salt(Uuid::from_u128(7));

fn digest(number: u64) -> Digest {
    Digest::of(SALT, &format!("token {number}"))
}

fn grant(name: &str, number: u64) -> Grant {
    Grant {
        name: name.into(),
        role: Role::Caller,
        digest: digest(number),
        created_at: Time(0),
        expires_at: None,
        revoked_at: None,
        former: None,
    }
}

fn core(grants: Vec<Grant>) -> Core {
    Core::new(Origin {
        agents: Vec::new(),
        members: Vec::new(),
        present: BTreeMap::new(),
        grants,
        standings: Vec::new(),
        jobs: Vec::new(),
        keys: Keys::default(),
        last_seq: Seq(0),
        ids: Ids::PLAIN,
        ended: Ended::new(Rule::FOR_EVER, Jumps::default()),
        unrepaired: Vec::new(),
        room: Room::of(10),
        mode: Mode::Serve,
        end: End::Clean,
        visited: BTreeSet::new(),
        alive_at: None,
        now: Time(0),
    })
}

/// What can happen to grants. Times are in microseconds, and may go back.
#[derive(Clone, Debug)]
enum Step {
    Create {
        name: u8,
        expires_in: Option<u64>,
    },
    Rotate {
        name: u8,
        overlap: u64,
        expires_in: Option<u64>,
    },
    Revoke {
        name: u8,
    },
    Time(i64),
    /// The orchestrator ends and begins again, with what is on disk.
    Restart,
}

/// A token that was ever given.
#[derive(Debug)]
struct Given {
    number: u64,
    name: u8,
    /// Until when it is good beside the token that has replaced it; `None` if it was not replaced.
    until: Option<i64>,
    /// Whether it was replaced twice.
    is_forgotten: bool,
}

/// What the model knows of a grant.
#[derive(Debug)]
struct Known {
    expires_at: Option<i64>,
    /// How long its tokens are good.
    length: Option<u64>,
    revoked: bool,
}

#[derive(Default)]
struct Model {
    known: BTreeMap<u8, Known>,
    given: Vec<Given>,
}

impl Model {
    fn is_usable(&self, name: u8, now: i64) -> Result<(), Unusable> {
        let known = &self.known[&name];
        match known {
            Known { revoked: true, .. } => Err(Unusable::Revoked),
            Known { expires_at: Some(at), .. } if *at <= now => Err(Unusable::Expired),
            Known { .. } => Ok(()),
        }
    }

    fn judge(&self, token: &Given, now: i64) -> Result<u8, Unusable> {
        if token.is_forgotten {
            return Err(Unusable::Unknown);
        }
        self.is_usable(token.name, now)?;
        if token.until.is_some_and(|until| until <= now) { Err(Unusable::Replaced) } else { Ok(token.name) }
    }

    fn create(&mut self, name: u8, number: u64, length: Option<u64>, now: i64) -> bool {
        if self.known.contains_key(&name) {
            return false;
        }
        let expires_at = length.map(|length| now + length.cast_signed());
        self.known.insert(name, Known { expires_at, length, revoked: false });
        self.given.push(Given { number, name, until: None, is_forgotten: false });
        true
    }

    fn rotate(&mut self, name: u8, number: u64, (overlap, length): (u64, Option<u64>), now: i64) -> bool {
        let Some(known) = self.known.get_mut(&name).filter(|known| !known.revoked) else { return false };
        let until = (now + overlap.cast_signed()).min(known.expires_at.unwrap_or(i64::MAX));
        known.length = length.or(known.length);
        known.expires_at = known.length.map(|length| now + length.cast_signed());
        for token in self.given.iter_mut().filter(|token| token.name == name) {
            token.is_forgotten |= token.until.is_some();
            token.until = token.until.or(Some(until));
        }
        self.given.push(Given { number, name, until: None, is_forgotten: false });
        true
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = 0..4_u8;
    let step =
        prop_oneof![
            (name.clone(), prop::option::of(0..50_u64))
                .prop_map(|(name, expires_in)| Step::Create { name, expires_in }),
            (name.clone(), 0..20_u64, prop::option::of(0..50_u64))
                .prop_map(|(name, overlap, expires_in)| Step::Rotate { name, overlap, expires_in }),
            name.prop_map(|name| Step::Revoke { name }),
            (-5..30_i64).prop_map(Step::Time),
            Just(Step::Restart),
        ];
    prop::collection::vec(step, 0..40)
}

proptest! {
    #[test]
    fn a_token_is_good_exactly_while_its_grant_says_so(steps in steps()) {
        let (mut core, mut disk, mut model, mut now) = (core(Vec::new()), BTreeMap::new(), Model::default(), 1_000);
        for (number, step) in (0..).zip(steps) {
            let mut batch = Batch::default();
            let mut apply = |command| core.apply(&Command::Grant(command), Time(now), &mut batch);
            match step {
                Step::Create { name, expires_in } => {
                    let expires_at = expires_in.map(|time| Time(0).plus(Duration::from_micros(time)));
                    let new = Grant { expires_at, ..grant(&name.to_string(), number) };
                    let reply = apply(GrantCommand::Create(Arc::new(new)));
                    let is_new = model.create(name, number, expires_in, now);
                    prop_assert_eq!(matches!(reply, Reply::Grant(_)), is_new);
                    prop_assert_eq!(matches!(reply, Reply::NameTaken), !is_new);
                }
                Step::Rotate { name, overlap, expires_in } => {
                    let is_done = model.rotate(name, number, (overlap, expires_in), now);
                    let (digest, name_text) = (digest(number), name.to_string().into());
                    let (overlap, expires_in) = (Duration::from_micros(overlap), expires_in.map(Duration::from_micros));
                    let reply = apply(GrantCommand::Rotate { name: name_text, digest, overlap, expires_in });
                    prop_assert_eq!(matches!(reply, Reply::Grant(_)), is_done);
                    prop_assert_eq!(matches!(reply, Reply::NoSuchGrant), !model.known.contains_key(&name));
                }
                Step::Revoke { name } => {
                    let reply = apply(GrantCommand::Revoke(name.to_string().into()));
                    let known = model.known.get_mut(&name);
                    let is_done = known.as_ref().is_some_and(|known| !known.revoked);
                    prop_assert_eq!(matches!(reply, Reply::Grant(_)), is_done);
                    prop_assert_eq!(matches!(reply, Reply::NoSuchGrant), known.is_none());
                    known.into_iter().for_each(|known| known.revoked = true);
                }
                Step::Time(by) => now += by,
                Step::Restart => core = super::tests::core(disk.values().cloned().collect()),
            }
            disk.extend(batch.grants.iter().map(|(name, grant)| (name.clone(), (**grant).clone())));
            for token in &model.given {
                let judged = core.grants().judge(&digest(token.number), Time(now)).map(|grant| grant.name.to_string());
                prop_assert_eq!(judged, model.judge(token, now).map(|name| name.to_string()), "{:?} at {}", token, now);
                let judge = |at| core.grants().judge(&digest(token.number), at).map(|_| ());
                match core.grants().good_until(&digest(token.number), Time(now)) {
                    Ok(None) => prop_assert_eq!(judge(Time(i64::MAX)), Ok(())),
                    Ok(Some(until)) => {
                        prop_assert_eq!(judge(until.shifted(-1)), Ok(()));
                        prop_assert!(matches!(judge(until), Err(Unusable::Expired | Unusable::Replaced)));
                    }
                    Err(unusable) => prop_assert_eq!(judge(Time(now)), Err(unusable)),
                }
            }
            prop_assert_eq!(core.grants().judge(&digest(1_000), Time(now)), Err(Unusable::Unknown));
            prop_assert_eq!(&**core.grants(), &disk.values().cloned().collect::<Grants>());
            prop_assert_eq!(core.grants().any(&Role::Caller), !model.known.is_empty());
        }
    }
}

#[test]
fn a_role_that_was_ever_granted_counts_as_granted() {
    let of = |name: &str, number, role| Grant { role, ..grant(name, number) };
    let revoked = Grant { revoked_at: Some(Time(1)), ..of("gone", 1, Role::Caller) };
    let grants: Grants = [revoked, of("worker", 2, Role::Agent("a".into()))].into_iter().collect();
    assert!(grants.any(&Role::Caller), "what is closed stays closed");
    assert!(grants.any(&Role::Agent("a".into())));
    assert!(!grants.any(&Role::Agent("b".into())));
    assert!(!grants.any(&Role::Admin));
}

#[test]
fn a_digest_depends_on_token_and_salt_and_prints_nothing() {
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
    assert_ne!(digest(1), Digest::of(Salt(Uuid::from_u128(8)), "token 1"));
    let shown = format!("{:?} {:?}", digest(1), grant("a", 1));
    assert_eq!(shown.matches("[digest]").count(), 2, "{shown}");
    let bytes = format!("{:?}", &digest(1).as_bytes()[..4]);
    assert!(!shown.contains(bytes.trim_matches(['[', ']'])), "{shown}");
}

#[test]
fn roles_are_read_as_they_are_written() {
    for role in [Role::Caller, Role::Agent("a".into()), Role::Admin] {
        assert_eq!(Role::from_word(role.word(), role.agent().cloned()), Some(role));
    }
    assert_eq!(Role::from_word("agent", None), None);
    assert_eq!(Role::from_word("caller", Some("a".into())), None);
    assert_eq!(Role::from_word("owner", None), None);
}

#[test]
fn names_can_be_shown_on_one_line_and_used_in_an_address() {
    for name in ["a", "report-writer", "Klinik-Süd", &"n".repeat(NAME_BYTES_MAX)] {
        assert!(is_name(name), "{name}");
    }
    for name in ["", "a b", "a/b", "a\nb", "a\0b", &"n".repeat(NAME_BYTES_MAX + 1)] {
        assert!(!is_name(name), "{name}");
    }
}
