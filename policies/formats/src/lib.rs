//! Readers of the formats that node services use, made for guests.
//!
//! A component is compiled and instantiated for every plan, so a general
//! library (about 90 KB each, once compiled) costs more than it brings here.
//! Both readers give the same tree, [`Value`]:
//! - [`toml`] is strict TOML 1.0, as strict as the programs that read it on
//!   the node: what it refuses, they refuse. It also gives a tree of pieces of
//!   the text, [`Section`], for a policy where every microsecond counts.
//! - [`yaml`] reads the YAML that machines write (JSON included) and gives up
//!   on everything else: a policy that cannot read a file asks for a reboot.

mod map;
mod toml_beside;
mod toml_scalar;
mod toml_text;
mod toml_tree;
mod value;
mod yaml_flow;

pub mod toml;
pub mod words;
pub mod yaml;

pub use map::Map;
pub use toml_beside::{Beside, read_beside};
pub use toml_tree::{Item, Section};
pub use value::{Table, Value, changed_keys, without_empty_tables};
