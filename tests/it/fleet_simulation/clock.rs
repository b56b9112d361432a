//! The engine's clock in a run, computed without the engine from the times at which the
//! machine's clock was set. It follows the machine's clock forward at once, and goes at half
//! speed while it is ahead.

use std::time::Duration;

use super::{DEADLINE, INTERVAL};

/// How long after a jump of the clock hosts may still find out that they overslept: one
/// may be in a slot, and sleep once more, while the clock is slow.
pub const AWAKE: Duration = DEADLINE.saturating_add(INTERVAL.saturating_mul(2));

/// Both times since the beginning: what really passes, and what the engine's clock shows.
#[derive(Debug)]
pub struct Clock {
    /// In their order. The first begins with the run.
    pieces: Vec<Piece>,
    /// When the engine's clock jumped.
    jumps: Vec<Duration>,
}

/// Time in which the clock goes evenly.
#[derive(Debug)]
struct Piece {
    real: Duration,
    engine: Duration,
    is_slow: bool,
}

impl Piece {
    fn engine(&self, real: Duration) -> Duration {
        let passed = real - self.real;
        self.engine + if self.is_slow { passed / 2 } else { passed }
    }

    fn real(&self, engine: Duration) -> Duration {
        let passed = engine - self.engine;
        self.real + if self.is_slow { passed * 2 } else { passed }
    }
}

impl Clock {
    /// Somebody set the machine's clock at these times by so many milliseconds.
    pub fn new(sets: &[(Duration, i64)]) -> Clock {
        let (real, engine) = (Duration::ZERO, Duration::ZERO);
        let mut clock =
            Clock { pieces: vec![Piece { real, engine, is_slow: false }], jumps: Vec::new() };
        let mut ahead = 0;
        for (at, by) in sets {
            clock.pieces.retain(|piece| piece.real < *at || piece.real.is_zero());
            ahead += by;
            let engine = clock.engine(*at);
            let by = Duration::from_millis(ahead.unsigned_abs());
            // The machine's clock may be set to a time before the beginning.
            let (machine, shown) = match ahead < 0 {
                true => (*at, engine + by),
                false => (*at + by, engine),
            };
            if machine > shown {
                clock.jumps.push(*at);
                let engine = engine + (machine - shown);
                clock.pieces.push(Piece { real: *at, engine, is_slow: false });
                continue;
            }
            clock.pieces.push(Piece { real: *at, engine, is_slow: true });
            // They meet again when twice as much time has passed.
            let late = shown - machine;
            let (real, engine) = (*at + late * 2, engine + late);
            clock.pieces.push(Piece { real, engine, is_slow: false });
        }
        clock
    }

    /// What the engine's clock shows.
    pub fn engine(&self, real: Duration) -> Duration {
        let later = self.pieces.partition_point(|piece| piece.real <= real);
        self.pieces[later - 1].engine(real)
    }

    /// When the engine's clock shows a time, or is already beyond it.
    pub fn real(&self, engine: Duration) -> Duration {
        let later = self.pieces.partition_point(|piece| piece.engine <= engine);
        let real = self.pieces[later - 1].real(engine);
        self.pieces.get(later).map_or(real, |next| real.min(next.real))
    }

    /// True if the clock jumped so shortly before, or between, two times that hosts may
    /// have overslept a slot.
    pub fn has_jumped(&self, from: Duration, to: Duration) -> bool {
        self.jumps.iter().any(|at| *at <= to && *at + AWAKE >= from)
    }
}

#[test]
fn the_clock_jumps_forward_and_is_slow_while_it_is_ahead() {
    let seconds = Duration::from_secs;
    let clock = Clock::new(&[(seconds(10), 5_000), (seconds(20), -8_000), (seconds(30), 2_000)]);
    // 3 seconds are left to make up for at 30, and 2 of them are given back.
    let both =
        [(0, 0), (9, 9), (10, 15), (19, 24), (20, 25), (24, 27), (28, 29), (32, 31), (40, 39)];
    for (real, engine) in both {
        assert_eq!(clock.engine(seconds(real)), seconds(engine), "{real}");
        assert_eq!(clock.real(seconds(engine)), seconds(real), "{engine}");
    }
    assert_eq!(clock.real(seconds(12)), seconds(10));
    let clock = Clock::new(&[(seconds(10), -100_000)]);
    assert_eq!([clock.engine(seconds(30)), clock.real(seconds(20))], [20, 30].map(seconds));
    assert_eq!(clock.engine(seconds(210)), seconds(110));
    let clock = Clock::new(&[(seconds(10), 5_000)]);
    let jumped = |from, to| clock.has_jumped(seconds(from), seconds(to));
    assert_eq!(
        [jumped(0, 9), jumped(5, 10), jumped(38, 39), jumped(39, 60)],
        [false, true, true, false]
    );
}
