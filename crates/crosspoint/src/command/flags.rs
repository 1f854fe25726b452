//! Options that several commands have in common.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Args, Command, ValueEnum, ValueHint};
use crosspoint_contracts::{Contract, Kind};

use crate::config::Flags;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

/// Where the configuration and the data are
#[derive(Args, Clone, Default)]
pub(crate) struct StoreFlags {
    /// The configuration file [default: ./crosspoint.toml, or crosspoint/crosspoint.toml in the user's configuration
    /// directory]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Where")]
    pub(crate) config: Option<PathBuf>,

    /// The data directory: the database is there, and the address of a server that runs [default: .crosspoint]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Where")]
    pub(crate) data: Option<PathBuf>,

    /// The database, as sqlite:PATH [default: jobs.db in the data directory]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Other, help_heading = "Where")]
    pub(crate) store: Option<String>,
}

impl StoreFlags {
    pub(crate) fn flags(&self) -> Flags {
        let StoreFlags { config, data, store } = self.clone();
        Flags { config, data, store, ..Flags::default() }
    }
}

pub(crate) fn kind_parser() -> impl TypedValueParser<Value = Kind> {
    KindParser
}

/// Reads a kind of document. The name of a contract alone is answered with its kinds: the nearest of them would be a
/// guess.
#[derive(Clone)]
struct KindParser;

impl TypedValueParser for KindParser {
    type Value = Kind;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Kind, clap::Error> {
        let Some(contract) = value.to_str().and_then(Contract::from_name) else {
            let known = PossibleValuesParser::new(Kind::ALL.map(Kind::name));
            let known = known.try_map(|name| Kind::from_name(&name).ok_or("no such kind"));
            return known.parse_ref(command, arg, value);
        };
        let kinds: Vec<&str> =
            Kind::ALL.into_iter().filter(|kind| kind.contract() == contract).map(Kind::name).collect();
        let message = format!("{} is a contract, and its kinds are {}\n", contract.name(), kinds.join(", "));
        Err(clap::Error::raw(ErrorKind::InvalidValue, message).with_cmd(command))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Kind::ALL.into_iter().map(|kind| PossibleValue::new(kind.name()))))
    }
}

pub(crate) fn contract_parser() -> impl TypedValueParser<Value = Contract> {
    PossibleValuesParser::new(Contract::ALL.map(Contract::name))
        .try_map(|name| Contract::from_name(&name).ok_or("no such contract"))
}

/// Which server is asked
#[derive(Args, Clone, Default)]
pub(crate) struct Reach {
    /// The server, as http://127.0.0.1:7420 or unix:PATH [env: CROSSPOINT_SERVER] [default: the one of the data
    /// directory, else the store is opened]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, help_heading = "Where")]
    pub(crate) server: Option<String>,

    #[command(flatten)]
    pub(crate) store: StoreFlags,
}

pub(crate) fn seconds(text: &str) -> Result<f64, &'static str> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds.is_finite() => Ok(seconds),
        Ok(_) | Err(_) => Err("it must be a number of seconds, more than 0"),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Inner {
    /// One JSON value
    Json,
}
