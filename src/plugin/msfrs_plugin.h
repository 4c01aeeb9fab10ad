/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * \file
 * The plugin ABI of msfrs: everything that a scheduler or an AQM needs, in one C header. docs/design/plugins.md is the
 * guide, docs/design/glossary.md explains the terms.
 *
 * A plugin is a shared object that exports `const struct msfrs_plugin msfrs_plugin`. The plugin decides, the engine
 * executes. The engine owns items, flows and classes, their queues, the counters and all memory named `state` below
 * (it zeroes and frees that memory). A plugin never reads a clock, draws its own random numbers or writes its own log,
 * keeps no global variables, and lets no C++ exception cross a call.
 *
 * Life of an item, as the plugin sees it:
 *
 *     aqm.admit -> sched.enqueued -> sched.pick -> aqm.dequeued -> sched.picked -> sched.charged ... -> sched.done
 *                        |  ^                           |                                  |
 *                        |  |                           +---> sched.removed  (dropped at its head)
 *                        |  +--------------- continuation -------------------------------+   (quantum over)
 *                        +---> sched.removed, aqm.removed                   (client gone, dropped, expired)
 *
 * Cost has one contract. An item carries an estimate per resource. `pick` spends the estimate, and the engine passes
 * only the difference to `charged`: amounts above the estimate while the service runs, and a negative amount at the
 * end if less was used. A packet has an exact estimate and is never charged. A request's estimate is what a turn has
 * usually brought, up to a quantum, and 0 where that is unknown; it is charged as response bytes arrive.
 *
 * Classes may form trees: an interior class has child classes and no flows of its own, and a weight is relative to the
 * children of the same parent. Only a plugin with MSFRS_HIERARCHY is called for interior classes; others see only the
 * leaves.
 *
 * Compatibility: a plugin loads if its `abi_major` equals the host's and its `abi_minor` is not greater. Fields that an
 * older minor does not have count as 0 or NULL, so within a major, fields are only added at the end. In `msfrs_plugin`
 * and the two tables of operations each addition takes a new minor, and their sizes (`size`, `ops_size`) say where they
 * end. The structures that the host makes (`msfrs_host`, `msfrs_class`, `msfrs_flow`, `msfrs_item`, `msfrs_queue_view`)
 * may grow at any time, since a plugin has only pointers to them. The rows of parameters and gauges do not change.
 *
 * A plugin that gives an invalid answer (an item that is not queued, an unknown verdict, a wake-up time that is not in
 * the future, a figure that is not a number) has failed: the host ends it and continues without it.
 *
 *     2.0   unlike 1: msfrs_aqm_ops::dequeued returns a verdict, and is called before sched.picked; time never goes
 *           back
 *     2.1   msfrs_plugin::keeps, and save, restore and resumed of msfrs_sched_ops: the service of classes and flows
 *           so far carries over to another instance
 *     2.2   msfrs_host::elsewhere: items may also wait at other schedulers of the link
 *     2.3   msfrs_host::sharers, msfrs_flow::elsewhere: flows may also be served by them
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
#define MSFRS_ABI_MINOR 3
#define MSFRS_RESOURCES 4  /**< cost dimensions of an item; 0 is always bytes on the link */
#define MSFRS_SYMBOL "msfrs_plugin" /**< the one exported symbol */
#define MSFRS_UNKNOWN (-1) /**< as msfrs_item::remaining: not stated */
#define MSFRS_MOST_KEPT 16 /**< most figures of one owner that `save` may put */

/** Nanoseconds of a monotonic clock of the host. Never negative, never goes back. */
typedef int64_t msfrs_time;

/** What a plugin is. */
enum msfrs_kind { MSFRS_SCHED = 1, MSFRS_AQM = 2 };

/** Needs and abilities of a plugin; or-ed together in msfrs_plugin::flags. */
enum msfrs_flags {
    MSFRS_NEEDS_COST = 1 << 0,     /**< needs exact estimates; refused by hosts that only charge afterwards */
    MSFRS_MULTI_RESOURCE = 1 << 1, /**< uses est[1..]; with one resource it still works */
    MSFRS_DROPS_QUEUED = 1 << 2,   /**< an AQM that may name a queued item as victim */
    MSFRS_MAY_MARK = 1 << 3,       /**< an AQM that may answer MSFRS_MARK */
    MSFRS_HAS_RESERVE = 1 << 4,    /**< a scheduler that answers MSFRS_PICK_FRESH */
    MSFRS_FLOW_ORDER = 1 << 5,     /**< a scheduler that always picks the head of a flow's queue */
    MSFRS_HIERARCHY = 1 << 6,      /**< class_added, class_changed and class_removed also come for interior classes */
    MSFRS_NO_LIMIT = 1 << 7        /**< an AQM that does not limit the queue: when the host's buffer is full, the host
                                        makes room as it does without an AQM */
};

/** Properties of a class; or-ed together in msfrs_class::flags. */
enum msfrs_class_flags {
    MSFRS_INTERIOR = 1 << 0, /**< has child classes and no flows of its own; set before class_added */
    MSFRS_AGGREGATE = 1 << 1 /**< a plugin that separates flows treats the flows of this class as one */
};

/** Properties of an item; or-ed together in msfrs_item::flags. */
enum msfrs_item_flags {
    MSFRS_ECN_CAPABLE = 1 << 0 /**< may be marked instead of dropped: a packet with an ECT codepoint */
};

struct msfrs_flow;
struct msfrs_item;

/**
 * A service class. Plugins write only to the memory behind `state` and `aqm_state`; the rest is read-only (except
 * `service`). The counters of an interior class are the sums over its child classes.
 */
struct msfrs_class {
    const char *name;
    uint32_t index;       /**< from 0, without gaps, constant while the class exists */
    uint32_t flags;       /**< enum msfrs_class_flags */
    struct msfrs_class *parent; /**< an interior class, or NULL */
    double weight;        /**< w_i > 0, relative to the other children of the parent */
    uint32_t users;       /**< UC_i: flows with an item queued or in service */
    uint32_t backlog;     /**< items queued */
    uint32_t fresh;       /**< of these: items without any service yet */
    uint32_t in_service;  /**< items picked and not done */
    int64_t backlog_cost; /**< sum of est[0] of the queued items, bytes */
    double *service;      /**< service counter SC_i, kept by the host, in bytes per weight and user, >= 0. A scheduler
                               with such a counter keeps it here; others do not write it */
    void *state;          /**< the scheduler's, class_size bytes; NULL if it is not called for the class */
    void *aqm_state;      /**< the AQM's, class_size bytes; NULL if it is not called for the class */
};

/** One user of a class (requests) or one flow (packets). */
struct msfrs_flow {
    struct msfrs_class *cls;
    uint64_t key;        /**< hash of the user's or flow's name; two flows may have the same */
    double weight;       /**< > 0, default 1 */
    uint32_t backlog, fresh, in_service; /**< as in msfrs_class */
    int64_t backlog_cost;                /**< as in msfrs_class, bytes */
    struct msfrs_item *head, *tail;      /**< the flow's queue in service order; NULL if it is empty */
    void *state;                         /**< the scheduler's, flow_size bytes */
    void *aqm_state;                     /**< the AQM's, flow_size bytes */
    msfrs_time elsewhere; /**< when another scheduler of the link last served it; 0: never; since 2.3 */
};

/** A request, a quantum of a response, or a packet. */
struct msfrs_item {
    struct msfrs_flow *flow;
    struct msfrs_item *prev, *next; /**< neighbours in the flow's queue */
    uint64_t id;                    /**< order of first arrival, from 1 */
    uint64_t seq;                   /**< order of the latest enqueueing; greater than id for a continuation */
    msfrs_time enqueued;            /**< time of the latest enqueueing */
    int64_t attained;               /**< bytes in resource 0 charged so far, over all quanta, >= 0 */
    int64_t est[MSFRS_RESOURCES];   /**< estimated cost of the next service, >= 0: est[0] in bytes on the link; est[1..]
                                         in 10^-4 us on the resources that come before the link, in their order */
    uint32_t flags;                 /**< enum msfrs_item_flags */
    uint32_t engine;                /**< the engine's; opaque */
    void *state;                    /**< the scheduler's, item_size bytes */
    void *aqm_state;                /**< the AQM's, item_size bytes */
    void *host;                     /**< the host's; opaque */
    int64_t remaining;              /**< estimated bytes in resource 0 of all further service of the item, >= 0, or
                                         MSFRS_UNKNOWN, as for every packet. Servers state it, so it may be wrong. It
                                         changes only with `expected` */
};

/** What the host provides for a plugin; valid from init to fini. */
struct msfrs_host {
    void *ctx;                                                 /**< first argument of the two calls below */
    uint64_t (*random)(void *ctx);                             /**< 64 uniform random bits from the host's seed; may be
                                                                    called any number of times, also in advance for a
                                                                    later decision */
    void (*log)(void *ctx, int level, const char *message);    /**< level 0 important, 1 info, 2 debug */
    uint32_t resources;                                        /**< elements of est[] in use, 1..MSFRS_RESOURCES */
    double *virtual_time; /**< kept by the host; unit as msfrs_class::service */
    uint32_t exact;       /**< 1: estimates are exact (packets); 0: an item's cost is known afterwards (requests) */
    uint32_t limit;       /**< most items that the host queues, 0: no limit; at the limit no AQM is asked */
    const uint64_t *elsewhere; /**< backlog, in items, at other schedulers of the link; 0: none; since 2.2 */
    const uint64_t *sharers; /**< other schedulers that serve the same users by turns; 0: none; since 2.3 */
};

enum msfrs_param_type { MSFRS_INT = 1, MSFRS_REAL, MSFRS_BOOL, MSFRS_CHOICE };

/** One row of a parameter table. The loader refuses a value outside min..max, or one that is not among choices. */
struct msfrs_param {
    const char *name;
    enum msfrs_param_type type;
    const char *unit;      /**< "bytes", "ns", "%", ... or "" */
    const char *def;       /**< default, as a user would write it; for a number also 0, if 0 is below min */
    double min, max;       /**< inclusive; for INT and REAL. If a REAL's max is infinite, `inf` is a value */
    const char *choices;   /**< for CHOICE: "one|two|three"; the value is the index */
    const char *help;      /**< one sentence */
};

/** A parsed parameter, in the order of the table. BOOL and CHOICE use `i`. */
union msfrs_value { int64_t i; double d; };

/** One row of a gauge table: live figures for reports. */
struct msfrs_gauge { const char *name; const char *unit; const char *help; };

/** Which items `pick` may choose. */
enum msfrs_pick {
    MSFRS_PICK_ANY = 0,  /**< any queued item */
    MSFRS_PICK_FRESH = 1 /**< only an item without service yet, of a class that is not ahead of its share;
                              asked only of plugins with MSFRS_HAS_RESERVE */
};

/** Why an item leaves a queue without being served. */
enum msfrs_reason {
    MSFRS_GONE = 1,    /**< its client is gone */
    MSFRS_DROPPED = 2, /**< the AQM drops it (as victim of MSFRS_DROP_BOTH, or in `dequeued`), or the buffer is full */
    MSFRS_EXPIRED = 3, /**< it has waited too long */
    MSFRS_SHUTDOWN = 4 /**< the host shuts down; `now` is that of the latest call */
};

/** The owner of figures: one of these or, if all are NULL, the instance itself. */
struct msfrs_owner {
    struct msfrs_class *cls;
    struct msfrs_flow *flow;
    struct msfrs_item *item;
};

/** What `save` gets, for the call only. */
struct msfrs_move {
    void *ctx;
    /** Takes the figures that an owner continues with: 1..MSFRS_MOST_KEPT finite numbers, at most once per owner. */
    void (*put)(void *ctx, const struct msfrs_owner *whose, const double *figures, uint32_t n);
    struct msfrs_class *const *classes; uint32_t n_classes; /**< those that were added to the plugin */
    struct msfrs_flow *const *flows; uint32_t n_flows;      /**< idle ones included */
    struct msfrs_item *const *served; uint32_t n_served;    /**< in service */
};

/**
 * A scheduler. `enqueued`, `pick`, `picked` and `removed` are required. Any other may be NULL: then the default in its
 * comment applies. All calls to an instance come from one thread at a time. No call may block or allocate without
 * bound.
 *
 * An instance and its AQM end in this order:
 * 1. for every item that is still queued, `removed` of the scheduler, then of the AQM (MSFRS_SHUTDOWN; no item is in
 *    service any more, since the host has ended those);
 * 2. for each class, the last added first: `flow_removed` of both for each of its flows, then `class_removed` of both;
 * 3. `fini` of the scheduler, then of the AQM. Then the engine frees all states.
 * A class or flow that was never added, or whose addition failed, is not removed; an instance whose `init` failed gets
 * no `fini`.
 */
struct msfrs_sched_ops {
    /** Takes the parameters, in the order of the table. Returns 0, or -1 with a sentence in err, of at most errlen
     *  bytes including its 0, that names the value and what is allowed. (Default: nothing to set up.) */
    int (*init)(void *inst, const struct msfrs_host *host, const union msfrs_value *params, char *err, size_t errlen);
    /** Frees what init and later calls have allocated. (Default: nothing.) */
    void (*fini)(void *inst);

    /** A class or flow is added (its state is zeroed) or removed (it is empty, with nothing in service). Additions
     *  return 0, or -1 if out of memory. The weight of a class may change while it has a backlog. (Default for all
     *  five: nothing; zeroed state is ready.) */
    int (*class_added)(void *inst, struct msfrs_class *c);
    void (*class_changed)(void *inst, struct msfrs_class *c, double old_weight);
    void (*class_removed)(void *inst, struct msfrs_class *c);
    int (*flow_added)(void *inst, struct msfrs_flow *f);
    void (*flow_removed)(void *inst, struct msfrs_flow *f);
    /** Whether the engine may free an idle flow early: its state has no effect on later decisions. (Default: yes.) */
    int (*flow_forgettable)(void *inst, const struct msfrs_flow *f);

    /** Order within one flow's queue: whether a, arriving now, goes before the queued b. Must be a strict weak order.
     *  (Default: never, first come, first served.) */
    int (*before)(void *inst, const struct msfrs_item *a, const struct msfrs_item *b);

    /** The item was added to its flow's queue; all counters already include it. Not called with an empty flow. */
    void (*enqueued)(void *inst, struct msfrs_item *i, msfrs_time now);
    /** Chooses the next item; it must be queued, and with PICK_FRESH without service. The engine removes it from its
     *  queue, asks the AQM, and then calls `picked`, or `removed` and `pick` again if the AQM drops it.
     *  NULL: no item is suitable now; then with PICK_ANY and a backlog *wake_at must be set to a time > now. */
    struct msfrs_item *(*pick)(void *inst, msfrs_time now, enum msfrs_pick mode, msfrs_time *wake_at);
    /** The item was removed from its queue and is in service; spend its estimate here. */
    void (*picked)(void *inst, struct msfrs_item *i, msfrs_time now);
    /** The item left the queue without service, or the AQM dropped it after `pick`; it is no longer in the queue. */
    void (*removed)(void *inst, struct msfrs_item *i, msfrs_time now, enum msfrs_reason why);
    /** `amount` of a resource was used beyond the estimate, in the unit of est[resource]; it may be negative at the
     *  end of an item. item is NULL for traffic of the flow that no item of this engine caused; where several engines
     *  share a link, that may be negative, too. (Default: ignored.) */
    void (*charged)(void *inst, struct msfrs_flow *f, struct msfrs_item *i, uint32_t resource, int64_t amount,
                    msfrs_time now);
    /** The item's service ended; not called when it comes back as a continuation. (Default: nothing.) */
    void (*done)(void *inst, struct msfrs_item *i, msfrs_time now);

    /** Fills out[] with finite numbers, in the order of the gauge table, for class c, or for the whole instance if c
     *  is NULL. (Default: all are 0.) */
    void (*gauges)(void *inst, const struct msfrs_class *c, double *out);

    /** i->remaining has changed from `old` (bytes, or MSFRS_UNKNOWN) while the item is queued or in service. If it is
     *  queued, its position in the flow's queue already follows `before`. (Default: nothing.) */
    void (*expected)(void *inst, struct msfrs_item *i, int64_t old, msfrs_time now);

    /* With msfrs_plugin::keeps the next three are all present, otherwise none is. A host with a new configuration may
     * make a new engine and move all work there. If the scheduler is the same before and after (`name`, `keeps`;
     * parameters may differ), the calls are, in this order:
     * 1. `save` of the old instance;
     * 2. of the new one, which has its classes, `restore` for every owner that continues, except items, in the order in
     *    which `save` put them;
     * 3. `resumed` for every item that continues in its class and flow, in the order of seq; `restore` for items;
     * 4. `enqueued`, and `picked` if it is in service, for items that move to another class or flow, likewise.
     * Classes and flows continue where there are ones of the same names. The old instance ends like any other. Between
     * different schedulers, and without these operations, nothing is handed over: all items come by `enqueued` and
     * `picked`, in the order of seq, to an instance that starts from zero. */

    /** Puts by move->put whatever must not be lost: counters, debts, credits, positions in a round. Changes nothing.
     *  Times are relative to now. (Default: nothing is kept.) */
    void (*save)(void *inst, const struct msfrs_move *move, msfrs_time now);
    /** An owner continues with what another instance has saved of it. A class or flow has no item yet, and may get
     *  none. Returns 0, or -1 if `save` does not put such figures: then the plugin has failed. */
    int (*restore)(void *inst, const struct msfrs_owner *whose, const double *figures, uint32_t n, msfrs_time now);
    /** An item of the saved instance continues in its position: in its flow's queue or, if `served`, in service; all
     *  counters include it. The restored figures count it already: nothing wakes, and nothing is spent. */
    void (*resumed)(void *inst, struct msfrs_item *i, int served, msfrs_time now);
};

/** The queue as an AQM may see it: read-only. */
struct msfrs_queue_view {
    uint32_t length;      /**< items queued, the arriving one not counted */
    int64_t bytes;        /**< sum of est[0] of these items */
    msfrs_time idle_since;/**< when the queue became empty; 0 if it is not empty, or never held an item */
    const void *ctx;      /**< first argument of nth */
    /** The n-th queued item, 0..length-1, in no particular order, for CHOKe's draw; NULL if n is out of range. Items in
     *  service (being transmitted) are not among them. Only for a plugin with MSFRS_DROPS_QUEUED: for others the host
     *  may return NULL. */
    struct msfrs_item *(*nth)(const void *ctx, uint32_t n);
};

/** The answer of an AQM. */
enum msfrs_verdict { MSFRS_ACCEPT = 0, MSFRS_DROP = 1, MSFRS_MARK = 2, MSFRS_DROP_BOTH = 3 };

/**
 * An active queue manager: decides whether an arriving item may queue, and whether a picked item may go. Each admitted
 * item comes once more: to `dequeued` when it is first picked, or to `removed`. Continuations, and items that the host
 * queues without asking, never come. An item that `admit` or `dequeued` has dropped does not come again.
 *
 * `admit` is required; any other may be NULL. Operations with the names of msfrs_sched_ops have the same meaning and
 * default, and the same order at the end. An AQM without `dequeued` and `removed` does not learn when its items leave.
 */
struct msfrs_aqm_ops {
    int (*init)(void *inst, const struct msfrs_host *host, const union msfrs_value *params, char *err, size_t errlen);
    void (*fini)(void *inst);
    int (*class_added)(void *inst, struct msfrs_class *c);
    void (*class_changed)(void *inst, struct msfrs_class *c, double old_weight);
    void (*class_removed)(void *inst, struct msfrs_class *c);
    int (*flow_added)(void *inst, struct msfrs_flow *f);
    void (*flow_removed)(void *inst, struct msfrs_flow *f);
    /** An item arrives; q is the queue before it.
     *  MARK: the item queues and is marked (needs MSFRS_MAY_MARK); an item that is not MSFRS_ECN_CAPABLE is dropped
     *  instead.
     *  DROP_BOTH: drops the arriving item and *victim, a queued one (needs MSFRS_DROPS_QUEUED). After admit has
     *  returned, `removed` of the scheduler and of the AQM are called for the victim, with MSFRS_DROPPED. If the host
     *  cannot lose the victim, it stays and only the arriving item is dropped. *victim is NULL before the call and may
     *  stay so. Not called while msfrs_host::limit items are queued: the host then drops the item without asking. */
    enum msfrs_verdict (*admit)(void *inst, struct msfrs_item *i, const struct msfrs_queue_view *q, msfrs_time now,
                                struct msfrs_item **victim);
    /** The item was picked and removed from its queue: q and the counters of flow and class do not include it. It has
     *  waited since i->enqueued. ACCEPT: it goes. MARK, as in admit: it goes marked, or is dropped if it is not
     *  ECN-capable. DROP: it is dropped, and the scheduler is asked for another; a request is then refused like a
     *  refused arrival (503). DROP_BOTH is not allowed. If the host took the item out of turn, a drop has no effect:
     *  it goes. (Default: ACCEPT.) */
    enum msfrs_verdict (*dequeued)(void *inst, struct msfrs_item *i, const struct msfrs_queue_view *q, msfrs_time now);
    /** An admitted item left its queue without being picked; q is the queue without it. */
    void (*removed)(void *inst, struct msfrs_item *i, const struct msfrs_queue_view *q, msfrs_time now,
                    enum msfrs_reason why);
    void (*gauges)(void *inst, const struct msfrs_class *c, double *out);
};

/** The one symbol that a plugin exports. The loader refuses it if magic, abi_major, kind or a required operation is
 *  wrong. */
struct msfrs_plugin {
    uint32_t magic;       /**< MSFRS_PLUGIN_MAGIC */
    uint16_t abi_major;   /**< MSFRS_ABI_MAJOR of the header it was built with */
    uint16_t abi_minor;   /**< MSFRS_ABI_MINOR of that header */
    uint32_t size;        /**< sizeof(struct msfrs_plugin) */
    uint32_t kind;        /**< enum msfrs_kind */
    uint32_t flags;       /**< enum msfrs_flags */
    const char *name;     /**< as in the configuration and the file's name: lower case letters, digits, '-' */
    const char *summary;  /**< one sentence */
    const char *paper;    /**< source of the algorithm */
    size_t inst_size, class_size, flow_size, item_size; /**< bytes of zeroed state; 0: none */
    const struct msfrs_param *params;  uint32_t n_params; /**< table of parameters and its rows */
    const struct msfrs_gauge *gauges;  uint32_t n_gauges; /**< table of gauges and its rows */
    const struct msfrs_sched_ops *sched; /**< for MSFRS_SCHED, otherwise NULL */
    const struct msfrs_aqm_ops *aqm;     /**< for MSFRS_AQM, otherwise NULL */
    uint32_t ops_size;    /**< sizeof(struct msfrs_sched_ops) or sizeof(struct msfrs_aqm_ops) */
    uint32_t keeps;       /**< > 0: a scheduler that saves and restores; change it when figures change their meaning.
                               0: it starts from zero each time, like every AQM */
};

#ifdef __cplusplus
}
#endif
#endif
