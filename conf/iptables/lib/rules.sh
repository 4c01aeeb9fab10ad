# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# What msfrs-iptables wants and what is there: netfilter rules, routes, sysctls. Nothing here changes anything.

# Netfilter state is held as lines `TABLE :CHAIN`, `TABLE -A CHAIN RULE` (our chains) and `TABLE -I CHAIN N RULE`
# (the jumps to them from other chains).

want_rules() { # family
    local family=$1 mark=${OPT[fwmark]} http https port to client n_pre=0 n_fwd=0 rest inside guard chain table word
    local sources unreachable=icmp-port-unreachable
    [[ $family == 4 ]] || unreachable=icmp6-port-unreachable
    mapfile -t sources < <(of_family "$family" "${OPT[source]}")
    (( ${#sources[@]} )) || sources=('')

    # Whoever connects to an interception port directly makes Squid fetch from itself: a loop.
    guard="${OPT[redirect-ports]} ${OPT[tproxy-ports]}"
    echo "mangle :MSFRS_GUARD"
    echo "mangle -A MSFRS_GUARD -p tcp --syn -m multiport --dports ${guard// /,} -m addrtype --dst-type LOCAL -j DROP"
    echo "mangle -I PREROUTING $((++n_pre)) ! -i lo -p tcp -j MSFRS_GUARD"

    read -r http https <<<"${OPT[${OPT[mode]}-ports]}"
    if [[ ${OPT[mode]} == tproxy ]]; then
        table=mangle chain=MSFRS_TPROXY
        # Both sides of Squid use foreign addresses: what belongs to its sockets must stay on the gateway.
        echo "mangle :MSFRS_DIVERT"
        echo "mangle -A MSFRS_DIVERT -p tcp -m socket --transparent -j MARK --set-xmark $mark"
        echo "mangle -I PREROUTING $((++n_pre)) -p tcp -j MSFRS_DIVERT"
    else
        table=nat chain=MSFRS_REDIRECT n_pre=0
    fi
    echo "$table :$chain"
    [[ $table == nat ]] || echo "$table -A $chain -m mark --mark $mark -j RETURN"
    want_exemptions "$family" "$table" "$chain"
    for client in "${sources[@]}"; do
        for port in ${OPT[intercept]}; do
            to=$http; [[ $port == 80 ]] || to=$https
            rest="-j REDIRECT --to-ports $to"
            [[ $table == nat ]] || rest="-j TPROXY --on-port $to --tproxy-mark $mark"
            echo "$table -A $chain ${client:+-s $client }-p tcp --dport $port $rest"
        done
    done
    for inside in ${OPT[inside]}; do
        echo "$table -I PREROUTING $((++n_pre)) -i $inside -p tcp -j $chain"
    done

    if [[ ${OPT[gateway-traffic]} == yes ]]; then
        echo "nat :MSFRS_OUTPUT"
        echo "nat -A MSFRS_OUTPUT -m owner --uid-owner ${OPT[squid-user]} -j RETURN"
        want_exemptions "$family" nat MSFRS_OUTPUT
        for port in ${OPT[intercept]}; do
            to=$http; [[ $port == 80 ]] || to=$https
            echo "nat -A MSFRS_OUTPUT -p tcp --dport $port -j REDIRECT --to-ports $to"
        done
        echo "nat -I OUTPUT 1 -p tcp -j MSFRS_OUTPUT"
    fi

    if [[ ${OPT[quic]} == reject ]]; then
        echo "filter :MSFRS_QUIC"
        want_exemptions "$family" filter MSFRS_QUIC
        for client in "${sources[@]}"; do
            echo "filter -A MSFRS_QUIC ${client:+-s $client }-p udp --dport 443 -j REJECT --reject-with $unreachable"
        done
        for inside in ${OPT[inside]}; do
            echo "filter -I FORWARD $((++n_fwd)) -i $inside -p udp -j MSFRS_QUIC"
        done
    fi
}

want_exemptions() { # family table chain
    local word
    [[ $2 == filter ]] || echo "$2 -A $3 -m addrtype --dst-type LOCAL -j RETURN"
    for word in $(of_family "$1" "${OPT[exempt-destination]}"); do echo "$2 -A $3 -d $word -j RETURN"; done
    for word in $(of_family "$1" "${OPT[exempt-client]}"); do echo "$2 -A $3 -s $word -j RETURN"; done
}

# Routing state: lines `rule MARK TABLE` and `route TABLE`.
want_routing() {
    [[ ${OPT[mode]} == tproxy ]] || return 0
    printf 'route %s\nrule %s %s\n' "${OPT[table]}" "${OPT[fwmark]}" "${OPT[table]}"
}

# Sysctls that do not stand as they must: lines `PATH WANTED`.
missing_sysctls() { # family
    local file path
    if [[ $1 == 6 ]]; then
        [[ $(</proc/sys/net/ipv6/conf/all/forwarding) == 1 ]] || echo net/ipv6/conf/all/forwarding 1
        return
    fi
    [[ $(</proc/sys/net/ipv4/ip_forward) == 1 ]] || echo net/ipv4/ip_forward 1
    [[ ${OPT[mode]} == tproxy ]] || return 0
    # With it the mark counts when the source address is validated, our route makes every source local, and the packet
    # is dropped as a martian. wg-quick sets it. rp_filter alone does no harm: the mark is not looked at.
    for file in /proc/sys/net/ipv4/conf/*/src_valid_mark; do
        path=${file#/proc/sys/}
        [[ $path =~ ^[A-Za-z0-9_./@:-]+$ ]] || continue
        [[ $(<"$file") == 0 ]] || echo "$path 0"
    done
}

# A place is a family and a kind of iptables: `4`, `6`, and `4-legacy` or `4-nft` for the one that `iptables` is not.

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

# The places to look at; those of the other kind only where there is something of ours.
places() {
    local other=-legacy family
    main_place 4
    [[ ! -e /proc/sys/net/ipv6 ]] || main_place 6
    [[ $("$(tool "$(main_place 4)")" -V) != *legacy* ]] || other=-nft
    for family in 4 6; do
        # Looking at a legacy table that does not exist would make it.
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
    ip -N "-$1" route show table all proto "$PROTO" 2>/dev/null |
        sed -nE 's/^(local|2) default dev lo table ([0-9]+) .*/route \2/p'
    ip -N "-$1" rule list |
        sed -nE "s/^$PREF:\s+from all fwmark ([^ ]+) lookup ([0-9]+) proto $PROTO\s*\$/rule \1 \2/p" |
        sed -E 's/^(rule [^/ ]+) /\1\/0xffffffff /'
}

# What `up` changed beside rules and routes, oldest first: `PATH=OLD VALUE` of sysctls, `table=NAME` of new tables.
records() { # rules
    sed -nE 's/^mangle -A MSFRS_STATE -m comment --comment "?([^" ]+)"?.*/\1/p' <<<"$1"
}

# iptables itself says whether a rule is there: how it prints one differs between versions and kinds.
compare_rules() { # place, rules now, rules wanted
    local table what chain rest ours ip="IPv$1"
    while read -r table what chain rest; do
        [[ $what != -I ]] || rest=${rest#* }
        ours=$chain
        [[ $what != -I ]] || ours=${rest##* }
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
        [[ $what != -I ]] || ours=${rest##* }
        case $what in
            :*) grep -qxF "$table $what" <<<"$2" || echo "$table chain ${what#:}" ;;
            *) ! grep -qxF "$table :$ours" <<<"$2" || echo "$table rule in $chain" ;;
        esac
    done < <(sed '/^$/d' <<<"$1") | grep -v MSFRS_STATE | sort
}

compare_routing() { # family, routing now, routing wanted
    lines_without "$3" "$2" | sed "s/^/missing: IPv$1 /"
    lines_without "$2" "$3" | sed "s/^/left over: IPv$1 /"
}

lines_without() { # lines, lines to leave out
    grep -vxF -f <(printf '%s\n' "$2") <<<"$1" | sed '/^$/d'
}
