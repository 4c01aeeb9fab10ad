/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "squid.h"
#include "base/RunnersRegistry.h"
#include "ipc/mem/Segment.h"
#include "msfrs/Excess.h"
#include "msfrs/Gateway.h"
#include "msfrs/Report.h"
#include "msfrs/WorkerLedger.h"
#include "tools.h"

/// starts, reconfigures and stops the scheduler along with the process
class MsfrsRr: public Ipc::Mem::RegisteredRunner
{
public:
    ~MsfrsRr() override { msfrs::squid::CloseWorkerLedger(); }

    /* RegisteredRunner API */
    void useConfig() override;
    void syncConfig() override;
    void endingShutdown() override;

protected:
    /* Ipc::Mem::RegisteredRunner API */
    void create() override { msfrs::squid::MakeWorkerLedger(); }
    void open() override { msfrs::squid::OpenWorkerLedger(); }
};

DefineRunnerRegistrator(MsfrsRr);

void
MsfrsRr::useConfig()
{
    Ipc::Mem::RegisteredRunner::useConfig(); // create() and open()
    msfrs::squid::RegisterReports(); // in every process: the coordinator must know them to query workers
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
    // not earlier: waiting requests may still be served during shutdown_lifetime
    if (IamWorkerProcess()) {
        msfrs::squid::ExcessPort::Shutdown();
        msfrs::squid::Gateway::Shutdown();
    }
}
