//! A kernel with columns of its own, to run it alone.

use std::sync::Arc;

use pmderive_runtime::kernel::interp::Scratch;
use pmderive_runtime::kernel::{Access, Arenas, Kernel, LANE_GROUP, Rows, Segment};
use pmderive_runtime::program::Program;

/// A kernel, its rows and its columns: the operands one after the other in both
/// arenas, the output last.
pub struct KernelRig {
    program: Arc<Program>,
    kernel: Arc<Kernel>,
    rows: Rows,
    work: Vec<u8>,
    history: Vec<u8>,
    scratch: Scratch,
}

impl KernelRig {
    /// The kernel of the last step of a program, over columns of so many lanes.
    /// Counters rise from sample to sample.
    pub fn new(program: &Arc<Program>, lanes: u32) -> KernelRig {
        let step = program.steps.iter().last().expect("a step");
        let kernel = Arc::clone(&step.kernel.0);
        let ir = kernel.ir();
        let column = lanes.next_multiple_of(LANE_GROUP as u32) * 8;
        let operands = ir.operands.len() as u32;
        let offsets: Vec<u32> = (0..operands).map(|index| index * column).collect();
        let mut rows = Rows::new(ir);
        let (output, constants) = (operands * column, step.constants);
        rows.push(ir, Segment { lanes, operands: &offsets, output, constants });
        let mut history = vec![0; (operands * column) as usize];
        let mut work = vec![0; ((operands + 1) * column) as usize];
        for (operand, offset) in ir.operands.iter().zip(&offsets) {
            let arena = if operand.previous { &mut history } else { &mut work };
            let later = if operand.previous { 0 } else { 1_000 };
            for lane in 0..column / 8 {
                let number = u64::from(lane * 7 % 1009 + later);
                let bits = match (operand.scalar.is_float(), operand.access) {
                    (true, Access::Single) => 1.25f64.to_bits(),
                    (true, Access::Column) => (number as f64).to_bits(),
                    (false, _) => number,
                };
                arena[(offset + lane * 8) as usize..][..8].copy_from_slice(&bits.to_ne_bytes());
            }
        }
        let program = Arc::clone(program);
        KernelRig { program, kernel, rows, work, history, scratch: Scratch::default() }
    }

    /// Runs it once, as native code if there is some; returns its flags.
    pub fn run(&mut self) -> u64 {
        let KernelRig { program, kernel, rows, work, history, scratch } = self;
        let mut arenas = Arenas { work, history, constants: &program.constants };
        kernel.run(scratch, &mut arenas, rows, 0, 1)
    }
}
