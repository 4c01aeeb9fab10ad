// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/boosts.h"

#include "daemon/descriptor.h"
#include "satellites/page/http.h"
#include "satellites/page/utf8.h"

#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>

namespace msfrs::page {

Boosts::Boosts(std::string directory): directory_(std::move(directory))
{
    if (mkdir(directory_.c_str(), 0700) < 0 && errno != EEXIST)
        Fail("boost " + directory_);
    if (access(directory_.c_str(), W_OK | X_OK) < 0)
        Fail("boost " + directory_);
}

void Boosts::ask(const std::string &user) const
{
    constexpr size_t MostName = 200; // a file's name has 255 bytes
    const auto name = PercentEncoded(user);
    if (name.size() > MostName)
        throw Refused(400, "The user's name is too long for a boost.");
    size_t waiting = 0;
    std::error_code wrong;
    for (std::filesystem::directory_iterator at(directory_, wrong), end; !wrong && at != end && waiting < MostWaiting;
         at.increment(wrong))
        ++waiting;
    if (waiting == MostWaiting)
        throw Refused(503, std::to_string(MostWaiting) +
                          " boosts wait for msfrsctl: is msfrsctl-expire.timer enabled?");
    const Descriptor made(open((directory_ + "/" + name + ".boost").c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (made.get() < 0 && errno != EEXIST)
        throw Refused(503, "The request cannot be left in " + directory_ + ".");
}

} // namespace msfrs::page
