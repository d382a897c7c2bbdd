// ioctl: a table of the usual requests; what is not in it goes by the direction and size that most
// requests encode.
#include <linux/blkzoned.h>
#include <linux/cdrom.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/hdreg.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_tun.h>
#include <linux/kd.h>
#include <linux/loop.h>
#include <linux/random.h>
#include <linux/route.h>
#include <linux/rtc.h>
#include <linux/serial.h>
#include <linux/sockios.h>
#include <linux/userfaultfd.h>
#include <linux/vt.h>
#include <scsi/sg.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <termios.h>

#include "tools/shared/syscalls/pass.h"

// ANSWERED: a word of eight bytes for the answer follows what is taken.
enum way { NOTHING, NUMBER, TAKES, GIVES, BOTH, ANSWERED, IFREQ_TAKES, IFREQ_GIVES, IFREQ_NAMES };

struct request {
    uint32_t number;
    uint8_t way;
    uint16_t size;
    const char *name;
};

// What the kernel calls struct termios is shorter than the C library's.
enum { TERMIOS = 36, TERMIO = 18, IFREQ = sizeof(struct ifreq) };

#define R(request, way, size)                                                                      \
    { request, way, size, "ioctl(" #request ")" }

static const struct request requests[] = {
    // terminals
    R(TCGETS, GIVES, TERMIOS),
    {TCSETS, TAKES, TERMIOS, "ioctl(TCSET{S,SW,SF})"},
    {TCSETSW, TAKES, TERMIOS, "ioctl(TCSET{S,SW,SF})"},
    {TCSETSF, TAKES, TERMIOS, "ioctl(TCSET{S,SW,SF})"},
    R(TCGETA, GIVES, TERMIO),
    {TCSETA, TAKES, TERMIO, "ioctl(TCSET{A,AW,AF})"},
    {TCSETAW, TAKES, TERMIO, "ioctl(TCSET{A,AW,AF})"},
    {TCSETAF, TAKES, TERMIO, "ioctl(TCSET{A,AW,AF})"},
    R(TCSBRK, NUMBER, 0),
    R(TCSBRKP, NUMBER, 0),
    R(TCXONC, NUMBER, 0),
    R(TCFLSH, NUMBER, 0),
    R(TIOCSCTTY, NUMBER, 0),
    R(TIOCSIG, NUMBER, 0),
    R(TIOCNOTTY, NOTHING, 0),
    R(TIOCEXCL, NOTHING, 0),
    R(TIOCNXCL, NOTHING, 0),
    R(TIOCSBRK, NOTHING, 0),
    R(TIOCCBRK, NOTHING, 0),
    R(TIOCVHANGUP, NOTHING, 0),
    R(TIOCGWINSZ, GIVES, sizeof(struct winsize)),
    R(TIOCSWINSZ, TAKES, sizeof(struct winsize)),
    R(TIOCGPGRP, GIVES, 4),
    {TIOCSPGRP, GIVES, 4, "ioctl(TIOCGPGRP)"},
    R(TIOCGSID, GIVES, 4),
    R(TIOCGPTN, GIVES, 4),
    R(TIOCSPTLCK, TAKES, 4),
    R(TIOCMGET, GIVES, 4),
    R(TIOCMSET, TAKES, 4),
    R(TIOCMBIS, TAKES, 4),
    R(TIOCMBIC, TAKES, 4),
    R(TIOCGETD, GIVES, 4),
    R(TIOCSETD, TAKES, 4),
    R(TIOCSTI, TAKES, 1),
    R(TIOCPKT, TAKES, 4),
    R(TIOCCONS, NOTHING, 0),
    R(TIOCGSOFTCAR, GIVES, 4),
    R(TIOCSSOFTCAR, TAKES, 4),
    R(TIOCSERGETLSR, GIVES, 4),
    R(TIOCGICOUNT, GIVES, sizeof(struct serial_icounter_struct)),
    {TIOCGSERIAL, GIVES, sizeof(struct serial_struct), "ioctl(VKI_TIOCGSERIAL)"},
    {TIOCSSERIAL, TAKES, sizeof(struct serial_struct), "ioctl(VKI_TIOCSSERIAL)"},
    // any file
    R(FIONREAD, GIVES, 4),
    R(FIONBIO, TAKES, 4),
    R(FIOASYNC, TAKES, 4),
    R(FIOQSIZE, GIVES, 8),
    R(FIOCLEX, NOTHING, 0),
    R(FIONCLEX, NOTHING, 0),
    R(FIBMAP, BOTH, 4),
    R(FIGETBSZ, GIVES, 4),
    {FICLONE, NUMBER, 0, "ioctl(FICLONE)"},
    {FS_IOC_GETFLAGS, GIVES, 4, "ioctl(generic)"},
    {FS_IOC_SETFLAGS, TAKES, 4, "ioctl(generic)"},
    {UFFDIO_API, ANSWERED, offsetof(struct uffdio_api, ioctls), "ioctl(generic)"},
    {UFFDIO_REGISTER, ANSWERED, offsetof(struct uffdio_register, ioctls), "ioctl(generic)"},
    {UFFDIO_COPY, ANSWERED, offsetof(struct uffdio_copy, copy), "ioctl(generic)"},
    {UFFDIO_ZEROPAGE, ANSWERED, offsetof(struct uffdio_zeropage, zeropage), "ioctl(generic)"},
    {UFFDIO_CONTINUE, ANSWERED, offsetof(struct uffdio_continue, mapped), "ioctl(generic)"},
    {UFFDIO_UNREGISTER, TAKES, sizeof(struct uffdio_range), "ioctl(generic)"},
    {UFFDIO_WAKE, TAKES, sizeof(struct uffdio_range), "ioctl(generic)"},
    // sockets and interfaces
    {SIOCOUTQ, GIVES, 4, "ioctl(SIOCOUTQ)"},
    R(SIOCATMARK, GIVES, 4),
    R(SIOCGPGRP, GIVES, 4),
    {FIOGETOWN, GIVES, 4, "ioctl(SIOCGPGRP)"},
    R(SIOCSPGRP, TAKES, 4),
    {FIOSETOWN, TAKES, 4, "ioctl(SIOCSPGRP)"},
    R(SIOCGSTAMP, GIVES, sizeof(struct timeval)),
    R(SIOCGSTAMPNS, GIVES, sizeof(struct timespec)),
    {SIOCADDRT, TAKES, sizeof(struct rtentry), "ioctl(SIOCADDRT/DELRT)"},
    {SIOCDELRT, TAKES, sizeof(struct rtentry), "ioctl(SIOCADDRT/DELRT)"},
    R(SIOCGIFNAME, IFREQ_NAMES, 4),
    R(SIOCGIFINDEX, IFREQ_GIVES, 4),
    R(SIOCGIFFLAGS, IFREQ_GIVES, 2),
    R(SIOCGIFMAP, IFREQ_GIVES, sizeof(struct ifmap)),
    R(SIOCGIFTXQLEN, IFREQ_GIVES, 4),
    R(SIOCGIFMTU, IFREQ_GIVES, 4),
    R(SIOCGIFMETRIC, IFREQ_GIVES, 4),
    R(SIOCGIFADDR, IFREQ_GIVES, sizeof(struct sockaddr)),
    R(SIOCGIFNETMASK, IFREQ_GIVES, sizeof(struct sockaddr)),
    R(SIOCGIFBRDADDR, IFREQ_GIVES, sizeof(struct sockaddr)),
    R(SIOCGIFDSTADDR, IFREQ_GIVES, sizeof(struct sockaddr)),
    R(SIOCGIFHWADDR, IFREQ_GIVES, sizeof(struct sockaddr)),
    R(SIOCSIFFLAGS, IFREQ_TAKES, 2),
    R(SIOCSIFMAP, IFREQ_TAKES, sizeof(struct ifmap)),
    R(SIOCSIFTXQLEN, IFREQ_TAKES, 4),
    R(SIOCSIFMTU, IFREQ_TAKES, 4),
    R(SIOCSIFMETRIC, IFREQ_TAKES, 4),
    R(SIOCSIFHWADDR, IFREQ_TAKES, sizeof(struct sockaddr)),
    {SIOCSIFADDR, IFREQ_TAKES, sizeof(struct sockaddr), "ioctl(SIOCSIF*ADDR)"},
    {SIOCSIFNETMASK, IFREQ_TAKES, sizeof(struct sockaddr), "ioctl(SIOCSIF*ADDR)"},
    {SIOCSIFBRDADDR, IFREQ_TAKES, sizeof(struct sockaddr), "ioctl(SIOCSIF*ADDR)"},
    {SIOCSIFDSTADDR, IFREQ_TAKES, sizeof(struct sockaddr), "ioctl(SIOCSIF*ADDR)"},
    // network devices of user space
    R(TUNSETNOCSUM, NUMBER, 0),
    R(TUNSETDEBUG, NUMBER, 0),
    R(TUNSETPERSIST, NUMBER, 0),
    R(TUNSETOWNER, NUMBER, 0),
    R(TUNSETLINK, NUMBER, 0),
    R(TUNSETGROUP, NUMBER, 0),
    R(TUNSETOFFLOAD, NUMBER, 0),
    R(TUNSETIFF, BOTH, IFREQ),
    R(TUNGETIFF, GIVES, IFREQ),
    // block devices
    R(BLKROSET, TAKES, 4),
    R(BLKROGET, GIVES, 4),
    R(BLKRRPART, NOTHING, 0),
    R(BLKGETSIZE, GIVES, 8),
    R(BLKGETSIZE64, GIVES, 8),
    R(BLKFLSBUF, NUMBER, 0),
    R(BLKRASET, NUMBER, 0),
    R(BLKRAGET, GIVES, 8),
    R(BLKFRASET, NUMBER, 0),
    R(BLKFRAGET, GIVES, 8),
    R(BLKSECTGET, GIVES, 2),
    R(BLKSSZGET, GIVES, 4),
    R(BLKPBSZGET, GIVES, 4),
    R(BLKIOMIN, GIVES, 4),
    R(BLKIOOPT, GIVES, 4),
    R(BLKALIGNOFF, GIVES, 4),
    R(BLKDISCARDZEROES, GIVES, 4),
    R(BLKBSZGET, GIVES, 4),
    R(BLKBSZSET, TAKES, 4),
    R(BLKDISCARD, TAKES, 16),
    R(BLKSECDISCARD, TAKES, 16),
    R(BLKZEROOUT, TAKES, 16),
    R(BLKROTATIONAL, GIVES, 2),
    R(HDIO_GETGEO, GIVES, sizeof(struct hd_geometry)),
    R(HDIO_GET_DMA, GIVES, 8),
    R(HDIO_GET_IDENTITY, GIVES, 512),
    R(LOOP_SET_FD, NUMBER, 0),
    R(LOOP_CHANGE_FD, NUMBER, 0),
    R(LOOP_CLR_FD, NOTHING, 0),
    R(LOOP_SET_STATUS, TAKES, sizeof(struct loop_info)),
    R(LOOP_GET_STATUS, GIVES, sizeof(struct loop_info)),
    R(LOOP_SET_STATUS64, TAKES, sizeof(struct loop_info64)),
    R(LOOP_GET_STATUS64, GIVES, sizeof(struct loop_info64)),
    R(LOOP_CONFIGURE, TAKES, sizeof(struct loop_config)),
    R(LOOP_SET_CAPACITY, NOTHING, 0),
    R(LOOP_SET_DIRECT_IO, NUMBER, 0),
    R(LOOP_SET_BLOCK_SIZE, NUMBER, 0),
    R(LOOP_CTL_ADD, NUMBER, 0),
    R(LOOP_CTL_REMOVE, NUMBER, 0),
    R(LOOP_CTL_GET_FREE, NOTHING, 0),
    {0x5382, GIVES, 8, "ioctl(SCSI_IOCTL_GET_IDLUN)"},
    {0x5386, GIVES, 4, "ioctl(SCSI_IOCTL_GET_BUS_NUMBER)"},
    R(SG_GET_VERSION_NUM, GIVES, 4),
    R(SG_EMULATED_HOST, GIVES, 4),
    R(SG_SET_TIMEOUT, TAKES, 4),
    R(SG_GET_TIMEOUT, NOTHING, 0),
    R(SG_GET_SG_TABLESIZE, GIVES, 4),
    R(SG_GET_RESERVED_SIZE, GIVES, 4),
    R(SG_SET_RESERVED_SIZE, TAKES, 4),
    R(CDROM_GET_CAPABILITY, NUMBER, 0),
    R(CDROM_DRIVE_STATUS, NUMBER, 0),
    R(CDROMEJECT, NOTHING, 0),
    R(CDROMREADTOCHDR, GIVES, sizeof(struct cdrom_tochdr)),
    // clocks, consoles, random numbers
    {RTC_RD_TIME, GIVES, sizeof(struct rtc_time), "ioctl(RTC_RD_TIME/ALM_READ)"},
    {RTC_ALM_READ, GIVES, sizeof(struct rtc_time), "ioctl(RTC_RD_TIME/ALM_READ)"},
    R(RTC_ALM_SET, TAKES, sizeof(struct rtc_time)),
    R(RTC_IRQP_READ, GIVES, 8),
    R(RTC_IRQP_SET, NUMBER, 0),
    R(KDGETMODE, GIVES, 4),
    R(KDSETMODE, NUMBER, 0),
    R(KDGKBMODE, GIVES, 4),
    R(KDSKBMODE, NUMBER, 0),
    R(KDGKBTYPE, GIVES, 1),
    R(KDGKBLED, GIVES, 1),
    R(KDSKBLED, NUMBER, 0),
    R(KDGETLED, GIVES, 1),
    R(KDSETLED, NUMBER, 0),
    R(KDMKTONE, NUMBER, 0),
    R(VT_OPENQRY, GIVES, 4),
    R(VT_GETMODE, GIVES, sizeof(struct vt_mode)),
    R(VT_SETMODE, TAKES, sizeof(struct vt_mode)),
    R(VT_GETSTATE, GIVES, sizeof(struct vt_stat)),
    R(VT_RELDISP, NUMBER, 0),
    R(VT_ACTIVATE, NUMBER, 0),
    R(VT_WAITACTIVE, NUMBER, 0),
    R(VT_DISALLOCATE, NUMBER, 0),
    R(RNDADDTOENTCNT, TAKES, 4),
    R(RNDGETENTCNT, GIVES, 4),
    R(RNDADDENTROPY, TAKES, 8),
    R(RNDZAPENTCNT, NOTHING, 0),
    R(RNDCLEARPOOL, NOTHING, 0),
};

// ---- finding a request -------------------------------------------------------------------------

enum { SLOTS = 1024 };       // a power of two, several times the number of requests
static uint8_t slots[SLOTS]; // the number of a request plus one; 0: free

static unsigned slot_of(uint32_t number) {
    return number * 2654435761u >> 22;
}

__attribute__((constructor)) static void fill_slots(void) {
    _Static_assert(sizeof requests / sizeof *requests < 255, "a byte holds a request's number");
    for (unsigned i = 0; i < sizeof requests / sizeof *requests; i++) {
        unsigned slot = slot_of(requests[i].number);
        while (slots[slot])
            slot = (slot + 1) % SLOTS;
        slots[slot] = i + 1;
    }
}

static const struct request *find(uint32_t number) {
    for (unsigned slot = slot_of(number); slots[slot]; slot = (slot + 1) % SLOTS)
        if (requests[slots[slot] - 1].number == number)
            return &requests[slots[slot] - 1];
    return NULL;
}

// ---- requests that are more than one piece of memory -------------------------------------------

static void visit_ifconf(const struct pass *pass, uint64_t address) {
    struct ifconf list;
    pass_in(pass, address, sizeof list.ifc_len, "ioctl(SIOCGIFCONF)");
    pass_in(pass, address + offsetof(struct ifconf, ifc_ifcu), sizeof list.ifc_ifcu,
            "ioctl(SIOCGIFCONF)");
    if (!pass_read(&list, address, sizeof list))
        return;
    if (list.ifc_buf && list.ifc_len > 0)
        pass_out(pass, (uint64_t)list.ifc_buf, list.ifc_len, list.ifc_len,
                 "ioctl(SIOCGIFCONF).ifc_buf");
    pass_mark(pass, address, sizeof list.ifc_len);
}

static void visit_fiemap(const struct pass *pass, uint64_t address) {
    struct fiemap map;
    size_t given = offsetof(struct fiemap, fm_mapped_extents);
    pass_in(pass, address, given, "ioctl(generic)");
    pass_in(pass, address + offsetof(struct fiemap, fm_extent_count), 4, "ioctl(generic)");
    if (!pass_read(&map, address, sizeof map))
        return;
    pass_mark(pass, address, sizeof map);
    uint64_t extents = pass->after && map.fm_mapped_extents < map.fm_extent_count
                           ? map.fm_mapped_extents
                           : map.fm_extent_count;
    if (!pass->after || map.fm_extent_count)
        pass_out(pass, address + sizeof map, extents * sizeof(struct fiemap_extent), UINT64_MAX,
                 "ioctl(generic)");
}

static void visit_sg_io(const struct pass *pass, uint64_t address) {
    struct sg_io_hdr io;
    pass_in(pass, address, offsetof(struct sg_io_hdr, status), "ioctl(SG_IO)");
    if (!pass_read(&io, address, sizeof io))
        return;
    pass_in(pass, (uint64_t)io.cmdp, io.cmd_len, "ioctl(SG_IO)");
    if (io.dxfer_direction == SG_DXFER_TO_DEV || io.dxfer_direction == SG_DXFER_TO_FROM_DEV)
        pass_in(pass, (uint64_t)io.dxferp, io.dxfer_len, "ioctl(SG_IO)");
    if (io.dxfer_direction == SG_DXFER_FROM_DEV || io.dxfer_direction == SG_DXFER_TO_FROM_DEV)
        pass_out(pass, (uint64_t)io.dxferp, io.dxfer_len, io.dxfer_len, "ioctl(SG_IO)");
    pass_mark(pass, (uint64_t)io.sbp, io.sb_len_wr);
    pass_mark(pass, address, sizeof io);
}

// ---- the call ----------------------------------------------------------------------------------

static void visit_known(const struct pass *pass, const struct request *request, uint64_t address) {
    enum { NAME = IFNAMSIZ }; // of an interface; what it is asked for follows
    if (request->way != NOTHING)
        pass_register(pass, 2, 8, NULL);
    switch (request->way) {
    case TAKES:
        pass_in(pass, address, request->size, "%s", request->name);
        break;
    case GIVES:
        pass_out(pass, address, request->size, request->size, "%s", request->name);
        break;
    case BOTH:
        pass_in(pass, address, request->size, "%s", request->name);
        pass_mark(pass, address, request->size);
        break;
    case ANSWERED:
        pass_in(pass, address, request->size, "%s", request->name);
        pass_out(pass, address + request->size, 8, 8, "%s", request->name);
        break;
    case IFREQ_TAKES:
        pass_string(pass, address, "%s", request->name);
        pass_in(pass, address + NAME, request->size, "%s", request->name);
        break;
    case IFREQ_GIVES:
        pass_string(pass, address, "%s", request->name);
        pass_out(pass, address, IFREQ, 0, "%s", request->name);
        pass_mark(pass, address + NAME, request->size);
        break;
    case IFREQ_NAMES:
        pass_in(pass, address + NAME, request->size, "%s", request->name);
        pass_out(pass, address, IFREQ, 0, "%s", request->name);
        pass_mark(pass, address, NAME);
        break;
    }
}

// By what the number says of itself.
static void visit_encoded(const struct pass *pass, uint32_t number, uint64_t address) {
    unsigned direction = _IOC_DIR(number), size = _IOC_SIZE(number), order = _IOC_NR(number);
    // Questions to an input device: how much may be answered is part of the number.
    bool is_input = _IOC_TYPE(number) == 'E' && direction == _IOC_READ &&
                    ((order >= 0x06 && order <= 0x0a) || (order >= 0x18 && order <= 0x3f));
    pass_register(pass, 2, 8, NULL);
    if (direction == _IOC_NONE || !size) {
        pass_unknown(pass, "ioctl", number);
        return;
    }
    uint64_t written = is_input && pass->result > 0 ? (uint64_t)pass->result : size;
    if (direction & _IOC_WRITE)
        pass_in(pass, address, size, "ioctl(generic)");
    if (direction & _IOC_READ)
        pass_out(pass, address, size, written, "%s", is_input ? "ioctl(EVIO*)" : "ioctl(generic)");
}

void visit_ioctl(const struct pass *pass) {
    uint32_t number = (uint32_t)pass->arguments[1];
    uint64_t address = pass->arguments[2];
    const struct request *request = find(number);
    if (request)
        visit_known(pass, request, address);
    else if (number == SIOCGIFCONF)
        visit_ifconf(pass, address);
    else if (number == FS_IOC_FIEMAP)
        visit_fiemap(pass, address);
    else if (number == SG_IO)
        visit_sg_io(pass, address);
    else
        visit_encoded(pass, number, address);
}
