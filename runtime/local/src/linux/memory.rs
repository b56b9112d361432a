//! Memory from /proc/meminfo, and the size of swap.

use pmderive_core::model::{Semantics::*, ValueType::*};

use super::keyed::{Content, File, Keys, Number};
use super::table::{Row, row, units::*};

const fn key(key: &'static str) -> Content {
    Content { file: File::Meminfo, value: Number::Key(key) }
}

const fn of(compute: fn(&Keys) -> Option<u64>) -> Content {
    Content { file: File::Meminfo, value: Number::Of(compute) }
}

/// The difference of two keys.
fn less(keys: &Keys, whole: &str, part: &str) -> Option<u64> {
    keys.get(whole)?.checked_sub(keys.get(part)?)
}

/// Kilobytes as bytes.
fn bytes(kilobytes: Option<u64>) -> Option<u64> {
    kilobytes?.checked_mul(1024)
}

/// Size in bytes of a number of huge pages.
fn huge_pages(keys: &Keys, key: &str) -> Option<u64> {
    keys.get(key)?.checked_mul(bytes(keys.get("Hugepagesize"))?)
}

/// Memory in use for purposes other than buffers and cache.
fn other(keys: &Keys) -> Option<u64> {
    let used = less(keys, "MemTotal", "MemFree")?;
    used.checked_sub(keys.get("Cached")?)?.checked_sub(keys.get("Buffers")?)
}

/// Cache that can be given up without writing it back.
fn clean_cache(keys: &Keys) -> Option<u64> {
    keys.get("Cached")?.checked_sub(keys.get("Dirty")?)?.checked_sub(keys.get("Writeback")?)
}

/// The metrics.
#[rustfmt::skip]
pub(super) static TABLE: &[Row<Content>] = &[
    row("mem.physmem", (1, 0), U64, Discrete, KBYTE, key("MemTotal"), "Memory that the kernel manages."),
    row("hinv.physmem", (1, 9), U32, Discrete, MBYTE, of(|keys| Some(keys.get("MemTotal")? / 1024)), "Memory that the kernel manages, in megabytes."),
    row("mem.freemem", (1, 10), U64, Instant, KBYTE, key("MemFree"), "Memory that nothing uses."),
    row("mem.util.used", (1, 1), U64, Instant, KBYTE, of(|keys| less(keys, "MemTotal", "MemFree")), "Memory in use for anything at all."),
    row("mem.util.free", (1, 2), U64, Instant, KBYTE, key("MemFree"), "Memory that nothing uses."),
    row("mem.util.available", (1, 58), U64, Instant, KBYTE, key("MemAvailable"), "Memory that new programs could have without swapping, as the kernel estimates."),
    row("mem.util.shared", (1, 3), U64, Instant, KBYTE, key("MemShared"), "Memory shared by processes, on kernels before 2.6."),
    row("mem.util.bufmem", (1, 4), U64, Instant, KBYTE, key("Buffers"), "Buffers of block devices."),
    row("mem.util.cached", (1, 5), U64, Instant, KBYTE, key("Cached"), "Pages of files that are kept in memory."),
    row("mem.util.other", (1, 12), U64, Instant, KBYTE, of(other), "Memory in use for other things than buffers and cached files."),
    row("mem.util.swapCached", (1, 13), U64, Instant, KBYTE, key("SwapCached"), "Memory that is also still on a swap device."),
    row("mem.util.active", (1, 14), U64, Instant, KBYTE, key("Active"), "Memory used so recently that it is not reclaimed first."),
    row("mem.util.inactive", (1, 15), U64, Instant, KBYTE, key("Inactive"), "Memory not used lately, the first to be reclaimed."),
    row("mem.util.active_anon", (1, 36), U64, Instant, KBYTE, key("Active(anon)"), "Active memory that belongs to no file."),
    row("mem.util.inactive_anon", (1, 37), U64, Instant, KBYTE, key("Inactive(anon)"), "Inactive memory that belongs to no file."),
    row("mem.util.active_file", (1, 38), U64, Instant, KBYTE, key("Active(file)"), "Active memory that holds pages of files."),
    row("mem.util.inactive_file", (1, 39), U64, Instant, KBYTE, key("Inactive(file)"), "Inactive memory that holds pages of files."),
    row("mem.util.unevictable", (1, 40), U64, Instant, KBYTE, key("Unevictable"), "Memory that cannot be reclaimed."),
    row("mem.util.mlocked", (1, 41), U64, Instant, KBYTE, key("Mlocked"), "Memory locked by mlock(2)."),
    row("mem.util.highTotal", (1, 16), U64, Instant, KBYTE, key("HighTotal"), "Memory outside the kernel's own mapping, on 32-bit systems."),
    row("mem.util.highFree", (1, 17), U64, Instant, KBYTE, key("HighFree"), "Free memory outside the kernel's own mapping, on 32-bit systems."),
    row("mem.util.lowTotal", (1, 18), U64, Instant, KBYTE, key("LowTotal"), "Memory inside the kernel's own mapping, on 32-bit systems."),
    row("mem.util.lowFree", (1, 19), U64, Instant, KBYTE, key("LowFree"), "Free memory inside the kernel's own mapping, on 32-bit systems."),
    row("mem.util.swapTotal", (1, 20), U64, Instant, KBYTE, key("SwapTotal"), "Space of all swap areas."),
    row("mem.util.swapFree", (1, 21), U64, Instant, KBYTE, key("SwapFree"), "Space of the swap areas that is free."),
    row("mem.util.dirty", (1, 22), U64, Instant, KBYTE, key("Dirty"), "Memory that waits to be written to disk."),
    row("mem.util.writeback", (1, 23), U64, Instant, KBYTE, key("Writeback"), "Memory that is being written to disk."),
    row("mem.util.anonpages", (1, 30), U64, Instant, KBYTE, key("AnonPages"), "Memory of processes that belongs to no file."),
    row("mem.util.mapped", (1, 24), U64, Instant, KBYTE, key("Mapped"), "Pages of files that processes have mapped."),
    row("mem.util.shmem", (1, 42), U64, Instant, KBYTE, key("Shmem"), "Shared memory and temporary file systems in memory."),
    row("mem.util.slab", (1, 25), U64, Instant, KBYTE, key("Slab"), "Caches of the kernel's own data structures."),
    row("mem.util.slabReclaimable", (1, 34), U64, Instant, KBYTE, key("SReclaimable"), "Caches of the kernel's own data structures that can be reclaimed."),
    row("mem.util.slabUnreclaimable", (1, 35), U64, Instant, KBYTE, key("SUnreclaim"), "Caches of the kernel's own data structures that cannot be reclaimed."),
    row("mem.util.kernelStack", (1, 43), U64, Instant, KBYTE, key("KernelStack"), "Kernel stacks of tasks."),
    row("mem.util.pageTables", (1, 27), U64, Instant, KBYTE, key("PageTables"), "Page tables."),
    row("mem.util.NFS_Unstable", (1, 33), U64, Instant, KBYTE, key("NFS_Unstable"), "Pages that an NFS server has but has not committed yet."),
    row("mem.util.bounce", (1, 32), U64, Instant, KBYTE, key("Bounce"), "Bounce buffers of block devices."),
    row("mem.util.commitLimit", (1, 31), U64, Instant, KBYTE, key("CommitLimit"), "Memory that may be promised under strict accounting."),
    row("mem.util.committed_AS", (1, 26), U64, Instant, KBYTE, key("Committed_AS"), "Memory that has been promised to processes."),
    row("mem.util.vmallocTotal", (1, 50), U64, Instant, KBYTE, key("VmallocTotal"), "Address space for the kernel's virtual allocations."),
    row("mem.util.vmallocUsed", (1, 51), U64, Instant, KBYTE, key("VmallocUsed"), "Address space in use for the kernel's virtual allocations."),
    row("mem.util.vmallocChunk", (1, 52), U64, Instant, KBYTE, key("VmallocChunk"), "Largest free piece of address space for the kernel's virtual allocations."),
    row("mem.util.corrupthardware", (1, 55), U64, Instant, KBYTE, key("HardwareCorrupted"), "Memory that is no longer used because it is defective."),
    row("mem.util.anonhugepages", (1, 56), U64, Instant, KBYTE, key("AnonHugePages"), "Huge pages of processes that belong to no file."),
    row("mem.util.mmap_copy", (1, 53), U64, Instant, KBYTE, key("MmapCopy"), "Memory for private copies of mappings, on systems without memory management."),
    row("mem.util.quicklists", (1, 54), U64, Instant, KBYTE, key("Quicklists"), "Page tables kept for reuse."),
    row("mem.util.reverseMaps", (1, 28), U64, Instant, KBYTE, key("ReverseMaps"), "Pages mapped by the reverse mapping of early kernels 2.6."),
    row("mem.util.cache_clean", (1, 29), U64, Instant, KBYTE, of(clean_cache), "Cached files that need not be written back."),
    row("mem.util.directMap4k", (1, 48), U64, Instant, KBYTE, key("DirectMap4k"), "Memory that the kernel maps with pages of 4 kilobytes."),
    row("mem.util.directMap2M", (1, 49), U64, Instant, KBYTE, key("DirectMap2M"), "Memory that the kernel maps with pages of 2 megabytes."),
    row("mem.util.directMap1G", (1, 57), U64, Instant, KBYTE, key("DirectMap1G"), "Memory that the kernel maps with pages of 1 gigabyte."),
    row("mem.util.hugepagesTotal", (1, 44), U64, Instant, COUNT, key("HugePages_Total"), "Huge pages in the pool."),
    row("mem.util.hugepagesFree", (1, 45), U64, Instant, COUNT, key("HugePages_Free"), "Huge pages of the pool that are free."),
    row("mem.util.hugepagesRsvd", (1, 46), U64, Instant, COUNT, key("HugePages_Rsvd"), "Huge pages that are promised but not in use yet."),
    row("mem.util.hugepagesSurp", (1, 47), U64, Instant, COUNT, key("HugePages_Surp"), "Huge pages beyond the size that the pool is set to."),
    row("mem.util.hugepagesTotalBytes", (1, 60), U64, Instant, BYTE, of(|keys| huge_pages(keys, "HugePages_Total")), "Size of the pool of huge pages."),
    row("mem.util.hugepagesFreeBytes", (1, 61), U64, Instant, BYTE, of(|keys| huge_pages(keys, "HugePages_Free")), "Size of the free huge pages in the pool."),
    row("mem.util.hugepagesRsvdBytes", (1, 62), U64, Instant, BYTE, of(|keys| huge_pages(keys, "HugePages_Rsvd")), "Size of the huge pages that are promised but not in use yet."),
    row("mem.util.hugepagesSurpBytes", (1, 63), U64, Instant, BYTE, of(|keys| huge_pages(keys, "HugePages_Surp")), "Size of the huge pages beyond what the pool is set to."),
    row("hinv.hugepagesize", (1, 59), U32, Discrete, BYTE, of(|keys| bytes(keys.get("Hugepagesize"))), "Size of a huge page."),
    row("swap.length", (1, 6), U64, Instant, BYTE, of(|keys| bytes(keys.get("SwapTotal"))), "Space of all swap areas."),
    row("swap.used", (1, 7), U64, Instant, BYTE, of(|keys| bytes(less(keys, "SwapTotal", "SwapFree"))), "Space of the swap areas that is in use."),
    row("swap.free", (1, 8), U64, Instant, BYTE, of(|keys| bytes(keys.get("SwapFree"))), "Space of the swap areas that is free."),
];
