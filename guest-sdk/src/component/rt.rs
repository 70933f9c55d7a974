//! What the generated bindings call: memory by the canonical ABI, and the
//! constructors of static data.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error, realloc};
use std::mem;
use std::ptr;

/// A block that ends with its owner, unless it goes to the host.
pub struct Cleanup {
    block: *mut u8,
    layout: Layout,
}

impl Cleanup {
    /// A block, and who gives it back; no block for nothing.
    pub fn new(layout: Layout) -> (*mut u8, Option<Cleanup>) {
        if layout.size() == 0 {
            return (ptr::null_mut(), None);
        }
        // SAFETY: the size is not zero.
        let block = unsafe { alloc(layout) };
        if block.is_null() {
            handle_alloc_error(layout);
        }
        (block, Some(Cleanup { block, layout }))
    }

    /// Leaves the block to the host.
    pub fn forget(self) {
        mem::forget(self);
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and nobody else gives it back.
        unsafe { dealloc(self.block, self.layout) };
    }
}

/// Memory for what the host passes in.
///
/// # Safety
/// By the canonical ABI: `align` is a power of two, and `old` is a block of
/// `old_size` bytes that came from here, unless that is zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn cabi_realloc(
    old: *mut u8,
    old_size: usize,
    align: usize,
    size: usize,
) -> *mut u8 {
    if size == 0 {
        return ptr::without_provenance_mut(align);
    }
    // SAFETY: see above; `size` fits the memory, which has at most 4 GiB, and
    // what is too large for it is not allocated.
    let block = unsafe {
        match old_size {
            0 => alloc(Layout::from_size_align_unchecked(size, align)),
            _ => realloc(old, Layout::from_size_align_unchecked(old_size, align), size),
        }
    };
    if block.is_null() {
        core::arch::wasm32::unreachable();
    }
    block
}

/// Makes the linker see [`cabi_realloc`], which only the host calls.
pub fn maybe_link_cabi_realloc() {
    #[used]
    static SEEN: unsafe extern "C" fn(*mut u8, usize, usize, usize) -> *mut u8 = cabi_realloc;
}

/// Runs the constructors of static data at the first call.
pub fn run_ctors_once() {
    unsafe extern "C" {
        /// The linker writes it. If nobody called it, it would be called in each
        /// export.
        fn __wasm_call_ctors();
    }
    static mut RUN: bool = false;
    // SAFETY: there is one thread, and no other use of the flag.
    unsafe {
        if !RUN {
            RUN = true;
            __wasm_call_ctors();
        }
    }
}
