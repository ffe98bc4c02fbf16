//! The host as a device: an arena that the processor's kernels work in, and a slab that copies go to.
//!
//! The only file that hands out bytes to several threads at once. Why that is sound: a [`Checked`] program says which
//! bytes each command uses, and its check has proved that two commands of which one writes bytes that the other uses never run at
//! the same time, provided that every command waits for its waits. The loop in `drive.rs` ensures that.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::borrow::Cow;
use std::ops::Range;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use lmsc_ir::program::{Checked, GateEffects, Launch, Memory, PlacedTensor, Residency, Stream, Transfer};
use lmsc_kernels::kernel::{Io, StepContext};

use super::HostLink;
use super::device::{Device, Tensors};
use super::kernels::Kernels;
use super::pages::Pages;

/// Maximum alignment of the addresses of programs.
const ALIGNMENT: usize = 256;

/// Number of bytes that are copied at once.
const CHUNK: usize = 1 << 20;

/// Bytes; the pages of those in use were touched once.
#[derive(Debug)]
struct Bytes {
    start: NonNull<u8>,
    size: u64,
    keeps: Keeps,
}

/// The source of the bytes.
#[derive(Debug)]
enum Keeps {
    /// All of them from the allocator.
    Heap(Layout),
    /// Chunks, for those in use.
    Pages(Box<Pages>),
}

// SAFETY: it owns its bytes, which any thread may use and free.
unsafe impl Send for Bytes {}
// SAFETY: sharing it shares no bytes: those are handed out by unsafe functions only.
unsafe impl Sync for Bytes {}

impl Bytes {
    /// `bytes` bytes, of which those of `spans` are used; or none if the system refuses them.
    fn new(bytes: u64, spans: impl Iterator<Item = Range<u64>>) -> Option<Bytes> {
        let layout = Layout::from_size_align(usize::try_from(bytes).ok()?.max(1), ALIGNMENT).ok()?;
        // SAFETY: the layout has at least one byte.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let size = layout.size() as u64;
        let mut bytes = Bytes { start, size, keeps: Keeps::Heap(layout) };
        // The system allocates a page when it is first written. That must not happen during a step, and never for the gaps between
        // the addresses of a plan for a larger device.
        let mut spans: Vec<Range<u64>> = spans.collect();
        spans.sort_unstable_by_key(|span| span.start);
        let mut touched = 0;
        for span in spans {
            let span = span.start.max(touched)..span.end.min(size);
            if !span.is_empty() {
                touched = span.end;
                bytes.at(span).fill(0);
            }
        }
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
        // SAFETY: the bytes are mapped and initialized, and nothing else uses them: `self` is borrowed as mutable.
        unsafe { self.write(span) }
    }

    /// # Safety
    /// Nothing writes these bytes while they are borrowed.
    unsafe fn read(&self, span: Range<u64>) -> &[u8] {
        assert!(span.start <= span.end && span.end <= self.size);
        // SAFETY: they are inside, initialized, and as the caller promises not written.
        unsafe {
            let start = self.start.as_ptr().add(span.start as usize);
            std::slice::from_raw_parts(start, (span.end - span.start) as usize)
        }
    }

    /// # Safety
    /// Nothing else uses these bytes while they are borrowed.
    #[allow(clippy::mut_from_ref, reason = "many threads write, each other bytes")]
    unsafe fn write(&self, span: Range<u64>) -> &mut [u8] {
        assert!(span.start <= span.end && span.end <= self.size);
        // SAFETY: they are inside, initialized, and as the caller promises used by nothing else.
        unsafe {
            let start = self.start.as_ptr().add(span.start as usize);
            std::slice::from_raw_parts_mut(start, (span.end - span.start) as usize)
        }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if let Keeps::Heap(layout) = self.keeps {
            // SAFETY: it was allocated with this layout, and `self` is the last owner.
            unsafe { dealloc(self.start.as_ptr(), layout) }
        }
    }
}

/// The two memories of a program, its kernels, and the bandwidth between the memories.
#[derive(Debug)]
pub(super) struct Host {
    program: Checked,
    kernels: Kernels,
    /// The arena and the slab.
    memories: [Bytes; 2],
    link: HostLink,
    /// Whether operators behind closed gates are left out.
    pub(super) skips_closed: bool,
}

impl Host {
    /// The memories, or the one that the system refuses and its size. `chunks`: the size and the number of chunks for the
    /// program's addresses; none: all addresses have bytes of their own.
    pub(super) fn new(
        program: Checked,
        kernels: Kernels,
        link: HostLink,
        chunks: Option<(u64, u64)>,
    ) -> Result<Host, (Memory, lmsc_ir::Bytes)> {
        let arena = match chunks {
            Some((chunk, count)) => {
                let all = lmsc_ir::Bytes(chunk.saturating_mul(count));
                Bytes::of(Pages::new(&program, chunk, count).ok_or((Memory::Arena, all))?)
            }
            None => Bytes::new(program.arena.0, program.spans(Memory::Arena))
                .ok_or((Memory::Arena, program.arena))?,
        };
        let slab =
            Bytes::new(program.slab.0, program.spans(Memory::Slab)).ok_or((Memory::Slab, program.slab))?;
        Ok(Host { program, kernels, memories: [arena, slab], link, skips_closed: false })
    }

    pub(super) fn program(&self) -> &Checked {
        &self.program
    }

    /// Drops the model's data: the needed bytes were copied to the memories.
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

    /// The bytes of a value computed before the first step.
    pub(super) fn known(&self, tensor: &PlacedTensor) -> &[u8] {
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

    fn parts(&self, step: StepContext) -> Option<GateEffects> {
        if self.skips_closed { self.kernels.parts(&self.program, step) } else { None }
    }

    fn launch(&self, index: u32, step: StepContext) -> Result<(), String> {
        let launch = self.launch_at(index);
        let is_written = |i: usize| launch.in_place.iter().any(|pair| pair.0 == i);
        let arena = &self.memories[Memory::Arena as usize];
        let operand = |(i, tensor): (usize, &Option<PlacedTensor>)| match tensor {
            Some(tensor) if !is_written(i) => match tensor.span() {
                // SAFETY: the program is checked: while the launch runs, nothing writes its operands; operands that it writes
                // itself are left out.
                Some(span) => unsafe { arena.read(span) },
                None => self.kernels.known(tensor.content),
            },
            _ => &[],
        };
        let operands: Vec<&[u8]> = launch.operands.iter().enumerate().map(operand).collect();
        let result = |tensor: &Option<PlacedTensor>| match tensor.as_ref().and_then(PlacedTensor::span) {
            // SAFETY: the program is checked: while the launch runs, nothing else uses its results, and they overlap neither each
            // other nor the operands that are not left out.
            Some(span) => unsafe { arena.write(span) },
            None => &mut [],
        };
        let kernel = self.kernels.get(index);
        kernel.check(&operands)?;
        let mut results: Vec<&mut [u8]> = launch.results.iter().map(result).collect();
        // SAFETY: the same holds for its workspace.
        let workspace = unsafe { arena.write(launch.workspace.clone()) };
        kernel.run(Io::new(&operands, &mut results, workspace), step);
        Ok(())
    }

    fn copy(&self, stream: Stream, copy: &Transfer) -> Result<(), String> {
        let start = Instant::now();
        let (from, to) = Transfer::direction(stream);
        // SAFETY: the program is checked: while the copy runs, nothing writes the bytes that it reads.
        let source = unsafe { self.memories[from as usize].read(copy.span(from)) };
        // SAFETY: and nothing else uses the bytes that it writes.
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
}

impl Tensors for Host {
    fn peek(&self, memory: Memory, tensor: &PlacedTensor) -> Result<Cow<'_, [u8]>, String> {
        Ok(Cow::Borrowed(match tensor.span() {
            // SAFETY: the loop allows reads only at the caller's turn, in the compute thread; the program is checked, so nothing
            // writes these bytes at that time.
            Some(span) => unsafe { self.memories[memory as usize].read(span) },
            None => self.kernels.known(tensor.content),
        }))
    }

    fn poke(&self, memory: Memory, tensor: &PlacedTensor, bytes: &[u8]) -> Result<(), String> {
        if let Some(span) = tensor.span() {
            // SAFETY: as for reads; and nothing else uses these bytes.
            unsafe { self.memories[memory as usize].write(span) }.copy_from_slice(bytes);
        }
        Ok(())
    }
}
