//! The allocator of a policy: it hands out initial memory, which is warm, and gives little back,
//! because an instance lives for one call.

#![allow(unsafe_code)] // An allocator is unsafe by its trait; each use says why it holds.

use crate::bump::{PAGE, Room};
use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator(UnsafeCell::new(Room { next: 0, end: 0, then: None }));

struct Allocator(UnsafeCell<Room>);

/// The first blocks go here. So each policy has this much before it asks for more memory, which takes
/// longer than a small call: the linker makes the initial memory a page larger where it has to, and a
/// policy with little data needs one page, of which there is less to clear.
static FIRST: First = First(UnsafeCell::new(MaybeUninit::uninit()));

/// What a call with a change of 4 KB takes on both sides, and its answer.
const FIRST_BYTES: usize = 12 << 10;

#[repr(align(16))]
struct First(UnsafeCell<MaybeUninit<[u8; FIRST_BYTES]>>);

// SAFETY: only the allocator has its address, and it has one user, as below.
unsafe impl Sync for First {}

// SAFETY: the target has no threads (the `atomics` feature is off, and tread
// turns threads off in its engine), so there is only ever one user.
unsafe impl Sync for Allocator {}

unsafe extern "C" {
    /// The linker puts it behind the stack and all static data.
    safe static __heap_base: u8;
}

impl Allocator {
    /// Runs `act` on the room, which is measured at the first call.
    fn with<T>(&self, act: impl FnOnce(&mut Room) -> T) -> T {
        // SAFETY: no other reference exists: there is one thread, the reference
        // does not leave this function, and nothing that `act` calls allocates.
        let room = unsafe { &mut *self.0.get() };
        if room.end == 0 {
            let first = FIRST.0.get().expose_provenance();
            let behind = (&raw const __heap_base).addr();
            (room.next, room.end) = (first, first + FIRST_BYTES);
            room.then = Some(behind..core::arch::wasm32::memory_size(0) * PAGE);
        }
        act(room)
    }
}

fn grow(pages: usize) -> bool {
    core::arch::wasm32::memory_grow(0, pages) != usize::MAX
}

// SAFETY: `Room` hands out blocks of the asked size and alignment, which lie
// in `FIRST`, or between the static data and the end of the memory, and overlap no other live
// block: it only moves forward, or back over the block that is released or
// shrunk. It never unwinds. The memory belongs to nobody else: Rust's runtime
// on this target has no other user of the heap.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.with(|room| room.place(layout, grow)) {
            Some(address) => ptr::with_exposed_provenance_mut(address),
            None => ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.with(|room| room.release(block.addr(), layout.size()));
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if self.with(|room| room.resize(block.addr(), layout.size(), size, grow)) {
            return block;
        }
        // SAFETY: the caller guarantees that `size`, rounded up to the
        // alignment, does not overflow.
        let moved = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !moved.is_null() {
            // SAFETY: both blocks are at least that long, and the new one is
            // no part of the old one, which is still live.
            unsafe { ptr::copy_nonoverlapping(block, moved, layout.size().min(size)) };
        }
        moved
    }
}
