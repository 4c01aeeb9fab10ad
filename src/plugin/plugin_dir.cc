// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The directory of installed plugins. The only object that depends on the prefix of the build, so that ccache has all
/// others for any prefix.
#include "plugin/loader.h"

std::string msfrs::DefaultPluginDir() { return MSFRS_PLUGINDIR; }
