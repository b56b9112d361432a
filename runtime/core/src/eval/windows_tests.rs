//! Windows over explicit samples, and compared with a plain computation over
//! all samples.

use super::*;
use crate::program::{DefinitionKey, HistoryKey, InputSlot};

fn window(function: WindowFunction, seconds: f64) -> Window {
    let key = HistoryKey { definition: DefinitionKey(1), ordinal: 0 };
    let (like, inputs) = (WindowId(0), Box::default());
    Window { key, like, inputs, function, seconds, scalar: Scalar::F64 }
}

/// A store with one window.
struct One {
    store: WindowStore,
    window: Window,
}

impl One {
    fn new(function: WindowFunction, seconds: f64) -> One {
        let window = window(function, seconds);
        let program = Program { windows: [window.clone()].into(), ..Program::default() };
        let mut store = WindowStore::default();
        store.change_program(None, (&program, &Binding::default()));
        One { store, window }
    }

    /// Changes from one program to another over the same metrics.
    fn change(&mut self, old: &Program, new: &Program) {
        let binding = Binding::default();
        self.store.change_program(Some((old, &binding)), (new, &binding));
    }

    /// Adds a sample at a time in milliseconds and returns the values.
    fn at(&mut self, milliseconds: i64, sample: &[(InstId, f64)]) -> Vec<f64> {
        let ids: Vec<InstId> = sample.iter().map(|(id, _)| *id).collect();
        let lanes: Vec<u64> = sample.iter().map(|(_, value)| value.to_bits()).collect();
        let now = Timestamp::new(1000, milliseconds * 1_000_000);
        let mut out = Vec::new();
        self.store.begin();
        self.store.advance(WindowId(0), &self.window, (&ids, &lanes), now, &mut out);
        out.into_iter().map(f64::from_bits).collect()
    }

    fn single(&mut self, seconds: i64, value: f64) -> f64 {
        self.at(seconds * 1000, &[(-1, value)])[0]
    }

    fn buckets(&self) -> usize {
        self.store.states[0].buckets.len()
    }
}

#[test]
fn the_mean_is_that_of_the_samples_within_the_window() {
    let mut avg = One::new(WindowFunction::Avg, 3.0);
    assert_eq!(avg.single(0, 10.0), 10.0);
    assert_eq!(avg.single(1, 20.0), 15.0);
    assert_eq!(avg.single(2, 60.0), 30.0);
    // The sample of exactly three seconds ago is outside.
    assert_eq!(avg.single(3, 40.0), 40.0);
    assert_eq!(avg.single(4, -10.0), 30.0);
    // A plain mean: the time between samples has no weight.
    assert_eq!(avg.single(6, 30.0), 10.0);
    assert_eq!(avg.single(60, 7.0), 7.0);
}

#[test]
fn extremes_are_those_of_the_samples_within_the_window() {
    let (mut max, mut min) =
        (One::new(WindowFunction::Max, 2.5), One::new(WindowFunction::Min, 2.5));
    let values = [5.0, 3.0, 1.0, 2.0, 0.5, 9.0, 8.0, 7.0, 6.0];
    let greatest = [5.0, 5.0, 5.0, 3.0, 2.0, 9.0, 9.0, 9.0, 8.0];
    let least = [5.0, 3.0, 1.0, 1.0, 0.5, 0.5, 0.5, 7.0, 6.0];
    for (second, value) in (0..).zip(values) {
        let at = second as usize;
        assert_eq!(max.single(second, value), greatest[at], "{second}");
        assert_eq!(min.single(second, value), least[at], "{second}");
    }
}

#[test]
fn what_is_no_number_counts_while_it_is_within_the_window() {
    for function in [WindowFunction::Avg, WindowFunction::Max, WindowFunction::Min] {
        let mut one = One::new(function, 2.0);
        one.single(0, 1.0);
        assert!(one.single(1, f64::NAN).is_nan());
        assert!(one.single(2, 1.0).is_nan());
        assert_eq!(one.single(3, 1.0), 1.0);
    }
    let mut avg = One::new(WindowFunction::Avg, 2.0);
    avg.single(0, f64::INFINITY);
    assert_eq!(avg.single(1, 3.0), f64::INFINITY);
    assert_eq!(avg.single(2, 5.0), 4.0);
}

#[test]
fn the_weight_of_the_past_halves_in_a_half_life() {
    let mut ewma = One::new(WindowFunction::Ewma, 2.0);
    assert_eq!(ewma.single(0, 8.0), 8.0);
    assert_eq!(ewma.single(2, 0.0), 4.0);
    assert_eq!(ewma.single(6, 0.0), 1.0);
    // No time has passed.
    assert_eq!(ewma.single(6, 100.0), 1.0);
    // A value that is not finite is passed on and then forgotten.
    assert!(ewma.single(8, f64::NAN).is_nan());
    assert_eq!(ewma.single(10, 5.0), 5.0);
    assert_eq!(ewma.single(12, f64::INFINITY), f64::INFINITY);
    assert_eq!(ewma.single(14, 5.0), 5.0);
}

#[test]
fn instances_that_vanish_begin_anew() {
    let mut avg = One::new(WindowFunction::Avg, 10.0);
    assert_eq!(avg.at(0, &[(1, 1.0), (2, 10.0)]), [1.0, 10.0]);
    assert_eq!(avg.at(1000, &[(2, 30.0), (1, 3.0)]), [20.0, 2.0]);
    assert_eq!(avg.at(2000, &[(2, 50.0)]), [30.0]);
    assert_eq!(avg.at(3000, &[(1, 7.0), (2, 70.0), (3, 0.0)]), [7.0, 40.0, 0.0]);
    assert_eq!(avg.at(4000, &[(1, 9.0), (2, 90.0), (3, 4.0)]), [8.0, 50.0, 2.0]);
    // An instance that occurs twice has two windows.
    assert_eq!(avg.at(5000, &[(3, 8.0), (3, 100.0)]), [4.0, 100.0]);

    let mut ewma = One::new(WindowFunction::Ewma, 1.0);
    assert_eq!(ewma.at(0, &[(1, 8.0), (2, 4.0)]), [8.0, 4.0]);
    assert_eq!(ewma.at(1000, &[(2, 0.0)]), [2.0]);
    assert_eq!(ewma.at(2000, &[(2, 0.0), (1, 3.0)]), [1.0, 3.0]);
}

#[test]
fn nothing_is_left_after_a_gap_a_failure_or_a_step_back() {
    let mut avg = One::new(WindowFunction::Avg, 10.0);
    avg.single(0, 10.0);
    avg.store.forget();
    assert_eq!(avg.single(1, 20.0), 20.0);
    avg.store.clear(WindowId(0));
    assert_eq!(avg.single(2, 30.0), 30.0);
    assert_eq!(avg.single(1, 40.0), 40.0);
    assert_eq!(avg.single(2, 50.0), 45.0);
}

#[test]
fn windows_outlive_programs_that_lack_them() {
    let mut avg = One::new(WindowFunction::Avg, 10.0);
    let with = Program { windows: [avg.window.clone()].into(), ..Program::default() };
    let without = Program::default();
    avg.single(0, 10.0);
    avg.change(&with, &without);
    avg.change(&without, &with);
    assert_eq!(avg.single(1, 20.0), 15.0);
    // Samples of another metric are useless.
    let inputs = Box::from([InputSlot(0)]);
    let window = Window { inputs, ..avg.window.clone() };
    let with = Program { windows: [window].into(), ..Program::default() };
    let of = |print| Binding { prints: vec![print], ..Binding::default() };
    avg.store.change_program(Some((&with, &of(1))), (&with, &of(1)));
    assert_eq!(avg.single(2, 30.0), 20.0);
    avg.store.change_program(Some((&with, &of(1))), (&with, &of(7)));
    assert_eq!(avg.single(3, 30.0), 30.0);
}

/// The definitions with parked samples.
fn kept(store: &WindowStore) -> Vec<u64> {
    let parked = store.parked.iter().filter(|(_, state)| state.is_some());
    parked.map(|(key, _)| key.history.definition.0).collect()
}

#[test]
fn what_is_out_of_every_window_is_not_kept() {
    let mut avg = One::new(WindowFunction::Avg, 10.0);
    let with = Program { windows: [avg.window.clone()].into(), ..Program::default() };
    let mut other = avg.window.clone();
    other.key.definition = DefinitionKey(2);
    let other = Program { windows: [other].into(), ..Program::default() };
    avg.single(0, 10.0);
    avg.change(&with, &other);
    avg.single(5, 1.0);
    assert_eq!(kept(&avg.store), [1]);
    avg.single(10, 1.0);
    avg.store.forget_definitions(&[DefinitionKey(7)]);
    assert_eq!(kept(&avg.store), [1]);
    avg.change(&other, &Program::default());
    assert_eq!(kept(&avg.store), [2]);
    avg.store.forget_definitions(&[1, 2].map(DefinitionKey));
    assert!(avg.store.parked.is_empty());
}

/// Definitions with the same window share samples that both have seen. Each
/// keeps its own samples if only one has seen them.
#[test]
fn windows_that_have_seen_the_same_are_one() {
    let of = |definition: u64| {
        let mut window = window(WindowFunction::Avg, 10.0);
        window.key.definition = DefinitionKey(definition);
        window
    };
    let with = |definitions: &[u64]| Program {
        windows: definitions.iter().map(|definition| of(*definition)).collect(),
        ..Program::default()
    };
    let binding = Binding::default();
    let mut store = WindowStore::default();
    let mut before: Option<Program> = None;
    // For each second: a value, the definitions, their means, and the number of
    // states.
    for (second, value, definitions, expected, states) in [
        (0, 10.0, &[1, 2][..], &[10.0, 10.0][..], 1),
        (1, 20.0, &[1, 2], &[15.0, 15.0], 1),
        // A definition comes.
        (2, 30.0, &[3, 1, 2], &[30.0, 20.0, 20.0], 2),
        // One of the sharing definitions is away.
        (3, 40.0, &[1, 3], &[25.0, 35.0], 2),
        (4, 0.0, &[1, 2, 3], &[20.0, 15.0, 70.0 / 3.0], 3),
        (5, 0.0, &[1, 2, 3], &[100.0 / 6.0, 12.0, 17.5], 3),
        // All were away.
        (6, 40.0, &[3, 4, 5], &[22.0, 40.0, 40.0], 2),
        (7, 0.0, &[4, 5, 2], &[20.0, 20.0, 10.0], 2),
    ] {
        let program = with(definitions);
        if before.as_ref().is_none_or(|before| before.windows != program.windows) {
            let old = before.as_ref().map(|before| (before, &binding));
            store.change_program(old, (&program, &binding));
        }
        store.begin();
        let mut got = Vec::new();
        for (at, window) in (0..).zip(&program.windows) {
            let now = Timestamp::new(second, 0);
            let sample = (&[-1][..], &[f64::to_bits(value)][..]);
            store.advance(WindowId(at), window, sample, now, &mut got);
        }
        let got: Vec<f64> = got.into_iter().map(f64::from_bits).collect();
        assert_eq!(got, expected, "second {second}");
        assert_eq!(store.states.len(), states, "second {second}");
        before = Some(program);
    }
    // After a gap, definitions that shared samples still do.
    store.forget();
    assert_eq!(store.states.len(), 2);
}

/// Samples in fast succession share buckets, and the counts are still right.
#[test]
fn memory_is_bounded_at_any_pace() {
    let mut avg = One::new(WindowFunction::Avg, 4.096);
    // Ten samples a millisecond, which would fill ten thousand buckets.
    let mut now = 0;
    for step in 0..30_000i64 {
        let value = if step % 2 == 0 { 1.0 } else { 3.0 };
        let at = Timestamp::new(1000, step * 100_000);
        let mut out = Vec::new();
        let sample = (&[-1][..], &[f64::to_bits(value)][..]);
        avg.store.begin();
        avg.store.advance(WindowId(0), &avg.window, sample, at, &mut out);
        let expected =
            if step % 2 == 0 { step as f64 * 2.0 + 1.0 } else { step as f64 * 2.0 + 2.0 };
        assert_eq!(f64::from_bits(out[0]), expected / (step + 1) as f64);
        now = step;
    }
    assert_eq!(avg.buckets(), 3000);
    for step in now..now + 60_000 {
        let at = Timestamp::new(1000, step * 100_000);
        let sample = (&[-1][..], &[5f64.to_bits()][..]);
        avg.store.begin();
        avg.store.advance(WindowId(0), &avg.window, sample, at, &mut Vec::new());
        assert!(avg.buckets() <= 4097);
    }
    let values = &avg.store.states[0].values;
    assert!(values.len() <= 4097 && values.capacity() <= 8192 + 64);
}

/// A value of long ago has no weight left, however large it is.
#[test]
fn an_enormous_value_is_forgotten() {
    let mut ewma = One::new(WindowFunction::Ewma, 1.0);
    assert_eq!(ewma.at(0, &[(1, 9.3e18)]), [9.3e18]);
    assert_eq!(ewma.at(600_000, &[(1, 5.0)]), [5.0]);
}

/// Memory follows the number of instances, in both directions, and means stay right.
#[test]
fn buckets_have_about_as_many_columns_as_there_are_instances() {
    let mut avg = One::new(WindowFunction::Avg, 100.0);
    let sample =
        |count: i32| -> Vec<(InstId, f64)> { (0..count).map(|id| (id, f64::from(id))).collect() };
    for (second, (count, columns)) in
        (0..).zip([(8, 8), (9, 11), (11, 11), (3, 11), (1, 1), (100, 125), (40, 125), (30, 30)])
    {
        let got = avg.at(second * 1000, &sample(count));
        assert!(got.into_iter().eq((0..count).map(f64::from)), "{second}");
        let State { columns: found, values, buckets, .. } = &*avg.store.states[0];
        assert_eq!((*found, values.len()), (columns, columns * buckets.len()), "{second}");
    }
    // An instance that is away loses its samples, though another has its column since.
    assert_eq!(avg.at(8000, &[(0, 4.5), (77, 6.0)]), [0.5, 6.0]);
    assert_eq!(avg.at(9000, &[(5, 4.0), (77, 8.0)]), [4.0, 7.0]);
}

/// The numbers are whole: their sums are exact in any order. Instances come and
/// go, and the pace changes.
#[test]
fn any_sequence_agrees_with_a_plain_computation() {
    let mut state = 11u64;
    let mut below = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % limit
    };
    for function in [WindowFunction::Avg, WindowFunction::Max, WindowFunction::Min] {
        for _ in 0..60 {
            let seconds = 1 + below(9) as i64;
            let mut one = One::new(function, seconds as f64);
            let mut samples: HashMap<InstId, Vec<(i64, f64)>> = HashMap::new();
            let mut now = 0;
            for _ in 0..80 {
                now += [0, 400, 1000, 1000, 1000, 2500, 20_000][below(7) as usize];
                let mut sample: Vec<(InstId, f64)> = Vec::new();
                for id in 0..4 {
                    if below(8) != 0 {
                        sample.push((id, below(1000) as f64));
                    }
                }
                if below(5) == 0 {
                    sample.reverse();
                }
                samples.retain(|id, _| sample.iter().any(|(have, _)| have == id));
                let got = one.at(now, &sample);
                for ((id, value), got) in sample.iter().zip(got) {
                    let all = samples.entry(*id).or_default();
                    all.push((now, *value));
                    all.retain(|(at, _)| *at > now - seconds * 1000);
                    let values = all.iter().map(|(_, value)| *value);
                    let expected = match function {
                        WindowFunction::Avg => values.sum::<f64>() / all.len() as f64,
                        WindowFunction::Max => values.fold(f64::NEG_INFINITY, f64::max),
                        _ => values.fold(f64::INFINITY, f64::min),
                    };
                    assert_eq!(got, expected, "{function:?} of {all:?} at {now}");
                }
            }
        }
    }
}
