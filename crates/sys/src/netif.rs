//! The network interfaces of this machine.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;

/// One address of one interface that is up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Name, such as `eth0`.
    pub name: String,
    /// Address.
    pub addr: IpAddr,
    /// Whether it is the loopback interface.
    pub loopback: bool,
}

/// Every IP address of every interface that is up.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: getifaddrs writes one pointer, which is freed below.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut all = Vec::new();
    let mut next = first;
    while !next.is_null() {
        // SAFETY: the list is valid until freeifaddrs.
        let i = unsafe { &*next };
        all.extend(interface(i));
        next = i.ifa_next;
    }
    // SAFETY: `first` is the result of getifaddrs, and nothing points into the list any more.
    unsafe { libc::freeifaddrs(first) };
    Ok(all)
}

fn interface(i: &libc::ifaddrs) -> Option<Interface> {
    if i.ifa_addr.is_null() || i.ifa_flags & libc::IFF_UP as u32 == 0 {
        return None;
    }
    // SAFETY: a socket address begins with its family and is as long as its family says.
    let addr = unsafe {
        match (*i.ifa_addr).sa_family as i32 {
            libc::AF_INET => {
                let a = i.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned();
                IpAddr::V4(Ipv4Addr::from(u32::from_be(a.sin_addr.s_addr)))
            }
            libc::AF_INET6 => {
                let a = i.ifa_addr.cast::<libc::sockaddr_in6>().read_unaligned();
                IpAddr::V6(Ipv6Addr::from(a.sin6_addr.s6_addr))
            }
            _ => return None,
        }
    };
    // SAFETY: the name is a C string of the list.
    let name = unsafe { std::ffi::CStr::from_ptr(i.ifa_name) };
    Some(Interface {
        name: name.to_string_lossy().into_owned(),
        addr,
        loopback: i.ifa_flags & libc::IFF_LOOPBACK as u32 != 0,
    })
}

/// Bytes of the longest packet that an interface carries; `None` if it cannot be queried.
pub fn mtu(name: &str) -> Option<usize> {
    // SAFETY: all zeros is a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    // SAFETY: this call takes a pointer to an interface request, and writes the MTU into it.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) };
    // SAFETY: on success the MTU is what the union holds.
    (done == 0).then_some(unsafe { request.ifr_ifru.ifru_mtu } as usize)
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_is_a_loopback() {
        assert!(super::interfaces().unwrap().iter().any(|i| i.loopback));
    }

    #[test]
    fn an_interface_tells_its_longest_packet() {
        assert!(super::mtu("lo").unwrap() >= 1280);
        assert_eq!(super::mtu("no-such-thing"), None);
    }
}
