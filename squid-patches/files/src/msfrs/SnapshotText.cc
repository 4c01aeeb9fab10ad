/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "debug/Stream.h"
#include "msfrs/Archive.h"
#include "msfrs/Snapshot.h"

#include <cerrno>
#include <functional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace msfrs::squid
{

/// bytes; far more than a worker with thousands of classes writes
static constexpr off_t LargestText = 64*1024*1024;

/* One list for each struct. Bindings name all fields: a field added to a struct and not here does not compile. */

static void
Fields(Archive &archive, Setting &s)
{
    auto &[name, value] = s;
    archive(name, value);
}

static void
Fields(Archive &archive, PluginChoice &p)
{
    auto &[name, settings, loaded] = p;
    loaded = nullptr; // a snapshot is not used to schedule
    archive(name, settings);
}

static void
Fields(Archive &archive, ClassConfig &c)
{
    auto &[name, weight] = c;
    archive(name, weight);
}

static void
Fields(Archive &archive, CapacityParams &c)
{
    auto &[min, max] = c;
    archive(min, max);
}

static void
Fields(Archive &archive, CapacityChange &c)
{
    auto &[at, from, to, why] = c;
    archive(at, from, to, why);
}

static void
Fields(Archive &archive, CapacityReport &c)
{
    auto &[params, rate, delivered, loss, queue, ignored, limited, known, mostly, half, changes] = c;
    archive(params, rate, delivered, loss, queue, ignored, limited, known, mostly, half, changes);
}

static void
Fields(Archive &archive, WindowParams &w)
{
    auto &[target, interval, growth, reserve, floor, queue, law] = w;
    archive(target, interval, growth, reserve, floor, queue, law);
}

static void
Fields(Archive &archive, RequestConfig &c)
{
    auto &[rate, bounds, interface, overhead, packetOverhead, rtt, window, patience, quantum, classes, defaultClass,
                   maxWait, maxPerUser, maxQueued, arbiter, admission, pluginDir] = c;
    archive(rate, bounds, interface, overhead, packetOverhead, rtt, window, patience, quantum, classes, defaultClass,
            maxWait, maxPerUser, maxQueued, arbiter, admission, pluginDir);
}

static void
Fields(Archive &archive, WindowReport::Sample &s)
{
    auto &[at, w, wplus, u, full, own] = s;
    archive(at, w, wplus, u, full, own);
}

static void
Fields(Archive &archive, WindowReport &w)
{
    auto &[holding, because, outstanding, limit, utilisation, here, follows, own, queue, base,
                    queueTarget, metered, usedWhileFull, full, carriedWhileFull, capacity, history] = w;
    archive(holding, because, outstanding, limit, utilisation, here, follows, own, queue, base,
            queueTarget, metered, usedWhileFull, full, carriedWhileFull, capacity, history);
}

static void
Fields(Archive &archive, ExcessCounts &e)
{
    auto &[lines, bytes, noClass, refused] = e;
    archive(lines, bytes, noClass, refused);
}

static void
Fields(Archive &archive, ClassReport &c)
{
    auto &[name, weight, users, queued, paused, inFlight, asked, resting, exchanges, requests, bytes, quanta,
                 refusedPerUser, refusedTotal, refusedAdmission, expired, excess, service, heldP50, heldP95, heldP99,
                 heldLately, bytesLately, heldCount, heldSum, unfinished] = c;
    archive(name, weight, users, queued, paused, inFlight, asked, resting, exchanges, requests, bytes, quanta,
            refusedPerUser, refusedTotal, refusedAdmission, expired, excess, service, heldP50, heldP95, heldP99,
            heldLately, bytesLately, heldCount, heldSum, unfinished);
}

static void
Fields(Archive &archive, HeldReport &h)
{
    auto &[user, className, host, waited, what, id] = h;
    archive(user, className, host, waited, what, id);
}

static void
Fields(Archive &archive, UserReport &u)
{
    auto &[name, className, bytes, queued, inFlight] = u;
    archive(name, className, bytes, queued, inFlight);
}

static void
Fields(Archive &archive, QuotaReport::User &u)
{
    auto &[name, bytes] = u;
    archive(name, bytes);
}

static void
Fields(Archive &archive, QuotaReport &q)
{
    auto &[bytes, period, over, endsIn, users, usersOver, passed, most] = q;
    archive(bytes, period, over, endsIn, users, usersOver, passed, most);
}

static void
Fields(Archive &archive, PartySnapshot &p)
{
    auto &[slot, kind, live, leads, pid, config, places, waiting, demand, share] = p;
    archive(slot, kind, live, leads, pid, config, places, waiting, demand, share);
}

static void
Fields(Archive &archive, Snapshot &p)
{
    auto &[scheduling, failed, now, config, window, excess, excessSocket, classes, held, users, quotas, parties,
                       alone] = p;
    archive(scheduling, failed, now, config, window, excess, excessSocket, classes, held, users, quotas, parties,
            alone);
}

std::string
Snapshot::written() const
{
    auto copy = *this; // an Archive only takes values that it could also read into
    Archive archive;
    archive(copy);
    return archive.text();
}

Snapshot
Snapshot::Read(const std::string &text)
{
    Snapshot snapshot;
    Archive archive(text);
    archive(snapshot);
    return archive.good() ? snapshot : Snapshot();
}

uint64_t
NumberOf(const RequestConfig &config)
{
    auto copy = config;
    Archive archive;
    archive(copy);
    return std::hash<std::string>()(archive.text());
}

int
TextToFile(const std::string &text)
{
    const auto fd = memfd_create("msfrs", MFD_CLOEXEC);
    size_t written = 0;
    while (fd >= 0 && written < text.size()) {
        const auto size = write(fd, text.data() + written, text.size() - written);
        if (size <= 0)
            break;
        written += size;
    }
    if (fd >= 0 && written == text.size())
        return fd;
    const auto error = errno;
    debugs(97, DBG_IMPORTANT, "ERROR: msfrs: cannot write a report of " << text.size() << " bytes to memory: " <<
           xstrerr(error));
    if (fd >= 0)
        close(fd);
    return -1;
}

std::string
TextFromFile(const int fd)
{
    std::string text;
    struct stat info;
    if (fstat(fd, &info) == 0 && info.st_size > 0 && info.st_size <= LargestText) {
        text.resize(info.st_size);
        size_t got = 0;
        while (got < text.size()) {
            const auto size = pread(fd, &text[got], text.size() - got, got);
            if (size <= 0)
                break;
            got += size;
        }
        text.resize(got);
    }
    close(fd);
    return text;
}

} // namespace msfrs::squid
