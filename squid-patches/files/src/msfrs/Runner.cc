/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "base/RunnersRegistry.h"
#include "msfrs/Excess.h"
#include "msfrs/Gateway.h"
#include "msfrs/Report.h"
#include "tools.h"

/// starts, reconfigures and stops the scheduler along with the process
class MsfrsRr: public RegisteredRunner
{
public:
    /* RegisteredRunner API */
    void useConfig() override;
    void syncConfig() override;
    void endingShutdown() override;
};

DefineRunnerRegistrator(MsfrsRr);

void
MsfrsRr::useConfig()
{
    msfrs::squid::RegisterReports(); // everywhere: the coordinator must know them to ask the workers
    syncConfig();
}

void
MsfrsRr::syncConfig()
{
    if (IamWorkerProcess()) {
        msfrs::squid::Gateway::Configure();
        msfrs::squid::ExcessPort::Configure();
    }
}

void
MsfrsRr::endingShutdown()
{
    // not before: requests that wait may still be served during shutdown_lifetime
    if (IamWorkerProcess()) {
        msfrs::squid::ExcessPort::Shutdown();
        msfrs::squid::Gateway::Shutdown();
    }
}
