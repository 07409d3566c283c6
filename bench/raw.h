/* A plain TCP connection between a rank and the one beside it (0 and 1, 2 and 3): what the same
 * bytes cost without a message-passing library. MPI only makes the connection. Errors end the
 * job. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <mpi.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void raw_check(int fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "raw: %s: %s\n", what, strerror(errno));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The address of the first interface that is up and not the loopback; the loopback's where there is
 * none. */
static struct sockaddr_in raw_address(void)
{
    struct sockaddr_in found = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct ifaddrs *all = NULL;
    raw_check(getifaddrs(&all) == 0, "getifaddrs");
    for (struct ifaddrs *i = all; i; i = i->ifa_next)
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && (i->ifa_flags & IFF_UP) && !(i->ifa_flags & IFF_LOOPBACK)) {
            found.sin_addr = ((struct sockaddr_in *)i->ifa_addr)->sin_addr;
            break;
        }
    freeifaddrs(all);
    return found;
}

/* Gives a socket room for `bytes` bytes each way, before it is connected; zero leaves it to the
 * system. Wants the rights of an administrator. */
static void raw_make_room(int fd, int bytes)
{
    int room = bytes * 2;
    if (bytes)
        raw_check(setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room) == 0 && setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) == 0,
                  "SO_SNDBUFFORCE");
}

/* A socket to the rank beside this one, with TCP_NODELAY and room for `bytes` bytes (zero: as the
 * system makes it). Both call. */
static int raw_connect(int rank, int room)
{
    struct sockaddr_in at = raw_address();
    socklen_t length = sizeof at;
    int yes = 1, fd, s = socket(AF_INET, SOCK_STREAM, 0);
    raw_check(s >= 0, "socket");
    raw_make_room(s, room);
    if (rank % 2 == 0) {
        raw_check(bind(s, (struct sockaddr *)&at, sizeof at) == 0 && listen(s, 1) == 0, "listen");
        raw_check(getsockname(s, (struct sockaddr *)&at, &length) == 0, "getsockname");
        MPI_Send(&at, sizeof at, MPI_BYTE, rank + 1, 9, MPI_COMM_WORLD);
        fd = accept(s, NULL, NULL);
        raw_check(fd >= 0, "accept");
        close(s);
    } else {
        MPI_Recv(&at, sizeof at, MPI_BYTE, rank - 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        fd = s;
        raw_check(connect(fd, (struct sockaddr *)&at, sizeof at) == 0, "connect");
    }
    raw_check(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0, "TCP_NODELAY");
    return fd;
}

/* What a call on the socket has moved. */
static size_t raw_moved(ssize_t n, const char *what)
{
    raw_check(n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)), what);
    return n > 0 ? (size_t)n : 0;
}

/* Sends all; flags: MSG_DONTWAIT polls, 0 sleeps while the socket is full. */
static void raw_send(int fd, const char *data, size_t bytes, int flags)
{
    for (size_t done = 0; done < bytes;)
        done += raw_moved(send(fd, data + done, bytes - done, flags | MSG_NOSIGNAL), "send");
}

/* Receives all, polling. */
__attribute__((unused)) static void raw_receive(int fd, char *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;)
        done += raw_moved(recv(fd, data + done, bytes - done, MSG_DONTWAIT), "recv");
}

/* Receives all, asleep until all of it is there or as much as the system lets lie in the socket. */
__attribute__((unused)) static void raw_receive_asleep(int fd, char *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        struct pollfd one = {.fd = fd, .events = POLLIN};
        int rest = (int)(bytes - done);
        raw_check(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &rest, sizeof rest) == 0, "SO_RCVLOWAT");
        poll(&one, 1, -1);
        done += raw_moved(recv(fd, data + done, bytes - done, MSG_DONTWAIT), "recv");
    }
}
