//! A function that a component exports, with the types of the contract.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use wasmtime::Store;
use wasmtime::component::{
    ComponentExportIndex, ComponentNamedList, Instance, Lift, Lower, TypedFunc,
};

/// What a function of the contract takes and gives.
pub(crate) trait Signature {
    type Params<'a>: ComponentNamedList + Lower;
    type Value;
}

/// A function of a component, to be called in any instance of this component.
pub(crate) struct Function<S> {
    index: ComponentExportIndex,
    /// Whether its types were compared with the contract's. That comes out the same for each instance,
    /// and takes 7 % of a short call.
    compared: AtomicBool,
    signature: PhantomData<S>,
}

impl<S: Signature> Function<S>
where
    (S::Value,): ComponentNamedList + Lift,
{
    pub(crate) fn new(index: ComponentExportIndex) -> Function<S> {
        Function { index, compared: AtomicBool::new(false), signature: PhantomData }
    }

    /// The function in an instance of its component; an error if it has other types.
    #[allow(unsafe_code)]
    pub(crate) fn of<'a, T: 'static>(
        &self,
        store: &mut Store<T>,
        instance: Instance,
    ) -> wasmtime::Result<TypedFunc<S::Params<'a>, (S::Value,)>> {
        if self.compared.load(Ordering::Relaxed)
            && let Some(function) = instance.get_func(&mut *store, self.index)
        {
            // SAFETY: the function has to have these types. wasmtime compared them below, in
            // another instance of the same component: what a component exports under an index
            // has the same types in all of its instances.
            return Ok(unsafe { TypedFunc::new_unchecked(function) });
        }
        let function = instance.get_typed_func(&mut *store, self.index)?;
        self.compared.store(true, Ordering::Relaxed);
        Ok(function)
    }
}
