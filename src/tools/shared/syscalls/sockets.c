// Sockets: addresses by their family, messages, options.
#include <linux/filter.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tools/shared/syscalls/pass.h"

enum { NAME_SIZE = 96 };

// ---- addresses ---------------------------------------------------------------------------------

struct field {
    uint8_t family, offset, size;
    const char *name;
};

enum { FAMILY_BLUETOOTH = 31 };

// What the kernel looks at; padding is not among it.
static const struct field fields[] = {
    {AF_INET, offsetof(struct sockaddr_in, sin_port), 2, "sin_port"},
    {AF_INET, offsetof(struct sockaddr_in, sin_addr), 4, "sin_addr"},
    {AF_INET6, offsetof(struct sockaddr_in6, sin6_port), 2, "sin6_port"},
    {AF_INET6, offsetof(struct sockaddr_in6, sin6_flowinfo), 4, "sin6_flowinfo"},
    {AF_INET6, offsetof(struct sockaddr_in6, sin6_addr), 16, "sin6_addr"},
    {AF_INET6, offsetof(struct sockaddr_in6, sin6_scope_id), 4, "sin6_scope_id"},
    {AF_NETLINK, offsetof(struct sockaddr_nl, nl_pid), 4, "nl_pid"},
    {AF_NETLINK, offsetof(struct sockaddr_nl, nl_groups), 4, "nl_groups"},
    {FAMILY_BLUETOOTH, 2, 6, "rc_bdaddr"},
    {FAMILY_BLUETOOTH, 8, 1, "rc_channel"},
};

// `name` is that of the whole, with its parenthesis open: socketcall.bind(my_addr. Fields have
// names of their own in calls that take nothing but an address.
static void pass_address(const struct pass *pass, uint64_t address, uint64_t size, const char *name,
                         bool names_fields) {
    uint16_t family;
    if (!address || !size)
        return;
    pass_in(pass, address, sizeof family, "%s%s)", name, names_fields ? ".sa_family" : "");
    if (!pass_read(&family, address, sizeof family) || family == AF_UNSPEC)
        return;
    if (family == AF_UNIX) {
        if (size > offsetof(struct sockaddr_un, sun_path))
            pass_string(pass, address + offsetof(struct sockaddr_un, sun_path), "%s%s)", name,
                        names_fields ? ".sun_path" : "");
        return;
    }
    bool known = false;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (fields[i].family != family)
            continue;
        known = true;
        pass_in(pass, address + fields[i].offset, fields[i].size, "%s%s%s)", name,
                names_fields ? "." : "", names_fields ? fields[i].name : "");
    }
    if (!known && size > sizeof family)
        pass_in(pass, address + sizeof family, size - sizeof family, "%s%s)", name,
                names_fields ? ".sa_data" : "");
}

void visit_connect(const struct pass *pass) {
    pass_address(pass, pass->arguments[1], (uint32_t)pass->arguments[2],
                 "socketcall.connect(serv_addr", true);
}

void visit_bind(const struct pass *pass) {
    pass_address(pass, pass->arguments[1], (uint32_t)pass->arguments[2], "socketcall.bind(my_addr",
                 true);
}

// An address that the kernel gives, with its length: room before, what was needed after.
static void pass_given(const struct pass *pass, uint64_t address, uint64_t length, const char *call,
                       const char *address_name, const char *length_name) {
    uint32_t size = 0;
    pass_in(pass, length, sizeof size, "socketcall.%s(%s_in)", call, length_name);
    if (!pass_read(&size, length, sizeof size))
        return;
    // Afterwards the length may say more than there was room for.
    uint64_t bounded =
        size > sizeof(struct sockaddr_storage) ? sizeof(struct sockaddr_storage) : size;
    pass_out(pass, address, pass->after ? bounded : size, bounded, "socketcall.%s(%s)", call,
             address_name);
    pass_mark(pass, length, sizeof size);
}

void visit_accept(const struct pass *pass) {
    if (pass->arguments[1])
        pass_given(pass, pass->arguments[1], pass->arguments[2], "accept", "addr", "addrlen");
}

void visit_getsockname(const struct pass *pass) {
    pass_given(pass, pass->arguments[1], pass->arguments[2], "getsockname", "name", "namelen");
}

void visit_getpeername(const struct pass *pass) {
    pass_given(pass, pass->arguments[1], pass->arguments[2], "getpeername", "name", "namelen");
}

// ---- data --------------------------------------------------------------------------------------

void visit_sendto(const struct pass *pass) {
    const uint64_t *a = pass->arguments;
    pass_in(pass, a[1], a[2], "socketcall.sendto(msg)");
    pass_address(pass, a[4], (uint32_t)a[5], "socketcall.sendto(to", true);
}

void visit_recvfrom(const struct pass *pass) {
    const uint64_t *a = pass->arguments;
    // With MSG_TRUNC the result may be more than was written.
    pass_out(pass, a[1], a[2], pass->result, "socketcall.recvfrom(buf)");
    if (a[4])
        pass_given(pass, a[4], a[5], "recvfrom", "from", "fromlen");
}

// Only fields: the gaps between them are nobody's.
static void pass_header(const struct pass *pass, uint64_t address, bool written, const char *name) {
    static const struct {
        uint8_t offset, size;
    } parts[] = {
        {offsetof(struct msghdr, msg_name), 8},    {offsetof(struct msghdr, msg_namelen), 4},
        {offsetof(struct msghdr, msg_iov), 8},     {offsetof(struct msghdr, msg_iovlen), 8},
        {offsetof(struct msghdr, msg_control), 8}, {offsetof(struct msghdr, msg_controllen), 8},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        pass_in(pass, address + parts[i].offset, parts[i].size, "%s)", name);
    if (written)
        pass_out(pass, address + offsetof(struct msghdr, msg_flags), 4, 4, "%s)", name);
}

static void pass_sent(const struct pass *pass, uint64_t address, const char *name) {
    struct msghdr message;
    char prefix[NAME_SIZE];
    pass_header(pass, address, false, name);
    if (!pass_read(&message, address, sizeof message))
        return;
    snprintf(prefix, sizeof prefix, "%s.msg_name", name);
    pass_address(pass, (uint64_t)message.msg_name, message.msg_namelen, prefix, false);
    snprintf(prefix, sizeof prefix, "%s.", name);
    pass_vector(pass, &(struct vector){.address = (uint64_t)message.msg_iov,
                                       .count = message.msg_iovlen,
                                       .prefix = prefix,
                                       .array = "msg_iov)",
                                       .element = "msg_iov[%lu])"});
    if (message.msg_control)
        pass_in(pass, (uint64_t)message.msg_control, message.msg_controllen, "%s.msg_control)",
                name);
}

static void pass_received(const struct pass *pass, uint64_t address, uint64_t limit,
                          const char *name) {
    struct msghdr message;
    char prefix[NAME_SIZE];
    pass_header(pass, address, true, name);
    if (!pass_read(&message, address, sizeof message))
        return;
    if (message.msg_name)
        pass_out(pass, (uint64_t)message.msg_name, message.msg_namelen, message.msg_namelen,
                 "%s.msg_name)", name);
    snprintf(prefix, sizeof prefix, "%s.", name);
    pass_vector(pass, &(struct vector){.address = (uint64_t)message.msg_iov,
                                       .count = message.msg_iovlen,
                                       .written = true,
                                       .limit = limit,
                                       .prefix = prefix,
                                       .array = "msg_iov)",
                                       .element = "msg_iov[%lu])"});
    if (message.msg_control)
        pass_out(pass, (uint64_t)message.msg_control, message.msg_controllen,
                 message.msg_controllen, "%s.msg_control)", name);
}

void visit_sendmsg(const struct pass *pass) {
    pass_sent(pass, pass->arguments[1], "sendmsg(msg");
}

void visit_recvmsg(const struct pass *pass) {
    pass_received(pass, pass->arguments[1], pass->result, "recvmsg(msg");
}

static void pass_messages(const struct pass *pass, bool received) {
    uint64_t list = pass->arguments[1];
    uint32_t count = (uint32_t)pass->arguments[2];
    if (count > 1024) // the kernel takes no more at once
        count = 1024;
    if (pass->after && count > pass->result)
        count = (uint32_t)pass->result;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t header = list + i * sizeof(struct mmsghdr);
        uint64_t length = header + offsetof(struct mmsghdr, msg_len);
        uint32_t bytes = 0;
        char name[NAME_SIZE];
        snprintf(name, sizeof name, "%s(mmsg[%u].msg_hdr", received ? "recvmsg" : "sendmsg", i);
        if (pass->after && !pass_read(&bytes, length, sizeof bytes))
            return;
        if (received)
            pass_received(pass, header, bytes, name);
        else
            pass_sent(pass, header, name);
        pass_out(pass, length, sizeof bytes, sizeof bytes, "mmsg[%u].msg_len", i);
    }
}

void visit_sendmmsg(const struct pass *pass) {
    pass_messages(pass, false);
}

void visit_recvmmsg(const struct pass *pass) {
    pass_messages(pass, true);
    if (pass->arguments[4])
        pass_in(pass, pass->arguments[4], 16, "timeout");
}

// ---- options -----------------------------------------------------------------------------------

void visit_setsockopt(const struct pass *pass) {
    enum { REUSEPORT_FILTER = 51 };
    const uint64_t *a = pass->arguments;
    if (!a[3])
        return;
    bool is_filter =
        (int)a[1] == SOL_SOCKET && ((int)a[2] == SO_ATTACH_FILTER || (int)a[2] == REUSEPORT_FILTER);
    if (is_filter)
        pass_filter(pass, a[3], "setsockopt(SOL_SOCKET, SO_ATTACH_FILTER, optval.filter)");
    else
        pass_in(pass, a[3], (uint32_t)a[4], "socketcall.setsockopt(optval)");
}

void visit_getsockopt(const struct pass *pass) {
    const uint64_t *a = pass->arguments;
    uint32_t size;
    if (!a[3] || !a[4])
        return;
    pass_in(pass, a[4], sizeof size, "socketcall.getsockopt(optlen)");
    if (!pass_read(&size, a[4], sizeof size))
        return;
    pass_out(pass, a[3], size, size, "socketcall.getsockopt(optval)");
    pass_mark(pass, a[4], sizeof size);
}
