//! Names of services (MPI 5.0, 11.9.4).

use crate::calls::port::MAX_PORT_NAME;
use crate::names::{NameError, Names};
use kw_base::settings::Id;
use kw_objects::error::{Class, Res, fail};
use kw_objects::handle::InfoH;
use kw_objects::state::Mpi;
use kw_sys::args::{OutText, Text};

fn names(mpi: &Mpi) -> Names {
    let guard = mpi.lock();
    let dir = guard.engine.as_ref().map(|e| e.settings().text(Id::Names));
    Names::new(dir.filter(|d| !d.is_empty()))
}

fn done<T>(service: &str, what: Result<T, NameError>) -> Res<T> {
    what.or_else(|e| {
        let class = match e {
            NameError::Unknown => Class::Name,
            NameError::Taken => Class::Service,
            NameError::Length(_) => Class::Arg,
            NameError::System(..) => Class::Other,
        };
        fail(class, format!("service_name is '{service}': {e}"))
    })
}

/// MPI_Publish_name
pub fn publish_name(mpi: &Mpi, service_name: Text, info: InfoH, port_name: Text) -> Res {
    mpi.lock().above.infos.get_or_null(info)?;
    let service = service_name.to_text().unwrap_or_default();
    let port = port_name.to_text().unwrap_or_default();
    done(&service, names(mpi).publish(&service, port.trim_end()))
}

/// MPI_Unpublish_name
pub fn unpublish_name(mpi: &Mpi, service_name: Text, info: InfoH, port_name: Text) -> Res {
    mpi.lock().above.infos.get_or_null(info)?;
    let service = service_name.to_text().unwrap_or_default();
    let port = port_name.to_text().unwrap_or_default();
    let taken = names(mpi).take_back(&service, port.trim_end());
    match taken {
        // The standard has a separate class for this one.
        Err(NameError::Unknown) => {
            fail!(Service: "service_name is '{service}': no service of this name and port is published")
        }
        taken => done(&service, taken),
    }
}

/// MPI_Lookup_name
pub fn lookup_name(mpi: &Mpi, service_name: Text, info: InfoH, port_name: OutText) -> Res {
    mpi.lock().above.infos.get_or_null(info)?;
    let service = service_name.to_text().unwrap_or_default();
    let port = done(&service, names(mpi).look_up(&service))?;
    port_name.set(port.as_bytes(), MAX_PORT_NAME);
    Ok(())
}
