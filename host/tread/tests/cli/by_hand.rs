//! The page on policies in other languages: what it shows is a policy, and where
//! it says that things are in memory, they are.

use crate::support::{Bench, tree};
use wit_parser::{Resolve, SizeAlign, Type, TypeDefKind};

fn page() -> String {
    std::fs::read_to_string(tree().join("guest-sdk/OTHER_LANGUAGES.md")).unwrap()
}

/// The only block of the page in this language.
fn block(page: &str, language: &str) -> String {
    let fence = format!("```{language}\n");
    let mut blocks = page.split(&fence).skip(1);
    let block = blocks.next().unwrap().split_once("```").unwrap().0;
    assert_eq!(blocks.next(), None, "one block of {language}");
    block.to_owned()
}

#[test]
fn the_policy_of_the_page_is_built_tested_and_keeps_what_every_policy_must() {
    let bench = Bench::new();
    let page = page();
    bench.write("module.wasm", wat::parse_str(block(&page, "wat")).unwrap());
    let gone = "title: It goes\nold: {files: {/etc/motd: a}}\nnew: {}\n\
                expect: {verdicts: {file:/etc/motd: {answer: abstain}}}\n";
    bench.write("cases/motd.yaml", format!("{}---\n{gone}", block(&page, "yaml")));
    let commands: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("    tread ")).collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    let mut last = String::new();
    for command in commands {
        let ran = bench.tread(&command.split(' ').collect::<Vec<_>>());
        assert_eq!(ran.code(), 0, "{command}: {}{}", ran.out(), ran.err());
        last = ran.out();
    }
    assert!(last.ends_with("9 passed, 0 failed\n"), "{last}");
}

#[test]
fn the_layout_of_each_record_is_that_of_the_contract() {
    let page = page();
    let contract = std::fs::read_to_string(tree().join("wit/policy.wit")).unwrap();
    let mut resolve = Resolve::default();
    resolve.push_str("policy.wit", &contract).unwrap();
    let mut sizes = SizeAlign::default();
    sizes.fill(&resolve);
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        Some((cells.next()?, cells.next()?.parse::<usize>().ok()?, cells.next()?))
    });
    let mut seen = 0;
    for (name, bytes, text) in rows {
        seen += 1;
        let found = resolve.types.iter().find(|(_, it)| it.name.as_deref() == Some(name));
        let (id, definition) = found.unwrap_or_else(|| panic!("{name} is no type"));
        assert_eq!(sizes.size(&Type::Id(id)).size_wasm32(), bytes, "{name}");
        match &definition.kind {
            TypeDefKind::Record(record) => {
                let offsets = sizes.field_offsets(record.fields.iter().map(|field| &field.ty));
                for (field, (offset, _)) in record.fields.iter().zip(offsets) {
                    let place = format!("{} {}", field.name, offset.size_wasm32());
                    assert!(text.contains(&place), "{name}: {place}");
                }
            }
            TypeDefKind::Variant(variant) => {
                let cases: Vec<_> = variant.cases.iter().map(|case| case.name.as_str()).collect();
                let tags = format!("tag 0 ({})", cases.join(", "));
                assert!(text.contains(&tags), "{name}: {tags}");
            }
            other => panic!("{name} is {other:?}"),
        }
    }
    assert_eq!(seen, 12);
}
