//! Descriptors of arrays: those that the modules of this ABI pass ([`Descriptor`]).
#![allow(dead_code)] // the others are of other ABIs

mod c;
mod gfortran;

include!(concat!(env!("OUT_DIR"), "/descriptor.rs"));
