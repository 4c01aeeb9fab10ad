/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "debug/Stream.h"
#include "msfrs/Excess.h"
#include "msfrs/Snapshot.h"
#include "msfrs/Uplink.h"
#include "msfrs/WorkerLedger.h"

#include <cerrno>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace msfrs::squid
{

/// bytes; far more than a worker with thousands of classes writes
static constexpr off_t LargestText = 64*1024*1024;

namespace
{

/// \param first whether to show what all links have together
report::Snapshot
SnapshotOf(const Gateway &gateway, const Uplink &uplink, const bool first)
{
    report::Snapshot snapshot;
    const auto scheduler = uplink.scheduler();
    snapshot.now = Gateway::Now();
    snapshot.scheduling = scheduler != nullptr;
    snapshot.failed = !scheduler;
    if (!scheduler)
        return snapshot;
    if (gateway.several())
        snapshot.link = uplink.config().interface;
    snapshot.config = scheduler->config();
    snapshot.window = scheduler->window();
    snapshot.excess = TheExcessCounts();
    if (const auto port = TheExcessPort())
        snapshot.excessSocket = port->path();
    snapshot.classes = scheduler->classes(snapshot.now);
    snapshot.held = scheduler->held(report::Snapshot::MostHeld, snapshot.now);
    snapshot.users = scheduler->topUsers(report::Snapshot::MostUsers);
    if (first && gateway.quotas.any()) {
        for (uint32_t n = 0; n < snapshot.classes.size(); ++n)
            snapshot.quotas.push_back(gateway.quotas.report(n, report::Snapshot::MostOfQuota));
    }
    snapshot.parties = PartiesOfLink(snapshot.now);
    snapshot.alone = WhyLinkIsNotShared();
    return snapshot;
}

} // namespace

report::GatewayReport
ReportOf(const Gateway * const gateway)
{
    report::GatewayReport report;
    if (!gateway)
        return report;
    for (const auto &uplink: gateway->uplinks()) {
        const auto first = uplink == gateway->uplinks().front();
        const report::GatewayReport one(SnapshotOf(*gateway, *uplink, first));
        if (first)
            report = one;
        else
            report.addLink(one);
    }
    return report;
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
