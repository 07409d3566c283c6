//! File, line and function of places in programs, from their debug information on this machine, or
//! as reported by their language ([`kw_base::source_line`]).

use crate::elf;
use addr2line::Loader;
use kw_base::source_line;
use kw_hang::Frame;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Earlier look-ups.
#[derive(Default)]
pub struct Sites {
    loaders: HashMap<PathBuf, Option<(Loader, u64)>>,
    known: HashMap<(String, u64), Option<String>>,
}

impl std::fmt::Debug for Sites {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sites").field("known", &self.known).finish()
    }
}

impl Sites {
    /// Where a program called MPI, from a stack of frames, innermost first: the first frame with
    /// known file and line, or else what is known about the first frame.
    pub fn of(&mut self, frames: &[Frame]) -> String {
        if let Some(found) = frames.iter().find_map(|f| self.line(f)) {
            return found;
        }
        match frames.first() {
            Some(frame) => self.function_in(frame),
            None => String::new(),
        }
    }

    /// The function at a place and its `FILE:LINE`, each empty if unknown.
    pub fn place(&mut self, frame: &Frame) -> (String, String) {
        let line = self.line(frame).unwrap_or_default();
        if let Some((_, method)) = source_line::module(&frame.file) {
            return (method.into(), line);
        }
        let file: &Path = frame.file.as_ref();
        let symbol = self.symbol(file, frame.offset);
        let inlined = self.loader(file).and_then(|(loader, base)| {
            let found = loader
                .find_frames(*base + frame.offset)
                .ok()?
                .next()
                .ok()??;
            Some(found.function?.demangle().ok()?.into_owned())
        });
        (inlined.or(symbol).unwrap_or_default(), line)
    }

    /// The function of MPI that a frame of the library belongs to.
    pub fn function(&mut self, frame: &Frame) -> Option<String> {
        let symbol = self.symbol(frame.file.as_ref(), frame.offset)?;
        let (_, name) = symbol.split_once("::shell_")?;
        let name = name.split("::").next()?;
        let (first, rest) = name.split_at_checked(1)?;
        Some(format!("MPI_{}{rest}", first.to_uppercase()))
    }

    /// All functions at a place, innermost first, inlined ones among them: `FUNCTION at FILE:LINE`.
    /// If that is not known, the symbol; nothing if neither is.
    pub fn functions(&mut self, file: &Path, offset: u64) -> Vec<String> {
        let symbol = self.symbol(file, offset);
        let lines = self.inlined(file, offset, symbol.as_deref());
        match lines.filter(|l| !l.is_empty()) {
            Some(lines) => lines,
            None => {
                let place = format!("{}+{offset:#x}", file.display());
                symbol.iter().map(|s| format!("{s} in {place}")).collect()
            }
        }
    }

    fn inlined(&mut self, file: &Path, offset: u64, symbol: Option<&str>) -> Option<Vec<String>> {
        let (loader, base) = self.loader(file)?;
        let mut found = loader.find_frames(*base + offset).ok()?;
        let mut lines = Vec::new();
        while let Ok(Some(f)) = found.next() {
            let name = f
                .function
                .and_then(|n| Some(n.demangle().ok()?.into_owned()));
            let name = name.or_else(|| symbol.map(str::to_string));
            let place = f.location.and_then(|l| Some((l.file?, l.line?)));
            if let (Some(name), Some((file, line))) = (name, place) {
                lines.push(format!("{name} at {file}:{line}"));
            }
        }
        Some(lines)
    }

    /// `FILE:LINE`, the file without its directories.
    fn line(&mut self, frame: &Frame) -> Option<String> {
        let key = (frame.file.clone(), frame.offset);
        if let Some(found) = self.known.get(&key) {
            return found.clone();
        }
        let found = self.look(frame);
        self.known.insert(key, found.clone());
        found
    }

    fn look(&mut self, frame: &Frame) -> Option<String> {
        if let Some((file, _)) = source_line::module(&frame.file) {
            return (!file.is_empty() && frame.offset > 0)
                .then(|| format!("{file}:{}", frame.offset));
        }
        let (loader, base) = self.loader(frame.file.as_ref())?;
        let place = loader.find_location(*base + frame.offset).ok()??;
        let file = Path::new(place.file?).file_name()?.to_string_lossy();
        Some(format!("{file}:{}", place.line?))
    }

    /// The function, or the bare address.
    fn function_in(&mut self, frame: &Frame) -> String {
        if let Some((_, method)) = source_line::module(&frame.file) {
            return method.into();
        }
        let name = Path::new(&frame.file).file_name();
        let name = name.map_or("?".into(), |n| n.to_string_lossy().into_owned());
        match self.symbol(frame.file.as_ref(), frame.offset) {
            Some(function) => format!("{function} in {name}"),
            None => format!("{name}+{:#x}", frame.offset),
        }
    }

    /// The symbol of a place as its language reports it.
    fn symbol(&mut self, file: &Path, offset: u64) -> Option<String> {
        let (loader, base) = self.loader(file)?;
        let symbol = loader.find_symbol(*base + offset)?;
        Some(addr2line::demangle_auto(symbol.into(), None).into_owned())
    }

    fn loader(&mut self, file: &Path) -> Option<&(Loader, u64)> {
        let load = || Some((Loader::new(file).ok()?, elf::base(file)?));
        let known = self.loaders.entry(file.into());
        known.or_insert_with(load).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_reported_as_it_is() {
        let mut sites = Sites::default();
        assert_eq!(sites.of(&[]), "");
        let nowhere = Frame {
            file: "/no/such/a.out".into(),
            offset: 31,
        };
        assert_eq!(sites.of(&[nowhere]), "a.out+0x1f");
    }

    #[test]
    fn places_in_java_are_named() {
        let mut sites = Sites::default();
        let frame = |file: &str, offset| Frame {
            file: file.into(),
            offset,
        };
        let known = frame("java:Ring.java:acme.Ring.main", 12);
        assert_eq!(sites.of(std::slice::from_ref(&known)), "Ring.java:12");
        assert_eq!(
            sites.place(&known),
            ("acme.Ring.main".into(), "Ring.java:12".into())
        );
        let unknown = frame("java::Ring.main", 0);
        assert_eq!(sites.of(std::slice::from_ref(&unknown)), "Ring.main");
        assert_eq!(sites.place(&unknown), ("Ring.main".into(), String::new()));
    }

    #[inline(never)]
    fn landmark() -> usize {
        7_301
    }

    #[test]
    fn functions_are_named() {
        let file = std::env::current_exe().unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let first = maps.lines().find(|l| l.ends_with(file.to_str().unwrap()));
        let start = first.and_then(|l| l.split_once('-')).unwrap().0;
        let start = u64::from_str_radix(start, 16).unwrap();
        assert_eq!(landmark(), 7_301);
        let offset = landmark as fn() -> usize as usize as u64 - start;
        let line = &Sites::default().functions(&file, offset)[0];
        assert!(
            line.contains("landmark") && line.contains("sites.rs:"),
            "{line}"
        );
    }
}
