//! Virtual addresses to which chunks of memory are mapped while they are in use; access to other addresses faults.
//!
//! The only file that maps memory. The chunks are parts of an anonymous file, whose memory is allocated at the start.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lmsc_ir::program::{Memory, Program, Residency, Stream, residencies};

use super::chunks::over;

/// Chunks are multiples of this number of bytes, on every machine.
pub(super) const LEAST: u64 = 1 << 16;

/// Largest chunk in bytes: more would exhaust the addresses.
pub const LARGEST: u64 = 1 << 40;

/// Maximum number of chunks: a process has 65,530 mappings, and each chunk splits one.
pub(super) const MOST: u64 = 30_000;

/// Interval at which a thread that waits for chunks checks whether the run has ended.
const PATIENCE: Duration = Duration::from_millis(20);

/// The addresses, and the chunks that are mapped to some of them.
#[derive(Debug)]
pub(super) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
    chunk: usize,
    file: OwnedFd,
    /// For each stream and command, the residencies that it takes chunks for, if any.
    arrivals: [Vec<Option<Arrival>>; 3],
    turns: usize,
    state: Mutex<State>,
    changed: Condvar,
}

/// The position of a command among those that take chunks, in the program's order, and the residencies that begin with it.
type Arrival = (usize, Vec<Residency>);

#[derive(Debug)]
struct State {
    /// Chunks that are not mapped.
    free: Vec<usize>,
    /// By chunk-sized range of the addresses, the number of its users and the chunk mapped to it.
    users: Vec<u32>,
    mapped: Vec<usize>,
    /// The position whose turn it is to take chunks.
    turn: usize,
}

// SAFETY: it owns its addresses, which any thread may use and unmap.
unsafe impl Send for Pages {}
// SAFETY: mappings change under a lock only, and bytes are handed out by the unsafe functions of `host.rs` only.
unsafe impl Sync for Pages {}

impl Pages {
    /// Addresses for the arena of the program, and `chunks` chunks; given tensors have theirs from the start. None if the system
    /// refuses them.
    pub(super) fn new(program: &Program, chunk: u64, chunks: u64) -> Option<Pages> {
        let (chunk, chunks) = (usize::try_from(chunk).ok()?, usize::try_from(chunks).ok()?);
        // Whole chunks: the mapping of the last one must not reach beyond.
        let bytes = usize::try_from(program.arena.0).ok()?.max(1).checked_next_multiple_of(chunk)?;
        let length = chunk.checked_mul(chunks)?;
        // SAFETY: the name is a string that ends with a zero.
        let file = unsafe { libc::memfd_create(c"lmsc".as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return None;
        }
        // SAFETY: the descriptor is new and owned by nothing else.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        // SAFETY: it is an open file. Every page gets its memory now, not during a step.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, libc::off_t::try_from(length).ok()?) } != 0 {
            return None;
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: new addresses, which nothing uses.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        let start = NonNull::new(start.cast())?;
        let spots = bytes / chunk;
        let state = State {
            free: (0..chunks).rev().collect(),
            users: vec![0; spots],
            mapped: vec![0; spots],
            turn: 0,
        };
        let mut arrivals = Stream::ALL.map(|stream| vec![None; program.stream(stream).len()]);
        let mut given = Vec::new();
        for residency in residencies(program).into_iter().filter(|r| r.memory == Memory::Arena) {
            match residency.from {
                None => given.push(residency),
                Some((stream, index)) => {
                    arrivals[stream as usize][index as usize]
                        .get_or_insert((0, Vec::new()))
                        .1
                        .push(residency);
                }
            }
        }
        let mut turns = 0;
        for (stream, index, _) in program.in_order() {
            if let Some((turn, _)) = &mut arrivals[stream as usize][index as usize] {
                (*turn, turns) = (turns, turns + 1);
            }
        }
        let pages = Pages {
            start,
            bytes,
            chunk,
            file,
            arrivals,
            turns,
            state: state.into(),
            changed: Condvar::new(),
        };
        let mut state = pages.lock();
        if pages.lacks(&state, &given) > state.free.len() {
            return None;
        }
        given.iter().for_each(|residency| pages.take(&mut state, residency));
        drop(state);
        Some(pages)
    }

    /// The first address.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Number of addresses.
    pub(super) fn len(&self) -> u64 {
        self.bytes as u64
    }

    /// Called before the command starts: maps chunks for the residencies that begin with it. Commands take chunks in the
    /// program's order, so a command that waits for chunks gets them as surely as in a run of one stream. False if the run is
    /// over before.
    pub(super) fn arrive(&self, stream: Stream, command: u32, is_over: &dyn Fn() -> bool) -> bool {
        let Some((turn, residencies)) = &self.arrivals[stream as usize][command as usize] else {
            return true;
        };
        let mut state = self.lock();
        loop {
            if state.turn == *turn && self.lacks(&state, residencies) <= state.free.len() {
                break;
            }
            if is_over() {
                return false;
            }
            state = self.changed.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner).0;
        }
        residencies.iter().for_each(|residency| self.take(&mut state, residency));
        state.turn = (turn + 1) % self.turns;
        self.changed.notify_all();
        true
    }

    /// Ends a residency: its chunks are freed, and any later access to its addresses faults.
    pub(super) fn leave(&self, residency: &Residency) {
        if residency.memory != Memory::Arena {
            return;
        }
        let mut state = self.lock();
        for spot in over(residency, self.chunk as u64) {
            let spot = spot as usize;
            state.users[spot] -= 1;
            if state.users[spot] == 0 {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
                self.map(spot, libc::PROT_NONE, flags, -1, 0);
                let chunk = state.mapped[spot];
                state.free.push(chunk);
            }
        }
        self.changed.notify_all();
    }

    /// Whether chunks are mapped to all of these addresses.
    pub(super) fn are_there(&self, span: &std::ops::Range<u64>) -> bool {
        let (state, chunk) = (self.lock(), self.chunk as u64);
        (span.start / chunk..span.end.div_ceil(chunk)).all(|spot| state.users[spot as usize] > 0)
    }

    /// Number of chunks that the residencies need and that are not mapped yet.
    fn lacks(&self, state: &State, residencies: &[Residency]) -> usize {
        let spots = residencies.iter().flat_map(|residency| over(residency, self.chunk as u64));
        spots.filter(|&spot| state.users[spot as usize] == 0).collect::<BTreeSet<u64>>().len()
    }

    fn take(&self, state: &mut State, residency: &Residency) {
        for spot in over(residency, self.chunk as u64) {
            let spot = spot as usize;
            if state.users[spot] == 0 {
                let chunk = state.free.pop().expect("they were counted");
                let (access, offset) = (libc::PROT_READ | libc::PROT_WRITE, chunk * self.chunk);
                self.map(spot, access, libc::MAP_SHARED | libc::MAP_POPULATE, self.file.as_raw_fd(), offset);
                state.mapped[spot] = chunk;
            }
            state.users[spot] += 1;
        }
    }

    /// Replaces the mapping of a chunk-sized range of the addresses.
    fn map(&self, spot: usize, access: i32, flags: i32, file: i32, offset: usize) {
        assert!((spot + 1) * self.chunk <= self.bytes);
        // SAFETY: these addresses are ours. Nothing uses the old mapping: its count of users is zero. The offset was below the
        // file's length when that was made, so it fits the type of a length.
        let at = unsafe {
            let at = self.start.as_ptr().add(spot * self.chunk);
            libc::mmap(at.cast(), self.chunk, access, flags | libc::MAP_FIXED, file, offset as libc::off_t)
        };
        assert!(at != libc::MAP_FAILED, "the system maps no more: {}", std::io::Error::last_os_error());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: these addresses are ours, and `self` is the last owner.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use lmsc_ir::Bytes;
    use lmsc_ir::program::Until;

    use super::*;

    const CHILD: &str = "LMSC_TOUCHES_WHAT_HAS_LEFT";

    /// Three chunks of addresses, of which two may be mapped at once.
    fn pages() -> Pages {
        let program = Program {
            name: String::new(),
            arena: Bytes(3 * LEAST),
            slab: Bytes::ZERO,
            contents: Default::default(),
            prelude: Vec::new(),
            given: Vec::new(),
            outputs: Vec::new(),
            streams: Default::default(),
        };
        Pages::new(&program, LEAST, 2).unwrap()
    }

    fn residency(span: std::ops::Range<u64>) -> Residency {
        Residency { memory: Memory::Arena, span, from: None, last: [None; 3], until: Until::Used }
    }

    fn take(pages: &Pages, residency: &Residency) {
        pages.take(&mut pages.lock(), residency);
    }

    fn byte(pages: &Pages, at: u64) -> *mut u8 {
        assert!(at < pages.len());
        // SAFETY: the address is one of the mapping.
        unsafe { pages.start().as_ptr().add(at as usize) }
    }

    #[test]
    fn tensors_share_chunks_and_chunks_are_used_again() {
        let pages = pages();
        let (one, two) = (residency(0..LEAST + 1), residency(LEAST + 1..LEAST + 9));
        take(&pages, &one);
        take(&pages, &two);
        // SAFETY: a chunk is mapped there, and no other thread uses it.
        unsafe { byte(&pages, LEAST + 8).write_volatile(7) };
        pages.leave(&one);
        assert!(!pages.are_there(&(0..1)) && pages.are_there(&two.span));
        let three = residency(2 * LEAST..3 * LEAST);
        assert_eq!(pages.lacks(&pages.lock(), std::slice::from_ref(&three)), 1);
        take(&pages, &three);
        assert_eq!(pages.lacks(&pages.lock(), std::slice::from_ref(&one)), 1);
        // SAFETY: a chunk is still mapped there, and no other thread uses it.
        assert_eq!(unsafe { byte(&pages, LEAST + 8).read_volatile() }, 7);
    }

    #[test]
    fn memory_that_left_cannot_be_touched() {
        if std::env::var_os(CHILD).is_some() {
            let (pages, tensor) = (pages(), residency(0..LEAST));
            take(&pages, &tensor);
            // SAFETY: a chunk is mapped there, and no other thread uses it.
            unsafe { byte(&pages, 5).write_volatile(1) };
            pages.leave(&tensor);
            // SAFETY: it is not safe; the test expects that the process ends here.
            unsafe { byte(&pages, 5).read_volatile() };
            return;
        }
        let test = "pages::tests::memory_that_left_cannot_be_touched";
        let mut child = Command::new(std::env::current_exe().unwrap());
        let outcome = child.args(["--exact", test, "--nocapture"]).env(CHILD, "1").output().unwrap();
        assert_eq!(outcome.status.signal(), Some(libc::SIGSEGV), "{outcome:?}");
    }
}
