//! Runs work on separate threads if the system provides them, and on the caller's thread otherwise.

use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

/// An item that is taken once.
struct Slot<T>(Mutex<Option<T>>);

impl<T> Slot<T> {
    fn new(item: T) -> Slot<T> {
        Slot(Mutex::new(Some(item)))
    }

    fn take(&self) -> T {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().expect("it is taken once")
    }
}

/// The results of `f` for the items, in their order, computed in parallel.
///
/// # Panics
/// If `f` does.
pub fn each<T: Send, R: Send>(items: impl IntoIterator<Item = T>, f: impl Fn(T) -> R + Sync) -> Vec<R> {
    let slots: Vec<Slot<T>> = items.into_iter().map(Slot::new).collect();
    let run = &|slot: &Slot<T>| f(slot.take());
    std::thread::scope(|scope| {
        let start = |slot| Builder::new().spawn_scoped(scope, move || run(slot)).map_err(|_| slot);
        let started: Vec<_> = slots.iter().map(start).collect();
        let end = |started| match started {
            Ok(thread) => joined(thread),
            Err(slot) => run(slot),
        };
        started.into_iter().map(end).collect()
    })
}

/// Both results, computed in parallel.
///
/// # Panics
/// If one of the functions does.
pub fn both<A: Send, B>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B) -> (A, B) {
    let slot = Slot::new(a);
    std::thread::scope(|scope| {
        let started = Builder::new().spawn_scoped(scope, || slot.take()());
        let b = b();
        (started.map_or_else(|_| slot.take()(), joined), b)
    })
}

fn joined<R>(thread: std::thread::ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_the_order_of_the_items() {
        assert_eq!(each(0..5, |i| i * i), [0, 1, 4, 9, 16]);
        assert_eq!(each([0_u8; 0], |i| i), [0_u8; 0]);
        assert_eq!(both(|| 1, || 2), (1, 2));
    }
}
