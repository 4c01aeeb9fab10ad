# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Reads the present netfilter rules and routes, and compares them with the wanted ones. Nothing here changes the system.

# Netfilter state is held as lines `TABLE :CHAIN`, `TABLE -A CHAIN RULE` (our chains) and `TABLE -I CHAIN N RULE`
# (the jumps to them from other chains); wanted jumps may be `TABLE -A CHAIN RULE`, after the present rules.

# A place is a family and a kind of iptables: `4`, `6`, and `4-legacy` or `4-nft` for the kind that the command
# `iptables` is not.

tool() { # place [save|restore]
    local base=iptables
    [[ $1 == 4* ]] || base=ip6tables
    echo "$base${1#?}${2:+-$2}"
}

main_place() { # family
    local kind=''
    [[ ${OPT[backend]} == auto ]] || kind=-${OPT[backend]}
    echo "$1$kind"
}

# The places to examine; those of the other kind only if they have rules of ours.
places() {
    local other=-legacy family
    main_place 4
    [[ ! -e /proc/sys/net/ipv6 ]] || main_place 6
    [[ $("$(tool "$(main_place 4)")" -V) != *legacy* ]] || other=-nft
    for family in 4 6; do
        # Reading a legacy table that does not exist would create it.
        [[ $other == -nft ]] || grep -qs . "/proc/net/ip${family/4/}_tables_names" || continue
        command -v "$(tool "$family$other" save)" >/dev/null || continue
        [[ -z $(rules_now "$("$(tool "$family$other" save)" 2>/dev/null)") ]] || echo "$family$other"
    done
}

rules_now() { # text of iptables-save
    awk -v own="$OWN" '
        /^\*/ { table = substr($1, 2) }
        /^:/ && substr($1, 2) ~ own { print table, ":" substr($1, 2) }
        /^-A / {
            n[table, $2]++
            if ($2 ~ own) print table, $0
            else if ($(NF - 1) == "-j" && $NF ~ own) print table, "-I", $2, n[table, $2], substr($0, length($2) + 5)
        }' <<<"$1"
}

routing_now() { # family
    [[ -n $PROTO ]] || return 0
    ip -N "-$1" route show table all proto "$PROTO" 2>/dev/null |
        sed -nE 's/^(local|2) default dev lo table ([0-9]+) .*/route \2/p'
    ip -N "-$1" rule list |
        sed -nE "s/^$PREF:\s+from all fwmark ([^ ]+) lookup ([0-9]+) proto $PROTO\s*\$/rule \1 \2/p" |
        sed -E 's/^(rule [^/ ]+) /\1\/0xffffffff /'
}

# Changes of `up` beside rules and routes, oldest first: `PATH=OLD VALUE` of sysctls, `table=NAME` of new tables,
# `chain=TABLE/CHAIN` of new base chains in tables of others.
records() { # rules
    sed -nE "s/^mangle -A $STATE -m comment --comment \"?([^\" ]+)\"?.*/\1/p" <<<"$1"
}

# iptables -C checks whether a rule exists: its printed form differs between versions and kinds.
compare_rules() { # place, rules now, rules wanted
    local table what chain rest ours ip="IPv$1"
    while read -r table what chain rest; do
        [[ $what != -I ]] || rest=${rest#* }
        ours=$chain
        [[ $chain =~ $OWN ]] || ours=${rest##* }
        if [[ $what == :* ]]; then
            grep -qxF "$table $what" <<<"$2" || echo "missing: $ip $table chain ${what#:}"
        elif grep -qxF "$table :$ours" <<<"$2"; then
            # shellcheck disable=SC2086  # words that were validated one by one
            "$(tool "$1")" -w 10 -t "$table" -C "$chain" $rest 2>/dev/null ||
                echo "missing: $ip $table rule: $chain $rest"
        fi
    done < <(sed '/^$/d' <<<"$3")
    comm -23 <(rule_places "$2" "$3") <(rule_places "$3" "$3") | sed "s/^/left over: $ip /"
}

# One line for each rule; for a whole chain, if it is not among those wanted. Sorted.
rule_places() { # rules, rules wanted
    local table what chain rest ours
    while read -r table what chain rest; do
        ours=$chain
        [[ $chain =~ $OWN ]] || ours=${rest##* }
        case $what in
            :*) grep -qxF "$table $what" <<<"$2" || echo "$table chain ${what#:}" ;;
            *) ! grep -qxF "$table :$ours" <<<"$2" || echo "$table rule in $chain" ;;
        esac
    done < <(sed '/^$/d' <<<"$1") | grep -v "$STATE" | sort
}

compare_routing() { # family, routing now, routing wanted
    lines_without "$3" "$2" | sed "s/^/missing: IPv$1 /"
    lines_without "$2" "$3" | sed "s/^/left over: IPv$1 /"
}

lines_without() { # lines, lines to leave out
    grep -vxF -f <(printf '%s\n' "$2") <<<"$1" | sed '/^$/d'
}
