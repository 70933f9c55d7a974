//! The least that wasmtime can do for a call: a fresh instance, out of a pool, of the
//! smallest component that takes the same bytes; the bytes lowered; one call. It has
//! no fuel, no deadline, no log and no answer.
//!
//! There are two of them. One was made for just these bytes, and has memory for them from the
//! start. The other takes any, as a policy does, and asks for memory as the bytes come in.

use tread_model::change::{Change, Content, State};
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Linker};
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store};

/// Takes a list of texts, and looks at none of them.
const COMPONENT: &str = r#"
(component
  (core module $m
    (memory (export "memory") PAGES)
    (global $at (mut i32) (i32.const 65536))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $here i32) (local $lacks i32)
      (local.set $here (i32.and (i32.add (global.get $at) (i32.const 7)) (i32.const -8)))
      (global.set $at (i32.add (local.get $here) (local.get 3)))
      (local.set $lacks (i32.sub (global.get $at) (i32.shl (memory.size) (i32.const 16))))
      (if (i32.gt_s (local.get $lacks) (i32.const 0))
        (then
          ;; A quarter more than there will be, as the SDK does.
          (drop (memory.grow (i32.add
            (i32.add (i32.shr_u (local.get $lacks) (i32.const 16)) (i32.const 1))
            (i32.shr_u (memory.size) (i32.const 2)))))))
      (local.get $here))
    (func (export "take") (param i32 i32)))
  (core instance $i (instantiate $m))
  (type $texts (list (list u8)))
  (func (export "take") (param "texts" $texts)
    (canon lift (core func $i "take") (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))
"#;

/// The component, ready to be called.
pub(crate) struct Floor {
    engine: Engine,
    ready: InstancePre<()>,
    take: ComponentExportIndex,
}

impl Floor {
    /// With as many pages of 64 KiB as these texts take behind the first one: none has to be asked for
    /// in a call, and none is cleared for the next instance that nobody needs.
    pub(crate) fn made_for(texts: &[&[u8]]) -> Floor {
        // What the list itself takes of each, and what alignment may.
        let bytes: usize = texts.iter().map(|text| text.len() + 16).sum();
        Floor::with(1 + bytes.div_ceil(1 << 16))
    }

    /// With room for one change, as a policy that the SDK made.
    pub(crate) fn growing() -> Floor {
        Floor::with(2)
    }

    fn with(pages: usize) -> Floor {
        let mut pool = PoolingAllocationConfig::default();
        pool.total_component_instances(4);
        pool.total_core_instances(4);
        pool.total_memories(4);
        pool.max_memory_size(32 << 20);
        // As for policies.
        pool.linear_memory_keep_resident(16 << 20);
        let mut config = Config::new();
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        let engine = Engine::new(&config).unwrap();
        let component = COMPONENT.replace("PAGES", &pages.to_string());
        let component = Component::new(&engine, wat::parse_str(component).unwrap()).unwrap();
        let take = component.get_export_index(None, "take").unwrap();
        let ready = Linker::new(&engine).instantiate_pre(&component).unwrap();
        Floor { engine, ready, take }
    }

    pub(crate) fn call(&self, texts: &[&[u8]]) {
        let mut store = Store::new(&self.engine, ());
        let instance = self.ready.instantiate(&mut store).unwrap();
        let take = instance.get_typed_func::<(&[&[u8]],), ()>(&mut store, &self.take).unwrap();
        take.call(&mut store, (texts,)).unwrap();
    }
}

/// The bytes that a policy gets of changes.
pub(crate) fn texts<'c>(changes: &'c [&Change<'c>]) -> Vec<&'c [u8]> {
    let mut texts = Vec::new();
    for change in changes {
        texts.push(change.id.as_bytes());
        for state in [&change.before, &change.after] {
            let State::File(file) = state else { panic!("only files are measured") };
            let Content::Bytes(bytes) = &file.content else { panic!("only contents are measured") };
            texts.extend([bytes.as_ref(), file.user.as_bytes(), file.group.as_bytes()]);
        }
    }
    texts
}
