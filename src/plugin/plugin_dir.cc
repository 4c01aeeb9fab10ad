// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Where plugins are installed. The only object that the prefix of a build goes into, so that ccache has all others for
/// any prefix.
#include "plugin/loader.h"

std::string msfrs::DefaultPluginDir() { return MSFRS_PLUGINDIR; }
