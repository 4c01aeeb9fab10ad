/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "base/RunnersRegistry.h"
#include "msfrs/Excess.h"
#include "msfrs/Gateway.h"
#include "msfrs/Report.h"
#include "tools.h"

namespace Msfrs
{

/// starts, reconfigures and stops the scheduler along with the process
class GatewayRr: public RegisteredRunner
{
public:
    /* RegisteredRunner API */
    void useConfig() override;
    void syncConfig() override;
    void endingShutdown() override;
};

} // namespace Msfrs

DefineRunnerRegistratorIn(Msfrs, GatewayRr);

void
Msfrs::GatewayRr::useConfig()
{
    RegisterReports(); // everywhere: the coordinator must know them to ask the workers
    if (IamWorkerProcess()) {
        Gateway::Configure();
        ExcessPort::Configure();
    }
}

void
Msfrs::GatewayRr::syncConfig()
{
    if (IamWorkerProcess()) {
        Gateway::Configure();
        ExcessPort::Configure();
    }
}

void
Msfrs::GatewayRr::endingShutdown()
{
    // not before: requests that wait may still be served during shutdown_lifetime
    if (IamWorkerProcess()) {
        ExcessPort::Shutdown();
        Gateway::Shutdown();
    }
}

