//! The engine's own threads, for jobs without a waiting caller. There are at
//! most as many threads as processors, and none without work. An application
//! can have another executor do its jobs.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use pmderive_runtime::locks::lock;

/// A piece of work.
pub type Job = Box<dyn FnOnce() + Send>;

/// Threads that do queued jobs. They end when the queue is empty.
#[derive(Default)]
pub(super) struct Threads {
    state: Arc<Mutex<State>>,
    /// The executor that does the jobs instead.
    pub instead: Option<Box<dyn Fn(Job) + Send + Sync>>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    running: usize,
}

impl Threads {
    /// Queues a job behind the waiting ones. If no thread can be started, the
    /// caller does the job at once.
    pub fn run(&self, job: Job) {
        if let Some(instead) = &self.instead {
            return instead(job);
        }
        let most = std::thread::available_parallelism().map_or(1, |count| count.get());
        {
            let mut state = lock(&self.state);
            state.waiting.push_back(job);
            if state.running >= most {
                return;
            }
            state.running += 1;
        }
        let state = Arc::clone(&self.state);
        let thread = std::thread::Builder::new().name("pmderive-compile".to_string());
        if thread.spawn(move || work(&state)).is_err() {
            work(&self.state);
        }
    }
}

/// Does the waiting jobs until there are none.
fn work(state: &Mutex<State>) {
    loop {
        let job = {
            let mut state = lock(state);
            match state.waiting.pop_front() {
                Some(job) => job,
                None => {
                    state.running -= 1;
                    return;
                }
            }
        };
        // The waiting task notices that the job failed.
        drop(catch_unwind(AssertUnwindSafe(job)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn every_job_is_done_also_after_one_that_panics() {
        let threads = Threads::default();
        let (send, receive) = mpsc::channel();
        for number in 0..100 {
            let send = send.clone();
            threads.run(Box::new(move || {
                assert!(number % 10 != 3, "a job that fails, for the test");
                send.send(number).expect("the test waits");
            }));
        }
        drop(send);
        let mut done: Vec<i32> = receive.iter().collect();
        done.sort_unstable();
        let expected: Vec<i32> = (0..100).filter(|number| number % 10 != 3).collect();
        assert_eq!(done, expected);
    }
}
