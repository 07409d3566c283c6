//! Conversions between the constants of another ABI and those of the standard one, as Rust text:
//! an implementation of the trait that `groups.tsv` makes.
//!
//! Each group of constants is a permutation of the integers: a value that is a constant on only one
//! side becomes a number that is not a constant on the other side either. So invalid values stay
//! invalid, and a value that MPI returns is the one that was given.

use super::{Abi, CONSTANTS, Group, all_constants, groups, standard};
use crate::{Api, Error};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// The Rust type of a group's constants.
fn rust_type(group: &Group) -> Result<&'static str, Error> {
    Ok(match group.form.as_str() {
        "values" | "codes" | "bits" => "c_int",
        "offsets" => "i64",
        "addresses" => "*mut c_void",
        "words" => "usize",
        other => return Err(Error(format!("groups.tsv: {} is {other}", group.name))),
    })
}

/// Name of its conversions: those of codes are only a part of the complete one, since the program's
/// own error codes are not constants.
fn method(group: &Group) -> String {
    match group.form.as_str() {
        "codes" => format!("{}_table", group.name),
        _ => group.name.clone(),
    }
}

/// Rust text of the trait with the conversions of all groups, `GROUP_in` (to the standard ABI) and
/// `GROUP_out`, for a module that has `c_int` and `c_void`; from the folder of the description.
pub fn constants_trait(dir: &Path) -> Result<String, Error> {
    let mut out = String::from(
        "/// Constants of an ABI: to the standard ones, and back.\n#[allow(missing_docs)]\npub trait Constants {\n",
    );
    for group in groups(dir)? {
        let (name, ty) = (method(&group), rust_type(&group)?);
        for way in ["in", "out"] {
            let _ = writeln!(out, "    fn {name}_{way}(v: {ty}) -> {ty};");
        }
    }
    Ok(out + "}\n")
}

/// Rust text that implements that trait for `Here`.
pub(super) fn conversions(api: &Api, abi: &Abi) -> Result<String, Error> {
    let mut out = String::from("impl Constants for Here {\n");
    for group in &abi.groups {
        let pairs = permutation(pairs(api, abi, group)?);
        let (name, ty) = (method(group), rust_type(group)?);
        for (way, pairs) in both(&pairs) {
            let body = match group.form.as_str() {
                _ if pairs.is_empty() => "v".into(),
                "bits" => bits(&pairs),
                "addresses" => format!(
                    "(match v as isize {{{} other => other }}) as *mut c_void",
                    arms(&pairs, "isize")
                ),
                _ => values(&pairs, ty),
            };
            let _ = writeln!(
                out,
                "    #[inline(always)]\n    fn {name}_{way}(v: {ty}) -> {ty} {{ {body} }}"
            );
        }
    }
    Ok(out + "}\n")
}

/// The values of a group's constants: in the other ABI, in the standard one. `None` if the other
/// ABI has them as symbols instead.
fn pairs(api: &Api, abi: &Abi, group: &Group) -> Result<Vec<(i64, i64)>, Error> {
    let belongs = |name: &str| {
        group
            .constants
            .iter()
            .any(|pattern| match pattern.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == pattern,
            })
    };
    let names: Vec<&str> = all_constants(api)
        .into_iter()
        .filter(|name| belongs(name))
        .collect();
    if names.is_empty() {
        let text = format!("groups.tsv: {} has no constants of MPI", group.name);
        return Err(Error(text));
    }
    let pair = |name: &&str| Some((abi.value(name)?, standard(api, name)?));
    Ok(names.iter().filter_map(pair).collect())
}

/// Completes the pairs to a permutation; values that stay the same are left out.
fn permutation(mut pairs: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    let theirs: BTreeSet<i64> = pairs.iter().map(|p| p.0).collect();
    let ours: BTreeSet<i64> = pairs.iter().map(|p| p.1).collect();
    let free_of_theirs = ours.difference(&theirs).copied();
    let free_of_ours = theirs.difference(&ours).copied();
    pairs.extend(free_of_theirs.zip(free_of_ours));
    pairs.retain(|(a, b)| a != b);
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

fn both(pairs: &[(i64, i64)]) -> [(&'static str, Vec<(i64, i64)>); 2] {
    let mut back: Vec<(i64, i64)> = pairs.iter().map(|(a, b)| (*b, *a)).collect();
    back.sort_unstable();
    [("in", pairs.to_vec()), ("out", back)]
}

fn arms(pairs: &[(i64, i64)], ty: &str) -> String {
    let cast = |v: i64| match ty {
        "c_int" => i64::from(v as i32).to_string(),
        "usize" => (v as usize).to_string(),
        _ => v.to_string(),
    };
    let each = pairs
        .iter()
        .map(|(a, b)| format!(" {} => {},", cast(*a), cast(*b)));
    each.collect()
}

fn values(pairs: &[(i64, i64)], ty: &str) -> String {
    // most values are none of these constants
    let soon = match pairs.iter().all(|(a, _)| (*a as i32) < 0) && ty == "c_int" {
        true => "if v >= 0 { return v; } ",
        false => "",
    };
    format!("{soon}match v {{{} _ => v }}", arms(pairs, ty))
}

fn bits(pairs: &[(i64, i64)]) -> String {
    let all = pairs.iter().fold(0, |all, (a, _)| all | a);
    let each: String = pairs
        .iter()
        .map(|(a, b)| format!(" | if v & {a} != 0 {{ {b} }} else {{ 0 }}"))
        .collect();
    format!("v & !{all}{each}")
}

/// Rust text of the predefined handles, for a module with the macro `kinds!`: it makes a type of
/// each kind, by its null handles and a function from their values to the standard ones;
/// `PREDEFINED` leads back.
pub(super) fn predefined_handles(api: &Api, abi: &Abi) -> Result<String, Error> {
    let mut out = String::new();
    let mut back = vec![0u32; CONSTANTS];
    for t in abi.of_form("type").filter(|t| t.value == "int") {
        let mut known = Vec::new();
        let names = api.constants.iter().filter(|c| c.c_type == t.name);
        let names = names.map(|c| &c.name);
        let removed = api.removed.iter().filter(|r| r.form == t.name);
        for name in names.chain(removed.map(|r| &r.name)) {
            let (Some(theirs), Some(ours)) = (abi.value(name), standard(api, name)) else {
                return Err(Error(format!("{name} has no value in this ABI")));
            };
            known.push((theirs as u32, ours as usize));
            back[ours as usize] = theirs as u32;
        }
        if t.name == "MPI_Datatype" {
            for extension in abi.extensions() {
                let (theirs, ours) = extension?;
                known.push((theirs, ours));
                back[ours] = theirs;
            }
        }
        let short = &t.name[4..];
        let upper = format!("MPI_{}_NULL", short.to_uppercase());
        let null = (abi.value(&upper), standard(api, &upper));
        let (Some(theirs), Some(ours)) = null else {
            return Err(Error(format!("{upper} has no value in this ABI")));
        };
        let small = short.to_lowercase();
        look_up(&mut out, &small, &known)?;
        let _ = writeln!(
            out,
            "kinds! {{ {short} {} {ours} {small}_known }}",
            theirs as u32
        );
    }
    let back: Vec<String> = back.iter().map(u32::to_string).collect();
    let _ = writeln!(
        out,
        "pub static PREDEFINED: [u32; {CONSTANTS}] = [{}];",
        back.join(", ")
    );
    Ok(out)
}

/// Conversion of a predefined handle's value to the standard one; 0 for other values. A few values
/// are compared; many are looked up in a table, indexed by a product that differs for all of them.
fn look_up(out: &mut String, name: &str, known: &[(u32, usize)]) -> Result<(), Error> {
    if known.len() <= 16 {
        let arms: String = known.iter().map(|(a, b)| format!(" {a} => {b},")).collect();
        let _ = writeln!(
            out,
            "#[inline(always)] fn {name}_known(v: u32) -> usize {{ match v {{{arms} _ => 0 }} }}"
        );
        return Ok(());
    }
    const BITS: u32 = 9;
    let place = |factor: u32, v: u32| (v.wrapping_mul(factor) >> (32 - BITS)) as usize;
    let apart = |factor: &u32| {
        let places: BTreeSet<usize> = known.iter().map(|k| place(*factor, k.0)).collect();
        places.len() == known.len()
    };
    let mut factors = (0..1_000_000u32).map(|i| i.wrapping_mul(0x9e37_79b9) | 1);
    let factor = factors
        .find(apart)
        .ok_or_else(|| Error(format!("no table for the predefined handles of {name}")))?;
    let mut table = vec![(0u32, 0usize); 1 << BITS];
    for k in known {
        table[place(factor, k.0)] = *k;
    }
    let cells: Vec<String> = table.iter().map(|(a, b)| format!("({a}, {b})")).collect();
    let _ = writeln!(
        out,
        "static {0}: [(u32, u16); {1}] = [{2}];\n#[inline(always)] fn {name}_known(v: u32) -> usize {{\n    let (value, standard) = {0}[(v.wrapping_mul({factor}) >> {3}) as usize];\n    if value == v {{ standard as usize }} else {{ 0 }}\n}}",
        name.to_uppercase(),
        1 << BITS,
        cells.join(", "),
        32 - BITS
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_leads_back_and_keeps_wrong_values_wrong() {
        // MPICH's MPI_ANY_TAG is -1, the standard ABI's is -2
        assert_eq!(permutation(vec![(-1, -2)]), [(-2, -1), (-1, -2)]);
        let ranks = permutation(vec![(-2, -1), (-1, -3), (-3, -4)]);
        assert_eq!(ranks, [(-4, -2), (-3, -4), (-2, -1), (-1, -3)]);
        assert_eq!(permutation(vec![(0, 0), (1, 1)]), []);
    }
}
