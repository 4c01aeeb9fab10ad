/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * \file
 * rr: every flow with a backlog sends `burst` items in its turn, whatever their size and its class. An example of a
 * complete scheduler in C that needs only the installed header.
 *
 * The round is a ring of the flows with a backlog. All memory is the engine's: the ring is threaded through the
 * state that the engine keeps for each flow, so every call is O(1) and nothing can fail.
 */
#include <plugin/msfrs_plugin.h>

/* In msfrs_flow::state. Comes zeroed; zeroed must mean "not in the round". */
struct turn {
    struct msfrs_flow *flow;
    struct turn *previous, *next; /* in the round, or NULL */
};

/* What the engine keeps for the instance, and hands to every call as `inst`. */
struct round {
    struct turn *current;
    int64_t burst; /* parameter: items a turn */
    int64_t left;  /* of them, for the current flow */
    uint32_t flows;
};

static int init(void *inst, const struct msfrs_host *host, const union msfrs_value *params, char *err, size_t errlen)
{
    struct round *r = inst;
    (void)host, (void)err, (void)errlen;
    r->burst = r->left = params[0].i; /* in the order of the table below; already checked against it */
    return 0;
}

static void next_turn(struct round *r)
{
    r->current = r->current->next;
    r->left = r->burst;
}

static void leave(struct round *r, struct turn *t)
{
    if (r->current == t)
        next_turn(r);
    if (r->current == t) { /* it was alone */
        r->current = NULL;
    } else {
        t->previous->next = t->next;
        t->next->previous = t->previous;
    }
    t->previous = t->next = NULL;
    --r->flows;
}

static void enqueued(void *inst, struct msfrs_item *i, msfrs_time now)
{
    struct round *r = inst;
    struct turn *t = i->flow->state;
    (void)now;
    if (t->next)
        return; /* it had a backlog already */
    t->flow = i->flow;
    if (!r->current) {
        r->current = t->previous = t->next = t;
        r->left = r->burst;
    } else { /* last: before whose turn it is */
        t->next = r->current;
        t->previous = r->current->previous;
        t->previous->next = t->next->previous = t;
    }
    ++r->flows;
}

static struct msfrs_item *pick(void *inst, msfrs_time now, enum msfrs_pick mode, msfrs_time *wake_at)
{
    const struct round *r = inst;
    (void)now, (void)mode, (void)wake_at; /* it never waits, and has no reserve */
    return r->current ? r->current->flow->head : NULL;
}

/* Usually what pick() has chosen; but a host may also take an item out of turn. The item has left its queue. */
static void picked(void *inst, struct msfrs_item *i, msfrs_time now)
{
    struct round *r = inst;
    struct turn *t = i->flow->state;
    (void)now;
    if (!i->flow->head)
        leave(r, t);
    else if (r->current == t && --r->left == 0)
        next_turn(r);
}

static void removed(void *inst, struct msfrs_item *i, msfrs_time now, enum msfrs_reason why)
{
    (void)now, (void)why;
    if (!i->flow->head)
        leave(inst, i->flow->state);
}

static void gauges(void *inst, const struct msfrs_class *c, double *out)
{
    const struct round *r = inst;
    out[0] = c ? 0 : r->flows;
}

static const struct msfrs_param params[] = {
    {.name = "burst", .type = MSFRS_INT, .unit = "items", .def = "1", .min = 1, .max = 1000,
     .help = "how many items a flow sends in its turn"},
};

static const struct msfrs_gauge gauge_table[] = {
    {.name = "flows", .unit = "", .help = "flows in the round"},
};

static const struct msfrs_sched_ops ops = {
    .init = init,
    .enqueued = enqueued,
    .pick = pick,
    .picked = picked,
    .removed = removed,
    .gauges = gauges,
};

__attribute__((visibility("default"))) const struct msfrs_plugin msfrs_plugin = {
    .magic = MSFRS_PLUGIN_MAGIC,
    .abi_major = MSFRS_ABI_MAJOR,
    .abi_minor = MSFRS_ABI_MINOR,
    .size = sizeof(struct msfrs_plugin),
    .kind = MSFRS_SCHED,
    .flags = MSFRS_FLOW_ORDER,
    .name = "rr",
    .summary = "round robin: every flow sends so many items in its turn",
    .paper = "Nagle, On packet switches with infinite storage (RFC 970, 1985)",
    .inst_size = sizeof(struct round),
    .flow_size = sizeof(struct turn),
    .params = params, .n_params = sizeof(params) / sizeof(*params),
    .gauges = gauge_table, .n_gauges = sizeof(gauge_table) / sizeof(*gauge_table),
    .sched = &ops,
    .ops_size = sizeof(ops),
};
