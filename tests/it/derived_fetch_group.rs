//! Derived metrics in fetch groups.

use pmderive::dialect::Dialect;
use pmderive_runtime::fetch_group::{FetchGroup, ItemSpec};
use pmderive_runtime::model::PmStatus;

use crate::table;
use table::*;

#[test]
fn derived_metrics_are_fetched_as_all_others() {
    let shared = shared(
        Dialect::Fixed,
        &[("d.sum", "sum(t.set)"), ("d.twice", "2 * t.set"), ("d.rate", "rate(t.counter)")],
    );
    let mut group = FetchGroup::new(context(&shared));
    let sum = group.item::<u32>(ItemSpec::of("d.sum")).expect("a metric");
    let one = group.item::<i64>(ItemSpec::of("d.twice").instance("a")).expect("an instance");
    let set = group.item::<String>(ItemSpec::of("t.set").instance("b")).expect("an instance");
    let rates = group.indom::<f64>(ItemSpec::of("d.rate")).expect("a metric");
    let own = group.indom::<f64>(ItemSpec::of("t.counter").scale("/sec"));
    let own = own.expect("a metric");
    group.fetch().expect("memory does not fail");
    // The sum is that of all instances, whichever the other entries name.
    assert_eq!((group.get(sum), group.get(one), group.get(set)), (Ok(30), Ok(20), Ok("20")));
    assert!(group.instances(rates).is_empty());
    let firsts: Vec<_> = group.instances(own).iter().map(|row| row.value).collect();
    assert_eq!(firsts, [Err(PmStatus::AGAIN); 2]);

    let source = group.source().source();
    set_counter(source, 107, 214);
    group.fetch().expect("memory does not fail");
    let rows = |handle| -> Vec<_> {
        let rows = group.instances::<f64>(handle);
        rows.iter().map(|row| (row.name.map(str::to_owned), row.value)).collect()
    };
    assert_eq!(rows(rates), [(Some("a".into()), Ok(7.0)), (Some("b".into()), Ok(14.0))]);
    assert_eq!(rows(own), rows(rates));
}

fn set_counter(source: &mut TableSource, a: u64, b: u64) {
    table::set(source, "t.counter", Values::U64(vec![(0, a), (1, b)]));
}
