/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * \file
 * The plugin ABI of msfrs: everything a scheduler or an AQM needs to know, in one C header.
 *
 * A plugin is a shared object that exports `const struct msfrs_plugin msfrs_plugin`. It decides; the engine
 * does. The engine owns items, flows and classes, their queues, the counters and all memory named `state`
 * below (zeroed, freed by the engine). The plugin never reads a clock, never draws its own random numbers,
 * never logs by itself, keeps no global variables, and lets no C++ exception cross a call.
 *
 * Life of an item, as the plugin sees it:
 *
 *     aqm.admit -> sched.enqueued -> sched.pick -> aqm.dequeued -> sched.picked -> sched.charged ... -> sched.done
 *                        |  ^                           |                                  |
 *                        |  |                           +---> sched.removed  (dropped at its head)
 *                        |  +--------------- continuation -------------------------------+   (quantum over)
 *                        +---> sched.removed, aqm.removed                   (client gone, dropped, expired)
 *
 * Cost has one contract. An item carries an estimate per resource; `pick` spends the estimate, and the engine
 * passes only the difference to `charged`: amounts above the estimate while the service runs, and a negative
 * amount at the end if less was used. A packet has an exact estimate and is never charged; a request has
 * estimate 0 and is charged as response bytes arrive.
 *
 * Classes may form trees: an interior class has classes below it and takes no flows of its own, a weight counts
 * among the children of one parent. Only a plugin with MSFRS_HIERARCHY is told of interior classes; to the others
 * the leaves are all there is.
 *
 * Compatibility: a plugin loads if its `abi_major` equals the host's and its `abi_minor` is not greater: what an older
 * minor did not have yet counts as 0 or NULL. So within a major fields are only ever added, at the end: of
 * `msfrs_plugin` and the two tables of operations, each addition with a new minor, and their sizes (`size`, `ops_size`)
 * say where they end; and of what the host makes (`msfrs_host`, `msfrs_class`, `msfrs_flow`, `msfrs_item`,
 * `msfrs_queue_view`), which a plugin has by a pointer alone. The rows of parameters and gauges stay as they are.
 *
 * A plugin that answers what it must not (an item that is not queued, a verdict that there is not, a time to wake that
 * is not to come, a figure that is no number) has failed: the host ends it and goes on without.
 *
 *     2.0   against 1: msfrs_aqm_ops::dequeued answers with a verdict, and comes before sched.picked; time never goes
 *           back
 *     2.1   msfrs_plugin::keeps, and save, restore and resumed of msfrs_sched_ops: what classes and flows have had goes
 *           on in another instance
 */
#ifndef MSFRS_PLUGIN_H
#define MSFRS_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MSFRS_PLUGIN_MAGIC 0x4d534652u /* "MSFR" */
#define MSFRS_ABI_MAJOR 2
#define MSFRS_ABI_MINOR 1
#define MSFRS_RESOURCES 4  /**< cost dimensions of an item; 0 is always bytes on the link */
#define MSFRS_SYMBOL "msfrs_plugin" /**< the one exported symbol */
#define MSFRS_UNKNOWN (-1) /**< as msfrs_item::remaining: nobody has said */
#define MSFRS_MOST_KEPT 16 /**< figures of one owner that `save` may give */

/** Nanoseconds of a monotonic clock of the host. Never negative, never goes back. */
typedef int64_t msfrs_time;

/** What a plugin is. */
enum msfrs_kind { MSFRS_SCHED = 1, MSFRS_AQM = 2 };

/** What a plugin needs or does; or-ed together in msfrs_plugin::flags. */
enum msfrs_flags {
    MSFRS_NEEDS_COST = 1 << 0,     /**< estimates must be exact; refuses hosts that only charge afterwards */
    MSFRS_MULTI_RESOURCE = 1 << 1, /**< uses est[1..]; with one resource it still works */
    MSFRS_DROPS_QUEUED = 1 << 2,   /**< an AQM that may name an already queued item as victim */
    MSFRS_MAY_MARK = 1 << 3,       /**< an AQM that may answer MSFRS_MARK */
    MSFRS_HAS_RESERVE = 1 << 4,    /**< a scheduler that answers MSFRS_PICK_FRESH */
    MSFRS_FLOW_ORDER = 1 << 5,     /**< a scheduler that always picks the head of a flow's queue */
    MSFRS_HIERARCHY = 1 << 6,      /**< wants class_added and the like for interior classes, too */
    MSFRS_NO_LIMIT = 1 << 7        /**< an AQM that bounds no buffer: when its own is full, the host makes room as it
                                        does without an AQM */
};

/** What a class is; or-ed together in msfrs_class::flags. */
enum msfrs_class_flags {
    MSFRS_INTERIOR = 1 << 0, /**< has classes below it and no flows of its own; told from the start */
    MSFRS_AGGREGATE = 1 << 1 /**< its flows are to be treated as one, where a plugin treats flows apart */
};

/** What an item is; or-ed together in msfrs_item::flags. */
enum msfrs_item_flags {
    MSFRS_ECN_CAPABLE = 1 << 0 /**< may be marked instead of dropped: a packet with an ECT codepoint */
};

struct msfrs_flow;
struct msfrs_item;

/**
 * A service class. All but `state` and `aqm_state` (the memory behind them) is read-only for plugins. The counters
 * of an interior class are the sums over the classes below it.
 */
struct msfrs_class {
    const char *name;
    uint32_t index;       /**< dense, 0.., stable while the class lives */
    uint32_t flags;       /**< enum msfrs_class_flags */
    struct msfrs_class *parent; /**< an interior class, or NULL */
    double weight;        /**< w_i > 0, among the children of the parent */
    uint32_t users;       /**< UC_i: flows with an item queued or in service */
    uint32_t backlog;     /**< items queued */
    uint32_t fresh;       /**< of those: items that had no service yet */
    uint32_t in_service;  /**< items picked and not done */
    int64_t backlog_cost; /**< sum of est[0] of the queued items */
    double *service;      /**< service counter SC_i of the host's ledger, which workers may share; a scheduler
                               that keeps such a counter keeps it here, others leave it alone */
    void *state;          /**< scheduler's, class_size bytes; NULL where it is not told of the class */
    void *aqm_state;      /**< AQM's, class_size bytes; NULL where it is not told of the class */
};

/** One user of a class (requests) or one flow (packets). */
struct msfrs_flow {
    struct msfrs_class *cls;
    uint64_t key;        /**< a hash of the user's or flow's name; may collide between different flows */
    double weight;       /**< > 0, default 1 */
    uint32_t backlog, fresh, in_service; /**< as in msfrs_class */
    int64_t backlog_cost;
    struct msfrs_item *head, *tail; /**< the flow's queue in service order */
    void *state;
    void *aqm_state;
};

/** A request, a quantum of a response, or a packet. */
struct msfrs_item {
    struct msfrs_flow *flow;
    struct msfrs_item *prev, *next; /**< neighbours in the flow's queue */
    uint64_t id;                    /**< order of first arrival, from 1 */
    uint64_t seq;                   /**< order of the latest enqueueing; greater than id for a continuation */
    msfrs_time enqueued;            /**< time of the latest enqueueing */
    int64_t attained;               /**< cost in resource 0 that was charged so far, over all quanta */
    int64_t est[MSFRS_RESOURCES];   /**< estimate of what the next service costs, >= 0: bytes on the link; of the
                                         resources visited before it, in that order, units of 10^-4 us */
    uint32_t flags;                 /**< enum msfrs_item_flags */
    uint32_t engine;                /**< the engine's own; opaque */
    void *state;
    void *aqm_state;
    void *host;                     /**< the host's own pointer; opaque */
    int64_t remaining;              /**< estimate of what all its service together still costs in resource 0, >= 0, or
                                         MSFRS_UNKNOWN, as for every packet. What others say, so it may be wrong.
                                         Changes with `expected` alone */
};

/** What the host lends a plugin; valid from init to fini. */
struct msfrs_host {
    void *ctx;
    uint64_t (*random)(void *ctx);                             /**< uniform 64 bits from the host's seed; may be
                                                                    called as often as a decision needs, or beforehand
                                                                    for one that is to come */
    void (*log)(void *ctx, int level, const char *message);    /**< level 0 important, 1 info, 2 debug */
    uint32_t resources;                                        /**< how many of est[] are in use, 1.. */
    double *virtual_time; /**< of the ledger, beside msfrs_class::service: shared by all workers */
    uint32_t exact;       /**< 1: estimates are exact, as of packets; 0: an item's cost is known afterwards */
    uint32_t limit;       /**< the host's hard limit of queued items, 0: none; at it no AQM is asked */
};

enum msfrs_param_type { MSFRS_INT = 1, MSFRS_REAL, MSFRS_BOOL, MSFRS_CHOICE };

/** One row of a parameter table. A value outside min..max, or not among choices, is refused by the loader. */
struct msfrs_param {
    const char *name;
    enum msfrs_param_type type;
    const char *unit;      /**< "bytes", "ns", "%", ... or "" */
    const char *def;       /**< default, in the notation a user would write; a number may be from 0 to min as well */
    double min, max;       /**< inclusive; for INT and REAL; a REAL's max may be infinite, and `inf` then be given */
    const char *choices;   /**< for CHOICE: "one|two|three"; the value is the index */
    const char *help;      /**< one sentence */
};

/** A parsed parameter, in the order of the table. BOOL and CHOICE use `i`. */
union msfrs_value { int64_t i; double d; };

/** One row of a gauge table: live figures for reports. */
struct msfrs_gauge { const char *name; const char *unit; const char *help; };

/** What `pick` may choose from. */
enum msfrs_pick {
    MSFRS_PICK_ANY = 0,  /**< any queued item */
    MSFRS_PICK_FRESH = 1 /**< only an item without service yet, of a class that is not ahead of its share;
                              asked only of plugins with MSFRS_HAS_RESERVE */
};

/** Why an item leaves a queue without being picked. */
enum msfrs_reason {
    MSFRS_GONE = 1,    /**< whoever asked for it is gone */
    MSFRS_DROPPED = 2, /**< the AQM drops it: the victim of MSFRS_DROP_BOTH, or at its head; or the buffer is full */
    MSFRS_EXPIRED = 3, /**< it has waited for too long */
    MSFRS_SHUTDOWN = 4 /**< the host ends; `now` is that of the latest call */
};

/** Whose figures they are: one of these, or, if all are NULL, the instance's own. */
struct msfrs_owner {
    struct msfrs_class *cls;
    struct msfrs_flow *flow;
    struct msfrs_item *item;
};

/** What `save` is lent, for the call alone. */
struct msfrs_move {
    void *ctx;
    /** Takes what an owner is to go on with: 1..MSFRS_MOST_KEPT finite numbers. Once for each owner at most. */
    void (*put)(void *ctx, const struct msfrs_owner *whose, const double *figures, uint32_t n);
    struct msfrs_class *const *classes; uint32_t n_classes; /**< those that the plugin was told of */
    struct msfrs_flow *const *flows; uint32_t n_flows;      /**< idle ones included */
    struct msfrs_item *const *served; uint32_t n_served;    /**< in service */
};

/**
 * A scheduler. `enqueued`, `pick`, `picked` and `removed` must be there; any other may be NULL where the default
 * named in its comment serves.
 * All calls come from one thread at a time per instance. No call may block or allocate without bound.
 *
 * The end of an instance, and its AQM's, in this order: `removed` of the scheduler, then of the AQM, for every item
 * that is still queued (MSFRS_SHUTDOWN; none is in service any more, a host ends or takes away its items first); for
 * each class, those added last first: `flow_removed` of both for each of its flows, then `class_removed` of both;
 * `fini` of the scheduler, then of the AQM. Then the engine frees all states. What a host never added, or what
 * refused to be added, is not removed either; an instance whose `init` failed has no `fini`.
 */
struct msfrs_sched_ops {
    /** Takes parameters. Returns 0, or -1 with a sentence in err (default: nothing to set up). */
    int (*init)(void *inst, const struct msfrs_host *host, const union msfrs_value *params, char *err, size_t errlen);
    /** Frees what init and the calls since have allocated (default: nothing). */
    void (*fini)(void *inst);

    /** A class, a flow comes (state zeroed) or goes (empty, nothing in service). -1: out of memory. The weight of a
     *  class may change while it has a backlog. (Default for all five: nothing; zeroed state is ready.) */
    int (*class_added)(void *inst, struct msfrs_class *c);
    void (*class_changed)(void *inst, struct msfrs_class *c, double old_weight);
    void (*class_removed)(void *inst, struct msfrs_class *c);
    int (*flow_added)(void *inst, struct msfrs_flow *f);
    void (*flow_removed)(void *inst, struct msfrs_flow *f);
    /** Whether an idle flow's state carries nothing that the future needs, so that the engine may free it
     *  early (default: yes). */
    int (*flow_forgettable)(void *inst, const struct msfrs_flow *f);

    /** Order within one flow's queue: whether a, arriving now, goes before the queued b (default: never, FIFO).
     *  Must be consistent with one strict weak order. */
    int (*before)(void *inst, const struct msfrs_item *a, const struct msfrs_item *b);

    /** The item stands in its flow's queue; all counters already include it. Not called with an empty flow. */
    void (*enqueued)(void *inst, struct msfrs_item *i, msfrs_time now);
    /** Chooses the next item; it must be queued, and with PICK_FRESH without service. The engine takes it out of its
     *  queue, asks the AQM, and then calls `picked`, or `removed` and `pick` again if the AQM drops it.
     *  NULL: nothing suits now; then with PICK_ANY and a backlog *wake_at must be set to a time > now. */
    struct msfrs_item *(*pick)(void *inst, msfrs_time now, enum msfrs_pick mode, msfrs_time *wake_at);
    /** The chosen item was taken out and is in service; spend its estimate here. */
    void (*picked)(void *inst, struct msfrs_item *i, msfrs_time now);
    /** The item left the queue unpicked, or picked and then dropped by the AQM; it was already taken out. */
    void (*removed)(void *inst, struct msfrs_item *i, msfrs_time now, enum msfrs_reason why);
    /** amount (may be negative at the end of an item) was used of a resource beyond the estimate.
     *  item is NULL for traffic that no item caused but that belongs to the flow (default: ignored). */
    void (*charged)(void *inst, struct msfrs_flow *f, struct msfrs_item *i, uint32_t resource, int64_t amount,
                    msfrs_time now);
    /** The item's service ended; not called when it comes back as a continuation (default: nothing). */
    void (*done)(void *inst, struct msfrs_item *i, msfrs_time now);

    /** Fills out[] in the order of the gauge table; c is NULL for instance-wide gauges not of a class. (Default: all
     *  are 0.) */
    void (*gauges)(void *inst, const struct msfrs_class *c, double *out);

    /** i->remaining has changed from `old`, while the item is queued or in service. A queued one has its
     *  place in the flow's queue by `before` as it is now. (Default: nothing.) */
    void (*expected)(void *inst, struct msfrs_item *i, int64_t old, msfrs_time now);

    /* The next three are all there, with msfrs_plugin::keeps, or none is. A host that takes a new configuration may
     * make a new engine and move all work there. Where the scheduler is the same before and after (`name`, `keeps`;
     * parameters may differ), the calls are: `save` of the old instance; of the new one, which has its classes,
     * `restore` for every owner that goes on, in the order in which `save` put them, but for items; `resumed` for every
     * item that goes on in its class and flow, in the order of seq; `restore` for items; then `enqueued`, and `picked`
     * if it is in service, for items that come to another class or flow than they had, likewise. Classes and flows go
     * on where there are some of their names. The old instance ends as any. Between two schedulers that are not the
     * same, and without these operations, nothing is handed over: all items come by `enqueued` and `picked`, in the
     * order of seq, to an instance that starts from zero. */

    /** Gives by move->put what is not to be lost: counters, debts, credits, places in a round. Changes nothing. Times
     *  as differences to now. (Default: nothing is kept.) */
    void (*save)(void *inst, const struct msfrs_move *move, msfrs_time now);
    /** An owner goes on with what another instance has saved of it. A class or flow has no item yet, and may get none.
     *  Returns 0, or -1 if these are no figures that `save` gives: the plugin has failed. */
    int (*restore)(void *inst, const struct msfrs_owner *whose, const double *figures, uint32_t n, msfrs_time now);
    /** An item that the saved instance had stands where it stood: in its flow's queue, or, if `served`, in service; all
     *  counters include it. What was restored counts it already: nobody wakes, and nothing is spent. */
    void (*resumed)(void *inst, struct msfrs_item *i, int served, msfrs_time now);
};

/** The queue as an AQM may see it: read-only. */
struct msfrs_queue_view {
    uint32_t length;      /**< items queued, the arriving one not counted */
    int64_t bytes;        /**< sum of est[0] */
    msfrs_time idle_since;/**< when the queue became empty; 0 if it is not empty, or never held anything */
    const void *ctx;
    /** The n-th queued item, 0..length-1, in no particular order, for CHOKe's draw; NULL if out of range. What is
     *  in service (being transmitted) is not among them. Only for a plugin with MSFRS_DROPS_QUEUED: hosts need not
     *  keep such a list for others, and may answer them NULL. */
    struct msfrs_item *(*nth)(const void *ctx, uint32_t n);
};

enum msfrs_verdict { MSFRS_ACCEPT = 0, MSFRS_DROP = 1, MSFRS_MARK = 2, MSFRS_DROP_BOTH = 3 };

/**
 * An active queue manager: decides whether an arriving item may queue, and whether one whose turn has come may go.
 * Every item that was admitted is shown to `dequeued` when it is first picked, or told to `removed`; what the host
 * takes in unasked and continuations never are. Of an item that `admit` or `dequeued` has dropped the AQM hears nothing
 * again.
 *
 * `admit` must be there; any other may be NULL. What is called as in msfrs_sched_ops has the same meaning and default,
 * and the same order at the end; an AQM without `dequeued` and `removed` does not hear what becomes of its items.
 */
struct msfrs_aqm_ops {
    int (*init)(void *inst, const struct msfrs_host *host, const union msfrs_value *params, char *err, size_t errlen);
    void (*fini)(void *inst);
    int (*class_added)(void *inst, struct msfrs_class *c);
    void (*class_changed)(void *inst, struct msfrs_class *c, double old_weight);
    void (*class_removed)(void *inst, struct msfrs_class *c);
    int (*flow_added)(void *inst, struct msfrs_flow *f);
    void (*flow_removed)(void *inst, struct msfrs_flow *f);
    /** MARK: only for an item that is MSFRS_ECN_CAPABLE (needs MSFRS_MAY_MARK); any other is dropped instead.
     *  DROP_BOTH: the arriving item and *victim, a queued one (needs MSFRS_DROPS_QUEUED); the scheduler's and the
     *  AQM's `removed` then come for the victim, with MSFRS_DROPPED, when admit has returned; unless the host cannot
     *  lose it, when it stays and the arriving one is dropped alone; *victim is NULL before the call, and may stay so.
     *  q is as it was before the arrival.
     *  Not called while msfrs_host::limit items are queued: the host then drops the item itself, and the AQM does not
     *  hear of it. */
    enum msfrs_verdict (*admit)(void *inst, struct msfrs_item *i, const struct msfrs_queue_view *q, msfrs_time now,
                                struct msfrs_item **victim);
    /** The item's turn has come; it was taken out of its queue: q, and the counters of flow and class, are as they are
     *  without it. It has waited since i->enqueued. ACCEPT: it goes. MARK as in admit: it goes, or is dropped if it is
     *  not capable. DROP: it is gone, and the scheduler is asked for another; for a request that is the refusal that
     *  an arrival gets (503). DROP_BOTH is no answer here. Of an item that the host takes out of turn, a drop does not
     *  count: it goes. (Default: ACCEPT.) */
    enum msfrs_verdict (*dequeued)(void *inst, struct msfrs_item *i, const struct msfrs_queue_view *q, msfrs_time now);
    /** q is as it is without the item. */
    void (*removed)(void *inst, struct msfrs_item *i, const struct msfrs_queue_view *q, msfrs_time now,
                    enum msfrs_reason why);
    void (*gauges)(void *inst, const struct msfrs_class *c, double *out);
};

/** What a plugin exports. */
struct msfrs_plugin {
    uint32_t magic;       /**< MSFRS_PLUGIN_MAGIC */
    uint16_t abi_major;   /**< MSFRS_ABI_MAJOR of the header it was built with */
    uint16_t abi_minor;
    uint32_t size;        /**< sizeof(struct msfrs_plugin) */
    uint32_t kind;        /**< enum msfrs_kind */
    uint32_t flags;       /**< enum msfrs_flags */
    const char *name;     /**< as in the configuration: lower case letters, digits, '-' */
    const char *summary;  /**< one sentence */
    const char *paper;    /**< where the algorithm is from */
    size_t inst_size, class_size, flow_size, item_size; /**< bytes of zeroed state; 0: none */
    const struct msfrs_param *params;  uint32_t n_params;
    const struct msfrs_gauge *gauges;  uint32_t n_gauges;
    const struct msfrs_sched_ops *sched; /**< for MSFRS_SCHED, otherwise NULL */
    const struct msfrs_aqm_ops *aqm;     /**< for MSFRS_AQM, otherwise NULL */
    uint32_t ops_size;    /**< sizeof(struct msfrs_sched_ops) or sizeof(struct msfrs_aqm_ops) */
    uint32_t keeps;       /**< > 0: a scheduler that saves and restores; another number where figures mean something
                               else than before. 0: it starts from zero each time, as every AQM */
};

#ifdef __cplusplus
}
#endif
#endif
