//! Data representations (MPI 5.0, 14.5): the form of data in the file.

use crate::open::Kept;
use kw_mpi::chapter::{from_external, made_again, to_external};
use kw_objects::error::{Class, Fault, Res, fail};
use kw_objects::handle::TypeH;
use kw_sys::buf::{Addr, Buf};
use kw_sys::callback::{DatarepConvert, DatarepConvertCount, DatarepExtent};
use kw_types::layout::{Layout, basic};
use std::sync::Arc;

/// A user-defined conversion function.
#[derive(Clone, Copy, Debug)]
pub enum Convert {
    /// With an `int` count.
    Int(DatarepConvert),
    /// With an `MPI_Count`.
    Count(DatarepConvertCount),
}

/// A user-defined representation.
#[derive(Clone, Debug)]
pub struct Registered {
    /// Its name.
    pub name: String,
    /// Converts data that was read; `None`: nothing to convert.
    pub read: Option<Convert>,
    /// Converts data to be written; `None`: nothing to convert.
    pub write: Option<Convert>,
    /// The extent of a datatype in the file.
    pub extent: Option<DatarepExtent>,
    /// The user's argument.
    pub extra: usize,
}

/// A representation.
#[derive(Clone, Debug)]
pub enum Representation {
    /// As in memory.
    Native,
    /// Readable by any environment of this library: as in memory, on the machines that it runs on.
    Internal,
    /// The standard's portable form.
    External32,
    /// A user-defined form.
    User(Arc<Registered>),
}

impl Representation {
    /// The representation with this name.
    pub fn named(name: &str, registered: &[Arc<Registered>]) -> Res<Representation> {
        Ok(match name {
            "native" => Representation::Native,
            "internal" => Representation::Internal,
            "external32" => Representation::External32,
            _ => match registered.iter().find(|r| r.name == name) {
                Some(found) => Representation::User(found.clone()),
                None => {
                    return fail!(UnsupportedDatarep:
                        "datarep is '{name}', but must be \"native\", \"internal\", \"external32\" or one that MPI_Register_datarep was called with");
                }
            },
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Representation::Native => "native",
            Representation::Internal => "internal",
            Representation::External32 => "external32",
            Representation::User(user) => &user.name,
        }
    }

    /// Whether data have the same form in the file as in memory.
    pub fn is_native(&self) -> bool {
        match self {
            Representation::Native | Representation::Internal => true,
            Representation::External32 => false,
            Representation::User(user) => user.read.is_none() && user.write.is_none(),
        }
    }

    /// The layout of a datatype in the file. Displacements that count extents count those in the
    /// file; displacements in bytes are those in the file (MPI 5.0, 14.3).
    pub fn in_file(&self, of: &Kept) -> Res<Layout> {
        let leaf = |handle: TypeH, layout: &Layout| match self {
            Representation::Native | Representation::Internal => Ok(layout.clone()),
            Representation::External32 => sized(layout, layout.signature().external),
            Representation::User(user) => user.element(handle, layout),
        };
        match (self.keeps_sizes(&of.layout), &of.recipe, of.predefined) {
            (true, _, _) => Ok((*of.layout).clone()),
            (_, Some(recipe), _) => made_again(&of.layout, recipe, &leaf),
            (_, None, handle) => leaf(handle.unwrap_or(TypeH::NULL), &of.layout),
        }
    }

    /// Whether every element has the size that it has in memory.
    fn keeps_sizes(&self, layout: &Layout) -> bool {
        match self {
            Representation::Native | Representation::Internal => true,
            Representation::User(user) => user.extent.is_none(),
            Representation::External32 => {
                let mut alike = true;
                let walk = layout.signature().for_each::<()>(&mut |e, _| {
                    alike &= u64::from(e.external) == e.basic.size();
                    Ok(())
                });
                walk.is_ok() && alike
            }
        }
    }

    /// The bytes that are written for `count` elements of a datatype at `addr`.
    pub fn to_file(&self, data: &Data) -> Res<Buf> {
        match self {
            Representation::External32 => {
                let bytes = data
                    .count
                    .saturating_mul(data.of.layout.signature().external);
                let file = room(bytes)?;
                to_external(&data.of.layout, data.count, &data.buf, &file)?;
                Ok(file)
            }
            Representation::User(user) if user.write.is_some() => {
                let bytes = data.count.saturating_mul(self.in_file(&data.of)?.size());
                let file = room(bytes)?;
                user.convert(user.write, data, &file)?;
                Ok(file)
            }
            _ => Ok(data.buf.clone()),
        }
    }

    /// The buffer for reading this many elements of a datatype.
    pub fn read_buffer(&self, data: &Data) -> Res<Buf> {
        match self {
            Representation::External32 => room(
                data.count
                    .saturating_mul(data.of.layout.signature().external),
            ),
            Representation::User(user) if user.read.is_some() => {
                room(data.count.saturating_mul(self.in_file(&data.of)?.size()))
            }
            _ => Ok(data.buf.clone()),
        }
    }

    /// Puts `came` bytes that were read into their places in memory; returns how many bytes they
    /// are there.
    pub fn from_file(&self, read: &Buf, came: u64, data: &Data) -> Res<u64> {
        match self {
            Representation::External32 => {
                let each = data.of.layout.signature().external.max(1);
                from_external(&data.of.layout, data.count, &read.slice(0, came), &data.buf)?;
                // Whole datatypes; for a part of one, the proportional number.
                let rest = came % each * data.of.layout.size() / each;
                Ok(came / each * data.of.layout.size() + rest)
            }
            Representation::User(user) if user.read.is_some() => {
                let each = self.in_file(&data.of)?.size().max(1);
                let whole = Data {
                    count: came / each,
                    ..data.clone()
                };
                user.convert(user.read, &whole, read)?;
                Ok(whole.count * data.of.layout.size())
            }
            _ => Ok(came),
        }
    }
}

/// Elements of a datatype in memory.
#[derive(Clone, Debug)]
pub struct Data {
    /// Their buffer.
    pub buf: Buf,
    /// Their address.
    pub addr: Addr,
    /// Their number.
    pub count: u64,
    /// The datatype.
    pub handle: TypeH,
    /// Name of the argument.
    pub of: Kept,
}

impl Registered {
    /// A predefined datatype in the file.
    fn element(&self, handle: TypeH, layout: &Layout) -> Res<Layout> {
        let Some(extent) = self.extent else {
            return Ok(layout.clone());
        };
        let asked = extent.call(handle.0, self.extra).map_err(|code| {
            let text = format!(
                "the extent function of the data representation '{}' failed with code {code}",
                self.name
            );
            Fault::of_code(code, text)
        })?;
        match u64::try_from(asked) {
            Ok(bytes) if asked != layout.extent() => sized(layout, bytes),
            Ok(_) => Ok(layout.clone()),
            Err(_) => {
                fail!(Conversion: "the extent function of the data representation '{}' says {asked} bytes, but must not say less than 0",
                    self.name)
            }
        }
    }

    fn convert(&self, how: Option<Convert>, data: &Data, file: &Buf) -> Res {
        let (user, handle, extra) = (data.addr, data.handle.0, self.extra);
        let done = match how {
            None => Ok(()),
            Some(Convert::Int(f)) => {
                let Ok(count) = i32::try_from(data.count) else {
                    return fail!(Conversion:
                        "{} elements exceed the count argument of the conversion function of data representation '{}': register it with MPI_Register_datarep_c", data.count, self.name);
                };
                f.call(user, handle, count, file, 0, extra)
            }
            Some(Convert::Count(f)) => f.call(user, handle, data.count as i64, file, 0, extra),
        };
        done.map_err(|code| {
            let text = format!(
                "a conversion function of the data representation '{}' failed with code {code}",
                self.name
            );
            Fault::of_code(code, text)
        })
    }
}

fn room(bytes: u64) -> Res<Buf> {
    let fits = usize::try_from(bytes).ok().and_then(Buf::try_alloc);
    fits.ok_or_else(|| {
        let text = format!("there is no memory for {bytes} bytes of converted data");
        Fault::new(Class::NoMem, text)
    })
}

/// An element with this many bytes in the file.
fn sized(layout: &Layout, bytes: u64) -> Res<Layout> {
    if bytes == layout.size() && layout.contiguous(2) == Some(0) {
        return Ok(layout.clone());
    }
    let byte = basic::NAMED.iter().find(|n| n.name == "MPI_BYTE");
    let Some(byte) = byte.filter(|_| layout.size() > 0) else {
        // MPI_LB and MPI_UB.
        return Ok(layout.clone());
    };
    let bytes = Layout::named(byte).contiguous_of(bytes);
    bytes.map_err(|e| Fault::new(Class::Type, e.to_string()))
}
