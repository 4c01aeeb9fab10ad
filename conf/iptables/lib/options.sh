# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Options of msfrs-iptables: their names, defaults, checks; the command line and the configuration file give the same.

KEYS=(mode inside source intercept redirect-ports tproxy-ports quic exempt-client exempt-destination ipv6
      gateway-traffic squid-user fwmark table set-sysctl backend)
declare -A OPT=(
    [mode]=redirect [inside]='' [source]='' [intercept]='80 443' [redirect-ports]='3129 3130'
    [tproxy-ports]='3131 3132' [quic]=reject [exempt-client]='' [exempt-destination]='' [ipv6]=yes
    [gateway-traffic]=no [squid-user]=proxy [fwmark]=0x100/0x100 [table]=3129 [set-sysctl]=no [backend]=auto)
declare -A SEEN=()

usage() {
    cat <<END
Usage: $PROG up|down|check|print [--config FILE] [--OPTION VALUE]...

  up     intercept; replaces what an earlier 'up' with other options made
  down   put everything back as it was before the first 'up'
  check  exit code 0 if all is in place; 1, and what is missing, if not
  print  show the commands of 'up' on a clean system; changes nothing, needs no rights

Options are read from $DEFAULT_CONF, where it exists, or from FILE ('none': no file); lines 'option = value',
'#' starts a comment. An option on the command line replaces the one in the file. Lists take spaces or commas.

  --inside LIST                interfaces that the users are on; required
  --mode redirect|tproxy       redirect: servers see the gateway's address; tproxy: the user's own (${OPT[mode]})
  --source LIST                users' networks; none given: everybody on the inside interfaces
  --intercept LIST             80, 443 or both (${OPT[intercept]})
  --redirect-ports HTTP,HTTPS  Squid's http_port and https_port with 'intercept' (${OPT[redirect-ports]// /,})
  --tproxy-ports HTTP,HTTPS    the same with 'tproxy' (${OPT[tproxy-ports]// /,}); all four are closed to direct use
  --quic reject|allow          reject: UDP port 443 is refused, so that browsers use TCP at once (${OPT[quic]})
  --exempt-client LIST         users who are never intercepted
  --exempt-destination LIST    servers that are never intercepted; the gateway's own addresses never are
  --ipv6 yes|no                with no, IPv6 users pass Squid by (${OPT[ipv6]})
  --gateway-traffic yes|no     redirect what the gateway itself fetches, all but Squid's user (${OPT[gateway-traffic]})
  --squid-user NAME            as cache_effective_user in squid.conf (${OPT[squid-user]})
  --fwmark VALUE/MASK          firewall mark for tproxy; bits that nothing else uses (${OPT[fwmark]})
  --table NUMBER               routing table for tproxy; must be empty (${OPT[table]})
  --set-sysctl yes|no          set the sysctls that must be set, until 'down'; no: only say so (${OPT[set-sysctl]})
  --backend auto|nft|legacy    which iptables; auto: the one that 'iptables' is (${OPT[backend]})

Exit codes: 0 done; 1 check found something missing; 2 wrong use or configuration; 3 refused, nothing was changed;
4 a step failed, and what was there before has been put back.
END
}

one_of() { # where key value allowed...
    local where=$1 key=$2 value=$3 word; shift 3
    for word; do [[ $value != "$word" ]] || return 0; done
    wrong "$where: $key '$value' is not one of: $*"
}

number() { # text min max; decimal without leading zeros
    [[ $1 =~ ^(0|[1-9][0-9]{0,9})$ ]] && (( $1 >= $2 && $1 <= $3 ))
}

# Address or network in CIDR notation. 0: right; 1: none; 2: bits are set behind the prefix.
net4() {
    local length=32 octets octet value=0
    [[ $1 != */* ]] || { length=${1#*/}; number "$length" 0 32 || return 1; }
    [[ ${1%%/*} =~ ^([0-9]+)\.([0-9]+)\.([0-9]+)\.([0-9]+)$ ]] || return 1
    octets=("${BASH_REMATCH[@]:1}")
    for octet in "${octets[@]}"; do
        number "$octet" 0 255 || return 1
        value=$(( value << 8 | octet ))
    done
    (( (value & ((1 << (32 - length)) - 1)) == 0 )) || return 2
}

net6() {
    local length=128 address=${1%%/*} left right groups tail group i rest
    [[ $1 != */* ]] || { length=${1#*/}; number "$length" 0 128 || return 1; }
    if [[ $address == *::* ]]; then
        left=${address%%::*} right=${address#*::}
        [[ $left != *: && $right != *: ]] || return 1
        IFS=: read -ra groups <<<"$left"
        IFS=: read -ra tail <<<"$right"
        (( ${#groups[@]} + ${#tail[@]} < 8 )) || return 1
        while (( ${#groups[@]} + ${#tail[@]} < 8 )); do groups+=(0); done
        groups+=("${tail[@]}")
    else
        [[ $address != *: ]] || return 1
        IFS=: read -ra groups <<<"$address"
    fi
    (( ${#groups[@]} == 8 )) || return 1
    for group in "${groups[@]}"; do [[ $group =~ ^[0-9a-fA-F]{1,4}$ ]] || return 1; done
    for i in {0..7}; do
        rest=$(( length - 16 * i ))
        (( rest >= 16 )) && continue
        (( rest > 0 )) || rest=0
        (( (16#${groups[i]} & ((1 << (16 - rest)) - 1)) == 0 )) || return 2
    done
}

network() { # where key text
    local check=net4
    [[ $3 != *:* ]] || check=net6
    $check "$3" && return
    (( $? == 1 )) || wrong "$1: $2 '$3' has bits set behind its prefix length ${3#*/}"
    wrong "$1: $2 '$3' is not an IPv4 or IPv6 address or network; write it as 10.0.0.0/8 or 2001:db8::/32"
}

fwmark() { # where text; sets OPT[fwmark] as the kernel shows it
    local value mask
    if [[ $2 =~ ^(0x[0-9a-fA-F]{1,8}|[0-9]{1,10})/(0x[0-9a-fA-F]{1,8}|[0-9]{1,10})$ ]]; then
        # 10#: a leading zero does not make it octal
        value=${BASH_REMATCH[1]} mask=${BASH_REMATCH[2]}
        [[ $value == 0x* ]] || value=10#$value
        [[ $mask == 0x* ]] || mask=10#$mask
        value=$((value)) mask=$((mask))
        if (( value > 0 && mask <= 0xffffffff && (value & mask) == value )); then
            printf -v 'OPT[fwmark]' '0x%x/0x%x' "$value" "$mask"
            return
        fi
    fi
    wrong "$1: fwmark '$2' must be VALUE/MASK, 32 bits, VALUE not 0 and within MASK, for example 0x100/0x100"
}

set_option() { # where key value
    local where=$1 key=$2 words word
    [[ -n $key && -v OPT[$key] ]] || wrong "$where: unknown option '$key'; known: ${KEYS[*]}"
    [[ ! -v SEEN[$key] ]] || wrong "$where: '$key' was given before (${SEEN[$key]}); give it once"
    SEEN[$key]=$where
    read -ra words <<<"${3//,/ }"
    OPT[$key]="${words[*]}"
    case $key in
        mode) one_of "$where" "$key" "$3" redirect tproxy ;;
        quic) one_of "$where" "$key" "$3" reject allow ;;
        backend) one_of "$where" "$key" "$3" auto nft legacy ;;
        ipv6 | gateway-traffic | set-sysctl) one_of "$where" "$key" "$3" yes no ;;
        inside)
            for word in "${words[@]}"; do
                [[ $word =~ ^[A-Za-z0-9_.-]{1,15}$ && $word != . && $word != .. ]] ||
                    wrong "$where: '$word' is not an interface name: 1 to 15 of A-Z a-z 0-9 _ . -"
            done ;;
        source | exempt-client | exempt-destination)
            for word in "${words[@]}"; do network "$where" "$key" "$word"; done ;;
        intercept)
            [[ ${OPT[$key]} =~ ^(80|443|80\ 443|443\ 80)$ ]] ||
                wrong "$where: intercept '$3' is not 80, 443 or both" ;;
        redirect-ports | tproxy-ports)
            { [[ ${#words[@]} == 2 ]] && number "${words[0]}" 1 65535 && number "${words[1]}" 1 65535; } ||
                wrong "$where: $key '$3' must be two ports from 1 to 65535: Squid's for HTTP and for HTTPS" ;;
        squid-user)
            [[ $3 =~ ^[A-Za-z0-9_][A-Za-z0-9_-]{0,31}$ ]] ||
                wrong "$where: squid-user '$3' is not a user name or number" ;;
        fwmark) fwmark "$where" "$3" ;;
        table)
            { number "$3" 1 4294967295 && (( $3 < 253 || $3 > 255 )); } ||
                wrong "$where: table '$3' must be from 1 to 4294967295, but not the system's 253, 254, 255" ;;
    esac
}

read_config() { # file
    local line text n=0 mode
    [[ -r $1 && -f $1 ]] || die "$E_USAGE" "$1: cannot be read; give a readable file with --config"
    mode=$(stat -L -c %a "$1")
    (( (8#$mode & 8#022) == 0 )) ||
        wrong "$1: others may write to it (mode $mode), and it decides over the firewall: chmod go-w $1"
    while IFS= read -r line || [[ -n $line ]]; do
        n=$((n + 1)) text=${line%%#*}
        [[ $text =~ [^[:space:]] ]] || continue
        [[ $text =~ ^[[:space:]]*([A-Za-z0-9-]+)[[:space:]]*=[[:space:]]*(.*[^[:space:]])?[[:space:]]*$ ]] ||
            wrong "$1:$n: '$line' is not 'option = value'"
        set_option "$1:$n" "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
    done <"$1"
}

# What can be said about the options together, before the system is looked at.
check_options() {
    local family ports
    [[ -n ${OPT[inside]} ]] || wrong "no inside interface: name the one that the users are on, --inside eth0"
    ports=$(tr ' ' '\n' <<<"${OPT[redirect-ports]} ${OPT[tproxy-ports]}" | sort | uniq -d)
    [[ -z $ports ]] ||
        wrong "port ${ports//$'\n'/ } is twice in redirect-ports and tproxy-ports; Squid needs four different ones"
    [[ ${OPT[gateway-traffic]} == no || ${OPT[mode]} == redirect ]] ||
        wrong "gateway-traffic works with mode redirect only: what the gateway sends comes in from no interface"
    [[ -n ${OPT[source]} ]] || return 0
    for family in $(families); do
        [[ -n $(of_family "$family" "${OPT[source]}") ]] ||
            wrong "source names no IPv$family network, so IPv$family users would pass Squid by; add one$(
                [[ $family == 4 ]] || echo ' or set ipv6 = no')"
    done
}

families() { echo 4; [[ ${OPT[ipv6]} == no ]] || echo 6; }

of_family() { # family list
    local word
    for word in $2; do
        case $1:$word in 6:*:* | 4:*.*) echo "$word" ;; esac
    done
}

