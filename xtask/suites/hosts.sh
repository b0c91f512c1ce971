# Runs a command on the first of some hosts, which are network namespaces of this machine, joined by a switch: each has an
# address, a name and a `/dev/shm` of its own, so that ranks on two of them meet by messages only, and cores of its own, as
# far as there are enough.
#
#     hosts.sh NUMBER RATE NETWORK COMMAND...    RATE of a link, such as 1gbit, or empty; NETWORK such as 10.77.0
#
# The variable SETUP holds commands that change the network before the command runs: `out HOST ...` and `into HOST ...` are `tc`
# at the end of a host's link in the host, and at its end at the switch: `out 3 qdisc replace dev wire root tbf ...`, `into 3
# qdisc replace dev port3 ...`.
#
# In the command AGENT is the program that takes the place of ssh for launchers: `agent HOST COMMAND...`, where the host is
# a number or an address. The hosts exist until the command ends, or this process is asked to end.
set -e
number=$1 rate=$2 network=$3
shift 3
name=roundelay$$
folder=$(mktemp -d)
agent=$folder/agent

remove() {
    trap '' INT TERM HUP
    for host in "$name" $(seq -f "${name}h%g" 1 "$number"); do
        for pid in $(ip netns pids "$host" 2> /dev/null); do kill -KILL "$pid"; done
        ip netns delete "$host" 2> /dev/null
    done
    rm -rf "$folder"
}
trap remove EXIT
trap 'exit 143' INT TERM HUP

# The cores that this process may run on, such as 0-2,5, one on each line; the hosts take turns with them.
mapfile -t cores < <(sed -n 's/^Cpus_allowed_list:\s*//p' /proc/self/status | tr ',' '\n' \
    | while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done)
shares=$((number < ${#cores[@]} ? number : ${#cores[@]}))
ip netns add "$name"
ip -n "$name" link add switch type bridge
ip -n "$name" link set switch up
for i in $(seq 1 "$number"); do
    ip netns add "${name}h$i"
    ip link add "port$i" netns "$name" type veth peer name wire netns "${name}h$i"
    ip -n "$name" link set "port$i" master switch
    ip -n "$name" link set "port$i" up
    ip -n "${name}h$i" address add "$network.$i/24" dev wire
    ip -n "${name}h$i" link set lo up
    ip -n "${name}h$i" link set wire up
    if [ -n "$rate" ]; then
        tc -n "${name}h$i" qdisc add dev wire root tbf rate "$rate" burst 256kb latency 50ms
    fi
    own=
    for ((at = (i - 1) % shares; at < ${#cores[@]}; at += shares)); do own+=,${cores[at]}; done
    echo "${own#,}" > "$folder/h$i"
done

out() { tc -n "${name}h$1" "${@:2}"; }
into() { tc -n "$name" "${@:2}"; }
eval "$SETUP"
cat > "$agent" << END
#!/bin/bash
while [[ \$1 == -* ]]; do shift; done
host=h\${1##*[.h]}
shift
exec ip netns exec "$name\$host" taskset -c "\$(cat "$folder/\$host")" unshare --uts --ipc --mount bash -c \
    'hostname "\$0" && mount -t tmpfs tmpfs /dev/shm && exec bash -c "\$1"' "\$host" "\$*"
END
chmod +x "$agent"
words=
for word in "$@"; do words+=" $(printf %q "${word/#AGENT/$agent}")"; done
# A shell that waits for a child in the background hears signals at once.
"$agent" h1 "cd $(printf %q "$PWD") &&$words" < /dev/null &
wait $!
