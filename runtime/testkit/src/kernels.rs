//! Kernels and lanes as text, read back: [`kernel`] reads what `Display` of a
//! [`KernelIr`] writes.

use pmderive_core::kernel::{
    Access, BinaryOp, Body, Inst, KernelIr, Operand, ReduceOp, Reg, Scalar, UnaryOp,
};

fn scalar(text: &str) -> Scalar {
    let found = Scalar::ALL.into_iter().find(|scalar| scalar.to_string() == text);
    found.unwrap_or_else(|| panic!("no type: {text}"))
}

fn position(text: &str, letter: char) -> u16 {
    let number = text.strip_prefix(letter).and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("no {letter}NUMBER: {text}"))
}

fn reg(text: &str) -> Reg {
    Reg(position(text.trim(), 'r'))
}

/// `o1: previous u64[]`
fn operand(text: &str) -> Operand {
    let (_, text) = text.split_once(": ").expect("an operand has a type");
    let (previous, text) = match text.strip_prefix("previous ") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (access, text) = match text.strip_suffix("[]") {
        Some(rest) => (Access::Column, rest),
        None => (Access::Single, text),
    };
    Operand { scalar: scalar(text), access, previous }
}

fn reduction(text: &str) -> ReduceOp {
    let text = text.strip_suffix(" o0").expect("a reduction of o0");
    if let Some(q) = text.strip_prefix("Quantile(").and_then(|text| text.strip_suffix(')')) {
        return ReduceOp::Quantile(q.parse::<f64>().expect("a share").to_bits());
    }
    let found = ReduceOp::PLAIN.into_iter().find(|op| format!("{op:?}") == text);
    found.unwrap_or_else(|| panic!("no reduction: {text}"))
}

/// `f64 = sub r2, r3`
fn inst(text: &str) -> Inst {
    let (to, text) = text.split_once(" = ").expect("a register has a type");
    let Some((name, arguments)) = text.split_once(' ') else {
        return match text.starts_with('o') {
            true => Inst::Operand(position(text, 'o')),
            false => Inst::Constant(position(text, 'c')),
        };
    };
    let regs: Vec<Reg> = arguments.split(',').map(reg).collect();
    let named = |op: &dyn std::fmt::Debug| format!("{op:?}").to_lowercase() == name;
    match regs[..] {
        [a] if name == "convert" => Inst::Unary(UnaryOp::Convert(scalar(to)), a),
        [a] => {
            let op = UnaryOp::PLAIN.into_iter().find(|op| named(op));
            Inst::Unary(op.unwrap_or_else(|| panic!("no operation: {name}")), a)
        }
        [a, b] => {
            let op = BinaryOp::ALL.into_iter().find(|op| named(op));
            Inst::Binary(op.unwrap_or_else(|| panic!("no operation: {name}")), a, b)
        }
        [guard, yes, no] if name == "select" => Inst::Select(guard, yes, no),
        _ => panic!("no instruction: {text}"),
    }
}

/// Reads a kernel.
///
/// # Panics
/// If the text is not a kernel.
pub fn kernel(text: &str) -> KernelIr {
    let mut lines = text.lines();
    let head = lines.next().expect("a head");
    let (operands, rest) = head
        .strip_prefix("kernel(")
        .and_then(|head| head.split_once(')'))
        .expect("a head has operands");
    let (constants, result) = rest.split_once(" -> ").expect("a head has a result");
    let list = |text: &str| -> Vec<String> {
        text.split(", ").filter(|one| !one.is_empty()).map(str::to_owned).collect()
    };
    let constants = constants.strip_prefix(" with ").unwrap_or("");
    let of_constant = |one: &String| scalar(one.split_once(": ").expect("a type").1);
    let body = match result.split_once(" = ") {
        Some((_, op)) => Body::Reduce(reduction(op)),
        None => {
            let (mut insts, mut flags, mut result) = (Vec::new(), Vec::new(), None);
            for line in lines.map(str::trim) {
                if let Some(flag) = line.strip_prefix("flag ") {
                    flags.push(reg(flag));
                } else if let Some(value) = line.strip_prefix("return ") {
                    result = Some(reg(value));
                } else {
                    insts.push(inst(line.split_once(": ").expect("a register").1));
                }
            }
            let result = result.expect("a kernel returns something");
            Body::Map { insts, result, flags }
        }
    };
    KernelIr {
        operands: list(operands).iter().map(|one| operand(one)).collect(),
        constants: list(constants).iter().map(of_constant).collect(),
        body,
    }
}

/// Bits of a lane that is written as a number of its type.
///
/// # Panics
/// If the text is not such a number.
pub fn lane(scalar: Scalar, text: &str) -> u64 {
    let integer = || text.parse::<i128>().unwrap_or_else(|_| panic!("no whole number: {text}"));
    let float = || text.parse::<f64>().unwrap_or_else(|_| panic!("no number: {text}"));
    match scalar {
        Scalar::F64 => float().to_bits(),
        Scalar::F32 => u64::from((float() as f32).to_bits()),
        Scalar::I32 | Scalar::U32 => u64::from(integer() as u32),
        Scalar::I64 | Scalar::U64 => integer() as u64,
    }
}

/// A lane as text: the shortest that [`lane`] reads as the same bits. Any NaN
/// is `NaN`.
pub fn shown(scalar: Scalar, bits: u64) -> String {
    match scalar {
        Scalar::F64 => format!("{:?}", f64::from_bits(bits)),
        Scalar::F32 => format!("{:?}", f32::from_bits(bits as u32)),
        Scalar::I32 => (bits as u32).cast_signed().to_string(),
        Scalar::U32 => (bits as u32).to_string(),
        Scalar::I64 => bits.cast_signed().to_string(),
        Scalar::U64 => bits.to_string(),
    }
}
