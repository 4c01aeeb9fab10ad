/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "debug/Stream.h"
#include "globals.h"
#include "msfrs/Config.h"
#include "msfrs/Directives.h"
#include "msfrs/QuotaBook.h"
#include "msfrs/WorkerLedger.h"
#include "SquidConfig.h"

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>

namespace msfrs::squid
{

namespace
{

/// Bytes; more than Quotas::MostUsers of a dozen classes take.
constexpr off_t LongestFile = 256*1024*1024;

/// local wall-clock time, s; see quota/quota_period.h
int64_t
LocalTime()
{
    const auto now = time(nullptr);
    tm local = {};
    localtime_r(&now, &local);
    return now + local.tm_gmtoff;
}

/// Workers that do not share the link count separately; only the counts of the first are kept then.
std::string
Path()
{
    return SharesLink() || KidIdentifier <= 1 ? Config.msfrs.quotaPath() : std::string();
}

/// A file descriptor, closed by the destructor.
class PlainFile
{
public:
    PlainFile(const std::string &path, const int flags):
        fd_(open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0640)) {}
    ~PlainFile() { close(); }
    PlainFile(PlainFile &&) = delete;

    bool good() const { return fd_ >= 0; }

    /// \throws std::runtime_error
    std::string read() const
    {
        struct stat file;
        if (fstat(fd_, &file) != 0 || !S_ISREG(file.st_mode))
            throw std::runtime_error("this is no plain file");
        if (file.st_size > LongestFile)
            throw std::runtime_error("it has more than " + std::to_string(LongestFile) + " bytes");
        std::string text(static_cast<size_t>(file.st_size), '\0');
        size_t have = 0;
        while (have < text.size()) {
            const auto got = ::read(fd_, &text[have], text.size() - have);
            if (got < 0 && errno == EINTR)
                continue;
            if (got <= 0)
                throw std::runtime_error(got ? xstrerr(errno) : "it became shorter");
            have += static_cast<size_t>(got);
        }
        return text;
    }

    bool write(const std::string &text) const
    {
        size_t gone = 0;
        while (gone < text.size()) {
            const auto put = ::write(fd_, &text[gone], text.size() - gone);
            if (put < 0 && errno != EINTR)
                return false;
            gone += put > 0 ? static_cast<size_t>(put) : 0;
        }
        return true;
    }

    bool close()
    {
        const auto fd = fd_;
        fd_ = -1;
        return fd < 0 || ::close(fd) == 0;
    }

private:
    int fd_;
};

} // namespace

QuotaBook::QuotaBook():
    own_(QuotasOfLink() ? nullptr : ledger::MakeQuotaTable()),
    quotas_(own_ ? *own_ : *QuotasOfLink(), Config.msfrs.quotaClasses(), LocalTime()),
    path_(Path())
{
    if (any() && quotas_.toLoad()) {
        if (!path_.empty())
            load();
        quotas_.loaded();
    }
}

QuotaBook::~QuotaBook()
{
    save();
    quotas_.configure({}, LocalTime()); // else nobody would end the periods of parties that still count
}

void
QuotaBook::configure()
{
    quotas_.configure(Config.msfrs.quotaClasses(), LocalTime());
    path_ = Path();
}

uint32_t
QuotaBook::classOf(const uint32_t cls, const std::string_view user) const
{
    return static_cast<uint32_t>(quotas_.classOf(cls, user));
}

bool
QuotaBook::charge(const uint32_t cls, const std::string_view user, const int64_t bytes)
{
    return any() && quotas_.charge(cls, user, bytes);
}

bool
QuotaBook::tick()
{
    const auto back = quotas_.tick(LocalTime());
    if (quotas_.toSave(SaveEvery))
        save();
    return back;
}

void
QuotaBook::load()
{
    try {
        const PlainFile file(path_, O_RDONLY | O_NONBLOCK);
        if (!file.good()) {
            if (errno == ENOENT)
                return; // the first time
            throw std::runtime_error(xstrerr(errno));
        }
        quotas_.load(file.read());
    } catch (const std::exception &e) {
        const auto aside = path_ + ".refused";
        const auto moved = rename(path_.c_str(), aside.c_str()) == 0;
        debugs(97, DBG_IMPORTANT, "WARNING: msfrs: the quotas in " << path_ << " are not used: " << e.what() <<
               "; all users begin from 0" << (moved ? ", and the file is " + aside + " now" : ""));
    }
}

/// Replaces the file atomically: a reader, even after a crash of Squid, finds all of the old or all of the new counts.
/// There is no wait for the disk; if the machine itself fails, a truncated file is refused.
void
QuotaBook::save()
{
    if (path_.empty() || !any())
        return;
    // Each worker has its own: one that was stopped while it wrote may continue later.
    const auto next = path_ + ".new" + (KidIdentifier > 1 ? std::to_string(KidIdentifier) : "");
    const auto good = write(next) && rename(next.c_str(), path_.c_str()) == 0;
    if (!good && !failed_)
        debugs(97, DBG_IMPORTANT, "WARNING: msfrs: the quotas cannot be kept in " << path_ << ": " << xstrerr(errno) <<
               "; the directory must be there, and the user that Squid runs as (cache_effective_user) must be allowed "
               "to write to it");
    failed_ = !good;
}

/// \returns whether it succeeded; errno otherwise
bool
QuotaBook::write(const std::string &path) const
{
    PlainFile file(path, O_WRONLY | O_CREAT | O_TRUNC);
    return file.good() && file.write(quotas_.save()) && file.close();
}

} // namespace msfrs::squid
