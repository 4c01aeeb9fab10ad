# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Options of the scripts, the same on the command line and in a configuration file. The script provides their names and
# defaults (KEYS, OPT), and `set_own_option`, which checks values that are not checked here.
# shellcheck disable=SC2153  # set by the script

declare -A SEEN=()

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

set_option() { # where key value
    local where=$1 key=$2 words word
    [[ -n $key && -v OPT[$key] ]] || wrong "$where: unknown option '$key'; known: ${KEYS[*]}"
    [[ ! -v SEEN[$key] ]] || wrong "$where: '$key' was given before (${SEEN[$key]}); give it once"
    SEEN[$key]=$where
    read -ra words <<<"${3//,/ }"
    OPT[$key]="${words[*]}"
    case $key in
        ipv6) one_of "$where" "$key" "$3" yes no ;;
        backend) one_of "$where" "$key" "$3" auto nft legacy ;;
        *) set_own_option "$where" "$key" "$3" "${words[@]}" ;;
    esac
}

# With a final + it is, as for iptables, every interface whose name begins so, present or not.
interface_name() { # where text
    [[ $2 =~ ^[A-Za-z0-9_.-]+\+?$ && ${#2} -le 15 && $2 != . && $2 != .. ]] ||
        wrong "$1: '$2' is not an interface name: 1 to 15 of A-Z a-z 0-9 _ . -, or the beginning of names and a +"
}

names_of() { # interface name: those present, if it ends in +
    if [[ $1 == *+ ]]; then
        # Not of `ip link`, which complains of a cable whose other end is in a namespace that ends at this moment.
        awk -v begin="${1%+}" 'NR > 2 { gsub(/^ *|:.*/, ""); if (index($0, begin) == 1) print }' /proc/net/dev
    else
        echo "$1"
    fi
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

families() { echo 4; [[ ${OPT[ipv6]} == no ]] || echo 6; }

of_family() { # family list
    local word
    for word in $2; do
        case $1:$word in 6:*:* | 4:*.*) echo "$word" ;; esac
    done
}

