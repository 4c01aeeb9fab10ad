# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# The rules, routes and sysctls of msfrs-iptables. Nothing here changes the system.

want_rules() { # family
    local family=$1 mark=${OPT[fwmark]} http https port to client n_pre=0 n_fwd=0 rest inside guard chain table protocol
    local sources unreachable=icmp-port-unreachable errors=icmp
    [[ $family == 4 ]] || unreachable=icmp6-port-unreachable errors=ipv6-icmp
    mapfile -t sources < <(of_family "$family" "${OPT[source]}")
    (( ${#sources[@]} )) || sources=('')

    # A direct connection to an interception port would make Squid fetch from itself: a loop.
    guard="${OPT[redirect-ports]} ${OPT[tproxy-ports]}"
    echo "mangle :MSFRS_GUARD"
    echo "mangle -A MSFRS_GUARD -p tcp --syn -m multiport --dports ${guard// /,} -m addrtype --dst-type LOCAL -j DROP"
    # Does nothing but to keep the kernel tracking connections once the rules of table nat have gone.
    echo "mangle -A MSFRS_GUARD -m conntrack --ctstate INVALID -j RETURN"
    echo "mangle -I PREROUTING $((++n_pre)) ! -i lo -p tcp -j MSFRS_GUARD"

    read -r http https <<<"${OPT[${OPT[mode]}-ports]}"
    if [[ ${OPT[mode]} == tproxy ]]; then
        table=mangle chain=MSFRS_TPROXY
        # Both sides of Squid use foreign addresses: packets of its sockets must stay on the gateway, ICMP errors about
        # its segments (path MTU discovery) as well. -m socket finds the socket of either.
        echo "mangle :MSFRS_DIVERT"
        for protocol in tcp $errors; do
            echo "mangle -A MSFRS_DIVERT -p $protocol -m socket --transparent -j MARK --set-xmark $mark"
            echo "mangle -I PREROUTING $((++n_pre)) -p $protocol -j MSFRS_DIVERT"
        done
    else
        table=nat chain=MSFRS_REDIRECT n_pre=0
    fi
    echo "$table :$chain"
    [[ $table == nat ]] || echo "$table -A $chain -m mark --mark $mark -j RETURN"
    want_syn "$family" "$table" "$chain" "${sources[@]}"
    want_exemptions "$family" "$table" "$chain"
    for client in "${sources[@]}"; do
        for port in ${OPT[intercept]}; do
            to=$http; [[ $port == 80 ]] || to=$https
            # When the kernel begins to track connections, existing ones look new; only a SYN is redirected, so they
            # continue to their server. Not with TPROXY: after a SYN cookie the listener sees only the ACK.
            rest="--syn -j REDIRECT --to-ports $to"
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
            echo "nat -A MSFRS_OUTPUT -p tcp --dport $port --syn -j REDIRECT --to-ports $to"
        done
        echo "nat -I OUTPUT 1 -p tcp -j MSFRS_OUTPUT"
    fi

    if [[ ${OPT[quic]} == reject ]]; then
        echo "filter :MSFRS_QUIC"
        want_exemptions "$family" filter MSFRS_QUIC
        for client in "${sources[@]}"; do
            echo "filter -A MSFRS_QUIC ${client:+-s $client }-p udp --dport 443 -m u32 --u32 $(quic_begins "$family")" \
                "-j REJECT --reject-with $unreachable"
        done
        for inside in ${OPT[inside]}; do
            echo "filter -I FORWARD $((++n_fwd)) -i $inside -p udp -j MSFRS_QUIC"
        done
    fi
}

# A u32 match of a client's first datagrams, without which no QUIC connection begins: a UDP payload of at least 1200
# bytes (RFC 9000, section 14.1), which begins with a long header. Its first two bits are 11; 10 (RFC 9287) only with
# version 1, since RTP begins so. WireGuard, DTLS, OpenVPN, STUN and TURN have a first bit of 0 (RFC 9443).
quic_begins() { # family
    local udp='0>>22&0x3C@'
    [[ $1 == 4 ]] || udp=''
    printf '%s%d>>16=1208:65535&&%s%d&0xC0FFFFFF=0x80000000,0xC0000000:0xC0FFFFFF\n' \
        "$udp" $(($1 == 4 ? 4 : 44)) "$udp" $(($1 == 4 ? 8 : 48))
}

# msfrs-syn's queue is in table raw, as an accepted packet continues with the next table.
want_syn() { # family, table and chain that intercept, sources
    local mark=${OPT[syn-mark]} client port n=0 inside
    [[ ${OPT[syn-queue]} != none ]] || return 0
    echo "raw :MSFRS_SYN"
    want_exemptions "$1" raw MSFRS_SYN
    for client in "${@:4}"; do
        for port in ${OPT[intercept]}; do
            echo "raw -A MSFRS_SYN ${client:+-s $client }-p tcp --dport $port --syn -j NFQUEUE" \
                "--queue-num ${OPT[syn-queue]} --queue-bypass"
        done
    done
    for inside in ${OPT[inside]}; do echo "raw -I PREROUTING $((++n)) -i $inside -p tcp -j MSFRS_SYN"; done
    # The server refused the probe: it gets the connection itself, with TPROXY all packets of it.
    if [[ $2 == nat ]]; then
        echo "nat -A $3 -m mark --mark $mark -j RETURN"
    else
        echo "mangle -A $3 -m mark --mark $mark -j CONNMARK --set-xmark $mark"
        echo "mangle -A $3 -m connmark --mark $mark -j RETURN"
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

# Sysctls with a wrong value: lines `PATH WANTED`.
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
        { [[ $(<"$file") == 0 || ! -e $file ]]; } 2>/dev/null || echo "$path 0"    # its interface may have gone
    done
}

modules() {
    local names='xt_addrtype xt_conntrack xt_multiport xt_mark'
    case ${OPT[mode]} in
        tproxy) names+=' xt_TPROXY xt_socket' ;;
        redirect) names+=' xt_REDIRECT' ;;
    esac
    [[ ${OPT[syn-queue]} == none ]] || names+=' iptable_raw ip6table_raw xt_NFQUEUE nfnetlink_queue xt_connmark'
    [[ ${OPT[gateway-traffic]} == no ]] || names+=' xt_owner'
    [[ ${OPT[quic]} == allow ]] || names+=' ipt_REJECT ip6t_REJECT xt_u32'
    [[ ${OPT[set-sysctl]} == no ]] || names+=' xt_comment'
    echo "$names"
}
