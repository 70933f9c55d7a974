//! What a file of CRI-O says of a key.

use tread_policy_formats::{Table, Value};

/// What a file says of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Says {
    Nothing,
    /// Something that is not known: the file cannot be read, or has the key in other capitals.
    Something,
    Value(Value),
}

/// What a file says of a key in a table below `crio`; `None` cannot be read.
pub(crate) fn says(file: Option<&Table>, [section, key]: [&str; 2]) -> Says {
    let Some(file) = file else { return Says::Something };
    if let Some(value) = exact(file, &["crio", section]).and_then(|table| table.get(key)) {
        return Says::Value(value.clone());
    }
    let mut says = Says::Nothing;
    within(file, &["crio", section], &mut |table| {
        if table.keys().any(|other| other.eq_ignore_ascii_case(key)) {
            says = Says::Something;
        }
    });
    says
}

fn exact<'t>(table: &'t Table, place: &[&str]) -> Option<&'t Table> {
    place.iter().try_fold(table, |table, key| table.get(key)?.as_table())
}

/// The tables at this place, which CRI-O finds in any case.
pub(crate) fn within(table: &Table, place: &[&str], found: &mut dyn FnMut(&Table)) {
    let Some((next, rest)) = place.split_first() else { return found(table) };
    for (key, value) in table.iter() {
        if let Value::Table(inner) = value
            && key.eq_ignore_ascii_case(next)
        {
            within(inner, rest, found);
        }
    }
}
