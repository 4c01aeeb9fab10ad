/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * \file
 * cap: no flow may have more than `most` items queued; from half of that on, ECN-capable items are marked. The flows of
 * an aggregate class count as one. An example of an AQM that needs no state of its own: the engine has the counters.
 */
#include <plugin/msfrs_plugin.h>

#include <stdio.h>

struct cap {
    int64_t most, limit;
};

static int init(void *inst, const struct msfrs_host *host, const union msfrs_value *params, char *err, size_t errlen)
{
    struct cap *self = inst;
    self->most = params[0].i;
    self->limit = params[1].i;
    if (host->limit && self->most > host->limit) { /* a check that needs more than the table */
        snprintf(err, errlen, "most=%lld would never be reached: the host queues %u items at most",
                 (long long)self->most, host->limit);
        return -1;
    }
    return 0;
}

static enum msfrs_verdict admit(void *inst, struct msfrs_item *i, const struct msfrs_queue_view *q, msfrs_time now,
                                struct msfrs_item **victim)
{
    const struct cap *self = inst;
    const struct msfrs_class *c = i->flow->cls;
    const int64_t queued = c->flags & MSFRS_AGGREGATE ? c->backlog : i->flow->backlog;
    (void)now, (void)victim;
    if (queued >= self->most || q->length >= self->limit)
        return MSFRS_DROP;
    return 2 * queued >= self->most && (i->flags & MSFRS_ECN_CAPABLE) ? MSFRS_MARK : MSFRS_ACCEPT;
}

static const struct msfrs_param params[] = {
    {.name = "most", .type = MSFRS_INT, .unit = "items", .def = "10", .min = 1, .max = 1e6,
     .help = "items that a flow, or the flows of an aggregate class, may have queued"},
    {.name = "limit", .type = MSFRS_INT, .unit = "items", .def = "1000", .min = 1, .max = 1e7,
     .help = "items that may be queued in all"},
};

static const struct msfrs_aqm_ops ops = {.init = init, .admit = admit};

__attribute__((visibility("default"))) const struct msfrs_plugin msfrs_plugin = {
    .magic = MSFRS_PLUGIN_MAGIC,
    .abi_major = MSFRS_ABI_MAJOR,
    .abi_minor = MSFRS_ABI_MINOR,
    .size = sizeof(struct msfrs_plugin),
    .kind = MSFRS_AQM,
    .flags = MSFRS_MAY_MARK,
    .name = "cap",
    .summary = "no flow may have more than so many items queued",
    .paper = "none: an example",
    .inst_size = sizeof(struct cap),
    .params = params, .n_params = sizeof(params) / sizeof(*params),
    .aqm = &ops,
    .ops_size = sizeof(ops),
};
