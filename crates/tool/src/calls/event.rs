//! Events and their sources (MPI 5.0, 15.3.8). There is one source; no info key has a meaning here.

use super::{by_name, give, memory, need, open, opened, say};
use kw_base::events::{ALL, Element, Event, Row};
use kw_objects::error::{Fault, Res, ToolClass};
use kw_objects::handle::{EnumH, InfoH, InstanceH, RegistrationH, TypeH};
use kw_objects::info::Info;
use kw_objects::state::{Guard, Mpi};
use kw_objects::tool::event::{Function, Instance, ask, level};
use kw_objects::tool::{MPI_COUNT, MPI_INT, NO_OBJECT, refuse, row};
use kw_sys::args::{Array, Out, OutText, Text};
use kw_sys::buf::Addr;
use kw_sys::callback::{ToolEvent, ToolEventDropped, ToolEventFree};

/// MPI_T_VERBOSITY_USER_BASIC
const VERBOSITY: i32 = 0x09;
/// MPI_T_SOURCE_ORDERED
const ORDERED: i32 = 1;
/// The clock counts nanoseconds.
const TICKS_PER_SECOND: i64 = 1_000_000_000;

/// MPI_T_source_get_num
pub fn t_source_get_num(mpi: &Mpi, num_sources: Out<i32>) -> Res {
    let _guard = open(mpi)?;
    need(num_sources, "num_sources")?.set(1);
    Ok(())
}

/// MPI_T_source_get_info
pub fn t_source_get_info(
    mpi: &Mpi,
    source_index: i32,
    name: OutText,
    name_len: Out<i32>,
    desc: OutText,
    desc_len: Out<i32>,
    ordering: Out<i32>,
    ticks_per_second: Out<i64>,
    max_ticks: Out<i64>,
    info: Out<InfoH>,
) -> Res {
    let mut guard = open(mpi)?;
    row(source_index, 1)?;
    say("kittiwake", name, name_len)?;
    let about = "All events of this rank, in the order of their occurrence.";
    say(about, desc, desc_len)?;
    give(ordering, ORDERED);
    give(ticks_per_second, TICKS_PER_SECOND);
    give(max_ticks, i64::MAX);
    no_hints(&mut guard, info);
    Ok(())
}

/// MPI_T_source_get_timestamp
pub fn t_source_get_timestamp(mpi: &Mpi, source_index: i32, timestamp: Out<i64>) -> Res {
    let _guard = open(mpi)?;
    row(source_index, 1)?;
    need(timestamp, "timestamp")?.set(kw_sys::clock::now().0 as i64);
    Ok(())
}

/// A new info object without keys; the caller frees it.
fn no_hints(guard: &mut Guard<'_>, info: Out<InfoH>) {
    if !info.is_null() {
        info.set(guard.above.infos.add(Info::default()));
    }
}

/// Checks hints: no key has a meaning here, but it must be an info object.
fn hints(guard: &Guard<'_>, info: InfoH) -> Res {
    let known = guard.above.infos.get_or_null(info);
    known
        .map(drop)
        .map_err(|f| Fault::tool(ToolClass::Invalid, f.text))
}

/// MPI_T_event_get_num
pub fn t_event_get_num(mpi: &Mpi, num_events: Out<i32>) -> Res {
    let _guard = open(mpi)?;
    need(num_events, "num_events")?.set(ALL.len() as i32);
    Ok(())
}

/// MPI_T_event_get_index
pub fn t_event_get_index(mpi: &Mpi, name: Text, event_index: Out<i32>) -> Res {
    let _guard = open(mpi)?;
    let place = need(event_index, "event_index")?;
    place.set(by_name(name, |n| ALL.iter().position(|e| e.name == n))?);
    Ok(())
}

/// MPI_T_event_get_info
pub fn t_event_get_info(
    mpi: &Mpi,
    event_index: i32,
    name: OutText,
    name_len: Out<i32>,
    verbosity: Out<i32>,
    array_of_datatypes: Array<TypeH>,
    array_of_displacements: Array<i64>,
    num_elements: Out<i32>,
    enumtype: Out<EnumH>,
    info: Out<InfoH>,
    desc: OutText,
    desc_len: Out<i32>,
    bind: Out<i32>,
) -> Res {
    let mut guard = open(mpi)?;
    let found = &ALL[row(event_index, ALL.len())?];
    say(found.name, name, name_len)?;
    say(found.help, desc, desc_len)?;
    elements(
        found,
        array_of_datatypes,
        array_of_displacements,
        num_elements,
    )?;
    give(verbosity, VERBOSITY);
    give(enumtype, EnumH::NULL);
    give(bind, NO_OBJECT);
    no_hints(&mut guard, info);
    Ok(())
}

/// Writes as many elements as fit; the caller learns how many there are.
fn elements(found: &Row, types: Array<TypeH>, places: Array<i64>, num: Out<i32>) -> Res {
    if num.is_null() {
        return Ok(());
    }
    let Ok(room) = usize::try_from(num.get()) else {
        return refuse(ToolClass::Invalid, format!("num_elements is {}", num.get()));
    };
    let all = found.elements.iter().zip(found.displacements());
    for (i, (element, at)) in all.take(room).enumerate() {
        if !types.is_null() {
            types.set(i, datatype(*element));
        }
        if !places.is_null() {
            places.set(i, at as i64);
        }
    }
    num.set(found.elements.len() as i32);
    Ok(())
}

fn datatype(element: Element) -> TypeH {
    match element {
        Element::Int => MPI_INT,
        Element::Count => MPI_COUNT,
    }
}

/// MPI_T_event_handle_alloc: no event is bound to an object, so `obj_handle` does not matter.
pub fn t_event_handle_alloc(
    mpi: &Mpi,
    event_index: i32,
    _obj_handle: usize,
    info: InfoH,
    event_registration: Out<RegistrationH>,
) -> Res {
    let mut guard = open(mpi)?;
    let position = row(event_index, ALL.len())?;
    hints(&guard, info)?;
    let place = need(event_registration, "event_registration")?;
    if let Some(event) = Event::at(position) {
        place.set(guard.above.tool.events.alloc(event));
    }
    Ok(())
}

/// MPI_T_event_handle_set_info
pub fn t_event_handle_set_info(mpi: &Mpi, event_registration: RegistrationH, info: InfoH) -> Res {
    let mut guard = open(mpi)?;
    guard.above.tool.events.check(event_registration)?;
    hints(&guard, info)
}

/// MPI_T_event_handle_get_info
pub fn t_event_handle_get_info(
    mpi: &Mpi,
    event_registration: RegistrationH,
    info_used: Out<InfoH>,
) -> Res {
    let mut guard = open(mpi)?;
    guard.above.tool.events.check(event_registration)?;
    no_hints(&mut guard, need(info_used, "info_used")?);
    Ok(())
}

/// MPI_T_event_handle_free
pub fn t_event_handle_free(
    mpi: &Mpi,
    event_registration: RegistrationH,
    user_data: usize,
    free_cb_function: Option<ToolEventFree>,
) -> Res {
    let mut guard = open(mpi)?;
    let events = &mut guard.above.tool.events;
    let farewell = events.free(event_registration, free_cb_function, user_data)?;
    ask(&mut guard);
    drop(guard);
    if let Some(f) = farewell {
        f.say();
    }
    Ok(())
}

/// MPI_T_event_register_callback: without a function, the one of this level is removed.
pub fn t_event_register_callback(
    mpi: &Mpi,
    event_registration: RegistrationH,
    cb_safety: i32,
    info: InfoH,
    user_data: usize,
    event_cb_function: Option<ToolEvent>,
) -> Res {
    let mut guard = open(mpi)?;
    let function = event_cb_function.map(|call| Function {
        call,
        data: user_data,
    });
    guard.above.tool.events.check(event_registration)?;
    hints(&guard, info)?;
    let events = &mut guard.above.tool.events;
    events.set_function(event_registration, level(cb_safety)?, function)?;
    ask(&mut guard);
    Ok(())
}

/// Checks that there is a function of this level.
fn has_function(guard: &mut Guard<'_>, handle: RegistrationH, safety: i32) -> Res {
    let events = &mut guard.above.tool.events;
    events.check(handle)?;
    match events.has_function(handle, level(safety)?)? {
        true => Ok(()),
        false => refuse(
            ToolClass::Invalid,
            format!("no function is registered for cb_safety {safety:#x}"),
        ),
    }
}

/// MPI_T_event_callback_set_info
pub fn t_event_callback_set_info(
    mpi: &Mpi,
    event_registration: RegistrationH,
    cb_safety: i32,
    info: InfoH,
) -> Res {
    let mut guard = open(mpi)?;
    has_function(&mut guard, event_registration, cb_safety)?;
    hints(&guard, info)
}

/// MPI_T_event_callback_get_info
pub fn t_event_callback_get_info(
    mpi: &Mpi,
    event_registration: RegistrationH,
    cb_safety: i32,
    info_used: Out<InfoH>,
) -> Res {
    let mut guard = open(mpi)?;
    has_function(&mut guard, event_registration, cb_safety)?;
    no_hints(&mut guard, need(info_used, "info_used")?);
    Ok(())
}

/// MPI_T_event_set_dropped_handler: without a function, the one that was set is removed.
pub fn t_event_set_dropped_handler(
    mpi: &Mpi,
    event_registration: RegistrationH,
    dropped_cb_function: Option<ToolEventDropped>,
) -> Res {
    let mut guard = open(mpi)?;
    let events = &mut guard.above.tool.events;
    events.set_dropped(event_registration, dropped_cb_function)
}

/// The instance of a handle, which exists only while a function of a tool is notified of it. To
/// read it does not count as entering MPI, because the progress thread may be the one that asks.
fn instance(mpi: &Mpi, handle: InstanceH) -> Res<Instance> {
    opened(mpi.lock.look())?.above.tool.events.instance(handle)
}

/// MPI_T_event_read
pub fn t_event_read(mpi: &Mpi, event_instance: InstanceH, element_index: i32, buffer: Addr) -> Res {
    let found = instance(mpi, event_instance)?;
    let kind = &ALL[found.record.event as usize];
    let i = row(element_index, kind.elements.len())?;
    put(kind.elements[i], found.record.data[i], buffer)
}

/// MPI_T_event_copy
pub fn t_event_copy(mpi: &Mpi, event_instance: InstanceH, buffer: Addr) -> Res {
    let found = instance(mpi, event_instance)?;
    let kind = &ALL[found.record.event as usize];
    memory(buffer, 0, "buffer")?;
    for (i, at) in kind.displacements().into_iter().enumerate() {
        let place = buffer.assume_offset(at as i64);
        put(kind.elements[i], found.record.data[i], place)?;
    }
    Ok(())
}

fn put(element: Element, value: i64, place: Addr) -> Res {
    let place = memory(place, element.size(), "buffer")?;
    match element {
        Element::Int => place.write(0, &(value as i32).to_ne_bytes()),
        Element::Count => place.write(0, &value.to_ne_bytes()),
    };
    Ok(())
}

/// MPI_T_event_get_timestamp
pub fn t_event_get_timestamp(
    mpi: &Mpi,
    event_instance: InstanceH,
    event_timestamp: Out<i64>,
) -> Res {
    let found = instance(mpi, event_instance)?;
    need(event_timestamp, "event_timestamp")?.set(found.at.0 as i64);
    Ok(())
}

/// MPI_T_event_get_source
pub fn t_event_get_source(mpi: &Mpi, event_instance: InstanceH, source_index: Out<i32>) -> Res {
    instance(mpi, event_instance)?;
    need(source_index, "source_index")?.set(0);
    Ok(())
}
