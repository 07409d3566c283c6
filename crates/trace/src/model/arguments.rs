//! Interned names and arguments of events.

use std::collections::HashMap;

use super::{Args, Name, Names};
use crate::perfetto::{DebugAnnotation, InternedData, InternedName, TrackEvent, Value};

/// Interned strings of one sequence of packets.
#[derive(Debug, Default)]
pub(super) struct Interned {
    categories: HashMap<u64, Name>,
    events: HashMap<u64, Name>,
    annotations: HashMap<u64, Name>,
    texts: HashMap<u64, Name>,
}

impl Interned {
    pub(super) fn learn(&mut self, data: &InternedData, names: &mut Names) {
        let mut take = |into: &mut HashMap<u64, Name>, list: &[InternedName]| {
            for entry in list {
                let text = entry.name.as_deref().unwrap_or("");
                into.insert(entry.iid.unwrap_or(0), names.name(text));
            }
        };
        take(&mut self.categories, &data.event_categories);
        take(&mut self.events, &data.event_names);
        take(&mut self.annotations, &data.debug_annotation_names);
        take(&mut self.texts, &data.debug_annotation_string_values);
    }

    /// The name of an event.
    pub(super) fn event(&self, event: &TrackEvent, names: &mut Names) -> Name {
        match &event.name {
            Some(name) => names.name(name),
            None => found(&self.events, event.name_iid),
        }
    }

    /// Its first category.
    pub(super) fn category(&self, event: &TrackEvent, names: &mut Names) -> Name {
        match event.categories.first() {
            Some(name) => names.name(name),
            None => found(&self.categories, event.category_iids.first().copied()),
        }
    }

    /// Its arguments, added to those that are known already.
    pub(super) fn arguments(&self, list: &[DebugAnnotation], names: &mut Names, into: &mut Args) {
        for annotation in list {
            let name = match &annotation.name {
                Some(name) => names.name(name),
                None => found(&self.annotations, annotation.name_iid),
            };
            if let Some(value) = &annotation.value {
                self.argument(name, value, names, into);
            }
        }
    }

    fn argument(&self, name: Name, value: &Value, names: &mut Names, into: &mut Args) {
        let key = names.text(name).to_string();
        match (key.as_str(), whole(value)) {
            ("dest", Some(n)) => into.dest = i32::try_from(n).ok(),
            ("source", Some(n)) => into.source = i32::try_from(n).ok(),
            ("tag", Some(n)) => into.tag = i32::try_from(n).ok(),
            ("root", Some(n)) => into.root = i32::try_from(n).ok(),
            ("target", Some(n)) => into.target = i32::try_from(n).ok(),
            ("member", Some(n)) => into.group.extend(i32::try_from(n)),
            ("comm_id", Some(n)) => into.comm_id = Some(n as u64),
            ("coll", Some(n)) => into.coll = u64::try_from(n).ok(),
            ("bytes", Some(n)) => into.bytes = u64::try_from(n).ok(),
            ("place", Some(n)) => into.place = i32::try_from(n).ok(),
            ("requests", Some(n)) => into.requests = u64::try_from(n).ok(),
            ("posted", Some(n)) => into.posted = u64::try_from(n).ok(),
            ("level", Some(n)) => into.level = i64::try_from(n).ok(),
            ("lost", Some(n)) => into.lost = u64::try_from(n).ok(),
            ("clock_error", Some(n)) => into.clock_error = u64::try_from(n).ok(),
            (key, None) => {
                let text = self.text(value, names);
                match key {
                    "comm" => into.comm = text,
                    "op" => into.op = text,
                    "mode" => into.mode = text,
                    "at" => into.at = text,
                    _ => into.others.push((name, text)),
                }
            }
            (_, Some(n)) => into.others.push((name, names.name(&n.to_string()))),
        }
    }

    /// A value that is not an integer, as text.
    fn text(&self, value: &Value, names: &mut Names) -> Name {
        match value {
            Value::String(text) => names.name(text),
            Value::StringIid(iid) => found(&self.texts, Some(*iid)),
            Value::Bool(yes) => names.name(if *yes { "yes" } else { "no" }),
            Value::Double(d) => names.name(&d.to_string()),
            Value::Int(_) | Value::Uint(_) => Name::default(),
        }
    }
}

fn found(table: &HashMap<u64, Name>, iid: Option<u64>) -> Name {
    iid.and_then(|i| table.get(&i)).copied().unwrap_or_default()
}

fn whole(value: &Value) -> Option<i128> {
    match value {
        Value::Int(n) => Some(i128::from(*n)),
        Value::Uint(n) => Some(i128::from(*n)),
        _ => None,
    }
}
