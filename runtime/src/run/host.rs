//! The host as a device: an arena that kernels of the processor work in, and a slab that copies go to.
//!
//! The only file that hands out bytes to several threads at once. Why that is sound: a [`Checked`] program says which
//! bytes each command uses, and its check has proved that two commands of which one writes what the other uses never run
//! at the same time, if every command waits for what it is to wait for. The loop in `drive.rs` does.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::borrow::Cow;
use std::ops::Range;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use lmsc_ir::program::{Checked, Launch, Memory, Parts, Residency, Stream, Tensor, Transfer};

use super::Link;
use super::device::Device;
use super::kernels::Kernels;
use super::pages::Pages;
use crate::kernel::{Io, Step};

/// What the addresses of programs are multiples of, at most.
const ALIGNMENT: usize = 256;

/// How many bytes are copied at once.
const CHUNK: usize = 1 << 20;

/// Bytes that were all touched once.
#[derive(Debug)]
struct Bytes {
    start: NonNull<u8>,
    size: u64,
    keeps: Keeps,
}

/// Where bytes come from.
#[derive(Debug)]
enum Keeps {
    /// All of them from the allocator.
    Heap(Layout),
    /// Those that are in use from chunks.
    Pages(Box<Pages>),
}

// SAFETY: it owns its bytes, which any thread may use and free.
unsafe impl Send for Bytes {}
// SAFETY: sharing it shares no bytes: those are handed out by unsafe functions only.
unsafe impl Sync for Bytes {}

impl Bytes {
    /// So many bytes, or none where the system does not give them.
    fn new(bytes: u64) -> Option<Bytes> {
        let layout = Layout::from_size_align(usize::try_from(bytes).ok()?.max(1), ALIGNMENT).ok()?;
        // SAFETY: the layout has at least one byte.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let size = layout.size() as u64;
        let mut bytes = Bytes { start, size, keeps: Keeps::Heap(layout) };
        // The system gives memory when it is first written; that must not happen during a step.
        bytes.at(0..size).fill(0);
        Some(bytes)
    }

    /// The bytes of pages.
    fn of(pages: Pages) -> Bytes {
        Bytes { start: pages.start(), size: pages.len(), keeps: Keeps::Pages(Box::new(pages)) }
    }

    fn at(&mut self, span: Range<u64>) -> &mut [u8] {
        if let Keeps::Pages(pages) = &self.keeps {
            assert!(pages.are_there(&span), "these bytes are not in use");
        }
        // SAFETY: the bytes are there and initialized, and nobody else uses them: `self` is borrowed as mutable.
        unsafe { self.write(span) }
    }

    /// # Safety
    /// Nobody writes these bytes while they are borrowed.
    unsafe fn read(&self, span: Range<u64>) -> &[u8] {
        assert!(span.start <= span.end && span.end <= self.size);
        // SAFETY: they are inside, initialized, and as the caller promises not written.
        unsafe {
            let start = self.start.as_ptr().add(span.start as usize);
            std::slice::from_raw_parts(start, (span.end - span.start) as usize)
        }
    }

    /// # Safety
    /// Nobody else uses these bytes while they are borrowed.
    #[allow(clippy::mut_from_ref, reason = "many threads write, each other bytes")]
    unsafe fn write(&self, span: Range<u64>) -> &mut [u8] {
        assert!(span.start <= span.end && span.end <= self.size);
        // SAFETY: they are inside, initialized, and as the caller promises used by nobody else.
        unsafe {
            let start = self.start.as_ptr().add(span.start as usize);
            std::slice::from_raw_parts_mut(start, (span.end - span.start) as usize)
        }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if let Keeps::Heap(layout) = self.keeps {
            // SAFETY: it was allocated with this layout, and `self` is the last that has it.
            unsafe { dealloc(self.start.as_ptr(), layout) }
        }
    }
}

/// The two memories of a program, its kernels, and how fast bytes travel between them.
#[derive(Debug)]
pub(super) struct Host {
    program: Checked,
    kernels: Kernels,
    /// The arena and the slab.
    memories: [Bytes; 2],
    link: Link,
    /// Whether what closed gates multiply is left out.
    pub(super) skips_closed: bool,
}

impl Host {
    /// The memories, or the one that the system does not give and its size. `chunks`: how large and how many chunks are for
    /// the program's addresses; else there are bytes for all of them.
    pub(super) fn new(
        program: Checked,
        kernels: Kernels,
        link: Link,
        chunks: Option<(u64, u64)>,
    ) -> Result<Host, (Memory, lmsc_ir::Bytes)> {
        let arena = match chunks {
            Some((chunk, count)) => {
                let all = lmsc_ir::Bytes(chunk.saturating_mul(count));
                Bytes::of(Pages::new(&program, chunk, count).ok_or((Memory::Arena, all))?)
            }
            None => Bytes::new(program.arena.0).ok_or((Memory::Arena, program.arena))?,
        };
        let slab = Bytes::new(program.slab.0).ok_or((Memory::Slab, program.slab))?;
        Ok(Host { program, kernels, memories: [arena, slab], link, skips_closed: false })
    }

    pub(super) fn program(&self) -> &Checked {
        &self.program
    }

    /// Lets go of the bytes that the model has: those that are needed are in the memories.
    pub(super) fn forget_data(&mut self) {
        self.program.forget_data();
    }

    /// Bytes of a memory, while no step runs.
    pub(super) fn bytes(&mut self, memory: Memory, span: Range<u64>) -> &mut [u8] {
        self.memories[memory as usize].at(span)
    }

    fn pages(&self) -> Option<&Pages> {
        match &self.memories[Memory::Arena as usize].keeps {
            Keeps::Pages(pages) => Some(pages),
            Keeps::Heap(_) => None,
        }
    }

    /// The bytes of what is computed before the first step.
    pub(super) fn known(&self, tensor: &Tensor) -> &[u8] {
        self.kernels.known(tensor.content)
    }

    /// The launch at this position of the program.
    fn launch_at(&self, index: u32) -> &Launch {
        match &self.program.stream(Stream::Compute)[index as usize].action {
            lmsc_ir::program::Action::Launch(launch) => launch,
            _ => unreachable!("the loop launches what is to be launched"),
        }
    }
}

impl Device for Host {
    fn arrive(&self, stream: Stream, command: u32, is_over: &dyn Fn() -> bool) -> bool {
        self.pages().is_none_or(|pages| pages.arrive(stream, command, is_over))
    }

    fn leave(&self, residency: &Residency) {
        if let Some(pages) = self.pages() {
            pages.leave(residency);
        }
    }

    fn parts(&self, step: Step) -> Option<Parts> {
        if self.skips_closed { self.kernels.parts(&self.program, step) } else { None }
    }

    fn launch(&self, index: u32, step: Step) {
        let launch = self.launch_at(index);
        let is_written = |i: usize| launch.in_place.iter().any(|pair| pair.0 == i);
        let arena = &self.memories[Memory::Arena as usize];
        let operand = |(i, tensor): (usize, &Option<Tensor>)| match tensor {
            Some(tensor) if !is_written(i) => match tensor.span() {
                // SAFETY: the program is checked: while the launch runs, nobody writes its operands; those that it writes
                // itself are left out.
                Some(span) => unsafe { arena.read(span) },
                None => self.kernels.known(tensor.content),
            },
            _ => &[],
        };
        let operands: Vec<&[u8]> = launch.operands.iter().enumerate().map(operand).collect();
        let result = |tensor: &Option<Tensor>| match tensor.as_ref().and_then(Tensor::span) {
            // SAFETY: the program is checked: while the launch runs, nobody else uses its results, and they overlap
            // neither each other nor the operands that are not left out.
            Some(span) => unsafe { arena.write(span) },
            None => &mut [],
        };
        let mut results: Vec<&mut [u8]> = launch.results.iter().map(result).collect();
        // SAFETY: the same holds for its workspace.
        let workspace = unsafe { arena.write(launch.workspace.clone()) };
        self.kernels.get(index).run(Io::new(&operands, &mut results, workspace), step);
    }

    fn copy(&self, stream: Stream, copy: &Transfer) -> Result<(), String> {
        let start = Instant::now();
        let (from, to) = Transfer::direction(stream);
        // SAFETY: the program is checked: while the copy runs, nobody writes what it reads.
        let source = unsafe { self.memories[from as usize].read(copy.span(from)) };
        // SAFETY: and nobody else uses what it writes.
        let target = unsafe { self.memories[to as usize].write(copy.span(to)) };
        let mut done = 0;
        for (from, to) in source.chunks(CHUNK).zip(target.chunks_mut(CHUNK)) {
            to.copy_from_slice(from);
            done += from.len() as u64;
            let due = self.link.nanos(stream, done);
            std::thread::sleep(Duration::from_nanos(due).saturating_sub(start.elapsed()));
        }
        Ok(())
    }

    fn peek(&self, memory: Memory, tensor: &Tensor) -> Cow<'_, [u8]> {
        Cow::Borrowed(match tensor.span() {
            // SAFETY: the loop lets only him look whose turn it is, who computes in this thread; the program is checked,
            // so nobody writes what he may see.
            Some(span) => unsafe { self.memories[memory as usize].read(span) },
            None => self.kernels.known(tensor.content),
        })
    }

    fn poke(&self, memory: Memory, tensor: &Tensor, bytes: &[u8]) {
        if let Some(span) = tensor.span() {
            // SAFETY: as for looking; and nobody else uses what he may set.
            unsafe { self.memories[memory as usize].write(span) }.copy_from_slice(bytes);
        }
    }
}
