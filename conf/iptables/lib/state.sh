# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Changes the system from one state to another, all or nothing.

# The input of iptables-restore that changes one set of rules into another, one transaction for each table.
transition() { # rules now, rules wanted
    local table now want
    for table in "${TABLES[@]}"; do
        now=$(sed -n "s/^$table //p" <<<"$1") want=$(sed -n "s/^$table //p" <<<"$2")
        [[ $now != "$want" ]] || continue
        echo "*$table"
        sed -nE 's/^-I ([^ ]+) [0-9]+ /-D \1 /p' <<<"$now"
        printf '%s\n' "$now" "$want" | sed -n 's/^:.*/& - [0:0]/p' | sort -u
        sed -n '/^-[AI]/p' <<<"$want"
        comm -23 <(grep '^:' <<<"$now" | sort) <(grep '^:' <<<"$want" | sort) | sed 's/^:/-X /'
        echo COMMIT
    done
}

restore_rules() { # place, rules now, rules wanted
    local input said line
    input=$(transition "$2" "$3")
    [[ -n $input ]] || return 0
    said=$("$(tool "$1" restore)" -w 10 --noflush <<<"$input" 2>&1) && return
    printf '%s: %s refused the IPv%s rules: %s\n' "$PROG" "$(tool "$1" restore)" "${1::1}" "$said" >&2
    [[ $said =~ line:?\ ([0-9]+) ]] && line=$(sed -n "${BASH_REMATCH[1]}p" <<<"$input") && printf '  %s\n' "$line" >&2
    printf '  If the kernel lacks a module for it: modprobe -a %s\n' "$(modules)" >&2
    return 1
}

routing() { # family add|del; lines of routing state on stdin
    local what first second said
    while read -r what first second; do
        case $what in
            route) said=$(ip "-$1" route "$2" local default dev lo table "$first" proto "$PROTO" 2>&1) ;;
            rule) said=$(ip "-$1" rule "$2" pref "$PREF" fwmark "$first" lookup "$second" protocol "$PROTO" 2>&1) ;;
        esac || { printf '%s: ip refused to %s the IPv%s %s: %s\n' "$PROG" "$2" "$1" "$what" "$said" >&2; return 1; }
    done
}

set_sysctl() { # path value
    { [[ $(<"/proc/sys/$1") == "$2" ]] || echo "$2" >"/proc/sys/$1"; } 2>/dev/null && return
    [[ -e /proc/sys/$1 ]] || return 0       # an interface that went away meanwhile
    printf '%s: cannot set %s to %s\n' "$PROG" "${1//\//.}" "$2" >&2
    return 1
}

undo_records() { # place, lines of `records`
    local name value failed=0
    while IFS='=' read -r name value; do
        case $name in
            net/*) set_sysctl "$name" "$value" || failed=1 ;;
            table) drop_table "$1" "$value" ;;
            chain) drop_chain "$1" "${value%/*}" "${value#*/}" ;;
        esac
    done <<<"$2"
    return $failed
}

# Removes a table that `up` created and that is unused now. Legacy iptables cannot remove one, and nft's needs the
# program nft for it; an empty table that stays has no effect.
drop_table() { # place table
    local text
    with_nft "$1" || return 0
    text=$("$(tool "$1" save)" -t "$2" 2>/dev/null | grep -v '^#')
    [[ $text == "*$2"* ]] && ! grep -qvE '^(\*|COMMIT$|:[A-Z]+ ACCEPT )' <<<"$text" || return 0
    nft delete table "$(nft_family "$1")" "$2" 2>/dev/null
}

nft_family() { if [[ $1 == 4* ]]; then echo ip; else echo ip6; fi; } # place

# Whether this kind of iptables is nft's, and the program nft is there.
with_nft() { command -v nft >/dev/null && [[ $("$(tool "$1")" -V) == *nf_tables* ]]; } # place

# Removes a base chain that `up` created in a table of others, if it is as new. nft refuses one that has rules.
drop_chain() { # place table chain
    local family
    family=$(nft_family "$1")
    with_nft "$1" && [[ $(nft list chain "$family" "$2" "$3" 2>/dev/null) == *'policy accept;'* ]] || return 0
    nft delete chain "$family" "$2" "$3" 2>/dev/null || return 0
}

declare -A NOW=() WANT=() TABLES_NOW=() ROUTES_NOW=() ROUTES_WANT=() NEW_RECORDS=()
PLACES=() CHANGED=()

read_state() {
    local place text
    mapfile -t PLACES < <(places)
    for place in "${PLACES[@]}"; do
        text=$("$(tool "$place" save)" 2>&1) || die "$E_REFUSED" "cannot read the rules: $(tool "$place" save): $text"
        NOW[$place]=$(rules_now "$text") TABLES_NOW[$place]=$(tables_of_others "$text")
        WANT[$place]='' NEW_RECORDS[$place]=''
        ROUTES_NOW[${place::1}]=$(routing_now "${place::1}")
        ROUTES_WANT[${place::1}]=''
    done
}

# Changes NOW into WANT, all or nothing. Routes are added before the rules that need them, and removed after them.
replace_state() {
    local place family
    trap 'roll_back interrupted' INT TERM HUP
    for family in "${!ROUTES_NOW[@]}"; do
        routing "$family" add < <(lines_without "${ROUTES_WANT[$family]}" "${ROUTES_NOW[$family]}") || roll_back failed
    done
    for place in "${PLACES[@]}"; do
        CHANGED=("$place" "${CHANGED[@]}")
        restore_rules "$place" "${NOW[$place]}" "${WANT[$place]}" || roll_back failed
    done
    for family in "${!ROUTES_NOW[@]}"; do
        routing "$family" del < <(lines_without "${ROUTES_NOW[$family]}" "${ROUTES_WANT[$family]}") || roll_back failed
    done
}

roll_back() { # why; does not return
    local place family now failed=0
    trap '' INT TERM HUP
    for place in "${CHANGED[@]}"; do
        now=$(rules_now "$("$(tool "$place" save)" 2>/dev/null)")
        restore_rules "$place" "$now" "${NOW[$place]}" || failed=1
        undo_records "$place" "${NEW_RECORDS[$place]}" || failed=1
    done
    for family in "${!ROUTES_NOW[@]}"; do
        now=$(routing_now "$family")
        routing "$family" add < <(lines_without "${ROUTES_NOW[$family]}" "$now") || failed=1
        routing "$family" del < <(lines_without "$now" "${ROUTES_NOW[$family]}") || failed=1
    done
    (( failed == 0 )) || die "$E_FAILED" "$1; not everything could be put back: see above, then '$PROG down'"
    die "$E_FAILED" "$1; everything is again as it was before"
}

# The values to save before `path` is set: its own, and those of the sysctls that the kernel changes along with it.
old_values() { # path
    local file dir=${1%/*}
    printf '%s=%s\n' "$1" "$(<"/proc/sys/$1")"
    case $1 in
        net/ipv4/ip_forward)
            dir=net/ipv4/conf
            echo "$dir/all/accept_redirects=$(<"/proc/sys/$dir/all/accept_redirects")" ;;
        net/ipv6/conf/all/forwarding) dir=net/ipv6/conf ;;
        *) return ;;
    esac
    for file in /proc/sys/"$dir"/*/forwarding; do
        { [[ $file =~ ^[A-Za-z0-9_./@:-]+$ && $(<"$file") == 1 ]]; } 2>/dev/null && echo "${file#/proc/sys/}=1"
    done
}

# Tables that neither script has made. One that the other has made is ours, too: its `down` leaves it while we use it,
# and then ours is the last.
tables_of_others() { # text of iptables-save
    local made='s/^-A MSFRS_(EDGE_)?STATE .*--comment "?table=([a-z]+)"?$/\2/p'
    sed -n 's/^\*//p' <<<"$1" | grep -vxF -f <(grep -v "^-A $STATE " <<<"$1" | sed -nE "$made"; echo) || true
}

# Fills WANT and ROUTES_WANT for `up`: rules, and the records that `down` needs.
want_all() {
    local place family old new
    for family in $(families); do
        place=$(main_place "$family")
        WANT[$place]=$(want_rules "$family")
        ROUTES_WANT[$family]=$(want_routing)
        old=$(old_records "$family" "$place")
        new=$(new_tables "${WANT[$place]}" "${TABLES_NOW[$place]}" "$old"; new_chains "$place" "$old"
            new_sysctls "$family" "$old")
        [[ -n $old$new ]] || continue
        NEW_RECORDS[$place]=$new
        WANT[$place]+=$'\n'"mangle :$STATE"$'\n'$(printf '%s\n' "$old" "$new" |
            sed -n "s/..*/mangle -A $STATE -m comment --comment &/p")
    done
}

old_records() { # family, place; sysctls are the system's, tables belong to one kind of iptables
    local place
    for place in "${PLACES[@]}"; do
        case $place in
            "$2") records "${NOW[$place]}" ;;
            "$1"*) records "${NOW[$place]}" | grep '^net/' ;;
        esac
    done
}

new_tables() { # rules wanted, tables of others, old records
    local name
    for name in "${TABLES[@]}"; do
        ! grep -q "^$name " <<<"$1" || grep -qx "$name" <<<"$2" || grep -qx "table=$name" <<<"$3" || echo "table=$name"
    done
}

# Base chains that the rules need and that a table of others does not have: iptables-nft makes them.
new_chains() { # place, old records
    local table chain family
    family=$(nft_family "$1")
    with_nft "$1" || return 0
    while read -r table chain; do
        ! grep -qx "table=$table" <<<"$2" && grep -qx "$table" <<<"${TABLES_NOW[$1]}" || continue
        nft list chain "$family" "$table" "$chain" >/dev/null 2>&1 || echo "chain=$table/$chain"
    done < <(sed -nE 's/^([a-z]+) -I ([^ ]+) .*/\1 \2/p' <<<"${WANT[$1]}" | sort -u)
}

new_sysctls() { # family, old records
    local path value
    [[ ${OPT[set-sysctl]:-no} == yes ]] || return 0
    missing_sysctls "$1" | while read -r path value; do
        grep -q "^$path=" <<<"$2" || old_values "$path"
    done
}
