#!/bin/sh
# usage: nodes.sh COUNT DELAY_MS "QDISC" COMMAND...
# Runs a command, as root, beside network namespaces node0, node1, ..., which stand in for nodes. Each
# has eth0 with the address 10.231.78.1, .2, ..., and sends by a queueing discipline, such as
# "tbf rate 1gbit burst 256kb latency 50ms", or by "" without one. With a delay there are two, which
# relay.py connects, since not every kernel has netem; else a bridge does.
set -e
count=$1 delay=$2 qdisc=$3
shift 3
remove() {
	test -z "$relay" || kill "$relay"
	for i in $(seq 0 $((count - 1))); do ip netns del "node$i" 2>/dev/null || true; done
	ip link del peers0 2>/dev/null || true
}
trap remove EXIT
trap 'exit 130' INT TERM
for i in $(seq 0 $((count - 1))); do ip netns add "node$i"; done
if test "$delay" = 0; then
	ip link add peers0 type bridge
	ip link set peers0 up
	for i in $(seq 0 $((count - 1))); do
		ip link add "peers0v$i" type veth peer name eth0 netns "node$i"
		ip link set "peers0v$i" master peers0 up
	done
else
	python3 "$(dirname "$0")/relay.py" "$delay" node0 node1 &
	relay=$!
	until ip -n node1 link show eth0 >/dev/null 2>&1; do sleep 0.1; done
fi
for i in $(seq 0 $((count - 1))); do
	ip -n "node$i" addr add "10.231.78.$((i + 1))/24" dev eth0
	ip -n "node$i" link set eth0 up
	ip -n "node$i" link set lo up
	# shellcheck disable=SC2086 # its words
	test -z "$qdisc" || tc -n "node$i" qdisc add dev eth0 root $qdisc
done
"$@"
