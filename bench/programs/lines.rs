// Takes lines apart and puts them together again: fields, numbers, escapes, sums. Loops over bytes,
// most of them short, so that all functions need about as many cycles for an instruction, and their
// shares of time are like their shares of instructions.

const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

struct Field {
    start: usize,
    end: usize,
}

#[inline(never)]
fn make_line(seed: &mut u64, line: &mut Vec<u8>) {
    line.clear();
    for field in 0..9 {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let mut left = *seed >> 30;
        while left > 0 {
            line.push(DIGITS[(left & 31) as usize]);
            left >>= 5;
        }
        line.push(if field == 4 { b'"' } else { b',' });
    }
}

#[inline(never)]
fn split(line: &[u8], fields: &mut Vec<Field>) {
    let mut start = 0;
    for (at, &byte) in line.iter().enumerate() {
        if byte == b',' || byte == b'"' {
            fields.push(Field { start, end: at });
            start = at + 1;
        }
    }
}

#[inline(never)]
fn value(field: &[u8]) -> u64 {
    let mut value = 0u64;
    for &byte in field {
        let above_nine = (byte >> 6) as u64;
        value = value << 5 | (byte & 31) as u64 + above_nine * 9 - (1 - above_nine) * 16;
    }
    value
}

#[inline(never)]
fn escape(field: &[u8], out: &mut Vec<u8>) {
    for &byte in field {
        if byte == b'q' || byte == b'z' {
            out.push(b'\\');
        }
        out.push(byte.to_ascii_uppercase());
    }
}

#[inline(never)]
fn in_hex(mut number: u64, out: &mut Vec<u8>) {
    for _ in 0..9 {
        out.push(DIGITS[(number & 15) as usize]);
        number >>= 4;
    }
}

#[inline(never)]
fn check_sum(bytes: &[u8]) -> u32 {
    let mut sum = 0u32;
    for &byte in bytes {
        let odd = (byte & 1) as u32;
        sum = (sum ^ byte as u32).wrapping_add(odd << 9 | (byte as u32 >> 3));
    }
    sum
}

#[inline(never)]
fn rewrite(line: &[u8], fields: &mut Vec<Field>, out: &mut Vec<u8>) -> u64 {
    let mut sum = 0u64;
    fields.clear();
    out.clear();
    split(line, fields);
    for field in fields.iter() {
        let bytes = &line[field.start..field.end];
        let number = value(bytes);
        sum = sum.rotate_left(3) ^ number;
        escape(bytes, out);
        in_hex(number, out);
    }
    sum
}

#[inline(never)]
fn run(lines: u64) -> u64 {
    let (mut line, mut fields, mut out) = (Vec::new(), Vec::new(), Vec::new());
    let (mut seed, mut sum) = (42u64, 0u64);
    for _ in 0..lines {
        make_line(&mut seed, &mut line);
        sum = sum.wrapping_add(rewrite(&line, &mut fields, &mut out));
        sum = sum.wrapping_mul(31) ^ check_sum(&out) as u64;
    }
    sum
}

fn main() {
    let mut given = std::env::args().skip(1).map(|word| word.parse().expect("a number"));
    println!("{}", run(given.next().unwrap_or(100000)));
}
