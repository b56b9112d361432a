//! Traffic and state of network interfaces, from /proc/net/dev and
//! /sys/class/net.

use std::sync::Arc;

use pmderive_core::model::{InstanceDomain, Semantics::*, ValueType::*, text_of_bytes};

use super::area::Area;
use super::table::{Devices, Row, SINGLE, indom::INTERFACE, put_number, row, sum, units::*};
use crate::agent::{AgentValue, Values};
use crate::files::Files;
use crate::text;

/// The numbers of an interface's line: first those for receiving, then those
/// for sending.
type Counts = [Option<u64>; 16];

const IN_BYTES: usize = 0;
const IN_PACKETS: usize = 1;
const IN_ERRORS: usize = 2;
const IN_DROPS: usize = 3;
const IN_FIFO: usize = 4;
const IN_FRAME: usize = 5;
const IN_COMPRESSED: usize = 6;
const IN_MULTICASTS: usize = 7;
const OUT_BYTES: usize = 8;
const OUT_PACKETS: usize = 9;
const OUT_ERRORS: usize = 10;
const OUT_DROPS: usize = 11;
const OUT_FIFO: usize = 12;
const COLLISIONS: usize = 13;
const OUT_CARRIER: usize = 14;
const OUT_COMPRESSED: usize = 15;

/// The bit in an interface's flags that means "up" (`netdevice(7)`).
const IFF_UP: u64 = 0x1;

/// The value that a table row selects for each interface.
#[derive(Clone, Copy)]
pub(super) enum Content {
    /// A count.
    Count(fn(&Counts) -> Option<u64>),
    /// Number of interfaces.
    Number,
    /// The largest packet in bytes.
    Mtu,
    /// 1 half, 2 full duplex.
    Duplex,
    /// The highest speed in bytes per second.
    BaudRate,
    /// The highest speed in millions of bytes per second.
    Speed,
    /// 1 if the interface is up.
    Up,
    /// 1 if the interface is up and operational. This is its flag
    /// `IFF_RUNNING`; /sys does not show it, but the kernel derives it from
    /// these two.
    Running,
}

/// The metrics.
#[rustfmt::skip]
static TABLE: &[Row<Content>] = &[
    row("network.interface.in.bytes", (3, 0), U64, Counter, BYTE, Content::Count(|c| c[IN_BYTES]), "Bytes received, for each interface.").over(INTERFACE),
    row("network.interface.in.packets", (3, 1), U64, Counter, COUNT, Content::Count(|c| c[IN_PACKETS]), "Packets received, for each interface.").over(INTERFACE),
    row("network.interface.in.errors", (3, 2), U64, Counter, COUNT, Content::Count(|c| c[IN_ERRORS]), "Packets received in error, for each interface.").over(INTERFACE),
    row("network.interface.in.drops", (3, 3), U64, Counter, COUNT, Content::Count(|c| c[IN_DROPS]), "Packets received but dropped, for each interface.").over(INTERFACE),
    row("network.interface.in.fifo", (3, 4), U64, Counter, COUNT, Content::Count(|c| c[IN_FIFO]), "Overruns of the receiver's queue, for each interface.").over(INTERFACE),
    row("network.interface.in.frame", (3, 5), U64, Counter, COUNT, Content::Count(|c| c[IN_FRAME]), "Frames received in error, for each interface.").over(INTERFACE),
    row("network.interface.in.compressed", (3, 6), U64, Counter, COUNT, Content::Count(|c| c[IN_COMPRESSED]), "Compressed packets received, for each interface.").over(INTERFACE),
    row("network.interface.in.mcasts", (3, 7), U64, Counter, COUNT, Content::Count(|c| c[IN_MULTICASTS]), "Multicast packets received, for each interface.").over(INTERFACE),
    row("network.interface.out.bytes", (3, 8), U64, Counter, BYTE, Content::Count(|c| c[OUT_BYTES]), "Bytes sent, for each interface.").over(INTERFACE),
    row("network.interface.out.packets", (3, 9), U64, Counter, COUNT, Content::Count(|c| c[OUT_PACKETS]), "Packets sent, for each interface.").over(INTERFACE),
    row("network.interface.out.errors", (3, 10), U64, Counter, COUNT, Content::Count(|c| c[OUT_ERRORS]), "Packets that could not be sent, for each interface.").over(INTERFACE),
    row("network.interface.out.drops", (3, 11), U64, Counter, COUNT, Content::Count(|c| c[OUT_DROPS]), "Packets dropped instead of being sent, for each interface.").over(INTERFACE),
    row("network.interface.out.fifo", (3, 12), U64, Counter, COUNT, Content::Count(|c| c[OUT_FIFO]), "Overruns of the sender's queue, for each interface.").over(INTERFACE),
    row("network.interface.out.carrier", (3, 14), U64, Counter, COUNT, Content::Count(|c| c[OUT_CARRIER]), "Losses of the carrier while sending, for each interface.").over(INTERFACE),
    row("network.interface.out.compressed", (3, 15), U64, Counter, COUNT, Content::Count(|c| c[OUT_COMPRESSED]), "Compressed packets sent, for each interface.").over(INTERFACE),
    row("network.interface.collisions", (3, 13), U64, Counter, COUNT, Content::Count(|c| c[COLLISIONS]), "Collisions, for each interface.").over(INTERFACE),
    row("network.interface.total.bytes", (3, 16), U64, Counter, BYTE, Content::Count(|c| sum([c[IN_BYTES], c[OUT_BYTES]])), "Bytes received and sent, for each interface.").over(INTERFACE),
    row("network.interface.total.packets", (3, 17), U64, Counter, COUNT, Content::Count(|c| sum([c[IN_PACKETS], c[OUT_PACKETS]])), "Packets received and sent, for each interface.").over(INTERFACE),
    row("network.interface.total.errors", (3, 18), U64, Counter, COUNT, Content::Count(|c| sum([c[IN_ERRORS], c[OUT_ERRORS]])), "Errors receiving and sending, for each interface.").over(INTERFACE),
    row("network.interface.total.drops", (3, 19), U64, Counter, COUNT, Content::Count(|c| sum([c[IN_DROPS], c[OUT_DROPS]])), "Packets dropped receiving and sending, for each interface.").over(INTERFACE),
    row("network.interface.total.mcasts", (3, 20), U64, Counter, COUNT, Content::Count(|c| c[IN_MULTICASTS]), "Multicast packets; those sent are not counted, for each interface.").over(INTERFACE),
    row("network.interface.mtu", (3, 21), U32, Instant, BYTE, Content::Mtu, "Size of the largest packet that each interface can carry.").over(INTERFACE),
    row("network.interface.speed", (3, 22), F32, Discrete, MBYTE_PER_SEC, Content::Speed, "Speed of each interface that knows it, in millions of bytes per second.").over(INTERFACE),
    row("network.interface.baudrate", (3, 23), U64, Discrete, BYTE_PER_SEC, Content::BaudRate, "Speed of each interface that knows it, in bytes per second.").over(INTERFACE),
    row("network.interface.duplex", (3, 24), U32, Discrete, NONE, Content::Duplex, "1 for an interface that is half duplex, 2 for full duplex.").over(INTERFACE),
    row("network.interface.up", (3, 25), U32, Instant, NONE, Content::Up, "1 for an interface that is up, else 0.").over(INTERFACE),
    row("network.interface.running", (3, 26), U32, Instant, NONE, Content::Running, "1 for an interface that is up and operational, else 0.").over(INTERFACE),
    row("hinv.ninterface", (3, 27), U32, Discrete, NONE, Content::Number, "Number of network interfaces."),
];

/// Reader of /proc/net/dev and of the interfaces' files in /sys/class/net.
#[derive(Default)]
pub(super) struct Interfaces {
    interfaces: Devices<Counts>,
}

impl Interfaces {
    /// Adds a number for each interface, computed from its files below
    /// /sys/class/net.
    fn put_each(
        &self,
        files: &mut Files,
        values: &mut Values<'_, '_>,
        value: impl Fn(&mut Attributes<'_>) -> Option<u64>,
    ) {
        for (number, _) in self.interfaces.rows() {
            let interface = self.interfaces.name(*number);
            put_number(values, *number, value(&mut Attributes { interface, files }));
        }
    }
}

/// The files of one interface below /sys/class/net.
struct Attributes<'a> {
    interface: &'a str,
    files: &'a mut Files,
}

impl Attributes<'_> {
    /// The first word of a file.
    fn word(&mut self, attribute: &str) -> Option<&[u8]> {
        let contents = self.files.read(&format!("sys/class/net/{}/{attribute}", self.interface))?;
        text::words(contents).next()
    }

    fn is_up(&mut self) -> Option<bool> {
        Some(flags(self.word("flags")?)? & IFF_UP != 0)
    }

    fn is_operational(&mut self) -> Option<bool> {
        Some(matches!(self.word("operstate")?, b"up" | b"unknown"))
    }
}

/// The kernel writes flags as a hexadecimal number.
fn flags(word: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(word.strip_prefix(b"0x")?).ok()?;
    u64::from_str_radix(digits, 16).ok()
}

/// Megabits per second. The word is negative or `u32::MAX` if the interface
/// does not know its speed.
fn megabits(word: &[u8]) -> Option<u64> {
    text::number::<u64>(word).filter(|speed| *speed != u64::from(u32::MAX))
}

impl Area for Interfaces {
    type Content = Content;
    const TABLES: &'static [&'static [Row<Content>]] = &[TABLE];
    const DOMAINS: &'static [u32] = &[INTERFACE];

    fn read(&mut self, files: &mut Files) {
        let contents = files.read("proc/net/dev");
        self.interfaces.begin(contents.is_some());
        // The two heading lines have no colon.
        for line in text::lines(contents.unwrap_or_default()) {
            let Some((name, counts)) = text::split_once(line, b':') else { continue };
            let name = text_of_bytes(name.trim_ascii());
            if !name.is_empty() {
                self.interfaces.add(&name, text::numbers(text::words(counts)));
            }
        }
        self.interfaces.end();
    }

    fn put(&mut self, content: Content, files: &mut Files, values: &mut Values<'_, '_>) {
        match content {
            Content::Count(of) => {
                for (number, counts) in self.interfaces.rows() {
                    put_number(values, *number, of(counts));
                }
            }
            Content::Number => put_number(values, SINGLE, self.interfaces.count()),
            Content::Mtu => {
                self.put_each(files, values, |of| text::number(of.word("mtu")?));
            }
            Content::Duplex => self.put_each(files, values, |of| match of.word("duplex")? {
                b"half" => Some(1),
                b"full" => Some(2),
                _ => None,
            }),
            Content::BaudRate => self.put_each(files, values, |of| {
                Some(megabits(of.word("speed")?)?.checked_mul(1_000_000)? / 8)
            }),
            Content::Speed => {
                for (number, _) in self.interfaces.rows() {
                    let interface = self.interfaces.name(*number);
                    let speed = Attributes { interface, files }.word("speed").and_then(megabits);
                    if let Some(megabits) = speed {
                        values.put(*number, AgentValue::F32(megabits as f32 / 8.0));
                    }
                }
            }
            Content::Up => self.put_each(files, values, |of| of.is_up().map(u64::from)),
            Content::Running => self
                .put_each(files, values, |of| Some(u64::from(of.is_up()? && of.is_operational()?))),
        }
    }

    fn domain(&self, _: u32) -> Arc<InstanceDomain> {
        self.interfaces.domain()
    }
}
