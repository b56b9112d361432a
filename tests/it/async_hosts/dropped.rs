//! Futures that are dropped while a request is in progress.

use pmderive::dialect::{Dialect, Language};
use pmderive_runtime::pdu::PduType;
use pmderive_testkit::fake_pmcd::{FakeHost, Fault, Rule};

use crate::async_hosts::clients::{Blocking, ClientDefinitions, Futures};
use crate::async_hosts::events::{DISKS, Servers};

/// Where a future is when it is dropped.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// It waits for values.
    Values,
    /// It waits for what is known of a domain, as all was forgotten.
    KnownDomains,
    /// It waits for what a domain is now, as there is an instance that is not in it.
    CurrentDomain,
}

/// A future that is dropped leaves the evaluator as one that fails does: nothing
/// was evaluated, and the next sample is behind a gap. After it all is as ever.
#[tokio::test]
async fn a_dropped_evaluation_has_not_taken_place() {
    for dialect in [Dialect::Fixed, Dialect::Pcp7_2] {
        for moment in [Moment::Values, Moment::KnownDomains, Moment::CurrentDomain] {
            drop_at(Language { dialect, extensions: true }, moment).await;
        }
    }
}

async fn drop_at(language: Language, moment: Moment) {
    let definitions = ClientDefinitions::new(language);
    let servers = Servers::start(1);
    let hosts: Vec<&FakeHost> = servers.pmcds[..2].iter().map(|pmcd| &**pmcd.host()).collect();
    let mut blocking = Blocking::open(&definitions, &servers.specs[0]);
    let mut futures = Futures::open(&definitions, &servers.specs[1]).await;
    for _ in 0..4 {
        assert_eq!(futures.sample(&definitions).await, blocking.sample(&definitions));
    }
    let kind = match moment {
        Moment::Values => PduType::HighresFetch,
        Moment::KnownDomains => {
            hosts.iter().for_each(|host| host.change_names(|_| {}));
            PduType::InstanceRequest
        }
        Moment::CurrentDomain => {
            let more = [(0, "sda"), (1, "sdb"), (5, "sdc")];
            hosts.iter().for_each(|host| host.change(|world| world.set_instances(DISKS, &more)));
            PduType::InstanceRequest
        }
    };
    let along_with_values = match kind {
        PduType::InstanceRequest => futures.evaluator.requests().domains().len(),
        _ => 0,
    };
    // What one of them waits for in vain ends the connection of the other.
    for (host, fault) in hosts.iter().zip([Fault::Close { after: 0 }, Fault::Stall { after: 0 }]) {
        host.inject(Rule::new(fault).on(kind).after(along_with_values as u32));
    }
    let due = hosts[1].requests(kind) + along_with_values as u64 + 1;
    assert!(blocking.sample(&definitions).is_err());
    {
        let is_asked = async {
            while hosts[1].requests(kind) < due {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            outcome = futures.sample(&definitions) => panic!("{moment:?}: {outcome:?}"),
            () = is_asked => {}
        }
    }
    assert!(!futures.host.is_connected());
    for sample in 0..6 {
        let outcome = futures.sample(&definitions).await;
        let events = outcome.as_ref().map(|sample| sample.events).expect("a connection");
        assert_eq!(events.gap, sample == 0, "{moment:?}");
        assert_eq!(outcome, blocking.sample(&definitions), "{moment:?}, {language:?}, {sample}");
    }
}
