//! The counts of virtual memory management, from /proc/vmstat.

use pmderive_core::model::{Semantics::*, ValueType::*};

use super::keyed::{Content, File, Keys, Number};
use super::table::{Row, row, units::*};

const fn key(key: &'static str) -> Content {
    Content { file: File::Vmstat, value: Number::Key(key) }
}

const fn of(compute: fn(&Keys) -> Option<u64>) -> Content {
    Content { file: File::Vmstat, value: Number::Of(compute) }
}

const UNSUPPORTED: Content = Content { file: File::Vmstat, value: Number::Unsupported };

/// Pages of the kernel's caches. Kernels since 2.6.18 count them in two parts.
fn slab(keys: &Keys) -> Option<u64> {
    let parts = || keys.get("nr_slab_reclaimable")?.checked_add(keys.get("nr_slab_unreclaimable")?);
    keys.get("nr_slab").or_else(parts)
}

/// The metrics.
#[rustfmt::skip]
pub(super) static TABLE: &[Row<Content>] = &[
    row("swap.pagesin", (0, 8), U32, Counter, COUNT, key("pswpin"), "Pages read from swap areas."),
    row("swap.pagesout", (0, 9), U32, Counter, COUNT, key("pswpout"), "Pages written to swap areas."),
    row("swap.in", (0, 10), U32, Counter, COUNT, UNSUPPORTED, "Processes swapped in as a whole, which Linux does not do."),
    row("swap.out", (0, 11), U32, Counter, COUNT, UNSUPPORTED, "Processes swapped out as a whole, which Linux does not do."),
    row("mem.vmstat.allocstall_dma32", (28, 155), U64, Counter, COUNT, key("allocstall_dma32"), "Allocations that had to reclaim pages first, zone DMA32."),
    row("mem.vmstat.allocstall_movable", (28, 157), U64, Counter, COUNT, key("allocstall_movable"), "Allocations that had to reclaim pages first, movable zone."),
    row("mem.vmstat.allocstall_normal", (28, 158), U64, Counter, COUNT, key("allocstall_normal"), "Allocations that had to reclaim pages first, normal zone."),
    row("mem.vmstat.balloon_deflate", (28, 103), U64, Counter, COUNT, key("balloon_deflate"), "Pages that the balloon gave back to this guest."),
    row("mem.vmstat.balloon_inflate", (28, 104), U64, Counter, COUNT, key("balloon_inflate"), "Pages that the balloon took from this guest."),
    row("mem.vmstat.compact_fail", (28, 58), U64, Counter, COUNT, key("compact_fail"), "Compactions of memory that did not make a large enough piece."),
    row("mem.vmstat.compact_stall", (28, 61), U64, Counter, COUNT, key("compact_stall"), "Allocations that had to compact memory first."),
    row("mem.vmstat.compact_success", (28, 62), U64, Counter, COUNT, key("compact_success"), "Compactions of memory that made a large enough piece."),
    row("mem.vmstat.drop_pagecache", (28, 109), U64, Counter, COUNT, key("drop_pagecache"), "Requests of an administrator to drop cached files."),
    row("mem.vmstat.drop_slab", (28, 110), U64, Counter, COUNT, key("drop_slab"), "Requests of an administrator to drop the kernel's caches."),
    row("mem.vmstat.htlb_buddy_alloc_fail", (28, 43), U64, Counter, COUNT, key("htlb_buddy_alloc_fail"), "Huge pages that could not be had."),
    row("mem.vmstat.htlb_buddy_alloc_success", (28, 44), U64, Counter, COUNT, key("htlb_buddy_alloc_success"), "Huge pages that could be had."),
    row("mem.vmstat.kswapd_high_wmark_hit_quickly", (28, 88), U64, Counter, COUNT, key("kswapd_high_wmark_hit_quickly"), "Times the reclaiming task soon found enough pages at the high mark."),
    row("mem.vmstat.kswapd_inodesteal", (28, 33), U64, Counter, COUNT, key("kswapd_inodesteal"), "Pages that the reclaiming task got by giving up inodes."),
    row("mem.vmstat.kswapd_low_wmark_hit_quickly", (28, 87), U64, Counter, COUNT, key("kswapd_low_wmark_hit_quickly"), "Times the reclaiming task soon found enough pages at the low mark."),
    row("mem.vmstat.nr_active_anon", (28, 45), U64, Instant, COUNT, key("nr_active_anon"), "Active pages that belong to no file."),
    row("mem.vmstat.nr_active_file", (28, 46), U64, Instant, COUNT, key("nr_active_file"), "Active pages of files."),
    row("mem.vmstat.nr_anon_pages", (28, 39), U64, Instant, NONE, key("nr_anon_pages"), "Pages of processes that belong to no file."),
    row("mem.vmstat.nr_anon_transparent_hugepages", (28, 90), U64, Instant, COUNT, key("nr_anon_transparent_hugepages"), "Huge pages of processes that belong to no file."),
    row("mem.vmstat.nr_dirtied", (28, 91), U64, Counter, COUNT, key("nr_dirtied"), "Pages that became dirty."),
    row("mem.vmstat.nr_dirty", (28, 0), U64, Instant, NONE, key("nr_dirty"), "Pages that wait to be written to disk."),
    row("mem.vmstat.nr_dirty_background_threshold", (28, 92), U64, Instant, COUNT, key("nr_dirty_background_threshold"), "Dirty pages from which on they are written in the background."),
    row("mem.vmstat.nr_dirty_threshold", (28, 93), U64, Instant, COUNT, key("nr_dirty_threshold"), "Dirty pages from which on writers have to wait."),
    row("mem.vmstat.nr_file_pages", (28, 41), U64, Instant, NONE, key("nr_file_pages"), "Pages of files that are in memory."),
    row("mem.vmstat.nr_free_pages", (28, 47), U64, Instant, COUNT, key("nr_free_pages"), "Pages that nothing uses."),
    row("mem.vmstat.nr_inactive_anon", (28, 48), U64, Instant, COUNT, key("nr_inactive_anon"), "Inactive pages that belong to no file."),
    row("mem.vmstat.nr_inactive_file", (28, 49), U64, Instant, COUNT, key("nr_inactive_file"), "Inactive pages of files."),
    row("mem.vmstat.nr_isolated_anon", (28, 50), U64, Instant, COUNT, key("nr_isolated_anon"), "Pages of no file that are being reclaimed or moved."),
    row("mem.vmstat.nr_isolated_file", (28, 51), U64, Instant, COUNT, key("nr_isolated_file"), "Pages of files that are being reclaimed or moved."),
    row("mem.vmstat.nr_kernel_stack", (28, 52), U64, Instant, COUNT, key("nr_kernel_stack"), "Kernel stacks of tasks."),
    row("mem.vmstat.nr_mapped", (28, 4), U64, Instant, NONE, key("nr_mapped"), "Pages of files that processes have mapped."),
    row("mem.vmstat.nr_mlock", (28, 53), U64, Instant, COUNT, key("nr_mlock"), "Pages locked by mlock(2)."),
    row("mem.vmstat.nr_page_table_pages", (28, 3), U64, Instant, NONE, key("nr_page_table_pages"), "Pages of page tables."),
    row("mem.vmstat.nr_shmem", (28, 54), U64, Instant, COUNT, key("nr_shmem"), "Pages of shared memory."),
    row("mem.vmstat.nr_slab_reclaimable", (28, 37), U64, Instant, NONE, key("nr_slab_reclaimable"), "Pages of the kernel's caches that can be reclaimed."),
    row("mem.vmstat.nr_slab_unreclaimable", (28, 38), U64, Instant, NONE, key("nr_slab_unreclaimable"), "Pages of the kernel's caches that cannot be reclaimed."),
    row("mem.vmstat.nr_unevictable", (28, 55), U64, Instant, COUNT, key("nr_unevictable"), "Pages that cannot be reclaimed."),
    row("mem.vmstat.nr_unstable", (28, 2), U64, Instant, NONE, key("nr_unstable"), "Pages that an NFS server has but has not committed yet."),
    row("mem.vmstat.nr_vmscan_write", (28, 42), U64, Counter, COUNT, key("nr_vmscan_write"), "Dirty pages written while reclaiming."),
    row("mem.vmstat.nr_writeback", (28, 1), U64, Instant, NONE, key("nr_writeback"), "Pages that are being written to disk."),
    row("mem.vmstat.nr_written", (28, 94), U64, Counter, COUNT, key("nr_written"), "Pages that were written to disk."),
    row("mem.vmstat.numa_foreign", (28, 95), U64, Counter, COUNT, key("numa_foreign"), "Pages meant for this node that another had to give."),
    row("mem.vmstat.numa_hit", (28, 96), U64, Counter, COUNT, key("numa_hit"), "Pages that came from the node they were meant for."),
    row("mem.vmstat.numa_interleave", (28, 97), U64, Counter, COUNT, key("numa_interleave"), "Pages that came from the node that interleaving meant."),
    row("mem.vmstat.numa_local", (28, 98), U64, Counter, COUNT, key("numa_local"), "Pages that a processor got from its own node."),
    row("mem.vmstat.numa_miss", (28, 99), U64, Counter, COUNT, key("numa_miss"), "Pages that came from another node than was meant."),
    row("mem.vmstat.numa_other", (28, 100), U64, Counter, COUNT, key("numa_other"), "Pages that a processor got from another node than its own."),
    row("mem.vmstat.oom_kill", (28, 166), U64, Counter, COUNT, key("oom_kill"), "Processes killed because memory ran out."),
    row("mem.vmstat.pageoutrun", (28, 34), U64, Counter, COUNT, key("pageoutrun"), "Runs of the reclaiming task."),
    row("mem.vmstat.pgactivate", (28, 14), U64, Counter, COUNT, key("pgactivate"), "Pages that became active."),
    row("mem.vmstat.pgalloc_dma", (28, 12), U64, Counter, COUNT, key("pgalloc_dma"), "Pages allocated, zone DMA."),
    row("mem.vmstat.pgalloc_dma32", (28, 63), U64, Counter, COUNT, key("pgalloc_dma32"), "Pages allocated, zone DMA32."),
    row("mem.vmstat.pgalloc_high", (28, 10), U64, Counter, COUNT, key("pgalloc_high"), "Pages allocated, high memory."),
    row("mem.vmstat.pgalloc_movable", (28, 64), U64, Counter, COUNT, key("pgalloc_movable"), "Pages allocated, movable zone."),
    row("mem.vmstat.pgalloc_normal", (28, 11), U64, Counter, COUNT, key("pgalloc_normal"), "Pages allocated, normal zone."),
    row("mem.vmstat.pgdeactivate", (28, 15), U64, Counter, COUNT, key("pgdeactivate"), "Pages that became inactive."),
    row("mem.vmstat.pgfault", (28, 16), U64, Counter, COUNT, key("pgfault"), "Page faults, major and minor."),
    row("mem.vmstat.pgfree", (28, 13), U64, Counter, COUNT, key("pgfree"), "Pages freed."),
    row("mem.vmstat.pginodesteal", (28, 30), U64, Counter, COUNT, key("pginodesteal"), "Pages got by giving up inodes."),
    row("mem.vmstat.pgmajfault", (28, 17), U64, Counter, COUNT, key("pgmajfault"), "Page faults that needed input."),
    row("mem.vmstat.pgmigrate_fail", (28, 117), U64, Counter, COUNT, key("pgmigrate_fail"), "Pages that could not be moved."),
    row("mem.vmstat.pgmigrate_success", (28, 118), U64, Counter, COUNT, key("pgmigrate_success"), "Pages that were moved."),
    row("mem.vmstat.pgpgin", (28, 6), U64, Counter, COUNT, key("pgpgin"), "Kilobytes read from block devices."),
    row("mem.vmstat.pgpgout", (28, 7), U64, Counter, COUNT, key("pgpgout"), "Kilobytes written to block devices."),
    row("mem.vmstat.pgrotated", (28, 36), U64, Counter, COUNT, key("pgrotated"), "Pages moved to the end of the inactive list."),
    row("mem.vmstat.pgscan_direct", (28, 146), U64, Counter, COUNT, key("pgscan_direct"), "Pages looked at by tasks that had to reclaim."),
    row("mem.vmstat.pgscan_direct_throttle", (28, 147), U64, Counter, COUNT, key("pgscan_direct_throttle"), "Times a task that had to reclaim was made to wait."),
    row("mem.vmstat.pgscan_kswapd", (28, 148), U64, Counter, COUNT, key("pgscan_kswapd"), "Pages looked at by the reclaiming task."),
    row("mem.vmstat.pgsteal_direct", (28, 149), U64, Counter, COUNT, key("pgsteal_direct"), "Pages reclaimed by tasks that had to."),
    row("mem.vmstat.pgsteal_file", (28, 167), U64, Counter, COUNT, key("pgsteal_file"), "Pages of files reclaimed."),
    row("mem.vmstat.pgsteal_kswapd", (28, 150), U64, Counter, COUNT, key("pgsteal_kswapd"), "Pages reclaimed by the reclaiming task."),
    row("mem.vmstat.pswpin", (28, 8), U64, Counter, COUNT, key("pswpin"), "Pages read from swap areas."),
    row("mem.vmstat.pswpout", (28, 9), U64, Counter, COUNT, key("pswpout"), "Pages written to swap areas."),
    row("mem.vmstat.slabs_scanned", (28, 31), U64, Counter, COUNT, key("slabs_scanned"), "Objects of the kernel's caches looked at while reclaiming."),
    row("mem.vmstat.swap_ra", (28, 168), U64, Counter, COUNT, key("swap_ra"), "Pages read ahead from swap areas."),
    row("mem.vmstat.swap_ra_hit", (28, 169), U64, Counter, COUNT, key("swap_ra_hit"), "Pages read ahead from swap areas that were then used."),
    row("mem.vmstat.thp_collapse_alloc", (28, 75), U64, Counter, COUNT, key("thp_collapse_alloc"), "Huge pages made of pages in use."),
    row("mem.vmstat.thp_collapse_alloc_failed", (28, 76), U64, Counter, COUNT, key("thp_collapse_alloc_failed"), "Huge pages that could not be made of pages in use."),
    row("mem.vmstat.thp_fault_alloc", (28, 73), U64, Counter, COUNT, key("thp_fault_alloc"), "Huge pages given on a fault."),
    row("mem.vmstat.thp_fault_fallback", (28, 74), U64, Counter, COUNT, key("thp_fault_fallback"), "Faults that got small pages because no huge one was free."),
    row("mem.vmstat.thp_split_page", (28, 120), U64, Counter, COUNT, key("thp_split_page"), "Huge pages split."),
    row("mem.vmstat.thp_split_page_failed", (28, 121), U64, Counter, COUNT, key("thp_split_page_failed"), "Huge pages that could not be split."),
    row("mem.vmstat.thp_zero_page_alloc", (28, 101), U64, Counter, COUNT, key("thp_zero_page_alloc"), "Huge pages of zeroes made."),
    row("mem.vmstat.unevictable_pgs_culled", (28, 79), U64, Counter, COUNT, key("unevictable_pgs_culled"), "Pages found to be unevictable."),
    row("mem.vmstat.unevictable_pgs_mlocked", (28, 80), U64, Counter, COUNT, key("unevictable_pgs_mlocked"), "Pages that were locked."),
    row("mem.vmstat.unevictable_pgs_munlocked", (28, 82), U64, Counter, COUNT, key("unevictable_pgs_munlocked"), "Pages that were unlocked."),
    row("mem.vmstat.unevictable_pgs_rescued", (28, 83), U64, Counter, COUNT, key("unevictable_pgs_rescued"), "Unevictable pages that became evictable again."),
    row("mem.vmstat.workingset_nodereclaim", (28, 124), U64, Counter, COUNT, key("workingset_nodereclaim"), "Nodes of records of evicted pages that were reclaimed."),
    row("mem.vmstat.workingset_nodes", (28, 174), U64, Counter, COUNT, key("workingset_nodes"), "Nodes that keep records of evicted pages."),
    row("mem.vmstat.zone_reclaim_failed", (28, 86), U64, Counter, COUNT, key("zone_reclaim_failed"), "Reclaims of a single zone that found nothing."),
    row("mem.vmstat.nr_slab", (28, 5), U64, Instant, NONE, of(slab), "Pages of the kernel's caches."),
];
