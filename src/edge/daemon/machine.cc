// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/machine.h"

namespace msfrs::edge {

void CheckMachine(const Config &config)
{
    CheckUser({config.user, config.userWhere});
    CheckControl(ControlOf(config));
}

std::string CheckReload(const Config &config, const std::string &file, const std::string &pluginDir)
{
    for (const auto &path : {file, config.rulesFile}) {
        if (!path.empty())
            CheckReadable(path, config.user);
    }
    try {
        ReadConfig(file, pluginDir);
    } catch (const RuleError &error) { // a plugin
        return "every reload will be refused: " + std::string(error.what()) + ", as user " + config.user;
    }
    return {};
}

} // namespace msfrs::edge
