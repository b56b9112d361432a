//! Opens a context, binds three metrics and prints rates.
//! An argument is the archive to read.

use std::error::Error;

use pmderive_runtime::context::Context;
use pmderive_runtime::fetch_group::{FetchGroup, ItemSpec};
use pmderive_runtime::model::PmStatus;

fn main() -> Result<(), Box<dyn Error>> {
    let archive = std::env::args().nth(1);
    let archive = archive.as_deref().unwrap_or("../tests/archives/own-fleet");
    print!("{}", rates(Context::archive(archive)?)?);
    Ok(())
}

/// What three fetches give, as text.
pub fn rates(context: Context) -> Result<String, Box<dyn Error>> {
    let mut group = FetchGroup::new(context);
    let memory = group.item::<f64>(ItemSpec::of("mem.physmem").scale("Gbyte"))?;
    let written = group.item::<f64>(ItemSpec::of("disk.all.write_bytes").scale("Mbyte/sec"))?;
    let requests = group.indom::<u64>(ItemSpec::of("disk.dev.total").scale("count/min"))?;

    let mut transcript = String::new();
    for _ in 0..3 {
        group.fetch()?;
        transcript += &match group.get(written) {
            Ok(rate) => format!("{:.2} Gbyte, {rate:.3} Mbyte/s written\n", group.get(memory)?),
            Err(PmStatus::AGAIN) => "no rates yet\n".to_owned(),
            Err(status) => format!("{status}\n"),
        };
        for disk in group.instances(requests).iter() {
            if let (Some(name), Ok(rate)) = (disk.name, disk.value) {
                transcript += &format!("    {name}: {rate} requests/min\n");
            }
        }
    }
    Ok(transcript)
}
