/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "comm.h"
#include "comm/Loops.h"
#include "debug/Stream.h"
#include "event.h"
#include "fatal.h"
#include "fd.h"
#include "fde.h"
#include "globals.h"
#include "ip/Address.h"
#include "msfrs/Directives.h"
#include "msfrs/Excess.h"
#include "msfrs/ExcessLine.h"
#include "msfrs/lib/report/snapshot.h"
#include "msfrs/Uplink.h"
#include "SquidConfig.h"

#include <array>
#include <cerrno>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace msfrs::squid
{

namespace
{

/// Datagrams after which other events get a turn.
constexpr int DatagramsAtOnce = 16;

ExcessPort *ThisPort = nullptr;
report::ExcessCounts Counts;

sockaddr_un
SocketAddress(const std::string &path)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    assert(path.size() < sizeof(address.sun_path));
    path.copy(address.sun_path, path.size());
    return address;
}

[[noreturn]] void
Fail(const std::string &path, const int error)
{
    const auto hint = (error == ENOENT || error == EACCES) ? "; its directory must be there, and the user that Squid runs "
                      "as (cache_effective_user) must be allowed to write to it" : "";
    throw ConfigError("cannot make the socket " + path + ": " + xstrerr(error) + hint);
}

/// Refuses the path unless its socket is left over from a process that has ended.
void
CheckLeftOver(const std::string &path, const sockaddr_un &address)
{
    const auto probe = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (probe < 0)
        Fail(path, errno);
    const auto answered = connect(probe, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) == 0;
    const auto error = errno;
    close(probe);
    if (answered)
        throw ConfigError("the socket " + path + " is in use by another process; give another path");
    if (error != ECONNREFUSED)
        throw ConfigError("the socket " + path + " is there already and cannot be tried: " + xstrerr(error) +
                          "; remove it, or give another path");
}

} // namespace

ExcessPort *
TheExcessPort()
{
    return ThisPort;
}

const report::ExcessCounts &
TheExcessCounts()
{
    return Counts;
}

void
ExcessPort::Configure()
{
    const auto line = Config.msfrs.excess;
    const auto wanted = TheGateway() && line && KidIdentifier <= 1; // of several workers, the first has it for all
    if (ThisPort)
        ThisPort->flows.forget(); // classes may have changed
    if (wanted && ThisPort && ThisPort->path() == line->path)
        return;
    Shutdown();
    if (!wanted)
        return;
    try {
        ThisPort = new ExcessPort(line->path);
    } catch (const ConfigError &e) {
        const auto what = line->place.where() + ": msfrs_excess: " + e.what();
        if (!reconfiguring)
            fatalf("msfrs: %s", what.c_str());
        debugs(97, DBG_CRITICAL, "ERROR: msfrs: " << what <<
               "; until the next reconfiguration, excessive traffic is not charged");
    }
}

void
ExcessPort::Shutdown()
{
    delete ThisPort;
    ThisPort = nullptr;
}

ExcessPort::ExcessPort(const std::string &path):
    path_(path),
    refusals_("line", " at " + path)
{
    fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0)
        Fail(path_, errno);
    try {
        bind();
    } catch (...) {
        close(fd_);
        throw;
    }
    fd_open(fd_, FD_MSGHDR, "msfrs_excess");
    fd_table[fd_].sock_family = AF_UNIX;
    fd_table[fd_].flags.nonblocking = true;
    // At startup, nothing can be awaited yet: comm_init() comes after useConfig().
    eventAdd("msfrs::ExcessPort::Await", &ExcessPort::Await, this, 0.0, 0, false);
}

ExcessPort::~ExcessPort()
{
    struct stat file;
    if (lstat(path_.c_str(), &file) == 0 && file.st_dev == device_ && file.st_ino == inode_)
        unlink(path_.c_str());
    if (eventFind(&ExcessPort::Await, this))
        eventDelete(&ExcessPort::Await, this);
    comm_close(fd_);
}

/// Binds the socket to its path, where a Squid that crashed may have left another.
void
ExcessPort::bind()
{
    const auto address = SocketAddress(path_);
    struct stat file;
    if (lstat(path_.c_str(), &file) == 0) {
        if (!S_ISSOCK(file.st_mode))
            throw ConfigError("the file " + path_ + " is no socket; remove it, or give another path");
        CheckLeftOver(path_, address);
        if (unlink(path_.c_str()) != 0)
            Fail(path_, errno);
    }
    // The file gets the mode of the unbound socket, less the umask: it never exists with a wider one.
    if (fchmod(fd_, 0660) != 0 || ::bind(fd_, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) != 0 ||
            chmod(path_.c_str(), 0660) != 0 || lstat(path_.c_str(), &file) != 0)
        Fail(path_, errno);
    device_ = file.st_dev;
    inode_ = file.st_ino;
}

void
ExcessPort::await()
{
    Comm::SetSelect(fd_, COMM_SELECT_READ, &ExcessPort::NoteReadable, this, 0);
}

void
ExcessPort::Await(void * const port)
{
    static_cast<ExcessPort *>(port)->await();
}

void
ExcessPort::NoteReadable(int, void * const port)
{
    static_cast<ExcessPort *>(port)->read();
}

void
ExcessPort::read()
{
    await();
    std::array<char, LongestDatagram> buf;
    for (int n = 0; n < DatagramsAtOnce; ++n) {
        const auto size = recv(fd_, buf.data(), buf.size(), MSG_TRUNC);
        if (size < 0) {
            const auto savedErrno = errno;
            if (!ignoreErrno(savedErrno))
                debugs(97, DBG_IMPORTANT, "ERROR: msfrs: reading from " << path_ << ": " << xstrerr(savedErrno));
            return;
        }
        if (static_cast<size_t>(size) > buf.size())
            refuse(std::string_view(buf.data(), 40), "the datagram has " + std::to_string(size) +
                   " bytes; give at most " + std::to_string(LongestDatagram));
        else
            take(std::string_view(buf.data(), size));
    }
}

void
ExcessPort::take(std::string_view datagram)
{
    // While there is no scheduler, nothing is charged.
    const auto gateway = TheGateway();
    if (!gateway)
        return;
    gateway->uplinks().front()->attempt("msfrs_excess", [this, datagram](auto &scheduler, const auto now) mutable {
        while (!datagram.empty()) {
            const auto end = datagram.find('\n');
            takeLine(datagram.substr(0, end), scheduler, now);
            datagram.remove_prefix(end == std::string_view::npos ? datagram.size() : end + 1);
        }
    });
    if (passed_)
        gateway->moveByQuota();
    passed_ = false;
}

void
ExcessPort::takeLine(const std::string_view line, RequestScheduler &scheduler, const msfrs_time now)
{
    ExcessLine report;
    if (const auto why = report.parse(line); !why.empty())
        return refuse(line, why);

    ++Counts.lines;
    if (std::holds_alternative<std::monostate>(report.receiver)) {
        Counts.noClass += report.bytes;
        scheduler.countExcess(report.bytes);
        return;
    }
    const auto four = std::get_if<in_addr>(&report.receiver);
    const auto flow = flows.find(four ? Ip::Address(*four) : Ip::Address(std::get<in6_addr>(report.receiver)));
    Counts.bytes += report.bytes;
    auto &quotas = TheGateway()->quotas;
    const auto cls = quotas.classOf(flow.classIn(scheduler.config()), flow.name());
    scheduler.chargeExcess(cls, flow.name(), report.bytes, now);
    passed_ = quotas.charge(cls, flow.name(), report.bytes) || passed_;
}

void
ExcessPort::refuse(const std::string_view what, const std::string &why)
{
    ++Counts.refused;
    std::string shown(what.substr(0, 64));
    for (auto &c: shown) {
        if (c < 0x20 || c >= 0x7F)
            c = '?';
    }
    refusals_.note("'" + shown + "': " + why, Gateway::Now());
}

} // namespace msfrs::squid
