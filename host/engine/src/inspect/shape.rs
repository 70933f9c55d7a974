//! What a component imports, exports and needs, read from its sections.

use super::readable::{core_module, unreadable};
use crate::failure::failure;
use crate::limits::Limits;
use crate::v1;
use semver::{Version, VersionReq};
use tread_model::verdict::{Failure, FailureKind};
use wasmparser::{
    BinaryReaderError, ComponentAlias, ComponentExternalKind, ComponentImport,
    ComponentOuterAliasKind, ComponentType, ComponentTypeRef, Encoding, InstanceTypeDeclaration,
    Parser, Payload, TypeBounds,
};

/// A component from outside.
#[derive(Debug, Default)]
pub(super) struct Shape {
    pub(super) is_component: bool,
    pub(super) imports: Vec<Import>,
    pub(super) exports: Vec<String>,
    /// Of all core modules inside.
    memories: Vec<u64>,
    tables: Vec<u64>,
    core_instances: usize,
}

/// A function that is imported, or another thing.
#[derive(Debug)]
pub(super) struct Import {
    /// `INTERFACE#FUNCTION`, or the name of what is imported.
    pub(super) name: String,
    allowed: bool,
}

/// What an instance type exports beside types, and whether that is a function;
/// `None` for types of other kinds.
type Members = Option<Vec<(String, bool)>>;

/// No more imports are read: a policy has one or two.
const MOST_IMPORTS: usize = 64;

/// How many types may be nested. Reading them recurses on the stack of the host.
const MOST_NESTED_TYPES: usize = 500;

impl Shape {
    pub(super) fn read(bytes: &[u8]) -> Result<Shape, Failure> {
        let unreadable = |error: BinaryReaderError| unreadable(bytes, &error);
        if nested_types(bytes).map_err(unreadable)? > MOST_NESTED_TYPES {
            let message = "it is broken: its types lie too deep within each other";
            return Err(failure(FailureKind::NotAComponent, message));
        }
        let shape = Shape::parse(bytes).map_err(unreadable)?;
        if !shape.is_component {
            return Err(failure(FailureKind::NotAComponent, core_module()));
        }
        Ok(shape)
    }

    fn parse(bytes: &[u8]) -> Result<Shape, BinaryReaderError> {
        let mut shape = Shape::default();
        // The index space of types of the outermost component.
        let mut types: Vec<Members> = Vec::new();
        let mut depth = 0usize;
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::Version { encoding, .. } => {
                    if depth == 0 {
                        shape.is_component = encoding == Encoding::Component;
                    }
                    depth += 1;
                }
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::MemorySection(section) => {
                    for memory in section {
                        let memory = memory?;
                        let page = memory.page_size_log2.unwrap_or(16);
                        shape.memories.push(memory.initial.saturating_mul(1 << page.min(16)));
                    }
                }
                Payload::TableSection(section) => {
                    for table in section {
                        shape.tables.push(table?.ty.initial);
                    }
                }
                Payload::InstanceSection(section) => {
                    for instance in section {
                        let made = matches!(instance?, wasmparser::Instance::Instantiate { .. });
                        shape.core_instances += usize::from(made);
                    }
                }
                Payload::ComponentTypeSection(section) if depth == 1 => {
                    for ty in section {
                        types.push(members(&ty?));
                    }
                }
                Payload::ComponentAliasSection(section) if depth == 1 => {
                    for alias in section {
                        if is_type(&alias?) {
                            types.push(None);
                        }
                    }
                }
                Payload::ComponentImportSection(section) if depth == 1 => {
                    for import in section {
                        let import = import?;
                        shape.add_import(&import, &types);
                        if let ComponentTypeRef::Type(_) = import.ty {
                            types.push(None);
                        }
                    }
                }
                Payload::ComponentExportSection(section) if depth == 1 => {
                    for export in section {
                        let export = export?;
                        shape.exports.push(export.name.name.to_owned());
                        if export.kind == ComponentExternalKind::Type {
                            types.push(None);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(shape)
    }

    fn add_import(&mut self, import: &ComponentImport<'_>, types: &[Members]) {
        if self.imports.len() >= MOST_IMPORTS {
            return;
        }
        let name = import.name.name;
        let ComponentTypeRef::Instance(index) = import.ty else {
            let allowed = matches!(import.ty, ComponentTypeRef::Type(TypeBounds::Eq(_)));
            self.imports.push(Import { name: name.to_owned(), allowed });
            return;
        };
        let Some(Some(members)) = types.get(index as usize) else {
            self.imports.push(Import { name: name.to_owned(), allowed: false });
            return;
        };
        if members.is_empty() {
            let allowed = name.starts_with("tread:policy/");
            self.imports.push(Import { name: name.to_owned(), allowed });
        }
        for (member, is_function) in members.iter().take(MOST_IMPORTS) {
            let allowed = *is_function && can_be_imported(name, member);
            self.imports.push(Import { name: format!("{name}#{member}"), allowed });
        }
    }

    /// The version of the contract that it exports; a version that tread
    /// speaks before any other.
    pub(super) fn contract(&self) -> Option<&str> {
        let versions = || self.exports.iter().filter_map(|it| version_of(it, v1::CLASSIFIER));
        versions().find(|version| is_spoken(version)).or_else(|| versions().next())
    }

    /// Why it cannot be loaded. A contract of another version comes first,
    /// because all else may follow from that.
    pub(super) fn problems(&self, limits: &Limits) -> Vec<Failure> {
        let mut problems = Vec::new();
        let wrong_world = |message: String| failure(FailureKind::WrongWorld, message);
        problems.extend(self.contract().and_then(unspoken).map(wrong_world));
        for import in self.imports.iter().filter(|import| !import.allowed) {
            problems.push(failure(
                FailureKind::ForbiddenImport,
                format!("it imports {}: {}", import.name, what_can_be_imported()),
            ));
        }
        if self.imports.len() >= MOST_IMPORTS {
            let message = format!("it imports {MOST_IMPORTS} things or more");
            problems.push(failure(FailureKind::ForbiddenImport, message));
        }
        if self.contract().is_none() {
            problems.push(wrong_world(format!("it does not export {}", v1::CLASSIFIER)));
        }
        problems.extend(self.excess(limits).map(|it| failure(FailureKind::Memory, it)));
        problems
    }

    /// What it needs before it runs, where that is more than it may have.
    fn excess(&self, limits: &Limits) -> Option<String> {
        let memory = self.memories.iter().fold(0u64, |sum, it| sum.saturating_add(*it));
        let table = self.tables.iter().copied().max().unwrap_or(0);
        if memory > limits.memory_bytes as u64 {
            return Some(format!(
                "it starts with {memory} bytes of memory, and {} are allowed",
                limits.memory_bytes
            ));
        }
        if self.memories.len() > 1 {
            return Some(format!("it has {} memories, and 1 is allowed", self.memories.len()));
        }
        if table > limits.table_elements as u64 {
            return Some(format!(
                "it starts with a table of {table} elements, and {} are allowed",
                limits.table_elements
            ));
        }
        if self.tables.len() > limits.tables as usize {
            return Some(format!(
                "it has {} tables, and {} are allowed",
                self.tables.len(),
                limits.tables
            ));
        }
        if self.core_instances > limits.core_instances as usize {
            return Some(format!(
                "it is made of {} core instances, and {} are allowed",
                self.core_instances, limits.core_instances
            ));
        }
        None
    }
}

/// An upper bound of how deep types are nested, found without reading them: each type
/// within a type begins with these two bytes.
fn nested_types(bytes: &[u8]) -> Result<usize, BinaryReaderError> {
    let mut count = 0;
    for payload in Parser::new(0).parse_all(bytes) {
        if let Payload::ComponentTypeSection(section) = payload? {
            let section = bytes.get(section.range()).unwrap_or_default();
            count += section.windows(2).filter(|it| matches!(it, [1, 0x41 | 0x42])).count();
        }
    }
    Ok(count)
}

/// What an instance type exports beside types. A type of another kind has no
/// members.
fn members(ty: &ComponentType<'_>) -> Members {
    let ComponentType::Instance(declarations) = ty else { return None };
    let exports = declarations.iter().filter_map(|declaration| match declaration {
        InstanceTypeDeclaration::Export {
            ty: ComponentTypeRef::Type(TypeBounds::Eq(_)), ..
        } => None,
        InstanceTypeDeclaration::Export { name, ty } => {
            Some((name.name.to_owned(), matches!(ty, ComponentTypeRef::Func(_))))
        }
        _ => None,
    });
    Some(exports.collect())
}

fn is_type(alias: &ComponentAlias<'_>) -> bool {
    matches!(
        alias,
        ComponentAlias::InstanceExport { kind: ComponentExternalKind::Type, .. }
            | ComponentAlias::Outer { kind: ComponentOuterAliasKind::Type, .. }
    )
}

/// What a policy can import: the functions that write its log.
const IMPORTS: [(&str, &str); 2] = [(v1::HOST, "log"), (v1::CHARACTERS, "put")];

/// Whether a policy can import this function of this interface.
pub fn can_be_imported(interface: &str, function: &str) -> bool {
    let is = |of| version_of(interface, of).is_some_and(is_spoken);
    IMPORTS.iter().any(|(of, name)| function == *name && is(of))
}

/// The sentence on what a policy can import.
pub fn what_can_be_imported() -> String {
    let names = IMPORTS.map(|(interface, name)| format!("{interface}#{name}"));
    format!("a policy can import nothing but {}", names.join(" and "))
}

/// Why a policy of this version of the contract cannot be loaded, and what to do.
pub fn unspoken(version: &str) -> Option<String> {
    let other = || match version {
        "" => "one of another version".to_owned(),
        version => format!("one that speaks {version}"),
    };
    (!is_spoken(version)).then(|| {
        format!(
            "it exports version {version} of tread:policy/classifier, and this tread speaks {}: \
             build it with the SDK of this tread, or take {}",
            v1::VERSIONS,
            other()
        )
    })
}

/// The version in `name`, if it is the interface `of` in whatever version.
fn version_of<'n>(name: &'n str, of: &str) -> Option<&'n str> {
    let (interface, _) = of.split_once('@')?;
    match name.strip_prefix(interface)? {
        "" => Some(""),
        version => version.strip_prefix('@'),
    }
}

fn is_spoken(version: &str) -> bool {
    let spoken = VersionReq::parse(v1::VERSIONS);
    Version::parse(version).is_ok_and(|it| spoken.is_ok_and(|spoken| spoken.matches(&it)))
}
