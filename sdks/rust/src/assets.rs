use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::de::DeserializeOwned;
use serde::Serialize;

#[cfg(doc)]
use crate::client::Client;
use crate::context::{optional, Context};
use crate::error::Error;
use crate::messages::*;
use crate::time;
use crate::value::Value;

/// An asset, by its name or its exact URI.
#[derive(Debug, Clone, Copy)]
pub enum AssetRef<'a> {
    /// By name.
    Name(&'a str),
    /// By URI, as Airflow normalizes it.
    Uri(&'a str),
}

/// What [`Context::emit_event`] records.
#[derive(Debug, Clone)]
pub struct Emission<'a> {
    asset: AssetRef<'a>,
    extra: Result<Value, Error>,
    partition_key: Option<&'a str>,
    alias: Option<&'a str>,
}

impl<'a> Emission<'a> {
    /// An event of an asset.
    pub fn of(asset: AssetRef<'a>) -> Self {
        Emission { asset, extra: Ok(Value::Nil), partition_key: None, alias: None }
    }

    /// Set what the event carries; a mapping.
    pub fn extra(mut self, extra: &impl Serialize) -> Self {
        self.extra = Value::from_json(extra);
        self
    }

    /// Set the partition that the event is about.
    ///
    /// Airflow 3.3 leaves it out of events through an alias: those have the partition of the run.
    pub fn partition_key(mut self, key: &'a str) -> Self {
        self.partition_key = Some(key);
        self
    }

    /// Record it through an alias, which the task declares as an outlet.
    pub fn alias(mut self, alias: &'a str) -> Self {
        self.alias = Some(alias);
        self
    }
}

/// Selects events of an asset or of an alias; ends in [`get`](AssetEvents::get).
#[derive(Clone)]
pub struct AssetEvents<'a> {
    context: &'a Context,
    of: Source<'a>,
    after: Option<String>,
    before: Option<String>,
    limit: Option<i64>,
    ascending: bool,
}

#[derive(Clone, Copy)]
enum Source<'a> {
    Asset(AssetRef<'a>),
    Alias(&'a str),
}

impl AssetEvents<'_> {
    /// Only those at this moment or later.
    pub fn after(mut self, moment: SystemTime) -> Self {
        self.after = Some(time::text(moment));
        self
    }

    /// Only those at this moment or earlier.
    pub fn before(mut self, moment: SystemTime) -> Self {
        self.before = Some(time::text(moment));
        self
    }

    /// At most so many.
    pub fn limit(mut self, limit: i64) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The newest first, instead of the oldest.
    pub fn newest_first(mut self) -> Self {
        self.ascending = false;
        self
    }

    /// Return the events.
    ///
    /// # Errors
    /// Those of [`Client::request`].
    pub fn get(self) -> Result<Vec<AssetEventResponse>, Error> {
        let AssetEvents { context, of, after, before, limit, ascending } = self;
        let (client, ascending) = (context.client(), Some(ascending));
        let found: AssetEventsResult = match of {
            Source::Alias(alias) => {
                let alias_name = alias.into();
                client.ask(&GetAssetEventByAssetAlias {
                    alias_name,
                    after,
                    before,
                    limit,
                    ascending,
                    ..Default::default()
                })
            }
            Source::Asset(asset) => {
                let (name, uri) = match asset {
                    AssetRef::Name(name) => (Some(name.into()), None),
                    AssetRef::Uri(uri) => (None, Some(uri.into())),
                };
                client.ask(&GetAssetEventByAsset {
                    name,
                    uri,
                    after,
                    before,
                    limit,
                    ascending,
                    ..Default::default()
                })
            }
        }?;
        Ok(found.asset_events)
    }
}

impl Context {
    /// Values kept with an asset that the task declares as inlet or outlet.
    pub fn asset_state<'a>(&'a self, asset: AssetRef<'a>) -> AssetStore<'a> {
        AssetStore(self, asset)
    }

    /// Return an asset as Airflow knows it.
    ///
    /// # Errors
    /// One that [`Error::is_not_found`] where it does not.
    pub fn asset(&self, asset: AssetRef<'_>) -> Result<AssetResult, Error> {
        match asset {
            AssetRef::Name(name) => {
                self.client().ask(&GetAssetByName { name: name.into(), ..Default::default() })
            }
            AssetRef::Uri(uri) => self.client().ask(&GetAssetByUri { uri: uri.into(), ..Default::default() }),
        }
    }

    /// Record an event of an asset; it is made when the task succeeds.
    ///
    /// The asset is looked up first: an event under a URI that differs by one character would be lost
    /// without a word.
    ///
    /// # Errors
    /// One that [`Error::is_not_found`] where Airflow does not know the asset.
    pub fn emit(&self, asset: AssetRef<'_>, extra: &impl Serialize) -> Result<(), Error> {
        self.emit_event(Emission::of(asset).extra(extra))
    }

    /// Record an event with a partition key or through an alias; see [`emit`](Context::emit).
    ///
    /// # Errors
    /// Those of [`emit`](Context::emit), and [`Error::NotJson`] where the extra is not JSON.
    pub fn emit_event(&self, emission: Emission<'_>) -> Result<(), Error> {
        let extra = match emission.extra? {
            Value::Nil => Value::Map(Vec::new()),
            extra => extra,
        };
        let found = self.asset(emission.asset)?;
        let key = [("name", Value::from(found.name.as_str())), ("uri", found.uri.as_str().into())];
        let mut event = BTreeMap::from([("dest_asset_key".into(), key.into()), ("extra".into(), extra)]);
        if let Some(partition) = emission.partition_key {
            event.insert("partition_key".to_owned(), partition.into());
        }
        let profile = match emission.alias {
            Some(alias) => {
                event.insert("source_alias_name".into(), alias.into());
                event.insert("dest_asset_extra".into(), Value::Map(Vec::new()));
                AssetProfile {
                    name: Some(alias.into()),
                    uri: None,
                    type_: "AssetAlias".into(),
                    ..Default::default()
                }
            }
            None => AssetProfile {
                name: Some(found.name),
                uri: Some(found.uri),
                type_: "Asset".into(),
                ..Default::default()
            },
        };
        let mut emitted = self.emitted();
        if !emitted.outlets.contains(&profile) {
            emitted.outlets.push(profile);
        }
        emitted.events.push(event);
        Ok(())
    }

    /// Select the events of an asset, oldest first.
    pub fn asset_events<'a>(&'a self, asset: AssetRef<'a>) -> AssetEvents<'a> {
        self.events_of(Source::Asset(asset))
    }

    /// Select the events that came through an alias, oldest first.
    pub fn alias_events<'a>(&'a self, alias: &'a str) -> AssetEvents<'a> {
        self.events_of(Source::Alias(alias))
    }

    fn events_of<'a>(&'a self, of: Source<'a>) -> AssetEvents<'a> {
        AssetEvents { context: self, of, after: None, before: None, limit: None, ascending: true }
    }
}

/// Values kept with an asset.
pub struct AssetStore<'a>(&'a Context, AssetRef<'a>);

impl AssetStore<'_> {
    /// Return a value, `None` where there is none.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where it is of another type, and those of [`Client::request`].
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Error> {
        let (client, key) = (self.0.client(), key.to_owned());
        let found: Option<AssetStateStoreResult> = optional(match self.1 {
            AssetRef::Name(name) => {
                client.ask(&GetAssetStateStoreByName { name: name.into(), key, ..Default::default() })
            }
            AssetRef::Uri(uri) => {
                client.ask(&GetAssetStateStoreByUri { uri: uri.into(), key, ..Default::default() })
            }
        })?;
        found.map(|found| found.value.into_type()).transpose()
    }

    /// Keep a JSON value.
    ///
    /// # Errors
    /// [`Error::NotJson`] where it is not JSON, and those of [`Client::request`].
    pub fn set(&self, key: &str, value: &impl Serialize) -> Result<(), Error> {
        let (client, key, value) = (self.0.client(), key.to_owned(), Value::from_json(value)?);
        match self.1 {
            AssetRef::Name(name) => client.request(&SetAssetStateStoreByName {
                name: name.into(),
                key,
                value,
                ..Default::default()
            }),
            AssetRef::Uri(uri) => {
                client.request(&SetAssetStateStoreByUri { uri: uri.into(), key, value, ..Default::default() })
            }
        }
        .map(drop)
    }

    /// Remove a value.
    ///
    /// # Errors
    /// Those of [`Client::request`].
    pub fn delete(&self, key: &str) -> Result<(), Error> {
        let (client, key) = (self.0.client(), key.to_owned());
        match self.1 {
            AssetRef::Name(name) => {
                client.request(&DeleteAssetStateStoreByName { name: name.into(), key, ..Default::default() })
            }
            AssetRef::Uri(uri) => {
                client.request(&DeleteAssetStateStoreByUri { uri: uri.into(), key, ..Default::default() })
            }
        }
        .map(drop)
    }

    /// Remove every value.
    ///
    /// # Errors
    /// Those of [`Client::request`].
    pub fn clear(&self) -> Result<(), Error> {
        let client = self.0.client();
        match self.1 {
            AssetRef::Name(name) => {
                client.request(&ClearAssetStateStoreByName { name: name.into(), ..Default::default() })
            }
            AssetRef::Uri(uri) => {
                client.request(&ClearAssetStateStoreByUri { uri: uri.into(), ..Default::default() })
            }
        }
        .map(drop)
    }
}
