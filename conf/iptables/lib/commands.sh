# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# The commands up, down, check and print, and the command line. The script that reads this provides its options,
# `need_system`, `want_rules`, `want_routing`, `missing_sysctls`, `modules`, `print_sysctls` and `summary`.
# shellcheck disable=SC2153  # set by the script
readonly E_MISSING=1 E_USAGE=2 E_REFUSED=3 E_FAILED=4
readonly CAP_NET_ADMIN=12
export LC_ALL=C PATH="${PATH:-/usr/bin:/bin}:/usr/sbin:/sbin"

# shellcheck source=lib/options.sh
. "$LIB/options.sh" || exit
# shellcheck source=lib/rules.sh
. "$LIB/rules.sh" || exit
# shellcheck source=lib/state.sh
. "$LIB/state.sh" || exit

say() { printf '%s: %s\n' "$PROG" "$*"; }
warn() { printf '%s: warning: %s\n' "$PROG" "$*" >&2; }
die() { local code=$1; shift; printf '%s: %s\n' "$PROG" "$*" >&2; exit "$code"; }
wrong() { die $E_USAGE "$@"; }

need_rights() { # command
    local caps
    caps=$(sed -n 's/^CapEff:\s*//p' /proc/self/status)
    (( 16#$caps >> CAP_NET_ADMIN & 1 )) ||
        die $E_REFUSED "'$1' needs the right to change the firewall (CAP_NET_ADMIN): run it as root"
}

need_tools() {
    local place name
    command -v ip >/dev/null || die $E_REFUSED "ip: not found; install the package iproute2"
    for place in "$(main_place 4)" "$(main_place 6)"; do
        for name in "$(tool "$place")" "$(tool "$place" save)" "$(tool "$place" restore)"; do
            command -v "$name" >/dev/null || die $E_REFUSED "$name: not found; install the package iptables"
        done
    done
}

# Checks that the rules may name an interface. None may be present yet of those that a final + stands for.
need_interface() { # name; reason why the loopback is refused
    local link
    if [[ $1 == *+ ]]; then
        for link in $(names_of "$1"); do
            ! grep -qE "^ *$link:" /proc/net/dev || need_interface "$link" "$2"
        done
        return
    fi
    # ip complains of other interfaces, too: of one whose peer is in a namespace that ends at this moment.
    link=$(ip -d -o link show dev "$1" 2>/dev/null) ||
        die $E_REFUSED "no interface '$1' here; there are: $(ip -o link show 2>/dev/null | awk -F': ' '
        { sub(/@.*/, "", $2); if ($2 != "lo") printf "%s%s", n++ ? " " : "", $2 }')"
    [[ $link != *'<LOOPBACK'* ]] || die $E_REFUSED "interface '$1' is the loopback: $2"
    [[ ! $link =~ \ master\ ([^ ]+)\ .*(bridge|bond)_slave ]] ||
        die $E_REFUSED "interface '$1' is a port of '${BASH_REMATCH[1]}': name that one"
}

need_ipv6() {
    [[ ${OPT[ipv6]} == no || -e /proc/sys/net/ipv6 ]] ||
        die $E_REFUSED "this kernel runs without IPv6: set ipv6 = no"
}

take_lock() {
    local lock
    { exec {lock}>"$LOCK"; } 2>/dev/null || die $E_REFUSED "cannot write $LOCK"
    flock -w 20 "$lock" || die $E_REFUSED "another $PROG has been at work for 20 seconds; try again"
}

cmd_up() {
    local place path value family
    need_rights up; need_tools; need_system; take_lock
    read_state
    want_all
    replace_state
    for family in $(families); do
        while read -r path value; do
            if [[ ${OPT[set-sysctl]} == yes ]]; then
                set_sysctl "$path" "$value" || roll_back failed
            else
                warn "sysctl ${path//\//.} is not $value, as it must be; set it, or use --set-sysctl yes"
            fi
        done < <(missing_sysctls "$family")
    done
    trap '' INT TERM HUP
    for place in "${PLACES[@]}"; do         # no longer used: IPv6, or the other kind of iptables
        [[ -n ${WANT[$place]} ]] || undo_records "$place" "$(lines_without \
            "$(records "${NOW[$place]}")" "$(records "${WANT[$(main_place "${place::1}")]}" | grep ^net/)")"
    done
    say "up: $(summary)"
}

cmd_down() {
    local place failed=0
    need_rights down; need_tools; take_lock
    read_state
    replace_state
    trap '' INT TERM HUP
    for place in "${PLACES[@]}"; do
        undo_records "$place" "$(records "${NOW[$place]}")" || failed=1
    done
    (( failed == 0 )) || die $E_FAILED "down, but not every sysctl could be put back: see above"
    [[ ${NOW[*]}${ROUTES_NOW[*]} =~ [^\ ] ]] || { say 'down: nothing was up'; return; }
    say down
}

cmd_check() {
    local findings
    need_rights check; need_tools; need_system
    findings=$(differences) || exit
    [[ -z $findings ]] || { echo "$findings"; exit $E_MISSING; }
    say "in place: $(summary)"
}

differences() {
    local place family path value
    read_state
    for family in $(families); do
        place=$(main_place "$family")
        WANT[$place]=$(want_rules "$family") ROUTES_WANT[$family]=$(want_routing)
    done
    for place in "${PLACES[@]}"; do
        compare_rules "$place" "${NOW[$place]}" "${WANT[$place]}"
    done
    for family in "${!ROUTES_NOW[@]}"; do
        compare_routing "$family" "${ROUTES_NOW[$family]}" "${ROUTES_WANT[$family]}"
    done
    for family in $(families); do
        missing_sysctls "$family" | while read -r path value; do
            [[ ! -r /proc/sys/$path ]] ||
                echo "missing: sysctl ${path//\//.} must be $value and is $(<"/proc/sys/$path")"
        done
    done
}

cmd_print() {
    local family path value
    for family in $(families); do
        print_sysctls "$family"
        while read -r path value; do
            case $path in
                route) echo "ip -$family route add local default dev lo table $value proto $PROTO" ;;
                rule) echo "ip -$family rule add pref $PREF fwmark ${value% *} lookup ${value#* } protocol $PROTO" ;;
            esac
        done < <(want_routing)
        printf "%s --noflush <<'END'\n%s\nEND\n" "$(tool "$(main_place "$family")" restore)" \
            "$(transition '' "$(want_rules "$family")")"
    done
}

commands() { declare -F | sed -n 's/^declare -f cmd_//p' | paste -sd ' '; }

main() {
    local command='' config='' arg key value flags=() i
    while (( $# )); do
        arg=$1; shift
        case $arg in
            -h | --help) usage; exit 0 ;;
            --*)
                key=${arg#--} value=''
                if [[ $key == *=* ]]; then value=${key#*=} key=${key%%=*}
                elif (( $# )); then value=$1; shift
                else wrong "--$key: a value must follow"
                fi
                if [[ $key == config ]]; then config=$value; else flags+=("$key" "$value"); fi ;;
            *)
                declare -F "cmd_$arg" >/dev/null ||
                    wrong "'$arg' is not a command or option; commands are $(commands); see $PROG --help"
                [[ -z $command ]] || wrong "'$command' and '$arg': give one command"
                command=$arg ;;
        esac
    done
    [[ -n $command ]] || wrong "no command given; commands are $(commands); see $PROG --help"
    # A broken configuration must not keep `down` and `drain` from their work.
    if [[ $command != @(down|drain) && $config != none ]]; then
        if [[ -n $config ]]; then read_config "$config"
        elif [[ -e $DEFAULT_CONF ]]; then read_config "$DEFAULT_CONF"
        fi
    fi
    SEEN=()
    for (( i = 0; i < ${#flags[@]}; i += 2 )); do set_option "--${flags[i]}" "${flags[i]}" "${flags[i + 1]}"; done
    [[ $command == @(down|drain) ]] || check_options
    "cmd_$command"
}
